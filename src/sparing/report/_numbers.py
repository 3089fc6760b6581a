"""Numbers as people read them. The page does no formatting of its own: what it shows is written here, once."""

from __future__ import annotations

from typing import Any

_NONE = "–"
_MINUS = "−"


def amount(value: float | None) -> str:
    """A cost, with about four digits.

    Examples
    --------
    >>> [amount(v) for v in (0, 0.01234, 14.5, 1234.5, None)]
    ['0', '0.0123', '14.50', '1,234', '–']
    """
    if value is None:
        return _NONE
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1:
        return _signed(f"{value:.3g}")
    return _signed(f"{value:,.2f}" if size < 1000 else f"{value:,.0f}")


def score(value: float | None) -> str:
    """A score.

    Examples
    --------
    >>> score(0.98483), score(-12.5)
    ('0.9848', '−12.5000')
    """
    return _NONE if value is None else _signed(f"{value:.4f}")


def difference(value: float | None) -> str:
    """A difference of scores, with its sign.

    Examples
    --------
    >>> difference(0.0088), difference(-0.0088), difference(-0.00001)
    ('+0.0088', '−0.0088', '0.0000')
    """
    if value is None:
        return _NONE
    text = f"{value:+.4f}"
    return "0.0000" if text in ("+0.0000", "-0.0000") else _signed(text)


def percent(value: float | None) -> str:
    """A share.

    Examples
    --------
    >>> percent(0.8007), percent(-0.25)
    ('80.1%', '−25.0%')
    """
    return _NONE if value is None else _signed(f"{100 * value:.1f}%")


def count(value: int | None) -> str:
    """A number of rows.

    Examples
    --------
    >>> count(1234567)
    '1,234,567'
    """
    return _NONE if value is None else f"{value:,d}"


def plain(value: Any) -> str:
    """A setting in one line.

    Examples
    --------
    >>> plain({"a": [1, 2.5]}), plain(None), plain(0.05)
    ('a: 1, 2.5', 'none', '0.05')
    """
    if value is None:
        return "none"
    if isinstance(value, dict):
        return "; ".join(f"{name}: {plain(entry)}" for name, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(plain(entry) for entry in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _signed(text: str) -> str:
    return text.replace("-", _MINUS) if "e" not in text else text
