"""A certificate: what was promised, on which evidence. Plain data, for people and for auditors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing

from sparing.system import Accounting

FORMAT = 1
"""Number of the layout that :meth:`Certificate.to_json` writes."""

_SENTENCES = {
    "tolerance": "{what} at most {limit:.4g} below the full model's",
    "budget": "average cost at most {limit:.4g}",
    "max_error": "error among the rows not sent to the full model at most {limit:.4g}",
    "min_recall": "share of missed rows of class {what} at most {limit:.4g}",
}


@dataclass(frozen=True)
class Finding:
    """One promise and the evidence for it.

    Attributes
    ----------
    kind : {"tolerance", "budget", "max_error", "min_recall"}
    what : str
        The score, or the class.
    limit : float
        What the quantity is promised not to exceed.
    estimate : float
        Its value on the calibration rows.
    bound : float
        Upper confidence bound of this system taken alone. The promise is the limit: choosing among systems is paid for
        there and not here.
    p_value : float
    n : int
        Rows that say something about it.
    method : str

    Examples
    --------
    >>> from sparing.guarantees import Finding
    >>> finding = Finding("budget", "average cost", 5.0, 4.2, 4.7, 0.01, 300, "betting")
    >>> finding.bound <= finding.limit
    True
    """

    kind: str
    what: str
    limit: float
    estimate: float
    bound: float
    p_value: float
    n: int
    method: str

    def __str__(self) -> str:
        promise = _SENTENCES[self.kind].format(what=self.what, limit=self.limit)
        return (
            f"{promise}: estimated {self.estimate:.4g}, upper bound {self.bound:.4g}, p = {self.p_value:.2g} on "
            f"{self.n} rows ({self.method})"
        )


@dataclass(frozen=True, repr=False)
class Certificate:
    """A promise about a system, as plain data; made by :func:`~sparing.guarantees.certify`.

    Attributes
    ----------
    confidence : float
        All promises hold together with at least this probability over the draw of the calibration rows.
    promises : tuple of Finding
    n : int
        Calibration rows.
    scoring : str
    accounting : {"stage", "path"}
    score, full_score : float
        On the calibration rows; ``full_score`` is NaN when there is no full model.
    cost : float
        Average on the calibration rows.
    stages : tuple of str
        Names of the stages.
    thresholds : tuple of float
    stage_counts : tuple of int
        Calibration rows answered by each stage.
    cost_values, cost_counts : tuples
        Distinct costs of the calibration rows, and how many rows have each.
    settings : mapping
        Where the system comes from: the label it has on the frontier.
    n_candidates, n_tested : int
        Systems that could be chosen, and those tested, safest first, until one failed.
    data : str
        SHA-256 of the calibration rows and labels.
    date : str or None
        As given.

    Examples
    --------
    See :func:`~sparing.guarantees.certify`; a certificate is written and read as JSON:

    >>> from sparing import Certificate
    >>> certificate = Certificate(
    ...     0.95, (), 100, "accuracy", "stage", 0.9, 0.9, 2.0, ("cheap", "full"), (0.5,), (60, 40),
    ...     (1.0, 3.5), (60, 40), {}, 1, 1, "ab12",
    ... )
    >>> Certificate.from_json(certificate.to_json()) == certificate
    True
    """

    confidence: float
    promises: tuple[Finding, ...]
    n: int
    scoring: str
    accounting: Accounting
    score: float
    full_score: float
    cost: float
    stages: tuple[str, ...]
    thresholds: tuple[float, ...]
    stage_counts: tuple[int, ...]
    cost_values: tuple[float, ...]
    cost_counts: tuple[int, ...]
    settings: Mapping[str, Any]
    n_candidates: int
    n_tested: int
    data: str
    date: str | None = None

    def to_json(self) -> str:
        """The certificate as JSON text; numbers that JSON has no word for are written as text."""
        return json.dumps(
            {"format": FORMAT, **_plain(asdict(self))}, indent=2, allow_nan=False, sort_keys=False
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """A certificate from what :meth:`to_json` wrote.

        Parameters
        ----------
        text : str

        Returns
        -------
        Certificate
        """
        try:
            fields = json.loads(text)
            written = fields.pop("format")
        except KeyError:
            raise ValueError("This is not a certificate: it has no 'format'.") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"This is not a certificate: {error}.") from error
        if written != FORMAT:
            raise ValueError(
                f"The certificate has format {written!r}, this version reads format {FORMAT}."
            )
        try:
            fields["promises"] = tuple(Finding(**_numbers(f)) for f in fields["promises"])
            for name in ("stages", "stage_counts", "cost_values", "cost_counts"):
                fields[name] = tuple(fields[name])
            fields["thresholds"] = tuple(float(t) for t in fields["thresholds"])
            return cls(**_numbers(fields))
        except (TypeError, KeyError) as error:
            raise ValueError(f"This is not a certificate: {error}.") from error

    def __repr__(self) -> str:
        shares = " ".join(f"{count / self.n:.1%}" for count in self.stage_counts)
        settings = ", ".join(f"{k}={v}" for k, v in self.settings.items())
        dated = f", {self.date}" if self.date else ""
        lines = [
            f"Certificate: with confidence {self.confidence:.4g}, from {self.n} calibration rows "
            f"(sha256 {self.data[:12]}{dated})",
            *(f"  {promise}" for promise in self.promises),
            f"  {self.scoring} {self.score:.4g}, average cost {self.cost:.4g} by {self.accounting}",
            f"  rows answered by {', '.join(self.stages)}: {shares}",
            f"  {self.n_tested} of {self.n_candidates} systems tested, safest first",
        ]
        return "\n".join(lines + ([f"  system: {settings}"] if settings else []))


_NAMED = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}
_FLOATS = ("score", "full_score", "cost", "limit", "estimate", "bound", "p_value", "confidence")


def _numbers(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _NAMED[value] if name in _FLOATS and value in _NAMED else value
        for name, value in fields.items()
    }


def _plain(value: Any) -> Any:
    """Lists, texts and numbers that JSON knows."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def plain_settings(label: Any) -> dict[str, Any]:
    """The label of a system as plain data that survives being written."""
    if label is None:
        return {}
    return dict(_plain(label)) if isinstance(label, Mapping) else {"label": str(label)}


def fingerprint(X: Any, y: Any) -> str:
    """SHA-256 of rows and labels: the same for the same values in the same order, array or frame.

    Examples
    --------
    >>> rows = np.array([[1.0, 2.0]])
    >>> fingerprint(rows, [0]) == fingerprint(rows.copy(), [0]) != fingerprint(rows, [1])
    True
    """
    digest = hashlib.sha256()
    columns = [np.asarray(_safe_indexing(X, j, axis=1)) for j in range(X.shape[1])]
    for values in [*columns, np.asarray(y)]:
        if values.dtype.kind in "biuf":
            digest.update(np.ascontiguousarray(values, dtype=np.float64).tobytes())
        else:
            digest.update("\x1f".join(map(str, values.tolist())).encode())
        digest.update(b"\x1e")
    return digest.hexdigest()
