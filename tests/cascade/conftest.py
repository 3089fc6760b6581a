import pytest

from sparing.cascade import judging, training


@pytest.fixture(autouse=True, scope="session")
def short_training():
    """Networks that have seen less and searches that try less: good enough for the data of these tests."""
    before = training._VISITS, judging._PATIENCE
    training._VISITS, judging._PATIENCE = (4_000, 30_000), 10
    yield
    training._VISITS, judging._PATIENCE = before
