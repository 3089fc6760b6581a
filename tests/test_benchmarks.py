"""The comparison harness on a table of a few hundred rows, and the report that is written from its tables."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import Bunch

from sparing import FeatureCosts, Frontier
from sparing.system import ACCOUNTINGS

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
pytest.importorskip("pandas")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def harness():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import run
        from paper import datasets, features, methods, objective, report, store
    finally:
        sys.path.remove(str(BENCHMARKS))
    return Bunch(
        run=run,
        datasets=datasets,
        features=features,
        methods=methods,
        objective=objective,
        report=report,
        store=store,
    )


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
        load_tiny, model, 10, splits=(0, 1), family="letters", same_as_authors=True
    )


@pytest.fixture(scope="module")
def problem(harness, tiny, tmp_path_factory):
    store = harness.store.Store(tmp_path_factory.mktemp("cache"))
    return harness.datasets.prepare("tiny", tiny, 0, store)


def test_every_method_runs_and_the_report_is_that_of_its_tables(harness, tiny, tmp_path):
    sweeps = {
        name: {axis: values[-1:] for axis, values in method.sweep["quick"].items()}
        for name, method in harness.methods.METHODS.items()
    }
    # The largest penalty would buy nothing here.
    small = {
        name: harness.methods.Method(
            method.learn,
            method.gives,
            {"quick": sweeps[name] | ({"share": [0.1]} if "share" in sweeps[name] else {})},
        )
        for name, method in harness.methods.METHODS.items()
    }
    store = harness.store.Store(tmp_path / "cache")
    arguments = ("tiny", tiny, list(small), "quick", store, tmp_path / "results", small)
    results = harness.run.run(*arguments)
    choices = results.choices()
    given = {name for method in small.values() for name in method.gives}
    assert set(choices.method) == given
    assert set(choices.split) == {0, 1}
    assert set(choices.accounting) == set(ACCOUNTINGS)
    near = choices[choices.tolerance.notna()]
    assert ((near.cut >= -1e-9) & (near.low <= near.difference)).all()
    assert (tmp_path / "results" / "tiny.png").stat().st_size > 1000

    text = harness.report.render(tmp_path / "results", tmp_path)
    assert "A made-up table." in text
    assert all(name in text for name in given)
    # From the cache, and into another folder: the same tables.
    again = harness.run.run(*arguments[:5], tmp_path / "again", small)
    assert again.choices().equals(choices)
    assert harness.report.render(tmp_path / "again", tmp_path) == text.replace(
        "(results/", "(again/"
    )


def test_the_objective_counts_as_a_frontier_does(harness, problem):
    learn = harness.methods.adapt_gbrt(problem, share=0.05, full_rate=0.3, trees=1)
    learn |= harness.methods.lightgbm_confidence(
        problem, share=0.02, num_leaves=15, learning_rate=0.2, trees=1
    )
    learn |= harness.methods.cascade(problem, stage_estimator="shared", cv=3)
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
    choices, curves = harness.objective.compare(kept, {"stage": full, "path": full}, 8)
    near = next(row for row in choices if row["tolerance"] == 0.01)
    assert (near["cost"], near["score"], near["cut"]) == (2, 0.7, 0.5)
    assert (near["difference"], near["setting"]) == (0, "n=1")
    assert len(curves) == 2


def test_an_unfinished_comparison_writes_nothing(harness, tiny, tmp_path, capsys):
    table = {
        name: harness.methods.Method(
            method.learn,
            method.gives,
            {"quick": {a: v[:1] for a, v in method.sweep["quick"].items()}},
        )
        for name, method in harness.methods.METHODS.items()
        if name in ("greedy-miser", "lightgbm-confidence")
    }
    store = harness.store.Store(tmp_path / "cache")
    arguments = ("tiny", tiny, ["greedy-miser"], "quick", store, tmp_path / "results", table)
    assert harness.run.run(*arguments) is None
    assert "lightgbm-confidence" in capsys.readouterr().out
    assert not (tmp_path / "results").exists()


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
