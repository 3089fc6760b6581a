"""Where things stand in the pictures: coordinates only, the template draws.

Pictures are drawn with the page, not by its script: they are there on paper and without JavaScript.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_LEFT, _TOP, _RIGHT, _BOTTOM = 58, 14, 14, 46
"""Room for the numbers and names of the axes."""
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def ticks(low: float, high: float, n: int = 5) -> list[tuple[float, str]]:
    """Round numbers between two ends, about ``n`` of them, and how to write them.

    Examples
    --------
    >>> ticks(0, 75.12, 4)
    [(0.0, '0'), (20.0, '20'), (40.0, '40'), (60.0, '60')]
    >>> ticks(0.951, 0.991, 3)
    [(0.96, '0.96'), (0.98, '0.98')]
    """
    rough = (high - low) / n
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * next(s for s in _STEPS if s * power >= rough * (1 - 1e-9))
    numbers = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) * step
    decimals = next((d for d in range(12) if abs(round(step, d) - step) < 1e-6 * step), 12)
    rounded = [round(float(number), decimals) + 0.0 for number in numbers]  # no minus before a 0
    return [(number, f"{number:,.{decimals}f}") for number in rounded]


def frontier_chart(frontier: Mapping[str, Any], width: int, height: int) -> dict[str, Any]:
    """The systems of a summary's frontier, the full model, and the axes of cost and score.

    Parameters
    ----------
    frontier : mapping
        ``summary["frontier"]``.
    width, height : int
        Of the picture, in its own units.
    """
    everyone = [*frontier["systems"], *([frontier["full"]] if frontier["full"] else [])]
    scores = [point["score"] for point in everyone]
    dearest = max(point["cost"] for point in everyone)
    # Costs begin at nothing, so that lengths can be compared; scores are shown where they are.
    x = (0.0, dearest * 1.04 if dearest > 0 else 1.0)
    y = _padded(min(scores), max(scores))
    place = _Plane(x, y, width, height)
    points = [place.of(point["cost"], point["score"]) for point in frontier["systems"]]
    return {
        **place.frame(width // 110, height // 60),
        "points": points,
        "line": " ".join(f"{p['x']},{p['y']}" for p in points),
        "full": place.of(**frontier["full"]) if frontier["full"] else None,
        "chosen": points[frontier["chosen"]],
    }


def reliability_chart(
    bins: Sequence[Mapping[str, float]], width: int, height: int
) -> dict[str, Any]:
    """What was said against what was right, with the interval of every bin and the line where both agree."""
    low = min(min(b["said"], b["low"]) for b in bins)
    low = max(0.0, np.floor(10 * low - 0.2) / 10)
    place = _Plane((low, 1.0), (low, 1.0), width, height)
    return {
        **place.frame(3, 3),
        "agree": [place.of(low, low), place.of(1.0, 1.0)],
        "points": [
            {
                **place.of(b["said"], b["right"]),
                "low": place.of(b["said"], b["low"])["y"],
                "high": place.of(b["said"], b["high"])["y"],
            }
            for b in bins
        ],
    }


def bar(shares: Sequence[float]) -> list[dict[str, float]]:
    """Pieces of a bar 100 wide, one per stage that answers anybody, with the number of its stage."""
    ends = 100 * np.cumsum(shares)
    starts = np.concatenate([[0.0], ends[:-1]])
    return [
        {"stage": i, "x": round(float(a), 3), "width": round(float(b - a), 3)}
        for i, (a, b) in enumerate(zip(starts, ends, strict=True))
        if b > a
    ]


class _Plane:
    """From costs and scores to places in a picture."""

    def __init__(
        self, x: tuple[float, float], y: tuple[float, float], width: int, height: int
    ) -> None:
        self.x, self.y, self.width, self.height = x, y, width, height

    def of(self, cost: float, score: float) -> dict[str, float]:
        across = (cost - self.x[0]) / (self.x[1] - self.x[0])
        up = (score - self.y[0]) / (self.y[1] - self.y[0])
        return {
            "x": round(_LEFT + across * (self.width - _LEFT - _RIGHT), 2),
            "y": round(self.height - _BOTTOM - up * (self.height - _TOP - _BOTTOM), 2),
        }

    def frame(self, n_across: int, n_up: int) -> dict[str, Any]:
        return {
            "width": self.width,
            "height": self.height,
            "left": _LEFT,
            "right": self.width - _RIGHT,
            "top": _TOP,
            "bottom": self.height - _BOTTOM,
            "across": [
                {"at": self.of(v, self.y[0])["x"], "text": t} for v, t in ticks(*self.x, n_across)
            ],
            "up": [{"at": self.of(self.x[0], v)["y"], "text": t} for v, t in ticks(*self.y, n_up)],
        }


def _padded(low: float, high: float) -> tuple[float, float]:
    room = 0.08 * (high - low) or 0.01 * max(1.0, abs(high))
    return low - room, high + room
