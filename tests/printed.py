"""What a page prints is what it does: its blocks are run in their order, as a reader would.

Python runs in one namespace per page. A block whose first line is a comment with a file name is written to that file.
Commands of ``sparing`` run in this process, ``sparing serve`` without listening; what ``curl`` sends goes to the
application that would have been served. ``make``, ``pip`` and scripts are not run: their targets must exist.
"""

import asyncio
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest
import uvicorn
from typer.testing import CliRunner

from sparing.cli import app
from sparing.runtime import service

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"# ([\w.-]+\.(?:toml|py|csv|txt))\n")


def blocks(page):
    """Language and text of every fenced block; the text is as many lines down as it stands in the page."""
    text = page.read_text(encoding="utf-8")
    for block in FENCE.finditer(text):
        yield block[1], block[2], text[: block.start(2)].count("\n")


class Reader:
    """Somebody who follows a page to the letter, in a folder of their own."""

    def __init__(self, page, folder, monkeypatch):
        self.page = page
        self.names = {"__name__": "__page__"}
        self.served = None
        self.answers = []
        self.commands = []
        monkeypatch.chdir(folder)
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setattr(service, "_check_address", lambda host, port: None)
        monkeypatch.setattr(uvicorn, "run", self._serve)
        self.monkeypatch = monkeypatch

    def follow(self):
        """Run every block of the page that can be run."""
        for language, text, line in blocks(self.page):
            named = FILE_NAME.match(text)
            if named:
                Path(named[1]).write_text(text, encoding="utf-8")
                # A module of that name that another test has imported is not the reader's.
                self.monkeypatch.delitem(sys.modules, Path(named[1]).stem, raising=False)
            elif language == "python":
                code = compile("\n" * line + text, str(self.page), "exec")
                exec(code, self.names)  # the pages are ours
            elif language == "bash":
                self.shell(text)
        return self

    def shell(self, text):
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            with self.monkeypatch.context() as patch:
                while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                    patch.setenv(*words.pop(0).split("=", 1))
                if words:
                    self.commands.append(words)
                    self.try_command(line, *words)

    def try_command(self, line, program, *words):
        if program == "sparing":
            outcome = CliRunner().invoke(app, words)
            assert outcome.exit_code == 0, f"{line}\n{outcome.output}\n{outcome.stderr}"
        elif program == "curl":
            self.answers.append(asyncio.run(self._ask(words)))
        elif program == "make":
            dry = ["make", "-n", "-C", str(ROOT), *words]
            assert subprocess.run(dry, capture_output=True, check=False).returncode == 0, line
        elif program in ("python", "python3"):
            known = {"benchmarks/run.py": ROOT / "benchmarks" / "run.py"}
            assert words[0] in ("-m", *known) or (ROOT / words[0]).exists(), line
        elif program == "pip":
            project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
            extras = re.search(r"\[(.*)\]", words[-1])
            if extras:
                assert set(extras[1].split(",")) <= set(project["optional-dependencies"]), line
        else:
            assert program in ("git", "cd"), f"{self.page.name} prints {line!r}: who tries it?"

    def _serve(self, application, **options):
        self.served = application

    async def _ask(self, words):
        assert self.served is not None, f"{self.page.name}: nothing is served"
        headers, method, body, url = {}, None, None, None
        rest = iter(words)
        for word in rest:
            if word == "-H":
                name, value = next(rest).split(": ", 1)
                headers[name] = value
            elif word == "-X":
                method = next(rest)
            elif word == "-d":
                body = next(rest)
            elif not word.startswith("-"):
                url = word
        transport = httpx.ASGITransport(self.served, client=("127.0.0.1", 4000))
        async with httpx.AsyncClient(transport=transport) as client:
            answer = await client.request(
                method or ("GET" if body is None else "POST"), url, headers=headers, content=body
            )
        assert answer.status_code == 200, answer.text
        return answer.json() if "json" in answer.headers["content-type"] else answer.text


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Gives a reader of a page."""
    yield lambda page: Reader(page, tmp_path, monkeypatch)
    for name in [
        name
        for name, module in sys.modules.items()
        if getattr(module, "__file__", None) and str(tmp_path) in module.__file__
    ]:
        del sys.modules[name]
