"""What the displays share: matplotlib when it is there, colours that everybody can tell apart, quiet axes."""

from __future__ import annotations

from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, safe for the common kinds of colour blindness; black last."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#6E6E6E"
BEIGE = "#F7EFD9"


def pyplot(who: str) -> Any:
    """Return matplotlib's pyplot, or raise an error that says how to get it."""
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError(f"{who} draws with matplotlib: pip install 'sparing[plot]'.") from error
    return matplotlib.pyplot


def quiet(ax: Any) -> None:
    """Take away what says nothing: two of the four spines, and dark grid lines."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#E6E6E6", linewidth=0.8)
    ax.set_axisbelow(True)


def tint(colour: str, share: float) -> tuple[float, float, float]:
    """A colour mixed with white, ``share`` of it left."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return red, green, blue
