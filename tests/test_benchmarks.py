"""The comparison harness on a table of a few hundred rows, and the report that is written from its tables."""

import sys
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import recall_score
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.utils import Bunch

from sparing import (
    AdaptGbrtClassifier,
    BudgetedClassifier,
    CascadeClassifier,
    FeatureCosts,
    Frontier,
)
from sparing.metrics import run_precision_at_k
from sparing.system import ACCOUNTINGS

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")


PAPER = [
    "comparison",
    "datasets",
    "features",
    "fit_time",
    "kernel_machine",
    "merging",
    "methods",
    "objective",
    "one_line",
    "ours",
    "pairing",
    "problem",
    "rankings",
    "report",
    "running",
    "scores",
    "store",
    "summary",
    "synthetic",
    "tables",
]
PEERS = ["catboost_gate", "columns", "lightgbm_gate", "scikit_fallback", "static_subset"]
MODULES = ["run", *(f"paper.{name}" for name in PAPER), *(f"peers.{name}" for name in PEERS)]


@pytest.fixture(scope="module")
def harness():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return Bunch(**{name.partition(".")[2] or name: import_module(name) for name in MODULES})
    finally:
        sys.path.remove(str(BENCHMARKS))


def load_tiny() -> Bunch:
    X, y = make_classification(
        600, 6, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.02, random_state=0
    )
    train, validation, test = np.split(np.arange(600), [300, 450])
    return Bunch(
        data=X,
        target=np.array(["a", "b", "c"])[y],
        costs=FeatureCosts([1, 2, 1, 1, 2, 1]),
        split=Bunch(train=train, validation=validation, test=test),
        DESCR="A made-up table.",
    )


@pytest.fixture(scope="module")
def tiny(harness):
    model = RandomForestClassifier(20, random_state=0)
    return harness.datasets.DataSet(
        load_tiny,
        model,
        10,
        splits=(0, 1),
        family="letters",
        same_as_authors=True,
        without={"budgeted": "a test of its own"},
    )


@pytest.fixture(scope="module")
def problem(harness, tiny, tmp_path_factory):
    store = harness.store.Store(tmp_path_factory.mktemp("cache"))
    return harness.problem.prepare("tiny", tiny, 0, store)


def load_queries() -> Bunch:
    X, y = make_classification(400, 5, n_informative=3, n_redundant=0, random_state=1)
    query = np.repeat(np.arange(40), 10)
    train, validation, test = np.split(np.arange(400), [200, 300])
    return Bunch(
        data=X,
        target=y,
        grade=3 * y,
        query=query,
        costs=FeatureCosts([1, 5, 20, 1, 50]),
        split=Bunch(train=train, validation=validation, test=test),
        DESCR="Made-up documents.",
    )


@pytest.fixture(scope="module")
def documents(harness):
    model = RandomForestClassifier(20, random_state=0)
    return harness.datasets.DataSet(
        load_queries, model, 10, splits=(0, 1), score=harness.scores.RunPrecision()
    )


def small_cascade(problem, *, cv):
    """A cascade with stages by hand: searching for their order takes half a minute."""
    clf = CascadeClassifier(stages=[[0], [0, 1, 2]], stage_estimator=GaussianNB(), cv=cv)
    return {"cascade": problem.fit(clf).staged_systems()}


def one_setting(harness, *names):
    """The methods with one quick setting each; the largest penalty would buy nothing here."""
    table = {
        name: harness.methods.Method(
            method.learn,
            method.gives,
            {
                "quick": {
                    axis: [0.1] if axis == "share" and name != "static-subset" else values[-1:]
                    for axis, values in method.sweep["quick"].items()
                }
            },
            against=method.against if name.startswith("budget-prune") else None,
        )
        for name, method in harness.methods.METHODS.items()
        if not names or name in names
    }
    if "cascade" in table:
        table["cascade"] = harness.methods.Method(
            small_cascade, ("cascade",), {"quick": {"cv": [2]}}
        )
    return table


def test_every_method_runs_and_the_report_is_that_of_its_tables(harness, tiny, tmp_path):
    small = one_setting(harness)
    store = harness.store.Store(tmp_path / "cache")
    arguments = ("tiny", tiny, list(small), "quick", store, tmp_path / "results", small)
    assert harness.run.run(*arguments) == []
    tables = harness.tables.Tables.read(tmp_path / "results", "tiny")
    choices = tables.choices
    left_out = {"budgeted", "budget-prune-own"}
    given = {name for key, m in small.items() for name in m.gives if key not in left_out}
    assert set(choices.method) == given
    assert set(tables.starting("without ")) == left_out
    assert harness.summary.missing(tables) == dict.fromkeys(left_out, "–")
    assert set(choices.accounting) == set(ACCOUNTINGS)
    near = choices[choices.tolerance.notna()]
    assert ((near.cut >= -1e-9) & (near.low <= near.difference)).all()
    assert ((near.cost_low <= near.cost) & (near.cost <= near.cost_high)).all()
    assert (tmp_path / "results" / "tiny.png").stat().st_size > 1000
    assert set(tables.duels.method) == given - {"cascade"}

    text = harness.report.render(tmp_path / "results", tmp_path)
    assert "A made-up table." in text
    assert "a test of its own" in text
    assert all(name in text for name in given)
    # From the cache, and into another folder: the same tables.
    harness.run.run(*arguments[:5], tmp_path / "again", small)
    assert harness.report.render(tmp_path / "again", tmp_path) == text.replace(
        "(results/", "(again/"
    )


def test_the_objective_counts_as_a_frontier_does(harness, problem):
    learn = harness.ours.adapt_gbrt(problem, share=0.05, full_rate=0.3, trees=1)
    learn |= harness.lightgbm_gate.lightgbm_coupled(
        problem, share=0.02, num_leaves=15, learning_rate=0.2, trees=1
    )
    learn |= small_cascade(problem, cv=2)
    assert any(len(system.stages) > 2 for system in learn["cascade"])
    objective = harness.objective.Objective(problem)
    for systems in learn.values():
        for system in systems[:: 1 + len(systems) // 6]:
            for thresholds in objective._thresholds(system)[::8]:
                moved = system.with_thresholds(thresholds)
                for accounting in ACCOUNTINGS:
                    kept = objective._point(moved, thresholds, accounting)
                    here = [problem.test.X, problem.test.y]
                    expected = Frontier.evaluate([moved], *here, accounting=accounting).points[0]
                    assert kept.test == pytest.approx((expected.cost, expected.score), rel=1e-6)
                    assert kept.rates == pytest.approx(expected.stage_rates)


def test_validation_chooses(harness):
    kept = [
        harness.objective.Kept(
            "m", "stage", {"n": i}, validation, test, (1.0,), 1, np.packbits([i > 0] * 8)
        )
        for i, (validation, test) in enumerate([((1, 0.8), (1, 0.9)), ((2, 0.9), (2, 0.7))])
    ]
    full = harness.objective.Kept(
        "full model", "stage", {}, (4, 0.9), (4, 0.9), (1.0,), 4, np.packbits([True] * 8)
    )
    choices, curves, _ = harness.comparison.compare(kept, {"stage": full, "path": full}, 8)
    near = next(row for row in choices if row["tolerance"] == 0.01)
    assert (near["cost"], near["score"], near["cut"]) == (2, 0.7, 0.5)
    assert (near["difference"], near["setting"]) == (0, "n=1")
    assert len(curves) == 2


def test_what_is_not_run_is_said_to_be_so(harness, tiny, tmp_path):
    table = one_setting(harness, "greedy-miser", "lightgbm-confidence")
    store = harness.store.Store(tmp_path / "cache")
    arguments = ("tiny", tiny, ["greedy-miser"], "quick", store, tmp_path / "results", table)
    assert harness.run.run(*arguments) == []
    tables = harness.tables.Tables.read(tmp_path / "results", "tiny")
    assert harness.summary.missing(tables)["lightgbm-confidence"] == "not run"
    assert "greedy-miser" not in harness.summary.missing(tables)
    text = harness.report.render(tmp_path / "results", tmp_path)
    assert "| lightgbm-confidence | not run |" in text


def fail(problem, *, number):
    if number == 1:
        raise ValueError(f"number {number} cannot be")
    return {"greedy-miser": []}


def test_a_fit_that_fails_is_named_and_does_not_lose_the_others(harness, tiny, tmp_path, capsys):
    table = one_setting(harness, "greedy-miser")
    table["fails"] = harness.methods.Method(fail, ("fails",), {"quick": {"number": [0, 1, 2]}})
    store = harness.store.Store(tmp_path / "cache")
    failed = harness.run.run("tiny", tiny, list(table), "quick", store, tmp_path / "r", table)
    assert [str(done.task) for done in failed] == ["tiny split 0 fails (number=1)"]
    assert "number 1 cannot be" in capsys.readouterr().out
    tables = harness.tables.Tables.read(tmp_path / "r", "tiny")
    assert tables.about["split 0 fits of fails"] == "2 of 3"
    assert "number=1" in tables.about["failed fails"]
    assert "greedy-miser" in tables.methods


# -- merging with the tables on disk ------------------------------------------------------------------

FITS = {"adapt-gbrt": 4, "greedy-miser": 3, "cascade": 1}


def write_tables(
    harness,
    folder,
    fits,
    *,
    of=None,
    split=0,
    cost=2,
    full=0.9,
    right=8,
    failed=(),
    level="standard",
):
    """Write what a made-up run finds: a system per method that costs ``cost`` and is ``right`` on so many test rows."""
    results = harness.tables.Results("made-up", harness.methods.METHODS)
    bits = np.packbits(np.arange(8) < right)
    sizes = dict.fromkeys(
        ("columns", "classes", "train rows", "validation rows", "test rows", "full model"), 4
    )
    about = {"data": "Made up.", "family": "", "same as authors": False, **sizes}
    f0 = harness.objective.Kept("full model", "stage", {}, (4, full), (4, full), (1.0,), 4, bits)
    kept = []
    for method, number in fits.items():
        for done in range(of or number):
            results.expected(split, method)
            if done < number:
                results.spent(split, method, 60)
        kept += [
            harness.objective.Kept(
                name, accounting, {}, (cost, full), (cost, full), (1.0,), 1, bits
            )
            for name in harness.methods.METHODS[method].gives
            for accounting in ACCOUNTINGS
        ]
    for method in failed:
        results.failed(method, "what went wrong")
    both = dict.fromkeys(ACCOUNTINGS, f0)
    results.add(split, about, both, harness.comparison.compare(kept, both, 8))
    results.write(folder, level)
    return harness.tables.Tables.read(folder, "made-up")


def costs_of(tables, method="greedy-miser"):
    near = tables.near(0.01)
    return near[near.method == method].set_index("split").cost.to_dict()


def test_a_run_without_the_cache_keeps_the_methods_on_disk(harness, tiny, tmp_path):
    table = one_setting(harness, "greedy-miser", "lightgbm-confidence")
    texts = {}
    for folder, runs in {
        "together": [list(table)],
        "apart": [[m] for m in reversed(table)],
    }.items():
        for number, methods in enumerate(runs):
            store = harness.store.Store(tmp_path / f"cache {folder} {number}")
            harness.run.run("tiny", tiny, methods, "quick", store, tmp_path / folder, table)
        texts[folder] = [
            (tmp_path / folder / f"tiny{suffix}.csv").read_text() for suffix in ("", "-curves")
        ]
    # Another method merges, and the order is that of the table whichever came first.
    assert texts["apart"] == texts["together"]
    tables = harness.tables.Tables.read(tmp_path / "apart", "tiny")
    assert tables.methods == [name for method in table.values() for name in method.gives]
    assert list(harness.summary.spent(tables)) == list(table)


def test_splits_merge_and_their_fits_add_up(harness, tmp_path):
    write_tables(harness, tmp_path, {"greedy-miser": 3}, split=1, full=0.8)
    write_tables(harness, tmp_path, {"cascade": 1}, split=2, full=0.7)
    tables = write_tables(harness, tmp_path, {"greedy-miser": 2}, of=3, split=0, cost=3)
    assert costs_of(tables) == {0: 3, 1: 2}
    assert tables.choices.split.is_monotonic_increasing
    assert tables.full("test score") == [0.9, 0.8, 0.7]
    assert tables.about["split 0 fits of greedy-miser"] == "2 of 3"
    spent = harness.summary.spent(tables)
    assert spent == {"greedy-miser": (5, 6, 5.0), "cascade": (1, 1, 1.0)}
    text = harness.report.render(tmp_path, tmp_path)
    assert "greedy-miser 5 of 6 fits in 5.0, cascade 1 fits in 1.0" in text


def test_fewer_fits_do_not_replace_more(harness, tmp_path, capsys):
    write_tables(harness, tmp_path, FITS)
    tables = write_tables(harness, tmp_path, {"greedy-miser": 2}, cost=3, of=3)
    assert costs_of(tables) == {0: 2}
    assert tables.about["split 0 fits of greedy-miser"] == "3"
    assert "split 0 greedy-miser: 2 fits here, so the 3 on disk stay" in capsys.readouterr().out
    tables = write_tables(harness, tmp_path, {"greedy-miser": 3}, cost=3)
    assert costs_of(tables) == {0: 3}
    assert set(costs_of(tables, "cascade")) == {0}
    # Another level is another table.
    tables = write_tables(harness, tmp_path, {"cascade": 1}, level="full")
    assert tables.methods == ["cascade"]


def duellists(tables, split=0):
    return set(tables.duels.method[tables.duels.split == split])


def apart(tables):
    compared = tables.choices[
        tables.choices.budget.notna() & (tables.choices.accounting == "stage")
    ]
    return set(compared.method[compared.low.isna()])


def test_methods_of_different_runs_are_compared(harness, tmp_path):
    boosted = set(harness.methods.METHODS["adapt-gbrt"].gives)
    for fits in ({"greedy-miser": 3}, {"cascade": 1}, {"adapt-gbrt": 4}):
        tables = write_tables(harness, tmp_path / "apart", fits)
    together = write_tables(harness, tmp_path / "together", FITS)
    assert duellists(tables) == {*boosted, "greedy-miser"}
    assert apart(tables) == set()
    for name in ("choices", "curves", "duels"):
        pd.testing.assert_frame_equal(getattr(tables, name), getattr(together, name))
    # What is run again is compared again; other splits have their own.
    tables = write_tables(harness, tmp_path / "apart", {"cascade": 1}, right=6)
    assert (tables.duels.difference == -0.25).all()
    tables = write_tables(harness, tmp_path / "apart", {"cascade": 1}, split=1)
    assert duellists(tables, split=1) == set()
    tables = write_tables(harness, tmp_path / "apart", {"greedy-miser": 3}, split=1)
    assert duellists(tables, split=1) == {"greedy-miser"}
    assert duellists(tables) == {*boosted, "greedy-miser"}


def test_without_answers_only_fits_of_one_run_are_compared(harness, tmp_path):
    def write(fits, **where):
        tables = write_tables(harness, tmp_path, fits, **where)
        # As older runs left it.
        (tmp_path / "made-up-answers.npz").unlink()
        return tables

    boosted = set(harness.methods.METHODS["adapt-gbrt"].gives)
    tables = write(FITS)
    assert duellists(tables) == {*boosted, "greedy-miser"}
    assert apart(tables) == set()
    # What is found again as it was keeps what it was compared with.
    tables = write({"greedy-miser": 3})
    assert duellists(tables) == {*boosted, "greedy-miser"}
    assert apart(tables) == set()
    tables = write({"cascade": 1})
    assert duellists(tables) == {*boosted, "greedy-miser"}
    assert apart(tables) == set()
    # It has a system for a budget now that it had none for: duels at other budgets stay.
    path, budgets = tmp_path / "made-up.csv", set(tables.duels.budget)
    rows = pd.read_csv(path)
    known = (rows.method == "cascade") & (rows.budget == min(budgets))
    rows[~known].to_csv(path, index=False)
    tables = write({"cascade": 1})
    assert set(tables.duels.budget) == budgets - {min(budgets)}
    assert duellists(tables) == {*boosted, "greedy-miser"}
    write(FITS)
    # A method is another one now and the cascade is not: its duels go, those of the others stay.
    tables = write({"greedy-miser": 3}, cost=3)
    assert duellists(tables) == boosted
    assert apart(tables) == {"greedy-miser"}
    assert "0.9000 ?" in harness.report.render(tmp_path, tmp_path)
    # Neither is new, on this split.
    tables = write({"greedy-miser": 3, "cascade": 1}, split=1)
    assert duellists(tables) == boosted
    assert duellists(tables, split=1) == {"greedy-miser"}
    # The cascade is another one now and the others are not.
    tables = write({"cascade": 1}, cost=3)
    assert set(tables.duels.split) == {1}
    # All is new.
    tables = write(FITS)
    assert duellists(tables) == {*boosted, "greedy-miser"}


def test_answers_are_read_as_they_were_written(harness, tmp_path):
    wish, rng = harness.pairing.Wish, np.random.default_rng(0)
    path = tmp_path / "answers.npz"
    rows = rng.random((3, 13)) < 0.8
    right = {
        wish(split, method, "budget", share): rows[place]
        for place, (split, method, share) in enumerate(
            [(0, "cascade", 0.1), (0, "greedy-miser", 0.1), (1, "cascade", 0.05)]
        )
    }
    right[wish(0, "cascade", "tolerance", 0.01)] = rows[0]
    values = {key: rng.random(7).astype(np.float32) for key in right}
    for answers in (right, values):
        harness.pairing.write_answers(answers, path)
        found = harness.pairing.read_answers(path)
        assert found.keys() == answers.keys()
        for key, expected in answers.items():
            assert found[key].dtype == expected.dtype
            np.testing.assert_array_equal(found[key], expected)
    harness.pairing.write_answers({}, path)
    assert harness.pairing.read_answers(path) == {}


def test_failures_are_remembered_until_the_method_is_new(harness, tmp_path):
    write_tables(harness, tmp_path, {"greedy-miser": 2}, of=3, failed=["greedy-miser", "l1-gate"])
    tables = write_tables(harness, tmp_path, {"cascade": 1})
    assert set(tables.starting("failed ")) == {"greedy-miser", "l1-gate"}
    tables = write_tables(harness, tmp_path, {"greedy-miser": 3})
    assert set(tables.starting("failed ")) == {"l1-gate"}


def test_methods_of_another_full_model_are_refused(harness, tmp_path):
    write_tables(harness, tmp_path, FITS)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=r"split 0: .* 0\.902 here and of 0\.9 .*rerun everything"):
        write_tables(harness, tmp_path, {"cascade": 1}, full=0.902)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    # Little differences are those of machines; another split is another full model; and all may be run again.
    write_tables(harness, tmp_path, {"cascade": 1}, full=0.90005)
    write_tables(harness, tmp_path, {"cascade": 1}, full=0.8, split=1)
    tables = write_tables(harness, tmp_path, FITS, full=0.7)
    assert tables.full("test score") == [0.7, 0.8]


@pytest.mark.slow
def test_processes_find_what_one_process_finds(harness, tiny, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    table = one_setting(harness, "greedy-miser", "static-subset")
    texts = []
    for jobs in (1, 2):
        store = harness.store.Store(tmp_path / f"cache {jobs}")
        folder = tmp_path / str(jobs) / "results"
        harness.run.run(
            "tiny",
            tiny,
            list(table),
            "standard",
            store,
            folder,
            {
                name: harness.methods.Method(m.learn, m.gives, {"standard": m.sweep["quick"]})
                for name, m in table.items()
            },
            jobs,
        )
        texts.append((folder / "tiny.csv").read_text())
    assert texts[0] == texts[1]


def test_the_length_of_a_run_is_estimated_from_a_sample(harness, tiny, tmp_path):
    method = harness.methods.METHODS["greedy-miser"]
    sweep = {"standard": method.sweep["quick"]}
    table = {"greedy-miser": harness.methods.Method(method.learn, method.gives, sweep)}
    store = harness.store.Store(tmp_path)
    (row,) = harness.running.estimate("tiny", tiny, ["greedy-miser"], "standard", store, table)
    assert (row["fits"], row["kept"]) == (12, 1)  # six penalties on two splits
    assert row["hours left"] == pytest.approx(11 * row["seconds each"] / 3600)


def test_numbers_kept_by_older_versions_are_read(harness):
    new = harness.objective.Kept(
        "m", "stage", {}, (1, 0.8), (1, 0.9), (1.0,), 1, np.packbits([True] * 8)
    )
    state = {k: v for k, v in vars(new).items() if k not in ("spread", "more")}
    old = harness.objective.Kept.__new__(harness.objective.Kept)
    old.__setstate__(state)
    assert np.isnan(old.spread)
    assert dict(old.more) == {}
    assert old.values(8).tolist() == [1] * 8


# -- peers --------------------------------------------------------------------------------------------


def peers_of(harness, problem):
    learn = harness.lightgbm_gate.lightgbm_lazy(
        problem, share=0.05, num_leaves=7, learning_rate=0.2, trees=1
    )
    learn |= harness.static_subset.static_subset(problem, share=0.5, ranking="trees")
    if find_spec("catboost"):
        learn |= harness.catboost_gate.catboost_gate(
            problem, share=0.3, depth=3, per_object=False, trees=1
        )
    if find_spec("skfb"):
        learn |= harness.scikit_fallback.scikit_fallback(
            problem, stages=(0.2, 0.6), num_leaves=7, trees=1, cuts=4
        )
    return learn


def test_peers_read_only_the_columns_they_pay_for(harness, problem):
    X = problem.test.X
    noise = np.random.default_rng(0).normal(size=X.shape)
    for name, systems in peers_of(harness, problem).items():
        assert systems, name
        for system in systems:
            for stage in system.stages[: -1 if system.has_full else None]:
                other = noise.copy()
                other[:, stage.columns] = X[:, stage.columns]
                expected = stage.predictor.predict_proba(X)
                np.testing.assert_array_equal(stage.predictor.predict_proba(other), expected)
                np.testing.assert_allclose(expected.sum(axis=1), 1)
        assert systems[0].predict(X).dtype == problem.full.classes.dtype


def test_prices_make_peers_buy_less(harness, problem):
    gates = [
        (harness.lightgbm_gate.lightgbm_coupled, {"num_leaves": 7, "learning_rate": 0.2}, 0.9),
        (harness.lightgbm_gate.lightgbm_lazy, {"num_leaves": 7, "learning_rate": 0.2}, 0.9),
    ]
    if find_spec("catboost"):
        settings = [{"depth": 3, "per_object": per_object} for per_object in (False, True)]
        gates += [(harness.catboost_gate.catboost_gate, setting, 10.0) for setting in settings]
    for learn, setting, dear in gates:
        bought = []
        for share in (1e-6, dear):
            systems = next(iter(learn(problem, share=share, trees=1, **setting).values()))
            bought.append(len(systems[-1].stages[0].columns))
        assert bought[1] < bought[0], (learn.__name__, setting)


@pytest.mark.parametrize("ranking", ["shuffled", "trees"])
def test_columns_by_hand_are_as_many_as_the_money_pays_for(harness, problem, ranking):
    order = harness.columns.columns_by_worth(problem, ranking)
    assert sorted(order.tolist()) == list(range(6))
    for share in (0.01, 0.3, 0.7, 1.0):
        columns = harness.columns.prefix_for(problem, share, ranking)
        assert len(columns) == 1 or problem.prices()[columns].sum() <= share * problem.costs.total
        np.testing.assert_array_equal(columns, np.sort(order[: len(columns)]))
    assert len(harness.columns.prefix_for(problem, 1.0)) == 6


def test_absent_peers_name_the_extra(harness, problem, monkeypatch):
    monkeypatch.setitem(sys.modules, "catboost", None)
    monkeypatch.setitem(sys.modules, "skfb.ensemble", None)
    with pytest.raises(ImportError, match=r"sparing\[bench\]"):
        harness.catboost_gate.catboost_gate(problem, share=1, depth=3, per_object=True, trees=1)
    with pytest.raises(ImportError, match=r"sparing\[bench\]"):
        harness.scikit_fallback.scikit_fallback(
            problem, stages=(0.2,), num_leaves=7, trees=1, cuts=4
        )


def test_the_race_gives_systems_with_the_full_model_of_all(harness, problem, monkeypatch):
    boosted = AdaptGbrtClassifier(n_estimators=5, cost_penalty=[0.01, 0.002])
    systems = harness.ours.budgeted(problem, method=boosted)["budgeted"]
    objective = harness.objective.Objective(problem)
    kept = objective.judge("budgeted", systems, {})
    assert kept
    assert max(k.validation[1] for k in kept) >= objective.full["stage"].validation[1] - 0.02


@pytest.mark.slow
def test_the_cascade_of_the_table_runs(harness, problem):
    systems = harness.ours.cascade(problem, stage_estimator="shared", cv=3)["cascade"]
    assert any(len(system.stages) > 2 for system in systems)


# -- rankings -----------------------------------------------------------------------------------------


def test_no_query_is_cut(harness, documents, tmp_path):
    store = harness.store.Store(tmp_path)
    for split, level in [(0, "standard"), (1, "standard"), (0, "quick")]:
        problem = harness.problem.prepare("documents", documents, split, store, level)
        parts = [problem.train, problem.validation, problem.test]
        queries = [set(part.query.tolist()) for part in parts]
        assert [len(q) for q in queries] == [20, 10, 10]
        assert not queries[0] & queries[1] | queries[1] & queries[2] | queries[0] & queries[2]
        for learn, held in problem.folds(4):
            assert not set(problem.train.query[learn]) & set(problem.train.query[held])


def test_thinned_parts_keep_queries_whole(harness):
    rows, unit = np.arange(100), np.repeat(np.arange(10), 10)
    kept = harness.problem._thinned(rows, unit, 35)
    assert len(kept) == 30
    assert np.isin(unit, np.unique(unit[kept])).sum() == 30


def test_rankings_are_judged_query_by_query(harness, documents, tmp_path):
    table = one_setting(harness, "greedy-miser", "cascade", "lightgbm-confidence")
    store = harness.store.Store(tmp_path / "cache")
    arguments = ("documents", documents, list(table), "quick", store, tmp_path / "r", table)
    assert harness.run.run(*arguments) == []
    problem = harness.problem.prepare("documents", documents, 0, store, "quick")
    objective = harness.objective.Objective(problem)
    assert objective.n_units == 10
    proba = problem.full_model.predict_proba(problem.test.X)[:, 1]
    expected = run_precision_at_k(problem.test.y, proba, problem.test.query)
    assert objective.full["stage"].test[1] == pytest.approx(expected)
    assert objective.full["stage"].values(10).shape == (10,)
    tables = harness.tables.Tables.read(tmp_path / "r", "documents")
    assert {"AP@5", "NDCG@10"} <= set(tables.choices)
    text = harness.report.render(tmp_path / "r", tmp_path)
    assert "run precision at 5" in text
    assert "NDCG@10" in text


def test_how_many_of_a_rare_class_are_found_stands_beside_the_accuracy(harness, tiny, tmp_path):
    watching = replace(tiny, score=harness.scores.Accuracy(watched=("b",)), splits=(0,))
    table = one_setting(harness, "greedy-miser")
    store = harness.store.Store(tmp_path / "cache")
    arguments = ("tiny", watching, list(table), "quick", store, tmp_path / "r", table)
    assert harness.run.run(*arguments) == []
    problem = harness.problem.prepare("tiny", watching, 0, store, "quick")
    said = problem.full_model.predict(problem.test.X)
    expected = recall_score(problem.test.y, said, labels=["b"], average=None)
    text = harness.report.render(tmp_path / "r", tmp_path)
    _, table = text.split("| method | splits | recall of class b |")
    assert f"| full model | 1 | {expected[0]:.4f} |" in table


def test_prices_of_mslr_are_levels_of_yahoo(harness):
    costs = harness.rankings.mslr_costs()
    assert len(costs.columns) == 136
    assert set(costs.item_prices.tolist()) <= {1.0, 5.0, 20.0, 50.0, 100.0, 150.0, 200.0}
    by_name = dict(zip(costs.items, costs.item_prices.tolist(), strict=True))
    # BM25 of the body costs more than of the title, and both more than a count.
    assert by_name["feature_106"] > by_name["feature_108"] > by_name["feature_3"]


def test_the_spread_of_costs_follows_from_the_share_sent_on(harness):
    cost = np.repeat([3.0, 16.0], [75, 25])
    system, full = (
        harness.objective.Kept("m", "stage", {}, (mean, 0.9), (mean, 0.9), rates, 3, np.zeros(1))
        for mean, rates in [(cost.mean(), (0.75, 0.25)), (16.0, (1.0,))]
    )
    assert harness.comparison._spread(system, full) == pytest.approx(cost.std())


# -- tables over all data sets ------------------------------------------------------------------------


def test_means_over_splits_have_an_interval_over_splits(harness):
    values = np.array([0.5, 0.6, 0.7])
    found = harness.summary._over_splits("cut", values)
    margin = student.ppf(0.975, 2) * 0.1 / np.sqrt(3)
    assert found["cut"] == pytest.approx(0.6)
    assert (found["cut_low"], found["cut_high"]) == pytest.approx((0.6 - margin, 0.6 + margin))


def test_synthetic_2_costs_what_the_paper_says(harness, tmp_path):
    harness.synthetic.synthetic_2(tmp_path)
    ((heading, _, table),) = harness.synthetic.sections(tmp_path, tmp_path)
    assert "synthetic-2.png" in heading
    for row in table[table.expected != ""].itertuples():
        assert float(row[3]) == pytest.approx(float(row.expected), abs=2e-3)


@pytest.mark.slow
def test_synthetic_1_keeps_the_accuracy_of_the_full_model(harness, tmp_path):
    harness.synthetic.synthetic_1(tmp_path)
    ((_, _, table),) = harness.synthetic.sections(tmp_path, tmp_path)
    last = table[table.alternations == 10]
    assert (last.accuracy.astype(float) > last["full model"].astype(float) - 0.01).all()


def test_the_machine_by_matrix_products_is_that_of_libsvm(harness, monkeypatch):
    # More rows are asked about than are held at a time, and not a multiple of them.
    monkeypatch.setattr(harness.kernel_machine, "_ROWS", 64)
    X, y = make_classification(500, 8, n_informative=6, n_classes=3, random_state=0)
    labels = np.array(["a", "b", "c"])[y]
    ours = harness.kernel_machine.KernelMachine(C=3).fit(X[:300], labels[:300])
    theirs = SVC(C=3).fit(X[:300], labels[:300])
    np.testing.assert_array_equal(ours.machine_.support_, theirs.support_)
    # Both stop within libsvm's tolerance of the optimum, which is 0.001.
    np.testing.assert_allclose(
        ours.decision_function(X[300:]), theirs.decision_function(X[300:]), atol=1e-3
    )
    np.testing.assert_array_equal(ours.predict(X[300:]), theirs.predict(X[300:]))


# -- committed files ----------------------------------------------------------------------------------


def test_image_features_are_computed_once(harness, monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    images = Bunch(
        data=rng.integers(0, 256, (50, 12, 12, 3), dtype=np.uint8),
        target=rng.integers(0, 2, 50),
        split=Bunch(train=np.arange(40, 10, -1), validation=np.arange(5), test=np.arange(5, 10)),
        DESCR="Noise.",
    )
    monkeypatch.setattr(harness.features, "fetch_cifar10", lambda **_: images)
    found = harness.features.cifar10_features(tmp_path)
    monkeypatch.delattr(harness.features, "fetch_cifar10")
    again = harness.features.cifar10_features(tmp_path)
    np.testing.assert_array_equal(found.data, again.data)
    assert found.data.shape == (40, 400)
    assert found.costs.total == 400
    for part, rows in images.split.items():
        np.testing.assert_array_equal(found.target[found.split[part]], images.target[rows])
    # The features are those of the training images, whatever the others are.
    model = harness.features.KMeansPatches(random_state=0).fit(images.data[images.split.train])
    expected = model.transform(images.data[images.split.test])
    np.testing.assert_allclose(found.data[found.split.test], expected, rtol=1e-5)


def test_the_committed_report_is_that_of_the_committed_tables(harness):
    folder = BENCHMARKS / "results"
    report = (BENCHMARKS / "RESULTS.md").read_text(encoding="utf-8")
    assert report == harness.report.render(folder, BENCHMARKS)


def test_one_line_stands_beside_the_best_method_by_hand(harness, tiny, tmp_path, monkeypatch):
    one_line = harness.one_line
    monkeypatch.setitem(one_line.DATASETS, "tiny", tiny)
    monkeypatch.setattr(
        one_line, "BudgetedClassifier", partial(BudgetedClassifier, method="greedy-miser")
    )
    columns = "split,accounting,tolerance,method,validation_cost,cut,difference"
    rows = [
        f"{split},stage,0.01,{method},{cost},{cut},-0.01"
        for split in (0, 1)
        for method, cost, cut in (("cascade", 3, 0.6), ("adapt-gbrt", 2, 0.7), ("budgeted", 1, 0.9))
    ]
    (tmp_path / "tiny.csv").write_text("\n".join([columns, *rows]))
    assert one_line.section(tmp_path) == []
    one_line.main(["tiny", "--splits", "1"], tmp_path)
    one_line.main(["tiny"], tmp_path)
    table = pd.read_csv(tmp_path / "one-line.csv")
    assert table.split.tolist() == [0, 1]
    ((heading, _, shown),) = one_line.section(tmp_path)
    assert heading == "## One line of code"
    assert shown.splits.tolist() == [2]
    assert shown["by hand"].tolist() == ["adapt-gbrt"]
    assert shown["cut by hand"].tolist() == ["70.0%"]
    with pytest.raises(SystemExit):
        one_line.main(["tidy"], tmp_path)


def test_the_time_of_a_fit_is_that_of_its_parts(harness, tiny, tmp_path, monkeypatch):
    fit_time = harness.fit_time
    monkeypatch.setitem(fit_time.DATASETS, "tiny", tiny)
    monkeypatch.setattr(
        fit_time, "CascadeClassifier", partial(CascadeClassifier, stage_estimator="own", cv=2)
    )
    assert fit_time.section(tmp_path) == []
    fit_time.main(["tiny"], tmp_path)
    row = pd.read_csv(tmp_path / "fit-time.csv").iloc[0]
    parts = row[[*fit_time.PARTS, fit_time.REST]]
    assert parts.sum() == pytest.approx(row["fit"], rel=1e-3)
    # Networks that judge take most of the time of so small a fit; there is no kernel machine for a forest.
    assert row["judges"] == parts.max()
    assert (parts.drop("kernel machine") > 0).all()
    assert row["kernel machine"] == 0
    ((heading, _, shown),) = fit_time.section(tmp_path)
    assert heading == "## Time of a fit"
    assert shown["data"].tolist() == ["tiny"]
    with pytest.raises(SystemExit):
        fit_time.main(["tidy"], tmp_path)


def test_the_cache_can_be_shared(harness, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARING_CACHE", str(tmp_path))
    assert harness.store.cache_folder() == tmp_path
    monkeypatch.delenv("SPARING_CACHE")
    assert harness.store.cache_folder().parent.name == "benchmarks"
