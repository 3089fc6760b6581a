"""The books balance: nothing is bought twice, nothing paid is lost, whatever crashes and whoever shares them."""

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handmade import Margin, Sigmoid, two_stages
from sparing import FeatureCosts
from sparing.runtime import (
    Ledger,
    Limits,
    MockSource,
    NoAnswerError,
    Policy,
    Session,
    SourceError,
)
from sparing.runtime._claim import Outcome, Want
from sparing.runtime._examples import lender
from sparing.runtime._values import from_json, name_to_json, plain, to_json
from sparing.system import ConfidenceGate, Stage, System

QUICK = {"backoff": 0.0}
NO_LIMITS = Limits()


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self):
        self.now = 1_700_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ledger(tmp_path, clock):
    with Ledger(tmp_path / "books.db", clock=clock) as books:
        yield books


def sold(people, **options):
    return MockSource(people, ["income", "bureau"], **options)


def want(item="bureau", price=5.0, *, honours=True, time_to_live=None, source="mock"):
    return Want(item, source, price, time_to_live, honours, (item,))


# -- once is enough ---------------------------------------------------------------------------------


def test_an_item_is_bought_once(ledger):
    system, people = lender()
    source = sold(people)
    session = Session(system, [source], ledger=ledger)
    first, second = session.predict("bert"), session.predict("bert")
    assert (first.bought, first.reused, first.cost) == (("income", "bureau"), (), 6)
    assert (second.bought, second.reused, second.cost) == ((), ("income", "bureau"), 0)
    assert np.array_equal(first.probabilities, second.probabilities)
    assert set(source.paid.values()) == {1}
    assert ledger.total() == ledger.total("bert") == 6
    assert ledger.total("anna") == 0


def test_after_its_time_it_is_bought_again(ledger, clock):
    system, people = lender()
    source = sold(people, time_to_live=100.0)
    session = Session(system, [source], ledger=ledger)
    costs = []
    for wait in (0, 99, 2, 50):
        clock.now += wait
        costs.append(session.predict("anna").cost)
    assert costs == [1, 0, 1, 0]
    assert ledger.total() == 2


def test_entities_one_and_one_are_two(ledger):
    system, _ = lender()
    source = sold({1: {"income": 3.0, "bureau": 0}, "1": {"income": -3.0, "bureau": 0}})
    session = Session(system, [source], ledger=ledger)
    assert [session.predict(e).prediction for e in (1, "1", 1)] == ["pays", "defaults", "pays"]
    assert ledger.total() == 2
    with pytest.raises(TypeError, match="texts or whole numbers"):
        session.predict((1, 2))


@given(st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=25))
@settings(max_examples=25, deadline=None)
def test_total_is_acquisition_cost_with_owned(tmp_path_factory, visits):
    """Whoever comes, however often, with or without a known column: books, answers and batch agree."""
    system = two_stages(prices=(1.5, 2.25, 3.0), call_price=0.5)
    X = np.random.default_rng(0).normal(size=(8, 3))
    with Ledger(tmp_path_factory.mktemp("books") / "books.db") as ledger:
        session = Session(system, [MockSource(X, range(3))], ledger=ledger)
        owned = np.zeros((8, 3), dtype=bool)
        total = 0.0
        for row, knows in visits:
            known = {0: X[row, 0]} if knows else None
            answer = session.predict(row, known)
            has = owned[row] | np.array([knows, False, False])
            here = X[row : row + 1]
            assert answer.cost == system.acquisition_cost(here, owned=has[None])[0]
            assert np.array_equal(answer.probabilities, system.predict_proba(here)[0])
            owned[row, list(answer.bought)] = True
            total += answer.cost
        assert ledger.total() == pytest.approx(total, abs=1e-12)
        assert ledger.at_risk() == 0


def test_calls_of_stages_are_in_the_books(ledger):
    system = two_stages(call_price=(0.25, 2.0))
    X = np.array([[0.1, 0.2, 0.3], [9.0, 0.0, 0.0]])
    session = Session(system, [MockSource(X, range(3))], ledger=ledger)
    costs = [session.predict(i).cost for i in (0, 1, 0)]
    # Asking is paid every time, items once.
    assert costs == [6 + 2.25, 1.25, 2.25]
    assert ledger.total() == sum(costs)
    assert {"item": "full", "purchases": 2, "spent": 4.0} in ledger.by_item()


def test_a_purchase_for_another_system_may_lack_a_column(ledger):
    def system(column):
        costs = FeatureCosts({"a": 0, "b": 0}, shared={"bureau": (5, ["a", "b"])})
        return System((Stage(Sigmoid(column)),), costs, np.array([0, 1]))

    people = {"x": {"a": 1.0, "b": 2.0}}
    Session(system(0), [MockSource(people, ["bureau"])], ledger=ledger).predict("x")
    other = Session(system(1), [MockSource(people, ["bureau"])], ledger=ledger)
    with pytest.raises(NoAnswerError, match="bought for another system"):
        other.predict("x")
    assert ledger.purge("x") == 1
    assert other.predict("x").cost == 5


def test_a_stage_that_is_not_asked_is_not_paid_for(ledger):
    """Its price was reserved with the purchase; then a column could not be computed, or was not in the books."""
    costs = FeatureCosts({"a": 1, "b": 5}, derived={"d": ["b"]}, call_price=10)
    stages = (Stage(Sigmoid(0), Margin(0), -10.0), Stage(Sigmoid(2)))
    system = System(stages, costs, np.array([0, 1]))
    source = MockSource({"x": {"a": 1.0, "b": 0.0}}, ["a", "b"])
    session = Session(system, [source], ledger=ledger, derive={"d": lambda row: 1 / row["b"]})
    answer = session.predict("x")
    assert "could not be derived" in answer.reason
    assert (ledger.total(), ledger.at_risk()) == (answer.cost, 0) == (6, 0)

    def panel(column):
        costs = FeatureCosts({"a": 0, "b": 0}, shared={"panel": (5, ["a", "b"])}, call_price=10)
        return System((Stage(Sigmoid(column)),), costs, np.array([0, 1]))

    people = {"y": {"a": 1.0, "b": 2.0}}
    Session(panel(0), [MockSource(people, ["panel"])], ledger=ledger).predict("y")
    with pytest.raises(NoAnswerError, match="bought for another system"):
        Session(panel(1), [MockSource(people, ["panel"])], ledger=ledger).predict("y")
    assert (ledger.total("y"), ledger.at_risk()) == (15, 0)


# -- several at once ----------------------------------------------------------------------------------


def test_threads_wait_for_each_other(tmp_path):
    system, people = lender()
    source = sold(people, latency=0.05)
    with Ledger(tmp_path / "books.db") as ledger:
        sessions = [Session(system, [source], ledger=ledger) for _ in range(4)]
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda i: sessions[i % 4].predict("bert"), range(8)))
        assert sorted(source.paid.values()) == [1, 1]
        assert sum(answer.cost for answer in answers) == ledger.total() == 6
        assert len({answer.prediction for answer in answers}) == 1


# -- payments of unknown end ----------------------------------------------------------------------------


def crash_after_claim(ledger, *wants):
    """Open a purchase as a session would, and vanish."""
    return ledger.claim("bert", wants, limits=NO_LIMITS).calls


def test_a_dead_session_holds_others_up_for_its_lease_only(ledger, clock):
    crash_after_claim(ledger, want())
    waiting = ledger.claim("bert", [want()], limits=NO_LIMITS)
    assert (waiting.calls, waiting.waiting) == ((), ("bureau",))
    clock.now += ledger.lease + 1
    (call,) = ledger.claim("bert", [want()], limits=NO_LIMITS).calls
    assert call.again
    assert ledger.claim("bert", [want()], limits=NO_LIMITS).waiting == ("bureau",)


def test_the_same_request_is_made_again_under_the_same_key(ledger, clock):
    system, people = lender()
    source = sold(people)
    (call,) = crash_after_claim(ledger, want("income", 1.0), want())
    requests = []
    fetch = source.fetch
    source.fetch = lambda request: requests.append(request) or fetch(request)
    clock.now += ledger.lease + 1
    session = Session(system, [source], ledger=ledger)
    answer = session.predict("bert")
    assert requests[0].key == call.key
    assert requests[0].items == call.items == ("income", "bureau")
    assert requests[0].columns == ("income", "bureau")
    assert len(requests) == 1  # stage 1 finds what came with stage 0
    assert (answer.cost, answer.bought, answer.reused) == (6, ("income", "bureau"), ())
    assert ledger.total() == 6


@pytest.mark.parametrize("fault", ["lost", "timeout", "nonsense"])
def test_an_answer_that_never_came(ledger, fault):
    system, people = lender()
    source = sold(people, faults=[None, *[fault] * 3])
    session = Session(system, [source], ledger=ledger, policy=Policy(**QUICK))
    first = session.predict("bert")
    assert (first.degraded, first.cost) == (True, 1)
    assert (ledger.total(), ledger.at_risk()) == (1, 5)
    second = session.predict("bert")
    assert (second.degraded, second.cost, second.reused) == (False, 5, ("income",))
    assert (ledger.total(), ledger.at_risk()) == (6, 0)
    assert set(source.paid.values()) == {1}


def test_a_refusal_after_a_lost_answer_proves_nothing(ledger):
    system, people = lender()
    source = sold(people, faults=["lost", "refused", "refused"])
    session = Session(system, [source], ledger=ledger, policy=Policy(**QUICK))
    with pytest.raises(NoAnswerError):
        session.predict("anna")
    assert (ledger.total(), ledger.at_risk()) == (0, 1)
    assert session.predict("anna").cost == 1
    assert source.paid == {("anna", "income"): 1}


def test_what_the_caller_knows_counts_more_than_what_is_in_the_books(ledger):
    costs = FeatureCosts({"a": 0, "b": 0}, shared={"bureau": (5, ["a", "b"])})
    system = System((Stage(Sigmoid(0, also=(1,))),), costs, np.array([0, 1]))
    session = Session(system, [MockSource({"x": {"a": 1.0, "b": 2.0}}, ["bureau"])], ledger=ledger)
    session.predict("x")
    answer = session.predict("x", {"a": -1.0})
    assert answer.reused == ("bureau",)
    assert answer.probabilities[1] == 1 / (1 + np.exp(1.0))


def test_a_refused_call_leaves_the_books(ledger):
    system, people = lender()
    source = sold(people, faults=["refused"] * 3)
    session = Session(system, [source], ledger=ledger, policy=Policy(**QUICK))
    with pytest.raises(NoAnswerError):
        session.predict("anna")
    assert (ledger.total(), ledger.at_risk()) == (0, 0)
    (purchase,) = ledger.purchases("anna")
    assert (purchase["status"], purchase["reason"]) == ("failed", "Source 'mock' refused the call.")
    assert session.predict("anna").cost == 1


def test_unknown_end_without_keys_is_refused_or_paid_again(ledger):
    system, people = lender()
    source = sold(people, faults=[None, "lost"], honours_keys=False)
    careful = Session(system, [source], ledger=ledger)
    assert careful.predict("bert").degraded
    second = careful.predict("bert")
    assert second.degraded
    assert "unknown end" in second.reason
    assert source.n_calls == 2  # it was not even asked
    generous = Session(system, [source], ledger=ledger, policy=Policy(unknown="retry"))
    assert generous.predict("bert").cost == 5
    assert source.paid["bert", "bureau"] == 2
    assert (ledger.total(), ledger.at_risk()) == (6, 5)


def paying_again(source, cap, **options):
    system, _ = lender()
    limits = Limits(per_entity=cap, per_window={3600: 100.0})
    return Session(
        system, [source], limits=limits, policy=Policy(unknown="retry", **QUICK), **options
    )


@pytest.mark.parametrize("with_ledger", [False, True])
def test_limits_are_asked_before_something_is_paid_again(with_ledger, ledger):
    _, people = lender()
    source = sold(people, faults=[None, "lost"], honours_keys=False)
    books = {"ledger": ledger} if with_ledger else {}
    answer = paying_again(source, 10, **books).predict("bert")
    assert (answer.stage, answer.cost, source.n_calls) == (0, 1, 2)
    assert "lost. It is not asked again: Entity 'bert' has cost 6; another 5 would" in answer.reason


@pytest.mark.parametrize("with_ledger", [False, True])
def test_what_is_paid_again_is_booked_again(with_ledger, ledger):
    """The first request is lost and may have been paid, the second is refused, the third goes well."""
    _, people = lender()
    source = sold(people, faults=[None, "lost", "refused"], honours_keys=False)
    books = {"ledger": ledger} if with_ledger else {}
    session = paying_again(source, 11, **books)
    answer = session.predict("bert")
    assert (answer.stage, answer.cost, source.n_calls) == (1, 6, 4)
    assert source.paid["bert", "bureau"] == 2
    if with_ledger:
        assert (ledger.total(), ledger.at_risk()) == (6, 5)
        assert [row["status"] for row in ledger.purchases()] == ["paid", "unknown", "paid"]
        first, second = (row["key"] for row in ledger.purchases()[1:])
        assert first != second
        ledger.resolve(first, paid=False)
        assert (ledger.total(), ledger.at_risk()) == (6, 0)
        assert session.predict("bert").reused == ("income", "bureau")
    else:
        assert session._desk.till.book._by_entity["bert"][0] == 11


def test_a_request_that_somebody_else_took_over_is_not_paid_again(ledger, clock):
    _, people = lender()
    source = sold(people, faults=["lost"], honours_keys=False)
    fetch = source.fetch

    def slow(request):
        if source.n_calls == 0:
            clock.now += ledger.lease + 1
            other = [want("income", 1.0, honours=False)]
            (call,) = ledger.claim("anna", other, limits=NO_LIMITS, unknown="retry").calls
            ledger.close_calls([Outcome(call.key, {"income": {"income": 3.0}})])
        return fetch(request)

    source.fetch = slow
    session = paying_again(source, 11, ledger=ledger)
    with pytest.raises(NoAnswerError, match="lost"):
        session.predict("anna")
    assert source.n_calls == 1
    assert session.predict("anna").reused == ("income",)


def test_free_items_are_always_asked_for_again(ledger, clock):
    crash_after_claim(ledger, want(price=0.0, honours=False))
    clock.now += ledger.lease + 1
    again = ledger.claim("bert", [want(price=0.0, honours=False)], limits=NO_LIMITS)
    assert len(again.calls) == 1


def test_an_unknown_end_is_forgotten_with_the_value(ledger, clock):
    item = want(honours=False, time_to_live=1000.0)
    crash_after_claim(ledger, item)
    clock.now += 999
    assert ledger.claim("bert", [item], limits=NO_LIMITS).refused == ("bureau",)
    clock.now += 2
    assert len(ledger.claim("bert", [item], limits=NO_LIMITS).calls) == 1


def test_a_late_result_is_still_written_down(ledger, clock):
    (late,) = crash_after_claim(ledger, want(honours=False))
    clock.now += ledger.lease + 1
    (other,) = ledger.claim("bert", [want(honours=False)], limits=NO_LIMITS, unknown="retry").calls
    ledger.close_calls([Outcome(other.key, {"bureau": {"bureau": 2.0}})])
    ledger.close_calls([Outcome(late.key, {"bureau": {"bureau": 1.0}})])
    assert ledger.total() == 10  # both were paid, one is used
    assert ledger.claim("bert", [want()], limits=NO_LIMITS).reused == {"bureau": {"bureau": 2.0}}


def test_recover_asks_for_everything_of_unknown_end(ledger, clock):
    system, people = lender()
    source = sold(people, faults=["lost"] * 3)
    crash_after_claim(ledger, want())
    ledger.claim("anna", [want("income", 1.0)], limits=NO_LIMITS)
    session = Session(system, [source], ledger=ledger, policy=Policy(**QUICK))
    assert session.recover() == 0  # their sessions may be alive
    clock.now += ledger.lease + 1
    assert session.recover() == 1  # one answer is lost again
    assert session.recover() == 1
    assert (ledger.total(), ledger.at_risk()) == (6, 0)
    assert session.predict("anna").reused == ("income",)
    assert Session(system, [source]).recover() == 0


def test_recover_asks_once_for_all_items_of_a_request(ledger, clock):
    system, people = lender()
    source = sold(people, faults=["lost"])
    crash_after_claim(ledger, want("income", 1.0), want())
    clock.now += ledger.lease + 1
    session = Session(system, [source], ledger=ledger, policy=Policy(retries=0))
    assert (session.recover(), source.n_calls) == (0, 1)
    assert (session.recover(), source.n_calls) == (1, 2)


def test_resolve(ledger, clock):
    for entity in ("anna", "bert", "carl"):
        ledger.claim(entity, [want(honours=False)], limits=NO_LIMITS)
    keys = {row["entity"]: row["key"] for row in ledger.purchases()}
    with pytest.raises(ValueError, match="unknown end"):
        ledger.resolve(keys["anna"], paid=True)  # still under way
    clock.now += ledger.lease + 1
    ledger.resolve(keys["anna"], paid=False)
    ledger.resolve(keys["bert"], paid=True, values={"bureau": {"bureau": np.float64(3)}})
    ledger.resolve(keys["carl"], paid=True)
    assert ledger.total() == 10
    found = [ledger.claim(e, [want()], limits=NO_LIMITS) for e in ("anna", "bert", "carl")]
    assert [len(claim.calls) for claim in found] == [1, 0, 1]
    assert found[1].reused == {"bureau": {"bureau": 3.0}}
    with pytest.raises(ValueError, match="unknown end"):
        ledger.resolve(keys["bert"], paid=True)


def test_a_lease_must_outlast_the_sources(tmp_path):
    system, people = lender()
    source = sold(people)
    source.longest = 20.0
    with (
        Ledger(tmp_path / "books.db", lease=10) as ledger,
        pytest.raises(ValueError, match="may take 20 s, and the ledger's lease is 10"),
    ):
        Session(system, [source], ledger=ledger)


# -- killed at any moment ---------------------------------------------------------------------------


def run_nursery(folder, n_kills):
    script = Path(__file__).with_name("nursery.py")
    done = subprocess.run(
        [sys.executable, str(script), str(folder), str(n_kills)],
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["crashed"] == 0, done.stderr
    assert result["payments"] > 0, result
    assert result["paid_twice"] == result["lost"] == result["phantom"] == 0, result
    assert result["unsettled"] == 0, result
    assert result["ledger_total"] == pytest.approx(result["bureau_total"])
    assert result["largest_entity"] <= result["entity_cap"]
    assert result["largest_window"] <= result["window_cap"]
    assert result["bureau_total"] <= result["total_cap"]
    return result


def test_ten_kills(tmp_path):
    run_nursery(tmp_path, 10)


@pytest.mark.slow
def test_a_thousand_kills(tmp_path):
    result = run_nursery(tmp_path, 1000)
    assert result["payments"] > 1000
    assert result["again"] > 100


# -- reading, exporting, forgetting -----------------------------------------------------------------


def test_summaries(ledger, clock):
    system, people = lender()
    session = Session(system, [sold(people)], ledger=ledger)
    session.predict("anna")
    clock.now += 86400
    session.predict("bert")
    assert ledger.by_day() == [
        {"day": "2023-11-14", "purchases": 1, "spent": 1.0},
        {"day": "2023-11-15", "purchases": 2, "spent": 6.0},
    ]
    assert ledger.by_item() == [
        {"item": "income", "purchases": 2, "spent": 2.0},
        {"item": "bureau", "purchases": 1, "spent": 5.0},
    ]
    (purchase,) = ledger.purchases("anna", values=True)
    assert (purchase["price"], purchase["values"]) == (1.0, {"income": 3.0})
    assert "7 paid" in repr(ledger)


def test_sums_of_many_small_prices_are_exact(ledger):
    for i in range(300):
        (call,) = ledger.claim(i, [want("income", 0.2)], limits=NO_LIMITS).calls
        ledger.close_calls([Outcome(call.key, {"income": {"income": 1}})])
    assert ledger.total() == 60.0
    assert ledger.by_item() == [{"item": "income", "purchases": 300, "spent": 60.0}]
    assert ledger.by_day()[0]["spent"] == 60.0


def test_export(ledger, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    system, people = lender()
    Session(system, [sold(people)], ledger=ledger).predict("bert")
    ledger.export(tmp_path / "books.csv", values=True)
    with (tmp_path / "books.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["opened"] == "2023-11-14 22:13:20+00:00"
    assert [(row["item"], float(row["price"]), row["values"]) for row in rows] == [
        ("income", 1.0, '{"income": 0.5}'),
        ("bureau", 5.0, '{"bureau": -2.0}'),
    ]
    ledger.export(tmp_path / "books.parquet")
    table = parquet.read_table(tmp_path / "books.parquet").to_pydict()
    assert table["price"] == [1.0, 5.0]
    assert "values" not in table
    with pytest.raises(ValueError, match=r"\.csv and \.parquet"):
        ledger.export(tmp_path / "books.xlsx")


def test_purge_forgets_values_and_keeps_money(tmp_path):
    system, people = lender()
    people["bert"]["bureau"] = -2.718281828459
    path = tmp_path / "books.db"
    with Ledger(path) as ledger:
        session = Session(system, [sold(people)], ledger=ledger)
        session.predict("bert")

        def written():
            return any(b"2.718281828459" in file.read_bytes() for file in tmp_path.iterdir())

        assert written()
        assert ledger.purge("bert") == 2
        assert not written()  # not in the write-ahead log either
        assert ledger.total() == 6
        assert [row["values"] for row in ledger.purchases(values=True)] == [None, None]
        assert session.predict("bert").cost == 6


def test_purge_during_a_purchase(ledger):
    (call,) = crash_after_claim(ledger, want())
    assert ledger.purge("bert") == 0
    ledger.close_calls([Outcome(call.key, {"bureau": {"bureau": 1.0}})])
    (purchase,) = ledger.purchases(values=True)
    assert (purchase["status"], purchase["values"]) == ("paid", None)
    assert len(ledger.claim("bert", [want()], limits=NO_LIMITS).calls) == 1


def test_states(ledger):
    assert ledger.load_state("pacer") is None
    ledger.save_state("pacer", {"position": 0.25})
    ledger.save_state("pacer", {"position": 0.5})
    assert ledger.load_state("pacer") == {"position": 0.5}


# -- values and files ---------------------------------------------------------------------------------

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("1")
)


@settings(max_examples=50)
@given(st.dictionaries(st.one_of(st.text(max_size=3), st.integers(0, 9)), VALUES, max_size=6))
def test_values_stay_what_they_are(values):
    back = from_json(to_json(values))
    assert list(back) == list(values)
    for column, value in values.items():
        assert type(back[column]) is type(value)
        assert back[column] == value or (value != value and back[column] != back[column])


def test_plain_values():
    pd = pytest.importorskip("pandas")
    assert plain(np.float32(0.1)) == float(np.float32(0.1))
    assert plain(np.bool_(True)) is True
    assert plain(pd.NA) is None
    with pytest.raises(TypeError, match="a Timestamp, not a number"):
        plain(pd.Timestamp("2020-01-01"))
    assert name_to_json(np.int64(3)) == "3"
    with pytest.raises(TypeError, match="texts or whole numbers"):
        name_to_json(True)


def test_files_of_another_format(tmp_path):
    path = tmp_path / "books.db"
    with Ledger(path) as ledger, ledger._store.transaction() as connection:
        connection.execute("pragma user_version = 99")
    with pytest.raises(ValueError, match="ledger of format 99"):
        Ledger(path)
    with pytest.raises(ValueError, match="'normal' or 'full'"):
        Ledger(path, synchronous="off")
    with pytest.raises(ValueError, match="lease is 0"):
        Ledger(path, lease=0)


def test_full_synchronous_and_a_ledger_that_is_closed_and_used_again(tmp_path):
    system, people = lender()
    ledger = Ledger(tmp_path / "books.db", synchronous="full")
    session = Session(system, [sold(people)], ledger=ledger)
    session.predict("anna")
    ledger.close()
    assert session.predict("anna").reused == ("income",)
    ledger.close()


def test_busy_books_are_waited_for(tmp_path):
    with Ledger(tmp_path / "a.db") as one, Ledger(tmp_path / "a.db") as other:
        held = threading.Event()

        def hold():
            with one._store.transaction():
                held.set()
                time.sleep(0.1)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        begin = time.perf_counter()
        other.save_state("x", {})
        assert time.perf_counter() - begin > 0.05
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_a_process_forked_during_a_transaction_has_the_books_too(ledger):
    inside, end = threading.Event(), threading.Event()

    def busy():
        with ledger._store.reading():
            inside.set()
            end.wait(30)

    thread = threading.Thread(target=busy)
    thread.start()
    inside.wait(30)
    child = os.fork()
    if not child:
        signal.alarm(10)  # ends a process that waits for a thread it has not
        os._exit(int(ledger.total() != 0))
    end.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


class FullDisk:
    """A connection at which a statement fails once, after SQLite has ended the transaction or before."""

    def __init__(self, connection, statement, ends):
        self._connection, self._statement, self._ends = connection, statement, ends

    def execute(self, text, *values):
        if self._statement is not None and text.startswith(self._statement):
            self._statement = None
            if self._ends:
                self._connection.execute("rollback")
            raise sqlite3.OperationalError("disk I/O error")
        return self._connection.execute(text, *values)

    def __getattr__(self, name):
        return getattr(self._connection, name)


@pytest.mark.parametrize("statement", ["commit", "insert"])
@pytest.mark.parametrize("ends", [False, True])
def test_after_a_disk_error_the_books_go_on(ledger, statement, ends):
    ledger._store._connection = FullDisk(ledger._store._open(), statement, ends)
    with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
        ledger.save_state("pacer", {"level": 1})
    assert ledger.load_state("pacer") is None
    ledger.save_state("pacer", {"level": 2})
    assert ledger.load_state("pacer") == {"level": 2}


def test_confidence_and_margin_gates_share_the_books(ledger):
    """Two systems over the same items reuse each other's purchases."""
    X = np.random.default_rng(1).normal(size=(6, 3))
    costs = FeatureCosts([1, 2, 3])
    systems = [
        System((Stage(Sigmoid(0), gate, t), Stage(Sigmoid(2))), costs, np.array([0, 1]))
        for gate, t in ((Margin(0), -0.5), (ConfidenceGate(), 0.2))
    ]
    source = MockSource(X, range(3))
    for system in systems:
        session = Session(system, [source], ledger=ledger)
        for i in range(6):
            session.predict(i)
    assert set(source.paid.values()) == {1}
    union = costs.of(np.logical_or(*(s.acquisition_mask(X) for s in systems)))
    assert ledger.total() == union.sum()


def test_source_error_says_what_was_paid():
    error = SourceError("x", paid=False)
    assert (error.paid, error.final, error.healthy) == (False, False, False)


# -- files that are no ledgers ------------------------------------------------------------------------


def test_other_files_are_named_and_stay_as_they_are(tmp_path):
    path = tmp_path / "loans.csv"
    path.write_text("age,income\n" * 100)
    with pytest.raises(ValueError, match=r"loans\.csv is not a ledger.*Give a new file"):
        Ledger(path)
    assert path.read_text() == "age,income\n" * 100
    with pytest.raises(
        FileNotFoundError, match=r"no[/\\]such\.db cannot be made: there is no folder"
    ):
        Ledger(tmp_path / "no" / "such.db")
    with pytest.raises(IsADirectoryError, match=r"is a folder: give a file in it"):
        Ledger(tmp_path)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("create table people (name text)")
    with pytest.raises(ValueError, match=r"other\.db is a database with other tables"):
        Ledger(other)
    with closing(sqlite3.connect(other)) as connection:
        tables = connection.execute("select name from sqlite_master").fetchall()
    assert tables == [("people",)]
