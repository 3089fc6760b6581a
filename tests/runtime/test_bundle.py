import json
import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from bundle_cases import CASES, COSTS, FAST, fitted, mixed, numbers, same, store
from forged import manifest_of, members
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import sparing
from handmade import Margin, Sigmoid, two_stages
from sparing import (
    AdaptLinClassifier,
    Certificate,
    FeatureCosts,
    Frontier,
    GreedyMiserClassifier,
    Guarantee,
)
from sparing._routed import RoutedClassifier
from sparing._sequence import safest_first
from sparing._stored import Stored
from sparing.runtime import Bundle, BundleError, inspect, load, save
from sparing.runtime import _archive as archive
from sparing.runtime._parts import KINDS, class_of
from sparing.system import ConfidenceGate, Stage, System

BUNDLES = Path(__file__).parent / "bundles"


@pytest.fixture
def stored(tmp_path):
    return store(tmp_path)


# -- round trips --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_a_classifier_comes_back_exactly(name, tmp_path):
    clf, X = fitted(name)
    digest = save(clf, tmp_path / "a.sparing")
    system = load(tmp_path / "a.sparing", digest=digest)
    assert isinstance(system, System)
    same(clf.system_, system, X)
    same(clf.system_, system, X[:1])
    assert system.costs == clf.system_.costs
    assert system.classes.dtype == clf.classes_.dtype
    assert repr(system.system) == repr(clf.system_)


def test_every_public_classifier_is_among_the_cases():
    covered = {type(estimator) for estimator, _ in CASES.values()}
    public = {getattr(sparing, name) for name in sparing.__all__}
    routed = {c for c in public if isinstance(c, type) and issubclass(c, RoutedClassifier)}
    # It stores a system that one of the others has learnt.
    assert {c.__name__ for c in routed - covered} <= {"BudgetedClassifier"}


def test_polars_frames_give_the_same_answers(tmp_path):
    polars = pytest.importorskip("polars")
    clf, X = fitted("gbrt mixed")
    frame = polars.from_pandas(X)
    save(clf, tmp_path / "a.sparing")
    system = load(tmp_path / "a.sparing")
    # f0 is a pipeline for pandas columns: rows that stay at the cheap stage are enough.
    stays = np.flatnonzero(clf.route(X) == 0)[:30]
    np.testing.assert_array_equal(
        system.predict_proba(frame[stays.tolist()]), clf.predict_proba(X.iloc[stays])
    )


def test_a_system_inside_a_system_comes_back(tmp_path):
    inner, X = fitted("gbrt")
    y = numbers()[1]
    outer = AdaptLinClassifier(FrozenEstimator(inner), full_rate=0.5, random_state=0).fit(X, y)
    assert len(outer.stages_) == 3
    save(outer, tmp_path / "a.sparing")
    same(outer.system_, load(tmp_path / "a.sparing"), X)


def test_a_legacy_model_on_some_columns_and_a_search_come_back(tmp_path):
    frame, y = mixed()
    numeric = ["weight", "age"]
    model = make_pipeline(StandardScaler(), SVC()).fit(frame[numeric], y)
    clf = AdaptLinClassifier(FrozenEstimator(model), **FAST).fit(frame, y)
    save(clf, tmp_path / "a.sparing")
    same(clf.system_, load(tmp_path / "a.sparing"), frame)
    X, y = numbers()
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2)
    clf = AdaptLinClassifier(search, **FAST).fit(X, y)
    save(clf, tmp_path / "b.sparing")
    same(clf.system_, load(tmp_path / "b.sparing"), X)


def test_a_model_known_by_its_logs_can_still_be_priced(tmp_path):
    X, y = numbers()
    proba = LogisticRegression().fit(X, y).predict_proba(X)
    clf = AdaptLinClassifier(full_rate=0.4, random_state=0).fit(X, y, full_proba=proba)
    save(clf, tmp_path / "a.sparing")
    system = load(tmp_path / "a.sparing")
    np.testing.assert_array_equal(system.route(X), clf.route(X))
    np.testing.assert_array_equal(system.acquisition_cost(X), clf.acquisition_cost(X))
    assert system.explain(X) == clf.explain(X)


def test_stages_alone_and_infinite_thresholds_come_back(tmp_path):
    clf, X = fitted("gbrt")
    for threshold in (np.inf, -np.inf):
        system = clf.system_.with_thresholds(threshold)
        save(system, tmp_path / "a.sparing")
        assert load(tmp_path / "a.sparing").thresholds == (threshold,)
        same(system, load(tmp_path / "a.sparing"), X)


def test_placeholders_in_columns_that_were_not_bought_change_nothing(tmp_path):
    clf, X = fitted("gbrt")
    save(clf, tmp_path / "a.sparing")
    system = load(tmp_path / "a.sparing")
    scrambled = X.copy()
    scrambled[~clf.acquisition_mask(X)] = 1e6
    np.testing.assert_array_equal(system.predict_proba(scrambled), clf.predict_proba(X))


def test_a_new_process_gives_the_same_answers(stored, tmp_path):
    clf, X = fitted("gbrt")
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy as np; from sparing.runtime import load; "
        "np.save(sys.argv[3], load(sys.argv[1]).predict_proba(np.load(sys.argv[2])))"
    )
    out = tmp_path / "out.npy"
    subprocess.run(
        [sys.executable, "-W", "error", "-c", code, stored, tmp_path / "X.npy", out], check=True
    )
    np.testing.assert_array_equal(np.load(out), clf.predict_proba(X))


def test_no_training_row_is_in_the_file(tmp_path):
    X, y = numbers()
    forest = RandomForestClassifier(5, oob_score=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = AdaptLinClassifier(forest, random_state=0).fit(X, y)
    save(clf, tmp_path / "a.sparing")
    model = load(tmp_path / "a.sparing").stages[-1].predictor.model
    assert not hasattr(model, "oob_decision_function_")
    assert hasattr(clf.estimator_, "oob_decision_function_")


# -- the frontier -------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def frontier():
    clf, X = fitted("gbrt")
    y = numbers()[1]
    return Frontier.evaluate(clf.staged_systems()[::40], X, y, labels=None)


def test_every_system_of_a_frontier_comes_back(frontier, tmp_path):
    clf, X = fitted("gbrt")
    save(clf, tmp_path / "a.sparing", frontier=frontier)
    found = load(tmp_path / "a.sparing").frontier
    assert len(found) == len(frontier) > 3
    for point, expected in zip(found.points, frontier.points, strict=True):
        assert (point.cost, point.score) == (expected.cost, expected.score)
        assert point.stage_rates == expected.stage_rates
        np.testing.assert_array_equal(
            [point.loss_error, point.kept_error], [expected.loss_error, expected.kept_error]
        )
        np.testing.assert_array_equal(
            point.system.predict_proba(X), expected.system.predict_proba(X)
        )
        np.testing.assert_array_equal(
            point.system.acquisition_cost(X), expected.system.acquisition_cost(X)
        )
    np.testing.assert_array_equal(found.full.system.predict(X), frontier.full.system.predict(X))


def test_a_stored_frontier_chooses_like_the_one_it_was(frontier, tmp_path):
    clf, X = fitted("gbrt")
    y = numbers()[1]
    save(clf, tmp_path / "a.sparing", frontier=frontier.on(X[::2], y[::2]))
    f = load(tmp_path / "a.sparing").frontier
    again = Frontier(f.points, f.full, f.scoring, f.accounting, f.n_rows)
    expected = frontier.on(X[::2], y[::2])
    assert f.chosen.costs.tolist() == expected.chosen.costs.tolist()
    assert f.scores.tolist() == expected.scores.tolist()
    budget = float(np.median(again.costs))
    direct = Frontier(expected.points, expected.full, "accuracy", "stage", expected.n_rows)
    assert again.at(budget=budget).cost == direct.at(budget=budget).cost


def test_a_stored_frontier_can_be_promised_from(frontier, tmp_path):
    """The order of the tests needs to know how many of the rows kept were wrong; files of before do not say it."""
    clf, _ = fitted("gbrt")
    save(clf, tmp_path / "a.sparing", frontier=frontier)
    f = load(tmp_path / "a.sparing").frontier
    again = Frontier(f.points, f.full, f.scoring, f.accounting, f.n_rows)
    wish = Guarantee(max_error=0.3)
    order = safest_first(frontier, wish, 300, 50)
    assert safest_first(again, wish, 300, 50) == order
    assert order
    old = load(BUNDLES / "both-1.sparing").frontier
    assert np.isnan([point.kept_error for point in old.points]).all()
    without = [replace(point, kept_error=np.nan) for point in f.points]
    with pytest.raises(ValueError, match=r"max_error=0.3: .* Evaluate them, Frontier.evaluate\("):
        safest_first(replace(again, points=tuple(without)), wish, 300, 50)


def test_parts_that_systems_share_are_stored_once(frontier, tmp_path):
    clf, _ = fitted("gbrt")
    save(clf, tmp_path / "one.sparing")
    save(clf, tmp_path / "many.sparing", frontier=frontier)
    models = [name for name in members(tmp_path / "many.sparing") if name.endswith(".skops")]
    assert len(models) == 1
    system = load(tmp_path / "many.sparing")
    assert len({id(p.system.stages[-1].predictor) for p in system.frontier.points}) == 1
    one, many = ((tmp_path / f"{n}.sparing").stat().st_size for n in ("one", "many"))
    assert many < one + 40_000


def test_a_certificate_is_stored_and_can_be_read_again(frontier, tmp_path):
    clf, _ = fitted("gbrt")
    certificate = Certificate(
        *(0.95, (), 100, "accuracy", "stage", 0.9, float("nan"), 2.0, ("cheap", "full"), (0.5,)),
        *((60, 40), (1.0, 3.5), (60, 40), {}, 1, 1, "ab12"),
    )
    save(clf, tmp_path / "a.sparing", certificate=certificate)
    found = Certificate.from_json(json.dumps(load(tmp_path / "a.sparing").certificate))
    assert repr(found) == repr(certificate)

    class Certified:
        system_ = clf.system_
        certificate_ = certificate

    save(Certified(), tmp_path / "b.sparing")
    assert (tmp_path / "a.sparing").read_bytes() == (tmp_path / "b.sparing").read_bytes()


def test_the_frontier_of_a_classifier_is_stored_unless_told_otherwise(frontier, tmp_path):
    class WithFrontier:
        system_ = fitted("gbrt")[0].system_
        frontier_ = frontier

    save(WithFrontier(), tmp_path / "a.sparing")
    assert len(load(tmp_path / "a.sparing").frontier) == len(frontier.pareto())
    save(WithFrontier(), tmp_path / "a.sparing", frontier=False)
    assert load(tmp_path / "a.sparing").frontier is None


# -- what stays outside -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gbrt", "lin three classes"])
def test_a_model_left_outside_is_given_when_loading(name, tmp_path):
    clf, X = fitted(name)
    path = tmp_path / "a.sparing"
    save(clf, path, outside=["full"])
    assert not any(member.endswith(".skops") for member in members(path))
    assert inspect(path)["outside"] == ["full"]
    same(clf.system_, load(path, full_model=clf.estimator_), X)
    same(clf.system_, load(path, full_model={"full": clf.estimator_}), X)


def test_an_endpoint_may_answer_for_the_full_model(tmp_path):
    clf, X = fitted("gbrt")
    save(clf, tmp_path / "a.sparing", outside=["full"])
    asked = []

    def endpoint(rows):
        asked.append(len(rows))
        return clf.estimator_.predict_proba(rows)

    system = load(tmp_path / "a.sparing", full_model=endpoint)
    np.testing.assert_array_equal(system.predict_proba(X), clf.predict_proba(X))
    assert asked == [int((clf.route(X) == 1).sum())]
    np.testing.assert_array_equal(system.acquisition_cost(X), clf.acquisition_cost(X))


@pytest.mark.parametrize("name", ["gbrt", "lin three classes"])
def test_without_the_model_rows_are_routed_and_priced_but_not_answered(name, tmp_path):
    clf, X = fitted(name)
    save(clf, tmp_path / "a.sparing", outside=["full"])
    system = load(tmp_path / "a.sparing")
    np.testing.assert_array_equal(system.route(X), clf.route(X))
    np.testing.assert_array_equal(system.acquisition_cost(X), clf.acquisition_cost(X))
    for row, expected in zip(system.explain(X), clf.explain(X), strict=True):
        assert row["items"] == expected["items"]
        assert row["prediction"] == (expected["prediction"] if row["stage"] == 0 else None)
    with pytest.raises(RuntimeError, match="full_model=model"):
        system.predict(X)
    # What was absent can be stored and given again.
    save(system, tmp_path / "b.sparing")
    assert (tmp_path / "a.sparing").read_bytes() == (tmp_path / "b.sparing").read_bytes()


def test_wrong_models_from_outside_are_refused(tmp_path):
    clf, X = fitted("gbrt")
    y = numbers()[1]
    path, inside = tmp_path / "a.sparing", tmp_path / "b.sparing"
    save(clf, path, outside=["full"])
    save(clf, inside)
    with pytest.raises(BundleError, match="other columns"):
        load(path, full_model=RandomForestClassifier(2, max_depth=1).fit(X, y))
    with pytest.raises(BundleError, match="labels that are not among"):
        load(path, full_model=GaussianNB().fit(X, y + 5))
    with pytest.raises(BundleError, match="it has its own"):
        load(inside, full_model=clf.estimator_)
    with pytest.raises(BundleError, match="'fulll' is outside"):
        load(path, full_model={"fulll": clf.estimator_})
    with pytest.raises(TypeError, match="wrap an address"):
        load(path, full_model="https://example.org/predict")
    with pytest.raises(BundleError, match="no model to leave outside at a stage called 'cheap'"):
        save(clf, path, outside=["cheap"])
    with pytest.raises(TypeError, match="list of stages"):
        save(clf, path, outside="full")


def test_a_deciding_model_is_not_replaced_by_probabilities(tmp_path):
    clf, _ = fitted("lin three classes")
    save(clf, tmp_path / "a.sparing", outside=["full"])
    with pytest.raises(BundleError, match="give a model with predict"):
        load(tmp_path / "a.sparing", full_model=lambda rows: np.full((len(rows), 3), 1 / 3))


# -- kinds and types ----------------------------------------------------------------------------------


def test_every_kind_has_a_class_that_can_be_stored():
    for kind in KINDS:
        found = class_of(kind, {})
        assert callable(found.stored)
        assert callable(found.restored)


@dataclass(frozen=True, eq=False)
class OwnGate(Margin):
    def stored(self):
        return Stored("margin", settings={"column": self.column})

    @classmethod
    def restored(cls, stored):
        return cls(stored.count("column"))


@dataclass(frozen=True, eq=False)
class OwnPredictor(Sigmoid):
    def stored(self):
        return Stored("sigmoid", settings={"column": self.column, "scale": self.scale})

    @classmethod
    def restored(cls, stored):
        return cls(stored.count("column"), stored.number("scale"))


def own_system():
    stages = (
        Stage(OwnPredictor(0), OwnGate(0), -0.5, "cheap"),
        Stage(OwnPredictor(1, 2.0), None, 0.0, "full"),
    )
    return System(stages, FeatureCosts([1, 2, 3]), np.array(["no", "yes"]))


def test_kinds_of_ones_own_are_given_when_loading(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 3))
    save(own_system(), tmp_path / "a.sparing")
    kinds = {"margin": OwnGate, "sigmoid": OwnPredictor}
    same(own_system(), load(tmp_path / "a.sparing", kinds=kinds), X)
    with pytest.raises(BundleError, match=r"no kind of part called 'margin'.*kinds="):
        load(tmp_path / "a.sparing", kinds={"sigmoid": OwnPredictor})
    assert [part["kind"] for part in inspect(tmp_path / "a.sparing")["parts"]] == [
        *("margin", "sigmoid", "sigmoid")
    ]


def test_parts_that_cannot_be_stored_are_named(tmp_path):
    with pytest.raises(BundleError, match=r"Margin of stage 'cheap' cannot be stored"):
        save(two_stages(), tmp_path / "a.sparing")

    class Surer(ConfidenceGate):
        def score(self, X, proba):
            return super().score(X, proba) / 2

    stage = Stage(OwnPredictor(0), Surer(), 0.1, "cheap")
    system = System((stage, own_system().stages[1]), FeatureCosts([1, 2]), np.array([0, 1]))
    with pytest.raises(BundleError, match=r"Surer of stage 'cheap' would be stored as the Confid"):
        save(system, tmp_path / "a.sparing")
    with pytest.raises(TypeError, match="fit it first"):
        save(GreedyMiserClassifier(), tmp_path / "a.sparing")
    assert not list(tmp_path.iterdir())


def test_untrusted_types_are_listed_and_may_be_allowed(tmp_path):
    X, y = numbers()
    clf = AdaptLinClassifier(KNeighborsClassifier(algorithm="kd_tree"), **FAST).fit(X, y)
    path = tmp_path / "a.sparing"
    save(clf, path)
    with pytest.raises(BundleError, match=r"_kd_tree\.KDTree.*load\(path, trusted=\[") as caught:
        load(path)
    assert "EuclideanDistance64" in str(caught.value)
    names = [
        *("sklearn.metrics._dist_metrics.EuclideanDistance64", "sklearn.neighbors._kd_tree.KDTree")
    ]
    same(clf.system_, load(path, trusted=names), X)
    assert inspect(path)["stages"][1]["name"] == "full"
    with pytest.raises(TypeError, match="list of types"):
        load(path, trusted=True)


def test_a_lightgbm_model_is_stored_and_its_trees_are_looked_at(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = numbers()
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1)
    clf = AdaptLinClassifier(model, **FAST).fit(X, y)
    path = tmp_path / "a.sparing"
    save(clf, path)
    same(clf.system_, load(path), X)


# -- the file -----------------------------------------------------------------------------------------


def test_the_same_system_gives_the_same_bytes(frontier, tmp_path):
    for name in ("gbrt", "lin mixed", "prune"):
        clf, _ = fitted(name)
        more = {"frontier": frontier, "metadata": {"who": "me", "n": 3}} if name == "gbrt" else {}
        a, b, c = (tmp_path / f"{i}.sparing" for i in "abc")
        save(clf, a, **more)
        save(pickle.loads(pickle.dumps(clf)), b, **more)
        save(load(a), c)
        assert a.read_bytes() == b.read_bytes() == c.read_bytes()


def test_a_failed_save_leaves_the_old_file_and_nothing_else(stored, monkeypatch):
    before = stored.read_bytes()
    with pytest.raises(BundleError, match="plain data"):
        save(fitted("gbrt")[0], stored, metadata={"when": object()})

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive.os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        save(fitted("gbrt")[0], stored, metadata={"other": 1})
    monkeypatch.undo()
    monkeypatch.setattr(archive.os, "replace", lambda a, b: full_disk(0))
    with pytest.raises(OSError, match="No space"):
        save(fitted("gbrt")[0], stored, metadata={"other": 1})
    assert stored.read_bytes() == before
    assert list(stored.parent.iterdir()) == [stored]


def test_a_killed_writer_leaves_the_old_file(stored):
    before = stored.read_bytes()
    code = (
        "import os, sys; from sparing.runtime import load, save; import sparing.runtime._archive as a; "
        "b = load(sys.argv[1]); a.os.replace = lambda *args: os._exit(9); "
        "save(b, sys.argv[1], metadata={'other': 1})"
    )
    assert subprocess.run([sys.executable, "-c", code, stored]).returncode == 9
    assert stored.read_bytes() == before


def test_a_new_file_can_be_read_by_those_who_may_read_files(stored):
    mask = os.umask(0)
    os.umask(mask)
    assert stored.stat().st_mode & 0o777 == 0o666 & ~mask


def test_the_manifest_tells_people_what_the_system_is(tmp_path):
    clf, _ = fitted("gbrt mixed")
    path = tmp_path / "a.sparing"
    digest = save(clf, path, metadata={"lab": "Zürich"}, certificate={"alpha": 0.05})
    manifest = inspect(path, digest=digest)
    assert manifest["format"] == 1
    assert manifest["columns"] == list(COSTS.columns)
    assert manifest["items"] == list(COSTS.items)
    assert FeatureCosts.from_dict(manifest["prices"]) == COSTS
    assert manifest["classes"]["labels"] == ["sick", "well"]
    assert manifest["thresholds"] == list(clf.system_.thresholds)
    bought = clf.system_.stage_columns()
    for mask, stage in zip(bought[:1], manifest["stages"], strict=False):
        assert stage["columns"] == [c for c, own in zip(COSTS.columns, mask, strict=True) if own]
    kinds = [manifest["parts"][stage["predictor"]]["kind"] for stage in manifest["stages"]]
    assert kinds == ["boosted predictor", "model"]
    system = load(path)
    assert (system.metadata, system.certificate) == ({"lab": "Zürich"}, {"alpha": 0.05})
    assert system.manifest == manifest
    assert system.digest == digest
    assert digest[:12] in repr(system)


def test_another_file_than_the_expected_one_is_refused(stored, tmp_path):
    digest = save(fitted("gbrt")[0], tmp_path / "b.sparing", metadata={"n": 1})
    load(tmp_path / "b.sparing", digest=digest)
    with pytest.raises(BundleError, match="digest"):
        load(stored, digest=digest)


def test_repriced_or_rethresholded_it_is_a_plain_system(stored):
    system = load(stored)
    assert isinstance(system, Bundle)
    for other in (system.with_costs(None), system.with_thresholds(1.0)):
        assert type(other) is System
    assert system.with_thresholds(1.0).thresholds == (1.0,)


def test_columns_that_json_cannot_name_are_refused(tmp_path):
    system = fitted("gbrt")[0].system_
    odd = System(system.stages, FeatureCosts({10: 1, 20: 1, 30: 1, 40: 1, 50: 1}), system.classes)
    with pytest.raises(BundleError, match="named by text"):
        save(odd, tmp_path / "a.sparing")


# -- files of old versions ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(BUNDLES.glob("*.sparing")), ids=lambda path: path.stem)
def test_old_files_are_read_for_ever(path):
    expected = json.loads(path.with_suffix(".json").read_text())
    with warnings.catch_warnings():
        # The scikit-learn of those days is not the one of today; the answers must still be the same.
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        system = load(path)
    X = np.array(expected["X"], dtype=object if expected["objects"] else float)
    np.testing.assert_allclose(system.predict_proba(X), expected["proba"], rtol=1e-12)
    assert system.predict(X).tolist() == expected["labels"]
    assert system.route(X).tolist() == expected["route"]
    np.testing.assert_allclose(system.acquisition_cost(X), expected["cost"], rtol=1e-12)
    assert inspect(path)["format"] == expected["format"]


def test_there_are_old_files_of_every_format():
    found = {manifest_of(path)["format"] for path in BUNDLES.glob("*.sparing")}
    assert found == set(range(1, 2))
    kinds = {
        part["kind"] for path in BUNDLES.glob("*.sparing") for part in manifest_of(path)["parts"]
    }
    assert kinds >= set(KINDS)


def test_a_split_between_missing_and_present_values_is_stored(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    X[(y == 1) & (rng.random(300) < 0.8), 0] = np.nan
    clf = GreedyMiserClassifier(n_estimators=5, random_state=0).fit(X, y)
    save(clf, tmp_path / "gaps.sparing")
    assert np.array_equal(load(tmp_path / "gaps.sparing").predict_proba(X), clf.predict_proba(X))
