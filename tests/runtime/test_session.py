"""A session gives exactly the batch's answers, buys exactly what the batch says it costs, and never guesses."""

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from handmade import Margin, Sigmoid, table, two_stages
from sparing import AdaptGbrtClassifier, AdaptLinClassifier, FeatureCosts, GreedyMiserClassifier
from sparing.costs import FeatureCosts as Costs
from sparing.runtime import (
    CallableSource,
    Ledger,
    Limits,
    MappingSource,
    MockSource,
    NoAnswerError,
    Policy,
    Session,
    SourceError,
    load,
    save,
)
from sparing.runtime._examples import lender
from sparing.system import ConfidenceGate, Stage, System
from strategies import price_lists

pd = pytest.importorskip("pandas")


def three_stages(costs=None):
    """Columns 0, then 1, then 2 and 3; every gate sends some on."""
    return System(
        (
            Stage(Sigmoid(0), Margin(0), -0.8, name="first"),
            Stage(Sigmoid(1, 2.0), ConfidenceGate(), 0.3, name="second"),
            Stage(Sigmoid(2, 5.0, also=(3,)), name="last"),
        ),
        costs or FeatureCosts([1.0, 2.5, 4.0, 0.7], call_price=[0.1, 0.0, 0.3]),
        np.array(["no", "yes"]),
    )


def rows(n=60, n_columns=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, n_columns))


def sold(system, X, **options):
    return MockSource(X, list(system.costs.items), **options)


def check_against_batch(session, X, answers, system, cost=None):
    frame = X if hasattr(X, "columns") else np.asarray(X)
    np.testing.assert_array_equal([a.prediction for a in answers], system.predict(frame))
    for i, answer in enumerate(answers):  # bit for bit what the system says about the full row
        assert np.array_equal(answer.probabilities, system.predict_proba(frame[i : i + 1])[0])
    # Products of matrices are rounded otherwise than products of vectors.
    proba = np.array([a.probabilities for a in answers])
    np.testing.assert_allclose(proba, system.predict_proba(frame), rtol=1e-12)
    np.testing.assert_array_equal([a.stage for a in answers], system.route(frame))
    expected = system.acquisition_cost(frame, accounting="stage") if cost is None else cost
    assert [a.cost for a in answers] == expected.tolist()
    assert not any(a.degraded for a in answers)


def halved(clf, X):
    """The system with a threshold that sends half of the rows on."""
    scores = clf.system_.exit_scores(X)[:, 0]
    return clf.system_.with_thresholds(float(np.quantile(scores, 0.5)))


# -- equal to the batch -----------------------------------------------------------------------------


@pytest.mark.parametrize("system", [two_stages(), two_stages(call_price=0.5), three_stages()])
def test_handmade_systems(system):
    X = rows(n_columns=len(system.costs.columns))
    source = sold(system, X)
    with Session(system, [source]) as session:
        answers = [session.predict(i) for i in range(len(X))]
    check_against_batch(session, X, answers, system)
    # The source was paid for what the answers say, and that is what the batch's mask says.
    items = system.costs.items_of(system.acquisition_mask(X, accounting="stage"))
    expected = {(i, system.costs.items[j]) for i, j in zip(*np.nonzero(items), strict=True)}
    assert set(source.paid) == expected
    assert set(source.paid.values()) == {1}
    assert source.n_calls == sum(1 + stage for stage in system.route(X))


@pytest.fixture(scope="module")
def learnt():
    X, y = table(400)
    X = np.column_stack([X, rows(400, 2, seed=1)])
    forest = RandomForestClassifier(10, random_state=0)
    settings = {"feature_costs": [1, 2, 3, 1, 1], "random_state": 0, "full_rate": 0.4}
    return X, {
        "joint": AdaptGbrtClassifier(forest, gate="joint", n_estimators=20, **settings).fit(X, y),
        "refit": AdaptGbrtClassifier(forest, n_estimators=20, **settings).fit(X, y),
        "linear": AdaptLinClassifier(forest, **settings).fit(X, y),
        "decides": AdaptLinClassifier(
            FixedThresholdClassifier(LogisticRegression(), threshold=0.7), **settings
        ).fit(X, y),
    }


@pytest.mark.parametrize("name", ["joint", "refit", "linear", "decides"])
def test_learnt_systems(learnt, name):
    X, classifiers = learnt
    some = X[:80]
    system = halved(classifiers[name], some)
    with Session(system, [MappingSource(some, range(5))]) as session:
        answers = session.predict_many(range(80), concurrency=4)
    check_against_batch(session, some, answers, system)
    assert 0.2 < system.route(some).mean() < 0.8


@pytest.mark.parametrize("frame", [False, True])
def test_full_models_that_refuse_gaps_in_columns_they_do_not_use(frame, tmp_path):
    X, y = table(400)
    X = np.column_stack([X, rows(400, 2, seed=1)])
    if frame:
        X = pd.DataFrame(X, columns=list("abcde"))
    chosen = make_pipeline(SelectKBest(k=2), LogisticRegression())
    for full in (chosen, GradientBoostingClassifier(n_estimators=3, max_depth=1)):
        clf = AdaptGbrtClassifier(full, n_estimators=5, random_state=0).fit(X, y)
        assert len(clf.stages_[-1].columns) < 5
        save(clf.with_thresholds(-1e9), tmp_path / "a.sparing")
        chosen_by = "sklearn.feature_selection._univariate_selection.f_classif"
        system, some = load(tmp_path / "a.sparing", trusted=[chosen_by]), X[:20]
        session = Session(system, [MappingSource(some, list(system.costs.items))])
        check_against_batch(session, some, session.predict_many(range(20)), system)


def test_a_model_of_models(learnt):
    """A routed classifier as the full model of another: three stages, and path accounting below."""
    X, classifiers = learnt
    y = classifiers["refit"].predict(X)
    clf = AdaptLinClassifier(
        FrozenEstimator(classifiers["refit"]), feature_costs=[1, 2, 3, 1, 1], random_state=0
    ).fit(X, y)
    system = clf.system_.with_thresholds([-0.5, *clf.system_.thresholds[1:]])
    assert len(system.stages) == 3
    session = Session(system, [MappingSource(X, range(5))])
    check_against_batch(session, X[:60], [session.predict(i) for i in range(60)], system)


@pytest.mark.parametrize("accounting", ["stage", "path"])
def test_one_stage_and_path_accounting(learnt, accounting):
    """What is served is bought by stage, whatever the system counts."""
    X, classifiers = learnt
    y = classifiers["refit"].predict(X)
    clf = GreedyMiserClassifier(
        feature_costs=FeatureCosts([1, 2, 3, 1, 1], call_price=7), n_estimators=10, random_state=0
    ).fit(X, y)
    system = replace(clf.system_, accounting=accounting)
    session = Session(system, [MappingSource(X, range(5))])
    check_against_batch(session, X[:30], [session.predict(i) for i in range(30)], system)


def test_a_bundle_is_served(learnt, tmp_path):
    X, classifiers = learnt
    system = classifiers["joint"].system_
    save(system, tmp_path / "model.sparing")
    session = Session(load(tmp_path / "model.sparing"), [MappingSource(X, range(5))])
    check_against_batch(session, X[:30], [session.predict(i) for i in range(30)], system)


def test_threads_share_a_session(learnt):
    X, classifiers = learnt
    system = classifiers["refit"].system_
    with (
        Session(system, [MappingSource(X, range(5))]) as session,
        ThreadPoolExecutor(8) as pool,
    ):
        answers = list(pool.map(session.predict, range(400)))
    check_against_batch(session, X, answers, system)


def mixed_table(n=240):
    rng = np.random.default_rng(3)
    town = rng.choice(["north", "south", "west"], n)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "town": town,
            "income": rng.normal(size=n).round(3),
            "owner": rng.random(n) < 0.5,
            "score": rng.normal(size=n),
        }
    )
    frame.loc[::7, "income"] = np.nan
    y = np.where(frame["score"] + (town == "north") + 0.02 * frame["age"] > 1.2, "pays", "fails")
    return frame, y


def full_on_names():
    return make_pipeline(
        ColumnTransformer([("town", OneHotEncoder(), ["town"])], remainder="passthrough"),
        RandomForestClassifier(10, random_state=0),
    )


@pytest.mark.parametrize("learner", [AdaptLinClassifier, AdaptGbrtClassifier])
@pytest.mark.parametrize("like", [False, True])
def test_mixed_frames(learner, like):
    frame, y = mixed_table()
    prices = {"age": 1, "town": 1, "income": 2, "owner": 1, "score": 9}
    clf = learner(full_on_names(), feature_costs=prices, full_rate=0.5, random_state=0)
    clf.fit(frame, y)
    some = frame[:40]
    system = halved(clf, some)
    session = Session(
        system, [MappingSource(some, list(prices))], like=frame.head() if like else None
    )
    answers = [session.predict(i) for i in some.index]
    check_against_batch(session, some, answers, system)
    assert 0.2 < system.route(some).mean() < 0.8


def test_categories_need_like():
    lightgbm = pytest.importorskip("lightgbm")
    frame, y = mixed_table()
    frame["town"] = frame["town"].astype("category")
    full = lightgbm.LGBMClassifier(n_estimators=5, verbosity=-1, min_child_samples=2, n_jobs=1)
    clf = AdaptGbrtClassifier(full, gate="joint", n_estimators=10, random_state=0).fit(frame, y)
    some = frame[:30]
    system = halved(clf, some)
    session = Session(system, [MappingSource(some, list(frame.columns))], like=frame)
    answers = [session.predict(i) for i in some.index]
    check_against_batch(session, some, answers, system)


def test_polars_like():
    pl = pytest.importorskip("polars")
    frame, y = mixed_table()
    clf = AdaptLinClassifier(full_on_names(), full_rate=0.5, random_state=0)
    other = pl.from_pandas(frame)
    clf.fit(other, y)
    system = halved(clf, other[:30])
    session = Session(system, [MappingSource(frame, list(frame.columns))], like=other)
    answers = [session.predict(i) for i in range(30)]
    check_against_batch(session, other[:30], answers, system)


def test_like_must_fit():
    frame, _ = mixed_table()
    with pytest.raises(ValueError, match="`like` has the columns"):
        Session(lender()[0], [], like=frame)


# -- what is known --------------------------------------------------------------------------------


@given(
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.integers(0, 19),
    price_lists(named=False, n_columns=4),
)
@settings(max_examples=60, deadline=None)
def test_cost_with_known_columns(known, row, prices):
    costs = Costs.from_dict(prices | {"call_price": 0.25})
    system = three_stages(costs)
    X = rows(20)
    source = sold(system, X)
    answer = Session(system, [source]).predict(row, {j: X[row, j] for j in range(4) if known[j]})
    here = X[row : row + 1]
    assert answer.stage == system.route(here)[0]
    assert np.array_equal(answer.probabilities, system.predict_proba(here)[0])
    # Owned is every item that no column still to be bought needs.
    bought = costs.items_of(system.stage_columns()[answer.stage] & ~np.array(known))
    assert set(answer.bought) == {costs.items[i] for i in np.flatnonzero(bought)}
    expected = system.acquisition_cost(here, accounting="stage", owned=~bought)[0]
    assert answer.cost == expected


def test_known_columns_are_not_bought_and_are_believed():
    system, people = lender()
    source = MockSource(people, ["income", "bureau"])
    session = Session(system, [source])
    answer = session.predict("anna", {"income": 0.1})
    assert answer.bought == ("bureau",)
    assert answer.exits[0].score == pytest.approx(1 - 1 / (1 + np.exp(-0.1)))
    assert session.predict("anna", {"income": 0.1, "bureau": 2}).bought == ()


def test_known_columns_are_checked():
    system, people = lender()
    session = Session(two_stages(), [MappingSource(rows(3, 3), range(3))])
    with pytest.raises(ValueError, match="column 'incme', which the system does not know"):
        Session(system, [MappingSource(people, ["income", "bureau"])]).predict("anna", {"incme": 3})
    with pytest.raises(ValueError, match="is the text '3', must be a number"):
        session.predict(0, {0: "3"})
    with pytest.raises(ValueError, match="Column 0 in known is a list"):
        session.predict(0, {0: [3]})


def test_columns_nobody_sells_must_be_known():
    system, people = lender()
    session = Session(system, [MappingSource(people, ["bureau"])])
    assert session.only_known == ("income",)
    assert session.predict("bert", {"income": 0.5}).cost == 5
    with pytest.raises(ValueError, match="No source sells item 'income'"):
        session.predict("bert")


# -- items, columns and sources ---------------------------------------------------------------------


def blood():
    """Panel with a shared draw and a derived column."""
    costs = FeatureCosts(
        {"age": 1, "TSH": 20, "TT4": 12, "T4U": 9},
        shared={"draw": (2, ["TSH", "TT4", "T4U"])},
        derived={"FTI": ["TT4", "T4U"]},
    )
    stages = (
        Stage(Sigmoid(1), Margin(0), -10.0, name="thyroid"),  # everybody goes on
        Stage(Sigmoid(4), name="index"),
    )
    return System(stages, costs, np.array([0, 1])), {
        "p": {"age": 50.0, "TSH": 1.0, "TT4": 3.0, "T4U": 1.5, "FTI": 2.0}
    }


def test_shared_items_are_paid_once_and_derived_columns_come_with_their_inputs():
    system, people = blood()
    lab = MockSource(people, ["TSH", "TT4", "T4U", "draw"], name="lab")
    form = MockSource(people, ["age"], name="form")
    answer = Session(system, [lab, form]).predict("p", {"age": 5.0})
    assert answer.bought == ("TSH", "draw", "TT4", "T4U")
    assert answer.cost == 43
    assert form.n_calls == 0


def test_derived_columns_can_be_computed():
    system, people = blood()
    del people["p"]["FTI"]
    lab = MockSource(people, ["TSH", "TT4", "T4U", "draw"])
    session = Session(system, [lab], derive={"FTI": lambda row: row["TT4"] / row["T4U"]})
    answer = session.predict("p", {"age": 5.0, "TT4": 3.0})
    assert answer.bought == ("TSH", "draw", "T4U")  # one input is known, the other is bought
    assert answer.probabilities[1] == 1 / (1 + np.exp(-2.0))
    broken = Session(system, [lab], derive={"FTI": lambda row: 1 / 0})
    answer = broken.predict("p", {"age": 5.0})
    assert answer.degraded
    assert "could not be derived" in answer.reason


def test_columns_are_computed_for_the_stage_that_reads_them():
    """A function that fails for a later stage is no reason not to answer before."""
    costs = FeatureCosts({"b": 5, "c": 3}, derived={"ratio": ["c", "b"], "log": ["ratio"]})
    stages = (Stage(Sigmoid(1), Margin(1), -1.0), Stage(Sigmoid(3)))
    system = System(stages, costs, np.array([0, 1]))
    called = []

    def ratio(row):
        called.append("ratio")
        return row["c"] / row["b"]

    # In any order: what a column is computed from is computed first.
    derive = {"log": lambda row: np.log(row["ratio"]), "ratio": ratio}
    people = {"sure": {"b": 0.0, "c": 2.0}, "zero": {"b": 0.0, "c": 0.5}, "x": {"b": 2.0, "c": 0.5}}
    session = Session(system, [MockSource(people, ["b", "c"])], derive=derive)
    assert session.predict("sure", {"b": 0.0}).stage == 0
    assert not called
    assert "'ratio' could not be derived" in session.predict("zero").reason
    answer = session.predict("x")
    assert (answer.stage, answer.cost) == (1, 8)
    assert answer.probabilities[1] == 1 / (1 + np.exp(-np.log(0.25)))


def test_what_is_left_may_be_computed():
    """Stage 1 fails, and what stage 2 reads can be computed from what is there."""
    costs = FeatureCosts({"a": 1, "b": 2}, derived={"square": ["a"]})
    stages = (
        Stage(Sigmoid(0), Margin(0), -10.0),
        Stage(Sigmoid(1), Margin(1), -10.0),
        Stage(Sigmoid(2)),
    )
    system = System(stages, costs, np.array([0, 1]))
    source = MockSource({"x": {"a": 3.0}}, ["a", "b"], faults=[None, *["refused"] * 3])
    square = {"square": lambda row: row["a"] ** 2}
    answer = Session(system, [source], policy=Policy(**QUICK), derive=square).predict("x")
    assert (answer.degraded, answer.stage, answer.cost) == (True, 2, 1)
    assert answer.probabilities[1] == 1 / (1 + np.exp(-9.0))


def test_an_item_can_bring_many_columns():
    costs = FeatureCosts({"a": 0, "b": 0, "c": 2}, shared={"bureau": (5, ["a", "b"])})
    system = System(
        (Stage(Sigmoid(0), Margin(2), -10.0), Stage(Sigmoid(1))), costs, np.array([0, 1])
    )
    values = {"x": {"a": 1.0, "b": 2.0, "c": 3.0}}
    for items in (["bureau", "c"], {"bureau": ["a", "b"], "c": ["c"]}):
        source = MockSource(values, items)
        answer = Session(system, [source]).predict("x")
        assert answer.bought == ("c", "bureau")
        assert source.n_calls == 1  # b came with a


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["incom"], "sells item 'incom', which the system has no price for"),
        ({"income": ["incom"]}, "brings column 'incom', which the system does not know"),
        ({"income": ["bureau"]}, "by the price list this column needs"),
        ({"income": ["income"], "bureau": []}, "No source brings column 'bureau'"),
    ],
)
def test_sources_that_do_not_fit_the_prices(items, message):
    system, people = lender()
    with pytest.raises(ValueError, match=message):
        Session(system, [MappingSource(people, items)])


def test_sources_that_do_not_fit_each_other():
    system, people = lender()
    one, other = MappingSource(people, ["income"]), MappingSource(people, ["bureau"])
    with pytest.raises(ValueError, match="Two sources have the name 'table'"):
        Session(system, [one, other])
    with pytest.raises(ValueError, match="sold by the sources 'table' and 'b'"):
        Session(system, [one, MappingSource(people, ["income"], name="b")])
    with pytest.raises(ValueError, match="does not derive from others"):
        Session(system, [one], derive={"bureau": lambda row: 1})


def test_a_model_known_by_its_logs_cannot_be_served():
    X, y = table(100)
    proba = np.column_stack([1 - y, y]) * 0.9 + 0.05
    clf = AdaptLinClassifier(random_state=0).fit(X, y, full_proba=proba)
    with pytest.raises(ValueError, match="known only by stored probabilities"):
        Session(clf, [MappingSource(X, range(3))])


# -- in parallel and in loops -------------------------------------------------------------------------


def parallel_system():
    return System((Stage(Sigmoid(0, also=(1, 2))),), FeatureCosts([1, 1, 1]), np.array([0, 1]))


def test_one_round_trip_asks_all_sources_at_once():
    X = rows(5, 3)
    sources = [MockSource(X, [j], name=f"s{j}", latency=0.3) for j in range(3)]
    session = Session(parallel_system(), sources)
    begin = time.perf_counter()
    answer = session.predict(0)
    assert time.perf_counter() - begin < 0.8
    assert 0.3 <= answer.elapsed["buy 0"] < 0.8
    begin = time.perf_counter()
    asyncio.run(session.apredict(1))
    assert time.perf_counter() - begin < 0.8
    assert [source.n_calls for source in sources] == [2, 2, 2]


def test_many_at_once_in_their_order():
    system, X = three_stages(), rows(40)
    source = sold(system, X, latency=0.05)
    session = Session(system, [source])
    begin = time.perf_counter()
    answers = session.predict_many(range(40), concurrency=20)
    assert time.perf_counter() - begin < 0.5 * 40 * 0.05
    check_against_batch(session, X, answers, system)
    again = asyncio.run(session.apredict_many(range(40), concurrency=20))
    check_against_batch(session, X, again, system)
    known = [{0: X[i, 0]} for i in range(40)]
    cheaper = session.predict_many(range(40), known)
    assert sum(a.cost for a in cheaper) == pytest.approx(sum(a.cost for a in answers) - 40)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_errors_of_many(asynchronous):
    system, X = three_stages(), rows(5)
    source = sold(system, X)
    session = Session(system, [source])

    def many(**options):
        if asynchronous:
            return asyncio.run(session.apredict_many(range(7), **options))
        return session.predict_many(range(7), **options)

    answers = many(errors="return")
    assert [isinstance(a, NoAnswerError) for a in answers] == [False] * 5 + [True] * 2
    assert answers[6].entity == 6
    assert answers[6].cost == 0
    with pytest.raises(NoAnswerError, match="knows no entity"):
        many()
    with pytest.raises(ValueError, match="known has 1 entries for 2 entities"):
        session.predict_many([0, 1], [{}])
    with pytest.raises(ValueError, match="concurrency is 0"):
        session.predict_many([0], concurrency=0)


def test_coroutine_functions_are_sources():
    system, people = lender()

    async def bureau(request):
        await asyncio.sleep(0.001)
        return people[request.entity]

    class Bureau:
        async def __call__(self, request):
            return await bureau(request)

    async def notebook(session):
        return session.predict("bert")

    for function in (bureau, Bureau()):
        session = Session(system, [CallableSource(function, ["income", "bureau"])])
        assert asyncio.run(session.apredict("bert")).cost == session.predict("bert").cost == 6
        assert asyncio.run(notebook(session)).cost == 6  # where a loop runs already


# -- when something goes wrong --------------------------------------------------------------------------

FAULTS = ["refused", "timeout", "lost", "nonsense", "missing", ValueError("?")]
QUICK = {"backoff": 0.0}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_passing_fault_is_retried(fault):
    system, people = lender()
    source = MockSource(people, ["income", "bureau"], faults=[fault, fault])
    answer = Session(system, [source], policy=Policy(**QUICK)).predict("anna")
    assert (answer.degraded, source.n_calls) == (False, 3)
    assert source.paid == {("anna", "income"): 1}  # the key was honoured


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_lasting_fault_degrades_and_says_so(fault, asynchronous):
    system, people = lender()
    source = MockSource(people, ["income", "bureau"], faults=[None] + [fault] * 3)
    session = Session(system, [source], policy=Policy(**QUICK))
    if asynchronous:
        answer = asyncio.run(session.apredict("bert"))
    else:
        answer = session.predict("bert")
    assert (answer.degraded, answer.stage, answer.cost) == (True, 0, 1)
    assert "mock" in answer.reason
    row = np.array([[0.5, np.nan]])
    expected = system.stages[0].predictor.predict_proba(row)[0]
    assert np.array_equal(answer.probabilities, expected)


def test_no_stage_no_answer():
    system, people = lender()
    faults = ["refused"] * 3 + [None] + ["lost"] * 3
    source = MockSource(people, ["income", "bureau"], faults=faults)
    with pytest.raises(NoAnswerError, match="refused") as caught:
        Session(system, [source], policy=Policy(**QUICK)).predict("anna")
    assert (caught.value.cost, caught.value.bought) == (0, ())
    strict = Policy(on_failure="raise", **QUICK)
    with pytest.raises(NoAnswerError, match=r"at stage 1 \(bureau\).*lost") as caught:
        Session(system, [source], policy=strict).predict("bert")
    assert (caught.value.cost, caught.value.bought) == (1, ("income",))
    assert isinstance(caught.value.__cause__, SourceError)


def test_a_later_stage_may_be_the_best_one_left():
    """Stage 1 fails, but everything stage 2 reads is known."""
    system, X = three_stages(FeatureCosts([1, 2, 3, 4])), rows(30)
    goes_on = int(np.flatnonzero(system.route(X) == 2)[0])
    source = MockSource(X, [0, 1], faults=[None, *["refused"] * 9])
    session = Session(system, [source], policy=Policy(**QUICK))
    answer = session.predict(goes_on, {2: X[goes_on, 2], 3: X[goes_on, 3]})
    assert (answer.degraded, answer.stage) == (True, 2)
    priced = three_stages(FeatureCosts([1, 2, 3, 4], call_price=9))
    source = MockSource(X, [0, 1], faults=[None, *["refused"] * 9])
    session = Session(priced, [source], policy=Policy(**QUICK))
    answer = session.predict(goes_on, {2: X[goes_on, 2], 3: X[goes_on, 3]})
    assert (answer.degraded, answer.stage) == (True, 0)  # asking the last one costs money


def test_what_a_stage_has_said_is_not_asked_for_again():
    """Its call may cost something, and was booked once."""
    calls = []
    first = Stage(Sigmoid(0, calls=calls), ConfidenceGate(), -1.0)
    system = System(
        (first, Stage(Sigmoid(1))), FeatureCosts([1, 2], call_price=[4, 0]), np.array([0, 1])
    )
    source = MockSource(np.array([[0.5, 1.0]]), [0, 1], faults=[None, *["refused"] * 3])
    answer = Session(system, [source], policy=Policy(**QUICK)).predict(0)
    assert (answer.degraded, answer.stage, answer.cost) == (True, 0, 5)
    assert answer.probabilities[1] == 1 / (1 + np.exp(-0.5))
    assert calls == [1]


def test_without_honoured_keys_an_unknown_end_is_not_paid_twice():
    system, people = lender()
    for unknown, calls in (("refuse", 1), ("retry", 3)):
        source = MockSource(people, ["income", "bureau"], faults=["lost"] * 3, honours_keys=False)
        policy = Policy(unknown=unknown, **QUICK)
        with pytest.raises(NoAnswerError):
            Session(system, [source], policy=policy).predict("anna")
        assert source.n_calls == calls == source.paid["anna", "income"]


@pytest.mark.parametrize("value", ["3", [1.0], np.inf, object()])
def test_wrong_types_are_not_answers(value):
    source = CallableSource(lambda request: {0: value}, [0], name="odd", local=True)
    system = System((Stage(Sigmoid(0)),), FeatureCosts([1]), np.array([0, 1]))
    with pytest.raises(NoAnswerError, match="Column 0 from source 'odd'"):
        Session(system, [source], policy=Policy(**QUICK)).predict("x")


@pytest.fixture(scope="module")
def applicants():
    """People with a text column, and systems of every engine fitted on them."""
    X, y = table(400)
    frame = pd.DataFrame(X, columns=["income", "score", "loans"])
    frame["home"] = np.where(rows(400, 1)[:, 0] > 0, "owned", "rented")
    encoder = ColumnTransformer(
        [("text", OneHotEncoder(), ["home"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    full = make_pipeline(encoder, LogisticRegression())
    costs = {"income": 1.0, "score": 3.0, "loans": 2.0, "home": 1.0}
    settings = {"feature_costs": costs, "random_state": 0, "full_rate": 0.5}
    linear = AdaptLinClassifier(full, **settings).fit(frame, y)
    boosted = AdaptGbrtClassifier(full, n_estimators=10, **settings).fit(frame, y)
    everybody = frame.to_dict("index")
    return {"linear": linear.system_, "boosted": boosted.system_}, everybody, frame


def one_wrong(people, column, value):
    """A source that has nonsense in one column of everybody, and counts its calls."""
    table = {who: {**row, column: value} for who, row in people.items()}
    return MockSource(table, list(people[0]), name="bureau")


@pytest.mark.parametrize(
    ("engine", "column", "value", "words"),
    [
        ("linear", "loans", "many", "the text 'many', must be a number"),
        ("boosted", "score", "high", "the text 'high', must be a number"),
        ("boosted", "home", 3.5, r"the float 3\.5, must be a text"),
    ],
)
def test_the_parts_of_a_system_tell_numbers_from_text(applicants, engine, column, value, words):
    systems, people, _ = applicants
    source = one_wrong(people, column, value)
    session = Session(systems[engine].with_thresholds(-np.inf), [source], policy=Policy(**QUICK))
    try:
        answer = session.predict(0)
        said, degraded = answer.reason, answer.degraded
    except NoAnswerError as error:
        said, degraded = str(error), True
    assert degraded
    assert re.search(f"Column '{column}' from source 'bureau' for entity 0 is {words}", said)
    calls = source.n_calls
    with pytest.raises(ValueError, match=f"Column '{column}' in known is {words}"):
        session.predict(0, {column: value})
    assert source.n_calls == calls


@pytest.mark.parametrize("kept", ["like", "bundle"])
def test_types_of_a_table_tell_numbers_from_text(tmp_path, kept):
    system, people = lender()
    frame = pd.DataFrame.from_dict(people, orient="index")
    like = frame
    if kept == "bundle":
        clf = AdaptLinClassifier(LogisticRegression(), random_state=0, full_rate=0.5)
        X, y = table(200)
        frame = pd.DataFrame(X[:, :2], columns=["income", "bureau"])
        save(clf.fit(frame, y), tmp_path / "a.sparing", like=frame)
        system, like = load(tmp_path / "a.sparing"), None
    source = MockSource(people, ["income", "bureau"])
    with pytest.raises(ValueError, match="'bureau' in known is the text 'good', must be a number"):
        Session(system, [source], like=like).predict("anna", {"bureau": "good"})
    assert source.n_calls == 0


@pytest.mark.parametrize("asynchronous", [False, True])
def test_nonsense_that_only_the_model_can_tell_degrades(asynchronous):
    system, people = lender()
    people["bert"]["bureau"] = "high"
    session = Session(system, [MockSource(people, ["income", "bureau"], name="agency")])
    ask = (lambda who: asyncio.run(session.apredict(who))) if asynchronous else session.predict
    answer = ask("bert")
    assert (answer.stage, answer.degraded, answer.cost) == (0, True, 6.0)
    assert "column 'bureau' is the str 'high' from source 'agency'" in answer.reason
    people["bert"]["income"] = "much"
    with pytest.raises(NoAnswerError, match="'income' is the str 'much' from source 'agency'"):
        ask("bert")
    with pytest.raises(ValueError, match="known says: column 'income' is the str 'much'"):
        session.predict("anna", {"income": "much"})


def test_nonsense_does_not_stay_in_the_books_where_keys_are_honoured(tmp_path):
    system, _ = lender()
    for honours_keys, calls in ((True, 2), (False, 1)):
        asked = []

        def agency(request, asked=asked):
            asked.append(request.key)
            return {"bureau": "high" if len(asked) == 1 else -2.0}

        source = CallableSource(agency, ["bureau"], honours_keys=honours_keys)
        with Ledger(tmp_path / f"{honours_keys}.db") as ledger:
            session = Session(system, [source], ledger=ledger)
            assert session.predict("bert", {"income": 0.5}).degraded
            again = session.predict("bert", {"income": 0.5})
            # Asked again for nothing, under the same key; otherwise what was paid is not paid again.
            assert again.degraded is not honours_keys
            assert len(asked) == calls
            assert len(set(asked)) == 1
            assert ledger.total() + ledger.at_risk() == 5.0


def test_missing_values_are_answers_unless_refused():
    system, people = lender()
    people["anna"]["income"] = None
    source = MappingSource(people, ["income", "bureau"])
    assert np.isnan(Session(system, [source]).predict("anna").probabilities).all()
    for refused in (True, ["income"]):
        policy = Policy(refuse_missing=refused, **QUICK)
        with pytest.raises(NoAnswerError, match=r"'income' .* is missing, which is refused"):
            Session(system, [source], policy=policy).predict("anna")
    Session(system, [source], policy=Policy(refuse_missing=["bureau"])).predict("anna")
    with pytest.raises(ValueError, match="refuse_missing names column 'x'"):
        Session(system, [source], policy=Policy(refuse_missing=["x"]))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_timeout_of_a_source_without_one(asynchronous):
    system, people = lender()
    source = MockSource(people, ["income", "bureau"], latency=1.0)
    session = Session(system, [source], policy=Policy(timeout=0.02, retries=0))
    ask = (lambda who: asyncio.run(session.apredict(who))) if asynchronous else session.predict
    begin = time.perf_counter()
    with pytest.raises(NoAnswerError, match=r"no answer within 0\.02 s"):
        ask("anna")
    assert time.perf_counter() - begin < 0.9


def test_errors_of_models_are_not_hidden():
    class Broken(Sigmoid):
        def predict_proba(self, X):
            raise ZeroDivisionError("model")

    system = System((Stage(Broken(0)),), FeatureCosts([1], call_price=2), np.array([0, 1]))
    with pytest.raises(ZeroDivisionError):
        Session(system, [MappingSource(rows(1, 1), [0])], limits=Limits(per_entity=5)).predict(0)


def test_an_endpoint_model_that_fails_degrades(tmp_path):
    class Down(Sigmoid):
        def predict_proba(self, X):
            raise SourceError("the model's endpoint is down", paid=False)

    system = System(
        (Stage(Sigmoid(0), Margin(0), -99.0), Stage(Down(1))),
        FeatureCosts([1, 2], call_price=4),
        np.array([0, 1]),
    )
    with Ledger(tmp_path / "books.db") as ledger:
        session = Session(system, [MappingSource(rows(1, 2), [0, 1])], ledger=ledger)
        answer = session.predict(0)
        assert (answer.degraded, answer.stage, answer.cost) == (True, 0, 3)
        assert ledger.total() == 3  # the call is given back
        assert ledger.at_risk() == 0


def test_after_an_error_nothing_more_is_begun():
    system, X = three_stages(), rows(5)
    for asynchronous in (False, True):
        source = sold(system, X, latency=0.002)
        session = Session(system, [source])
        everybody = [99, *[i % 5 for i in range(500)]]
        if asynchronous:
            with pytest.raises(NoAnswerError):
                asyncio.run(session.apredict_many(everybody, concurrency=4))
        else:
            with pytest.raises(NoAnswerError):
                session.predict_many(everybody, concurrency=4)
        assert source.n_calls < 50


def test_repr():
    system, people = lender()
    session = Session(
        system,
        [MockSource(people, ["income", "bureau"], faults=[None, "refused"])],
        policy=Policy(retries=0),
    )
    assert repr(session) == "Session of 2 stages, sources ['mock'], no ledger"
    assert "degraded, reason=" in repr(session.predict("bert"))
    assert session.breakers == {"mock": "closed"}


# -- what a session is made of ------------------------------------------------------------------------


def test_a_single_source_is_a_list_of_one():
    system, people = lender()
    source = MappingSource(people, ["income", "bureau"])
    assert Session(system, source).predict("anna").cost == 1.0


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ([{"age": 1}], r"has a dict where a Source belongs: wrap it, MappingSource\("),
        ([len], r"where a Source belongs: wrap it, CallableSource\("),
        ([MappingSource], r"the class MappingSource: make one"),
        ({"age": 1}, "sources is a Source or a list of them, not a dict"),
        (3, "not a int"),
    ],
)
def test_what_is_no_source_is_named(sources, words):
    with pytest.raises(TypeError, match=words):
        Session(lender()[0], sources)


def test_paths_are_opened_by_whoever_closes_them():
    with pytest.raises(TypeError, match=r"ledger is the path 'books\.db': open it, Ledger\("):
        Session(lender()[0], [], ledger="books.db")
    with pytest.raises(TypeError, match=r"not a str; a file is read with load\(path\)"):
        Session("model.sparing", [])
