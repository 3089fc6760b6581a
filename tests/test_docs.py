"""The pages run as printed, hang together, and name every public name."""

import doctest
import importlib
import inspect
import keyword
import re

import pytest
from typer.main import get_command

from printed import ROOT, reader  # noqa: F401

DOCS = ROOT / "docs"
GENERATED = {"_build", "_templates", "gallery", "benchmarks", "generated"}
PAGES = sorted(
    page
    for page in (*DOCS.rglob("*.md"), *DOCS.rglob("*.rst"))
    if not set(page.relative_to(DOCS).parts) & GENERATED and page.name != "sg_execution_times.rst"
)
PUBLIC = [
    "sparing",
    "sparing.datasets",
    "sparing.displays",
    "sparing.frontier",
    "sparing.guarantees",
    "sparing.metrics",
    "sparing.report",
    "sparing.runtime",
    "sparing.runtime.service",
    "sparing.tables",
]


def named(page):
    return str(page.relative_to(DOCS if page.is_relative_to(DOCS) else ROOT))


@pytest.mark.parametrize(
    "page", [*(p for p in PAGES if p.suffix == ".md"), ROOT / "CONTRIBUTING.md"], ids=named
)
def test_a_page_runs_as_printed(page, reader):  # noqa: F811
    reader(page).follow()


# -- pages hang together ------------------------------------------------------------------------------


def children(page):
    """Pages in the toctrees of a page."""
    text = page.read_text(encoding="utf-8")
    lists = re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lists += re.findall(r"^\.\. toctree::\n((?:   .*\n|\n)+)", text, re.MULTILINE)
    entries = [line.strip() for block in lists for line in block.splitlines()]
    return {page.parent / entry for entry in entries if entry and not entry.startswith(":")}


def is_generated(path):
    return bool(set(path.resolve().relative_to(DOCS).parts) & GENERATED)


def test_every_page_is_in_a_toctree():
    listed = set().union(*(children(page) for page in PAGES))
    pages = {page.with_suffix("") for page in PAGES if page != DOCS / "index.md"}
    assert pages - listed == set()
    assert {path for path in listed - pages if not is_generated(path)} == set()


def links(text):
    return re.findall(r"!?\[[^\]]*\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def anchors(page):
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize(
    "page",
    [
        *(p for p in PAGES if p.suffix == ".md"),
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "benchmarks").glob("*.md")),
    ],
    ids=named,
)
def test_links_between_pages_lead_somewhere(page):
    for link in links(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if target.is_relative_to(DOCS) and is_generated(target):
            example = re.search(r"plot_\d\d_[a-z_]*?(?=_\d{3}\.png|$)", target.name)
            assert example is None or (ROOT / "examples" / f"{example[0]}.py").exists(), link
            continue
        assert target.exists(), f"{page.name} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to {link}"


# -- every public name --------------------------------------------------------------------------------


def listed_names():
    """Objects in the lists of the API page."""
    text = (DOCS / "api" / "index.rst").read_text(encoding="utf-8")
    found, module = [], None
    for line in text.splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.split()[-1]
        elif line.startswith(".. data::") or re.fullmatch(r"   [A-Za-z]\w*", line):
            name = line.split()[-1]
            found += [] if keyword.iskeyword(name) else [(module, name)]
    return found


def is_listed(value, listed):
    return any(value is other for other in listed)


def test_every_public_name_is_in_the_api_pages_and_has_an_example():
    text = (DOCS / "api" / "index.rst").read_text(encoding="utf-8")
    listed = [getattr(importlib.import_module(module), name) for module, name in listed_names()]
    missing, silent = [], []
    for module in PUBLIC:
        room = importlib.import_module(module)
        for name in room.__all__:
            value = getattr(room, name)
            if not is_listed(value, listed):
                missing.append(f"{module}.{name}")
            told = inspect.getdoc(value) if callable(value) else text.partition(f"data:: {name}")[2]
            if not doctest.DocTestParser().get_examples(told or ""):
                silent.append(f"{module}.{name}")
    assert (missing, silent) == ([], [])


def test_examples_of_the_api_page_run():
    outcome = doctest.testfile(
        str(DOCS / "api" / "index.rst"), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    assert outcome.attempted >= 4
    assert outcome.failed == 0


def commands(command, words=()):
    inside = getattr(command, "commands", None)
    if inside is None:
        yield " ".join(words), command
    else:
        for name, part in inside.items():
            yield from commands(part, (*words, name))


def test_every_command_says_what_it_does_and_how():
    from sparing.cli import app

    found = dict(commands(get_command(app)))
    assert len(found) >= 8
    for name, command in found.items():
        assert command.help, name
        assert name == "demo" or f"sparing {name} " in (command.epilog or ""), name


def test_examples_are_short_and_begin_with_a_question_answered():
    for path in sorted((ROOT / "examples").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert re.fullmatch(r"plot_\d\d_[a-z_]+\.py", path.name)
        assert text.count("\n") <= 120, path.name
        assert re.match(r'"""\n[A-Z].*\n=+\n', text), path.name
