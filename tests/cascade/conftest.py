import pytest

from sparing.cascade import judging, training


@pytest.fixture(autouse=True, scope="session")
def short_training():
    """Small networks that have seen less, and short searches: good enough for the data of these tests."""
    quick = pytest.MonkeyPatch()
    quick.setattr(training, "_VISITS", (4_000, 20_000))
    quick.setattr(training, "_STEPS", 300)
    quick.setattr(training, "_LAYERS", 2)
    quick.setattr(training, "_WIDTH", 64)
    quick.setattr(judging, "_PATIENCE", 10)
    yield
    quick.undo()
