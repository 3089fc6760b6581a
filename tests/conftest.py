import pytest

from sparing.cascade import judging, training

FULL_SIZE = {"test_docs", "test_demo", "test_benchmarks"}
"""Modules whose networks are those of users: they show results."""


@pytest.fixture(autouse=True, scope="module")
def small_networks(request):
    """Small networks that have seen less, and short searches: good enough for the data of most tests."""
    quick = pytest.MonkeyPatch()
    if request.module.__name__.rpartition(".")[2] not in FULL_SIZE:
        quick.setattr(training, "_VISITS", (4_000, 20_000))
        quick.setattr(training, "_STEPS", 300)
        quick.setattr(training, "_LAYERS", 2)
        quick.setattr(training, "_WIDTH", 64)
        quick.setattr(judging, "_PATIENCE", 10)
    yield
    quick.undo()
