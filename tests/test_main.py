import os
import subprocess
import sys

CODE = """
import time
import sparing.cli
from sparing.tables import whole_file

def app():
    with whole_file("answers.csv") as beside:
        beside.write_text("half")
        print("begun", flush=True)
        time.sleep(60)

sparing.cli.app = app
from sparing.__main__ import main
main()
"""


def test_a_command_that_is_told_to_end_leaves_no_file(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", CODE], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "begun\n"
        assert len(os.listdir(tmp_path)) == 1
        process.terminate()
        assert process.wait(30) == 143
    assert os.listdir(tmp_path) == []
