"""Settings of the documentation: ``make docs`` builds it, warnings are errors."""

import re
from pathlib import Path

import matplotlib as mpl
from sphinx_gallery.sorting import FileNameSortKey

import sparing

mpl.use("Agg")

HERE = Path(__file__).parent
ROOT = HERE.parent

project = "sparing"
author = "The sparing developers"
copyright = author
version = release = sparing.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "gallery/*.ipynb", "gallery/**/*.py"]
templates_path = ["_templates"]
suppress_warnings = [
    "config.cache",  # the sort key of the gallery is a class
    "ref.python",  # "list of columns" is words, and no attribute of that name
]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # fields, not members
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": FileNameSortKey,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "min_reported_time": 0,
    "copyfile_regex": r"",
}

html_theme = "pydata_sphinx_theme"
html_title = "sparing"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_show_sourcelink = False
html_show_copyright = False
html_copy_source = False
html_sidebars = {
    page: [] for page in ("index", "getting-started", "idea", "paper", "architecture", "scope")
}
html_theme_options = {
    "logo": {"text": "sparing"},
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "navigation_with_keys": False,
}

BENCHMARK_PAGES = {"RESULTS.md": "results.md", "DIFFERENCES.md": "differences.md"}
"""What the benchmarks write about themselves, and the page it becomes."""


def benchmark_pages(app: object) -> None:  # noqa: ARG001
    """Take over the pages that the benchmarks have written, word for word; only links are made to lead there."""
    folder = HERE / "benchmarks"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    written = []
    for name, page in BENCHMARK_PAGES.items():
        source = ROOT / "benchmarks" / name
        if source.exists():
            text = source.read_text(encoding="utf-8")
            (folder / page).write_text(_links_from(text, "../../benchmarks/"), encoding="utf-8")
            written.append(page.removesuffix(".md"))
    about = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    toctree = "\n".join(["", "```{toctree}", ":maxdepth: 1", "", *written, "```", ""])
    (folder / "index.md").write_text(
        _links_from(about, "../../benchmarks/") + toctree, encoding="utf-8"
    )


def _links_from(text: str, folder: str) -> str:
    """Links of a page to its neighbours, as they are from another folder; pages of the docs stay pages."""

    def moved(match: re.Match[str]) -> str:
        target = match[2]
        if re.match(r"[a-z]+:|#|/", target):
            return match[0]
        pages = BENCHMARK_PAGES | {"README.md": "index.md"}
        return f"{match[1]}({pages.get(target, folder + target)})"

    return re.sub(r"(!?\[[^\]]*\])\(([^)\s]+)\)", moved, text)


def command_page(app: object) -> None:  # noqa: ARG001
    """The help of every command, as the program prints it."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from sparing.cli import app as program

    def help_of(words: list[str]) -> str:
        told = CliRunner().invoke(program, [*words, "--help"], env={"COLUMNS": "100"})
        return f"```text\n{told.output.strip()}\n```\n"

    def names(command: object, words: list[str]) -> list[list[str]]:
        inside = getattr(command, "commands", None)
        if inside is None:
            return [words]
        return [found for name, part in inside.items() for found in names(part, [*words, name])]

    page = ["# Commands\n", help_of([])]
    for words in names(get_command(program), []):
        page += [f"## sparing {' '.join(words)}\n", help_of(words)]
    folder = HERE / "api" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "commands.md").write_text("\n".join(page), encoding="utf-8")


def skip_inherited(app, what, name, member, skip, options):  # noqa: ARG001
    """Leave out what scikit-learn adds to every estimator: it is documented there."""
    inherited = {"get_metadata_routing", "set_fit_request", "set_score_request", "set_output"}
    return True if name in inherited else None


def setup(app: object) -> None:
    """Write the pages that come from elsewhere before anything is read."""
    app.connect("builder-inited", benchmark_pages)
    app.connect("builder-inited", command_page)
    app.connect("autodoc-skip-member", skip_inherited)
