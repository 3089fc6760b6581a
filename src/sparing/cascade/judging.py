"""Which judge: networks, or small copies of the full model where no network comes near it or them."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed

from sparing._progress import Progress
from sparing._routed import Training
from sparing._rows import take_rows
from sparing.cascade.inputs import NetworkInputs
from sparing.cascade.judges import Judge, NetworkJudge, RefitJudge, random_masks, small
from sparing.cascade.network import Codes, Floats, MaskedNetwork, Singles
from sparing.cascade.offers import Offers
from sparing.cascade.training import train_network

_JUDGING = 6000
"""Rows on which networks judge orders, a third of them after the other by networks that have learnt from all others.

With 3000 rows, judged by three networks, the search fits the rows: on Letters the orders it ended in were 5% worse
on others. On one split of ann-thyroid, 880 rows, of which 60 are sick, preferred an order that saves 44% within a point
of the full model, all 2640 one that saves 60%.
"""
_TAUGHT = 16_000
"""Rows a judging network is trained on, at most."""
_JUDGES_OF_FEW = 2
"""Networks of each third whose answers are averaged where all rows judge; where there are more, one of each will do.

On Letters orders found with one and with two are worth the same on other rows. On MiniBooNE's 2000 rows (three splits)
those found with four are worth 7% more, 0.4% and 1.5% less than with two. They have all random sets to learn and get no
noise on top, which made orders worse.
"""
_REFITTED, _REFIT_HELD_OUT = 24_000, 12_000
"""Rows that small copies of the full model are fitted on and judge orders on, at most.

On Forest, with 12,000 and 3000, a search of 120 sets ended with an order no better than elimination alone: 5.7 columns
on average within a point of the full model. With these, 60 sets lead to 4.9.
"""
_PATIENCE = 60
"""Sets of columns that small copies may be fitted for."""
_BEHIND, _BEHIND_ON_FEW = 0.03, 0.05
"""Small copies judge when networks err this much more often than the full model, or than the copies on few columns.

On Forest, networks come within 0.03 of a forest of 40 trees with all columns; with the six that matter most they err
0.11 more often than copies that see differences. On MiniBooNE it is 0.03 and on ann-thyroid less than 0.01: networks,
which can be asked about thousands of sets, judge there.
"""
_FEW = 6
"""Purchases on which networks are compared with copies: what counts is where a cascade stops, not where it ends."""


def judge_for(
    training: Training,
    offers: Offers,
    inputs: NetworkInputs,
    Z: Singles,
    full_cost: float,
    full_error: Floats,
    own: Any,
    n_jobs: int | None,
    progress: Progress,
) -> tuple[Judge, float]:
    """A judge of orders; and, where copies judge, how much more often networks err, else 0.

    Parameters
    ----------
    training : rows, some of which judge while the others teach.
    offers : what can be bought.
    inputs, Z : the rows as a network reads them.
    full_cost : cost of a row that goes to the full model.
    full_error : 1 where the full model errs on a row it has not seen.
    own : the full model's kind, unfitted; None if it cannot be fitted on some columns.
    n_jobs : networks in parallel.
    progress : says what is being done, and how long it will take.
    """
    seed, weight = training.seed or 0, training.weight
    # Rows without weight have nothing to say.
    counting = np.arange(len(training.y)) if weight is None else np.flatnonzero(weight)
    rows, n = np.random.default_rng(seed).permutation(counting), len(counting)
    parts = _parts(rows)
    judged = np.concatenate([held_out for held_out, _ in parts])

    def weights(of: Any) -> Floats | None:
        return None if weight is None else weight[of]

    judges = _JUDGES_OF_FEW if n <= _JUDGING else 1
    masks, networks = random_masks(offers, seed), list[MaskedNetwork]()
    fits = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(train_network)(
            inputs,
            Z[taught],
            training.y[taught],
            len(training.classes),
            masks,
            weight=weights(taught),
            noise=0.0,
            seed=seed + judge,
        )
        for _, taught in parts
        for judge in range(judges)
    )
    with progress.of([1.0] * (judges * len(parts))):
        for i, network in enumerate(fits):
            networks.append(network)
            progress.done(i, f"networks that judge orders of {len(offers)} purchases")
    of_parts = (tuple(networks[i : i + judges]) for i in range(0, len(networks), judges))
    judge = NetworkJudge(
        offers=offers,
        y=training.y[judged],
        full_cost=full_cost,
        weight=weights(judged),
        parts=tuple((own, Z[held_out]) for own, (held_out, _) in zip(of_parts, parts, strict=True)),
    )
    behind = judge.error - float(np.average(full_error[judged], weights=judge.weight))
    model = None if own is None else small(own)
    if model is None:
        return judge, 0.0
    held_out = rows[: min(_REFIT_HELD_OUT, max(1, n // 3))]
    some = rows[len(held_out) :][:_REFITTED]
    copies = RefitJudge(
        offers=offers,
        y=training.y[held_out],
        full_cost=full_cost,
        weight=weights(held_out),
        model=model,
        X=take_rows(training.X, some),
        labels=training.y[some],
        held_out=take_rows(training.X, held_out),
        n_classes=len(training.classes),
        fit_weight=weights(some),
        seed=seed,
        patience=_PATIENCE,
    )
    # A pipeline that names its columns does not take some of them: then the networks have to do.
    try:
        on_few = _behind_on_few(judge, copies)
    except (KeyError, ValueError):
        return judge, 0.0
    if behind < _BEHIND and on_few < _BEHIND_ON_FEW:
        return judge, 0.0
    behind = max(behind, on_few)
    progress.say(
        f"the networks err {behind:.3f} more often than models like the full one: copies judge"
    )
    return copies, behind


def _behind_on_few(judge: Judge, copies: Judge) -> float:
    """How much more often a judge errs than copies with the purchases that matter most to it, on the same rows."""
    worth = judge.worth_for_price(range(len(judge.offers)))
    mask = judge.offers.mask(np.argsort(-worth, kind="stable")[:_FEW].tolist())
    more, less = judge.stage(mask)[0], copies.stage(mask)[0]
    # Both judge the rows in the same order.
    n = min(len(more), len(less))
    weight = None if judge.weight is None else judge.weight[:n]
    return float(np.average(more[:n] - less[:n], weights=weight))


def _parts(rows: Codes) -> list[tuple[Codes, Codes]]:
    """Rows that judge, and rows that their networks are taught with: thirds of the first rows, and all others."""
    if len(rows) < 3:
        return [(rows, rows)]
    thirds = np.array_split(rows[:_JUDGING], 3)
    return [(held_out, rows[~np.isin(rows, held_out)][:_TAUGHT]) for held_out in thirds]
