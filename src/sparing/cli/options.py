"""Options whose values are names or wishes, checked in the words of the command line before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


def check_budget(budget: float | None) -> None:
    """Raise on a budget that no row could keep.

    Examples
    --------
    >>> check_budget(-1)
    Traceback (most recent call last):
    ValueError: --budget is -1: a cost per row is 0 or more.
    """
    if budget is not None and not budget >= 0:
        raise ValueError(f"--budget is {budget:g}: a cost per row is 0 or more.")


def check_guarantee(guarantee: float | None, tolerance: float | None, scoring: str) -> None:
    """Raise on a confidence that is none, and on a promise about a score that is no mean over rows.

    Examples
    --------
    >>> check_guarantee(0.95, 0.01, "roc_auc")
    Traceback (most recent call last):
    ValueError: --guarantee promises a tolerance of accuracy, not of roc_auc: leave --scoring out, or give --budget ...
    >>> check_guarantee(95, 0.01, "accuracy")
    Traceback (most recent call last):
    ValueError: --guarantee is 95: give the confidence with which it is to hold, from 0.5 to below 1, such as 0.95.
    """
    if guarantee is not None and not 0.5 <= guarantee < 1:
        raise ValueError(
            f"--guarantee is {guarantee:g}: give the confidence with which it is to hold, from 0.5 to below 1, such as "
            "0.95."
        )
    if guarantee is not None and tolerance is not None and scoring != "accuracy":
        raise ValueError(
            f"--guarantee promises a tolerance of accuracy, not of {scoring}: leave --scoring out, or give --budget "
            "and no --tolerance."
        )


def check_numbers(seed: int, jobs: int | None) -> None:
    """Raise on a seed or a number of fits at the same time that mean nothing.

    Examples
    --------
    >>> check_numbers(0, 0)
    Traceback (most recent call last):
    ValueError: --jobs is 0: give the number of fits at the same time, or -1 for all cores.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"--seed is {seed}: give a whole number from 0 to {2**32 - 1}.")
    if jobs == 0:
        raise ValueError(
            "--jobs is 0: give the number of fits at the same time, or -1 for all cores."
        )


def methods(names: str) -> str | list[str]:
    """What ``--method`` means to ``BudgetedClassifier``: one name or a list.

    Examples
    --------
    >>> methods("cascade, adapt-lin")
    ['cascade', 'adapt-lin']
    """
    from sparing._methods import SWEEPS

    several = [name.strip() for name in names.split(",") if name.strip()]
    if several == ["auto"]:
        return "auto"
    if not several or "auto" in several:
        raise ValueError(
            f"--method is {names!r}: give auto alone, or one or several of {', '.join(sorted(SWEEPS))}, with commas."
        )
    for name in several:
        if name not in SWEEPS:
            raise ValueError(
                f"--method {name!r} is not known.{near(name, ['auto', *SWEEPS])} Give auto, or one or several of "
                f"{', '.join(sorted(SWEEPS))}, with commas."
            )
    return several[0] if len(several) == 1 else several


def known_scoring(name: str) -> str:
    """The name of a score, or an error that names those for classes.

    Examples
    --------
    >>> known_scoring("acc")
    Traceback (most recent call last):
    ValueError: --scoring 'acc' is not known. Did you mean 'accuracy'? Give accuracy, balanced_accuracy, ...
    """
    from sparing.metrics.scoring import resolve_scoring

    try:
        resolve_scoring(name)
    except ValueError as error:
        from sklearn.metrics import get_scorer_names

        raise ValueError(
            f"--scoring {name!r} is not known.{near(name, get_scorer_names())} Give {', '.join(_SCORES)}, or another "
            "name of a scikit-learn scorer for classes."
        ) from error
    return name


_SCORES = ("accuracy", "balanced_accuracy", "f1_macro", "neg_log_loss", "roc_auc", "roc_auc_ovr")
"""Scores that most people mean."""


def near(name: str, known: Sequence[str]) -> str:
    """A question about what was meant, if anything comes close.

    Examples
    --------
    >>> near("cty", ["age", "city"])
    " Did you mean 'city'?"
    """
    begins = [one for one in known if one.startswith(name)]
    found = begins[:1] or get_close_matches(name, known, n=1)
    return f" Did you mean {found[0]!r}?" if found else ""
