"""Lines of an AcquisitionDisplay: what stands in one, and how its numbers and names are written."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LONGEST_NAME = 28


@dataclass(frozen=True, eq=False)
class Line:
    """One line of the picture: a bar, or the heading of a stage, or the sum."""

    name: str
    shares: Floats | None = None
    price: float = 0.0
    stage: int | None = None
    note: str = ""
    cost: float = 0.0

    @property
    def is_bar(self) -> bool:
        """Whether the line is a bar."""
        return self.shares is not None


def number_beside(ax: Any, points: float, y: float, text: str, colour: str) -> None:
    """A number right of the axes, at the height of a line."""
    ax.annotate(
        text,
        (1, y),
        xycoords=ax.get_yaxis_transform(),
        xytext=(points, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        color=colour,
        fontsize="small",
        annotation_clip=False,
    )


def plain(value: float, unit: float) -> str:
    """A number without exponent, with the decimals that four digits of ``unit`` need."""
    decimals = int(np.clip(3 - np.floor(np.log10(unit)), 0, 6)) if unit > 0 else 0
    return f"{value:.{decimals}f}"


def percent(share: float) -> str:
    """A share in words that never make 0 or 100 % of something that is not."""
    if 0 < share < 0.01:
        return "under 1%"
    return "over 99%" if 0.99 < share < 1 else f"{share:.0%}"


def short_name(name: Hashable) -> str:
    """A name on one line, cut where it would take too much room."""
    text = " ".join((f"column {name}" if isinstance(name, int) else str(name)).splitlines())
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"
