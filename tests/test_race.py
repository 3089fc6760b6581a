import contextlib
import signal
import threading

import numpy as np
import pytest

from handmade import table, two_stages
from sparing import AdaptGbrtClassifier, CascadeClassifier, FeatureCosts, GreedyMiserClassifier
from sparing._full_model import FullModel
from sparing._parts import Rows
from sparing._race import Task, still_running
from sparing.frontier import Frontier, stage_alone, threshold_systems
from sparing.selection import BudgetedClassifier


class Interrupted(AdaptGbrtClassifier):
    def fit(self, *args, **kwargs):
        raise KeyboardInterrupt


class Content(AdaptGbrtClassifier):
    """Takes an interrupt as the wish to end with what it has."""

    def fit(self, *args, **kwargs):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return super().fit(*args, **kwargs)


class Broken(AdaptGbrtClassifier):
    def fit(self, *args, **kwargs):
        raise ValueError("no rows like these")


SMALL = AdaptGbrtClassifier(n_estimators=4, cost_penalty=[0.1, 0.01])


def budgeted(method, **options):
    return BudgetedClassifier(method=method, random_state=0, **{"tolerance": 0.05, **options})


@pytest.fixture(scope="module")
def rows():
    return table(400, seed=3)


@pytest.fixture
def ctrl_c():
    """Ctrl-C as Python hears it; a process in the background may have been told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_hopeless_methods_are_stopped(rows):
    X, y = table(2000, seed=1)
    full = stage_alone(two_stages())
    good = Frontier.evaluate(threshold_systems(two_stages(), X, n=20), X, y, full=full)
    dear = Frontier.evaluate([two_stages().with_thresholds([-np.inf])], X, y, full=full)
    assert still_running({"good": good, "dear": dear}, "accuracy") == {"good"}
    assert still_running({"good": good, "same": good}, "accuracy") == {"good", "same"}
    cheap = Frontier.evaluate([stage_alone(two_stages(), 0)], X, y, full=full)
    # As good where next to nothing is bought, and of no use from there on.
    assert still_running({"good": good, "cheap": cheap}, "accuracy") == {"good"}
    both = {"cheap half": good._subset(np.arange(12)), "dear half": good._subset(np.arange(8, 20))}
    assert still_running(both, "accuracy") == set(both)
    # With a wish only budgets about it matter.
    assert still_running(both, "accuracy", both["dear half"].costs.max()) == {"dear half"}
    assert still_running(both, "accuracy", both["cheap half"].costs[3]) == {"cheap half"}
    loss = {
        name: Frontier.evaluate([p.system for p in f], X, y, scoring="neg_log_loss", full=full)
        for name, f in {"good": good, "cheap": cheap}.items()
    }
    assert still_running(loss, "neg_log_loss") == {"good"}


def test_an_interrupt_keeps_what_was_learnt(rows):
    with pytest.warns(UserWarning, match="Interrupted after 1 fits"):
        clf = budgeted([SMALL, Interrupted()]).fit(*rows)
    assert clf.history_["method"].tolist() == ["AdaptGbrtClassifier"]
    assert clf.score(*rows) > 0.8
    with pytest.raises(KeyboardInterrupt):
        budgeted(Interrupted()).fit(*rows)


def test_an_interrupted_cascade_alone_leaves_the_full_model(rows):
    cascade = CascadeClassifier(stages=[[0]], stage_estimator=Interrupted(), cv=2)
    with pytest.warns(UserWarning, match="the cascade is the full model alone"):
        clf = budgeted(cascade).fit(*rows)
    assert len(clf.stages_) == len(clf.frontier_) == 1
    assert np.array_equal(clf.predict(rows[0]), clf.estimator_.predict(rows[0]))


def test_an_interrupt_that_a_method_keeps_to_itself_ends_the_race(rows, ctrl_c):
    # A cascade that is interrupted goes on with the stages it has; the others must not be started then.
    with pytest.warns(UserWarning, match="Interrupted after 1 fits"):
        clf = budgeted([Content(n_estimators=4), Broken()]).fit(*rows)
    assert clf.history_["method"].tolist() == ["Content"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_race_in_a_thread_cannot_hear_interrupts(rows):
    fitted = []
    thread = threading.Thread(target=lambda: fitted.append(budgeted(SMALL).fit(*rows)))
    thread.start()
    thread.join()
    assert fitted[0].score(*rows) > 0.8


def test_methods_that_fail_are_left_out_loudly(rows):
    with pytest.warns(
        UserWarning, match="Broken could not be fitted and is left out: no rows like"
    ):
        clf = budgeted([Broken(), SMALL]).fit(*rows)
    assert clf.history_["error"].tolist() == ["no rows like these", ""]
    with pytest.raises(ValueError, match="no rows like these"):
        budgeted(Broken()).fit(*rows)
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(RuntimeError, match="None of the methods could be fitted"),
    ):
        budgeted([Broken(), Broken()]).fit(*rows)


def test_progress_tells_what_is_left(rows, capsys):
    budgeted([SMALL, GreedyMiserClassifier(n_estimators=4)], verbose=1).fit(*rows)
    told = capsys.readouterr().err
    assert "1 of 2 fits, about" in told
    assert "s left" in told
    assert "2 of 2 fits" in told
    assert "validation rows" in told
    assert "Adapt-Gbrt" not in told
    budgeted(SMALL).fit(*rows)
    assert capsys.readouterr().err == ""


def test_a_cascade_tells_its_stages(rows, capsys):
    X, y = rows
    cascade = CascadeClassifier(stages=[[0], [0, 1]], stage_estimator="own", cv=2)
    budgeted(cascade, verbose=1).fit(X, y)
    assert "2 of 2 fits" in capsys.readouterr().err


def test_a_first_look_at_some_of_the_rows():
    X, y = table(600, seed=3)
    weight = np.arange(600.0)
    proba = np.random.default_rng(0).random((600, 2))
    full = FullModel((), np.array([0, 1]), proba, None)
    task = Task(Rows(X, y, weight), FeatureCosts([1, 1, 1]), full, 5, 0)
    assert task.of_some(None) is task
    assert task.of_some(600) is task
    some = task.of_some(150)
    assert len(some.rows.y) == 150
    assert np.mean(some.rows.y) == pytest.approx(np.mean(y), abs=0.01)
    at = some.rows.weight.astype(int)
    np.testing.assert_array_equal(some.rows.X, X[at])
    np.testing.assert_array_equal(some.rows.y, y[at])
    np.testing.assert_array_equal(some.full.proba, proba[at])


def test_workers_change_nothing(rows):
    methods = [SMALL, GreedyMiserClassifier(n_estimators=4)]
    alone, two = (budgeted(methods, n_jobs=n).fit(*rows) for n in (1, 2))
    np.testing.assert_array_equal(alone.frontier_.costs, two.frontier_.costs)
    np.testing.assert_array_equal(alone.frontier_.scores, two.frontier_.scores)
    np.testing.assert_array_equal(alone.predict(rows[0]), two.predict(rows[0]))
    # Every system has the one full model, whoever learnt it.
    last = {id(s.stages[-1].predictor) for s in two.staged_systems() if s.has_full}
    assert len(last) == 1


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same(rows):
    distributed = pytest.importorskip("distributed")
    import joblib

    methods = [SMALL, GreedyMiserClassifier(n_estimators=4)]
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        spread = budgeted(methods).fit(*rows)
    alone = budgeted(methods).fit(*rows)
    np.testing.assert_array_equal(alone.frontier_.costs, spread.frontier_.costs)
    np.testing.assert_array_equal(alone.predict(rows[0]), spread.predict(rows[0]))
