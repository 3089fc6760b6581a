import time

import pytest

from sparing._progress import Progress


def test_time_left_is_in_proportion_to_the_efforts(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    progress = Progress(verbose=0)
    with progress.of([1.0, 2.0, 7.0]):
        assert progress.left() is None
        clock[0] += 3
        progress.done(1, "second")
        assert progress.left() == pytest.approx(3 / 2 * 8)
        clock[0] += 5
        assert progress.left() == pytest.approx(3 / 2 * 8 - 5)
        clock[0] += 100
        assert progress.left() == 0
        progress.done(0, "first")
        assert progress.left() == pytest.approx(108 / 3 * 7)


def test_lines_come_while_a_fit_goes_on(capsys):
    progress = Progress(verbose=1, every=0.01)
    progress.say("begun")
    with progress.of([1.0, 1.0]):
        progress.done(0, "quick")
        time.sleep(0.2)
        progress.done(1, "slow")
    told = capsys.readouterr().err
    assert "begun" in told
    assert "quick: 1 of 2 fits, about 0 s left" in told or "quick: 1 of 2 fits, longer" in told
    assert "1 of 2 fits are ready, going on, longer than expected" in told
    assert told.rstrip().endswith("slow: 2 of 2 fits")


def test_nothing_is_told_unasked(capsys):
    progress = Progress(verbose=0, every=0.01)
    with progress.of([1.0]):
        time.sleep(0.05)
        progress.done(0, "a fit")
    assert capsys.readouterr().err == ""


def test_the_watch_ends_with_the_fits(capsys):
    progress = Progress(verbose=1, every=0.01)
    with pytest.raises(KeyboardInterrupt), progress.of([1.0]):
        raise KeyboardInterrupt
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().err == ""
