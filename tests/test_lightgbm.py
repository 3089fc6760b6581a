import subprocess
import sys

CODE = """
import builtins
load = builtins.__import__
def without_openmp(name, *rest):
    if name == "lightgbm":
        raise OSError("libgomp.so.1: cannot open shared object file: No such file or directory")
    return load(name, *rest)
builtins.__import__ = without_openmp
import sparing
"""


def test_a_missing_openmp_runtime_is_named_with_its_cure():
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "ImportError: LightGBM could not be loaded: libgomp.so.1" in run.stderr
    assert "apt-get install libgomp1" in run.stderr
