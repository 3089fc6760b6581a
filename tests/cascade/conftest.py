import pytest

from sparing.cascade import network


@pytest.fixture(autouse=True, scope="session")
def short_training():
    """Networks that have seen less: good enough for the data of these tests."""
    before = network._VISITS
    network._VISITS = (4_000, 30_000)
    yield
    network._VISITS = before
