"""The report as one HTML file: no network, no style or script but its own, every text escaped.

The page may be opened by anybody anywhere, and names of columns and classes come from other people's data. So its
Content Security Policy allows exactly one script and one style sheet, by their hashes, and nothing from outside.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from os import PathLike
from typing import Any

from sparing.report import _charts as charts
from sparing.report import _numbers as numbers
from sparing.report.summary import summarise
from sparing.runtime._archive import write_whole

_WIDE, _NARROW = (760, 380), (400, 340)
"""Sizes of the frontier's picture: on a screen or on paper, and on a phone, where text would get too small."""
_RELIABILITY = (320, 280)
_STAGE_COLOURS = 6
"""Colours the style sheet has for stages; they are used again after that."""


def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | PathLike[str],
    *,
    segments: Any = None,
    examples: int = 0,
    title: str | None = None,
    note: str | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Measure a model on labelled rows and write the report as one HTML file.

    The file appears whole or not at all.

    Parameters
    ----------
    model, X, y, segments, examples, title, note
        As in :func:`summarise`.
    path : str or path
        Usually ends in ``.html``.
    **settings
        Further settings of :func:`summarise`.

    Returns
    -------
    dict
        What :func:`summarise` gives, and the file shows.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sparing import AdaptLinClassifier
    >>> from sparing.datasets import make_synthetic1
    >>> from sparing.report import write_report
    >>> (X, y), (X_test, y_test) = (make_synthetic1(random_state=i) for i in range(2))
    >>> clf = AdaptLinClassifier(full_rate=0.5, random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     summary = write_report(clf, X_test, y_test, Path(folder, "report.html"))
    ...     Path(folder, "report.html").read_text("utf-8")[:15]
    '<!doctype html>'
    """
    _jinja2()  # before the work, not after it
    summary = summarise(
        model, X, y, segments=segments, examples=examples, title=title, note=note, **settings
    )
    # A name may hold half a character, which no file can.
    write_whole(path, render(summary).encode("utf-8", "replace"))
    return summary


def render(summary: Mapping[str, Any]) -> str:
    """The page of a summary, as text.

    Parameters
    ----------
    summary : mapping
        What :func:`summarise` gives, or the same read from JSON.

    Returns
    -------
    str

    Examples
    --------
    >>> from sparing import AdaptLinClassifier
    >>> from sparing.datasets import make_synthetic1
    >>> from sparing.report import render, summarise
    >>> X, y = make_synthetic1()
    >>> clf = AdaptLinClassifier(cv=2, random_state=0).fit(X[::2], y[::2])
    >>> page = render(summarise(clf, X[1::2], y[1::2]))
    >>> page.lower().startswith("<!doctype html>")
    True
    """
    jinja2 = _jinja2()
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sparing.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for name in ("amount", "score", "difference", "percent", "count", "plain"):
        environment.filters[name] = environment.globals[name] = getattr(numbers, name)
    environment.filters["bar"] = charts.bar
    environment.filters["stage_class"] = lambda i: f"stage-{i % _STAGE_COLOURS}"
    style, script = (environment.get_template(f"report.{kind}").render() for kind in ("css", "js"))
    page: str = environment.get_template("report.html").render(
        summary=summary,
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        live=_live(summary),
        pictures=[
            ("wide", charts.frontier_chart(summary["frontier"], *_WIDE)),
            ("narrow", charts.frontier_chart(summary["frontier"], *_NARROW)),
        ],
        reliability=[
            charts.reliability_chart(stage["bins"], *_RELIABILITY) if stage["bins"] else None
            for stage in summary["calibration"]
        ],
    )
    return page


def _live(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What the slider shows of every system: the numbers, and the numbers as text."""
    scoring = summary["headline"]["scoring"].replace("_", " ")
    systems = []
    for system in summary["frontier"]["systems"]:
        shares = [stage["share"] for stage in system["stages"]]
        loss = None if system["loss"] is None else -system["loss"]
        text = {
            "cost": numbers.amount(system["cost"]),
            "score": numbers.score(system["score"]),
            "difference": numbers.difference(loss),
            "saving": numbers.percent(system["saving"]),
            "label": system["label"],
        }
        spoken = f"cost {text['cost']}, {scoring} {text['score']}"
        if system["saving"] is not None:
            spoken += f", saves {text['saving']}"
        systems.append(
            {
                "cost": system["cost"],
                "score": system["score"],
                "saving": system["saving"],
                "shares": shares,
                "names": [stage["name"] for stage in system["stages"]],
                "text": {
                    **text,
                    "shares": [numbers.percent(share) for share in shares],
                    "spoken": spoken,
                },
            }
        )
    return {
        "chosen": summary["frontier"]["chosen"],
        "colours": _STAGE_COLOURS,
        "systems": systems,
    }


def _policy(style: str, script: str) -> str:
    """A Content Security Policy that allows these two texts and nothing else."""

    def hashed(text: str) -> str:
        digest = hashlib.sha256(text.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    return (
        f"default-src 'none'; script-src {hashed(script)}; style-src {hashed(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _jinja2() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            "The report is a page made with jinja2: pip install 'sparing[report]'. "
            "sparing.report.summarise gives its content without."
        ) from error
    return jinja2
