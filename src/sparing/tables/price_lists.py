"""A price list to fill in: one line per column found, with what is known about it as a comment."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any

import numpy as np

from sparing.tables.content import is_words

_ID_ROWS = 20
"""Fewer rows may have different values by chance."""
_ID_NAME = r"(?i:(^|[\W_])(id|key|uuid|nr|no|number|index)$)|[a-z](ID|Id)$"


def draft_price_list(X: Any, *, title: str = "a table") -> str:
    """Text of a ``costs.toml`` with every price 1, to be filled in.

    Columns of ids are commented out: their value says who a row is, and nobody can learn from it.
    Columns that are one attribute written as zeros and ones (``soil_1``, ``soil_2``, …: at most one of them is 1 in a
    row) share an item: whoever asks one of them knows them all.

    Parameters
    ----------
    X : pandas.DataFrame
        As :func:`read_table` gives it, without the target.
    title : str
        What the list is for.

    Returns
    -------
    str
        TOML; ``FeatureCosts.from_toml`` reads it as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> print(draft_price_list(pd.DataFrame({"age": [61.0, None]}), title="patients.csv"))
    # Prices of the columns of patients.csv.
    # ...
    [prices]
    age = 1.0  # number, 61 to 61, 50% missing
    ...
    """
    ids = id_columns(X)
    attributes = one_hot_attributes(X)
    inside = {name for names in attributes.values() for name in names}
    keys = {name: _key(name) for name in X.columns}
    lines = [
        f"# Prices of the columns of {_comment(title)}.",
        "# A price is what one value costs for one row: money, minutes, whatever you save; 0 is what you have anyway.",
        "",
        "# Price of asking the full model itself, per row that is sent to it (an API, a person):",
        "# call_price = 0.0",
        "",
        "[prices]",
    ]
    for name in X.columns:
        line = f"{keys[name]} = {'0.0' if name in inside else '1.0'}  # {_about(X[name])}"
        if name in ids:
            lines.append(
                "# Left out, as it looks like an id (no two rows the same); use fit --drop:"
            )
            line = f"# {line}"
        lines.append(line)
    lines += [
        "",
        "# What several columns share is paid once, on top of their own prices: a blood draw, a request to a bureau.",
    ]
    if not attributes:
        some = [_text(name) for name in [n for n in X.columns if n not in ids][:2]]
        lines += [
            '# [shared."blood draw"]',
            "# price = 2.10",
            f"# columns = [{', '.join(some)}]",
        ]
    for attribute, names in attributes.items():
        listed = ", ".join(_text(name) for name in names)
        lines += [
            f"[shared.{_key(attribute)}]",
            f"price = 1.0  # one attribute behind {len(names)} columns",
            f"columns = [{listed}]",
            "",
        ]
    lines += [
        "",
        "# Columns that are computed from others need what these need:",
        "# [derived]",
        '# ratio = ["numerator", "denominator"]',
    ]
    return "\n".join(lines) + "\n"


def id_columns(X: Any) -> list[str]:
    """Columns of whole numbers that say who a row is: no two are the same, and they are named or numbered like ids.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"row": range(30), "customer_id": [7 * i % 31 * 5 for i in range(30)]})
    >>> id_columns(frame.assign(pay=[7 * i % 31 * 5 for i in range(30)]))
    ['row', 'customer_id']
    """
    found = []
    for name in X.columns:
        column = X[name]
        if is_words(column) or len(column) < _ID_ROWS or column.isna().any():
            continue
        values = column.to_numpy(dtype=float)
        ordered = np.unique(values)
        if len(ordered) < len(values) or (values != np.round(values)).any():
            continue
        steps = np.diff(values)
        counted = ordered[-1] - ordered[0] == len(values) - 1 or (steps > 0).all()
        if counted or re.search(_ID_NAME, str(name)):
            found.append(name)
    # A list without a price could not be read.
    return found if len(found) < X.shape[1] else []


def one_hot_attributes(X: Any) -> dict[str, list[str]]:
    """Groups of columns that are one attribute written as zeros and ones, by the name they have in common.

    Examples
    --------
    >>> import pandas as pd
    >>> one_hot_attributes(pd.DataFrame({"soil_1": [1, 0, 0], "soil_2": [0, 1, 0], "age": [0, 1, 1]}))
    {'soil': ['soil_1', 'soil_2']}
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in X.columns:
        found = re.fullmatch(r"(.*?\w)(?:[_=: .-]+[^_=: .-]+|[_=: .-]*\d+)", str(name))
        if found:
            groups[found[1]].append(name)
    out = {}
    for stem, names in groups.items():
        if len(names) < 2 or any(is_words(X[name]) for name in names):
            continue
        values = X[names].to_numpy(dtype=float)
        if np.isin(values, (0.0, 1.0)).all() and (values.sum(axis=1) <= 1).all():
            # An item may not have the name of a column.
            out[stem if stem not in X.columns else f"{stem} (attribute)"] = names
    return out


def _about(column: Any) -> str:
    missing = float(column.isna().mean())
    gaps = f", {missing:.0%} missing" if missing else ""
    if is_words(column):
        return f"text, {column.nunique()} levels{gaps}"
    values = column.dropna()
    if not len(values):
        return "number, never there"
    return f"number, {values.min():.6g} to {values.max():.6g}{gaps}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(name: str) -> str:
    # JSON's text is TOML's, but for one sign that only TOML wants escaped.
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    return " ".join(text.split())
