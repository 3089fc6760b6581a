"""Caps hold whoever buys at the same time; a broken source is left alone; both say so."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handmade import two_stages
from sparing.runtime import (
    Ledger,
    LimitError,
    Limits,
    MockSource,
    NoAnswerError,
    Policy,
    Session,
    SourceError,
)
from sparing.runtime._breaker import Breaker
from sparing.runtime._claim import Outcome, Want
from sparing.runtime._examples import lender
from sparing.runtime.limits import Purse, over


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def books(kind, folder, limits, clock):
    """A purse or a ledger, ready for these limits."""
    if kind == "purse":
        return Purse(clock)
    ledger = Ledger(folder / "books.db", clock=clock)
    ledger.watch(limits)
    return ledger


def want(price, item="x"):
    return Want(item, "mock", price, 0.0, True, (item,))


@pytest.mark.parametrize("kind", ["purse", "ledger"])
class TestCaps:
    def test_per_entity(self, kind, tmp_path):
        limits = Limits(per_entity=0.3)
        book = books(kind, tmp_path, limits, Clock())
        for i in range(3):  # 0.1 three times is not over 0.3, whatever the sum of floats says
            book.claim("anna", [want(0.1, f"item {i}")], limits=limits)
        with pytest.raises(
            LimitError, match=r"'anna' has cost 0\.3; another 0\.1 .* limit of 0\.3"
        ):
            book.claim("anna", [want(0.1, "item 3")], limits=limits)
        book.claim("bert", [want(0.1)], limits=limits)
        book.claim("anna", [want(0.0, "free")], limits=limits)

    def test_what_was_not_paid_is_given_back(self, kind, tmp_path):
        limits = Limits(per_entity=10.0, per_window={60: 10.0})
        book = books(kind, tmp_path, limits, Clock())
        for paid, left in ((False, True), (None, False)):
            (call,) = book.claim("anna", [want(8.0, f"{paid}")], limits=limits).calls
            book.close_calls([Outcome(call.key, None, paid)])
            if left:
                continue
            with pytest.raises(LimitError):  # it may have been paid
                book.claim("anna", [want(8.0, "y")], limits=limits)

    def test_the_price_of_asking_counts(self, kind, tmp_path):
        limits = Limits(per_window={60: 10.0})
        book = books(kind, tmp_path, limits, Clock())
        with pytest.raises(LimitError):
            book.claim("anna", [want(8.0)], limits=limits, asking=("full", 3.0))
        claim = book.claim("anna", [want(8.0)], limits=limits, asking=("full", 2.0))
        book.close_calls([Outcome(claim.asking, None, False)])
        book.claim("bert", [], limits=limits, asking=("full", 2.0))

    @pytest.mark.parametrize("phase", [0.0, 0.01, 0.5, 0.99])
    def test_a_window_is_as_long_as_it_says(self, kind, tmp_path, phase):
        limits, clock = Limits(per_window={60: 20.0}), Clock()
        clock.now += phase
        book = books(kind, tmp_path, limits, clock)
        book.claim("anna", [want(20.0)], limits=limits)
        clock.now += 59.999
        with pytest.raises(LimitError):
            book.claim("bert", [want(1.0)], limits=limits)
        clock.now += 1.002
        book.claim("bert", [want(20.0)], limits=limits)

    @given(
        purchases=st.lists(
            st.tuples(st.floats(0.0, 40.0), st.floats(0.1, 6.0), st.booleans()), max_size=40
        )
    )
    @settings(max_examples=30, deadline=None)
    def test_no_window_is_ever_over(self, kind, tmp_path_factory, purchases):
        """In any 60 seconds at most 20, however purchases come and some are given back."""
        limits, clock = Limits(per_window={60: 20.0, 600: 100.0}), Clock()
        book = books(kind, tmp_path_factory.mktemp("books"), limits, clock)
        kept = []
        for i, (wait, price, refused) in enumerate(purchases):
            clock.now += wait
            try:
                (call,) = book.claim(i, [want(price)], limits=limits).calls
            except LimitError:
                # Not for nothing: with the sixtieth to spare it would have been too much.
                recent = sum(p for t, p in kept if t > clock.now - 61.0)
                longer = sum(p for t, p in kept if t > clock.now - 610.0)
                assert over(recent + price, 20.0) or over(longer + price, 100.0)
                continue
            if refused:
                book.close_calls([Outcome(call.key, None, False)])
            else:
                kept.append((clock.now, price))
        for seconds, cap in limits.per_window.items():
            for end, _ in kept:
                spent = sum(p for t, p in kept if end - seconds < t <= end)
                assert not over(spent, cap)


@pytest.mark.parametrize("with_ledger", [False, True])
def test_many_at_once_cannot_overshoot(with_ledger, tmp_path):
    system = two_stages(prices=(1, 2, 3), threshold=-99.0)  # everybody goes on: 6 each
    X = np.random.default_rng(0).normal(size=(60, 3))
    source = MockSource(X, range(3), latency=0.002)
    ledger = Ledger(tmp_path / "books.db") if with_ledger else None
    limits = Limits(per_window={3600: 100.0})
    sessions = [Session(system, [source], ledger=ledger, limits=limits) for _ in range(2)]
    if not with_ledger:
        sessions = sessions[:1]
    with ThreadPoolExecutor(16) as pool:
        answers = list(
            pool.map(
                lambda i: sessions[i % len(sessions)].predict_many([i], errors="return")[0],
                range(60),
            )
        )
    spent = sum(system.costs.item_prices[item] for _, item in source.paid)
    assert spent <= 100
    assert spent > 94  # and it was used up
    assert spent == sum(a.cost for a in answers)
    short = [a for a in answers if isinstance(a, NoAnswerError) or a.degraded]
    assert short
    assert all("limit of 100" in (str(a) if isinstance(a, Exception) else a.reason) for a in short)
    if ledger is not None:
        assert ledger.total() == spent
        ledger.close()


def test_a_limit_degrades_or_raises():
    system, people = lender()
    source = MockSource(people, ["income", "bureau"])
    session = Session(system, [source], limits=Limits(per_entity=5.5))
    answer = session.predict("bert")
    assert (answer.degraded, answer.stage, answer.cost) == (True, 0, 1)
    assert "would go over its limit of 5.5" in answer.reason
    strict = Policy(on_failure="raise")
    with pytest.raises(NoAnswerError) as caught:
        Session(system, [source], limits=Limits(per_entity=5.5), policy=strict).predict("bert")
    assert isinstance(caught.value.__cause__, LimitError)
    assert session.predict("anna").cost == 1


def test_a_window_that_begins_late_knows_what_was_spent(tmp_path):
    clock = Clock()
    with Ledger(tmp_path / "books.db", clock=clock) as ledger:
        ledger.claim("anna", [want(8.0)], limits=Limits())
        limits = Limits(per_window={60: 10.0})
        ledger.watch(limits)
        with pytest.raises(LimitError):
            ledger.claim("bert", [want(8.0)], limits=limits)
        clock.now += 62
        ledger.claim("bert", [want(8.0)], limits=limits)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per_entity": float("nan")}, "per_entity is nan"),
        ({"per_window": {0: 1}}, "per_window has 0: 1"),
        ({"per_window": {60: -1}}, "money ≥ 0"),
    ],
)
def test_limits_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        Limits(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_failure": "guess"}, "on_failure is 'degrade' or 'raise', not 'guess'"),
        ({"retries": -1}, "retries is -1, must be at least 0"),
        ({"breaker_failures": 0}, "breaker_failures is 0, must be at least 1"),
    ],
)
def test_policies_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        Policy(**options)
    with pytest.raises(TypeError, match=r"give a list of columns, \['age'\]"):
        Policy(refuse_missing="age")


# -- circuit breaker ----------------------------------------------------------------------------------


def test_breaker_closed_open_half_open():
    clock = Clock()
    breaker = Breaker("bureau", failures=2, pause=10.0, clock=clock)
    breaker.failed()
    breaker.worked()
    breaker.failed()
    assert breaker.state == "closed"  # not in a row
    breaker.failed()
    assert breaker.state == "open"
    with pytest.raises(
        SourceError, match="failed 2 times in a row and is not asked for another 10 s"
    ):
        breaker.check()
    clock.now += 10.5
    assert breaker.state == "half-open"
    breaker.check()  # the trial
    with pytest.raises(SourceError, match="until a trial has come back"):
        breaker.check()
    breaker.failed()
    assert breaker.state == "open"
    clock.now += 10.5
    breaker.check()
    breaker.worked()
    assert breaker.state == "closed"
    breaker.check()


def test_a_trial_that_never_comes_back_is_not_waited_for_for_ever():
    clock = Clock()
    breaker = Breaker("bureau", failures=1, pause=10.0, clock=clock)
    breaker.failed()
    clock.now += 11
    breaker.check()
    clock.now += 11
    breaker.check()


def test_a_session_leaves_a_broken_source_alone():
    system, people = lender()
    faults = ["refused"] * 4
    source = MockSource(people, ["income", "bureau"], faults=faults)
    policy = Policy(backoff=0.0, retries=0, breaker_failures=4, breaker_pause=0.05)
    session = Session(system, [source], policy=policy)
    for _ in range(8):
        with pytest.raises(NoAnswerError):
            session.predict("anna")
    assert source.n_calls == 4
    assert session.breakers == {"mock": "open"}
    import time

    time.sleep(0.06)
    assert session.predict("anna").cost == 1
    assert session.breakers == {"mock": "closed"}


def test_a_breaker_closes_while_questions_keep_coming():
    """Refusing them is no failure of the source: it is tried as soon as its pause is over."""
    system, people = lender()
    source = MockSource(people, ["income", "bureau"], faults=["refused"])
    policy = Policy(retries=0, breaker_failures=1, breaker_pause=10.0)
    session = Session(system, [source], policy=policy)
    clock = session._desk.till.breakers["mock"]._clock = Clock()
    for _ in range(3):
        with pytest.raises(NoAnswerError):
            session.predict("anna")
        clock.now += 4.0
    assert source.n_calls == 1
    assert session.predict("anna").cost == 1
    assert session.breakers == {"mock": "closed"}


def test_a_trial_about_nobody_shows_that_the_source_is_well():
    system, people = lender()
    source = MockSource(people, ["income", "bureau"], faults=["refused"])
    policy = Policy(retries=0, breaker_failures=1, breaker_pause=10.0)
    session = Session(system, [source], policy=policy)
    clock = session._desk.till.breakers["mock"]._clock = Clock()
    with pytest.raises(NoAnswerError):
        session.predict("anna")
    clock.now += 11.0
    with pytest.raises(NoAnswerError, match="knows no entity 'zoe'"):
        session.predict("zoe")
    assert session.predict("anna").cost == 1


def test_a_question_about_nobody_does_not_open_the_breaker():
    system, people = lender()
    session = Session(
        system, [MockSource(people, ["income", "bureau"])], policy=Policy(breaker_failures=1)
    )
    with pytest.raises(NoAnswerError, match="knows no entity 'zoe'"):
        session.predict("zoe")
    assert session.predict("anna").cost == 1


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"per_window": 40}, TypeError, "per_window is 40, must be a mapping of seconds to money"),
        ({"per_entity": "40"}, ValueError, "per_entity is '40', must be a number"),
        ({"per_entity": True}, ValueError, "per_entity is True, must be a number"),
        ({"per_window": {"hour": 40}}, ValueError, "per_window has 'hour': 40; give seconds"),
        ({"per_window": {3600: "40"}}, ValueError, "per_window has 3600: '40'; give seconds"),
    ],
)
def test_limits_say_what_is_wrong_with_them(settings, kind, words):
    with pytest.raises(kind, match=words):
        Limits(**settings)


def test_a_purse_remembers_only_entities_that_have_cost_something_under_a_cap():
    purse, capped = Purse(Clock()), Limits(per_entity=0.3)
    for i in range(50):
        purse.claim(i, [want(1.0)], limits=Limits(per_window={60: 1000.0}))
        purse.claim(i, [want(0.0)], limits=capped)
        paid_back = [purse.claim(i, [want(p)], limits=capped).calls[0] for p in (0.1, 0.2)]
        purse.close_calls([Outcome(call.key, None, False) for call in paid_back])
    assert not purse._by_entity
    with pytest.raises(LimitError):
        purse.claim(0, [want(0.4)], limits=capped)
    purse.claim(0, [want(0.3)], limits=capped)
    assert list(purse._by_entity) == [0]
