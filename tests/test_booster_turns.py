"""Prefixes of one booster take turns; the same prefix is asked by many threads at once."""

import threading

import pytest

from sparing._booster_turns import PrefixTurns


def started(turns, n_iteration, inside, leave):
    def ask():
        with turns.of(n_iteration):
            inside.append(n_iteration)
            leave.wait(10)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def until(condition):
    for _ in range(2000):
        if condition():
            return True
        threading.Event().wait(0.005)
    return False


def test_the_same_prefix_goes_together_and_another_waits():
    turns, inside, leave, last = PrefixTurns(), [], threading.Event(), threading.Event()
    threads = [started(turns, 7, inside, leave) for _ in range(3)]
    assert until(lambda: inside == [7, 7, 7])
    threads.append(started(turns, 4, inside, last))
    assert until(lambda: turns._waiting == 1)
    threads.append(started(turns, 7, inside, last))  # behind the one that waits
    assert until(lambda: turns._waiting == 2)
    assert inside == [7, 7, 7]
    leave.set()
    last.set()
    for thread in threads:
        thread.join(10)
    assert sorted(inside[3:]) == [4, 7]


def test_an_error_gives_the_turn_back():
    turns = PrefixTurns()
    with pytest.raises(RuntimeError), turns.of(3):
        raise RuntimeError
    with turns.of(5):
        pass
