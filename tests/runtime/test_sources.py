"""Sources deliver what they say, fail as they should, and never ask twice what may have been paid."""

import asyncio
import builtins
import json
from collections import Counter

import numpy as np
import pytest

from sparing.runtime import (
    CallableSource,
    HTTPSource,
    MappingSource,
    MockSource,
    Request,
    Source,
    SourceError,
    SQLSource,
)
from sparing.runtime import _http_source as http_module

REQUEST = Request("anna", ("score", "loans"), ("score", "loans"), "key-1")


def fetch_both(source, request=REQUEST):
    """What it says in a thread and in a loop, which must be the same."""
    one = source.fetch(request)
    other = asyncio.run(source.afetch(request))
    assert one == other
    return one


# -- what all of them share -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ("score", TypeError, r"give a list, \['score'\]"),
        ([], ValueError, "sells nothing"),
        ({"bureau": "score"}, TypeError, r"Columns of item 'bureau'.*\['score'\]"),
    ],
)
def test_items_are_checked(items, error, message):
    with pytest.raises(error, match=message):
        MappingSource({}, items)
    with pytest.raises(ValueError, match="time_to_live of source 'table' is -1"):
        MappingSource({}, ["score"], time_to_live=-1)


def test_a_source_of_ones_own():
    class Register(Source):
        def fetch(self, request):
            return dict.fromkeys(request.columns, 1)

    source = Register(["score", "loans"], name="register")
    assert fetch_both(source) == {"score": 1, "loans": 1}
    assert repr(source) == "Register(name='register', items=['score', 'loans'])"
    assert (source.honours_keys, source.time_to_live, source.local) == (False, None, False)
    source.close()
    asyncio.run(source.aclose())


def test_callable():
    def bureau(request):
        return {"score": len(request.entity), "loans": request.key}

    source = CallableSource(bureau, ["score", "loans"])
    assert source.name == "bureau"
    assert fetch_both(source) == {"score": 4, "loans": "key-1"}

    async def later(request):
        await asyncio.sleep(0)
        return bureau(request)

    assert fetch_both(CallableSource(later, ["score"])) == {"score": 4, "loans": "key-1"}


# -- tables -------------------------------------------------------------------------------------------


def test_mapping_array_and_frame():
    pd = pytest.importorskip("pandas")
    values = {"anna": {"score": 640, "loans": 2, "name": "x"}}
    frame = pd.DataFrame.from_dict(values, orient="index")
    for table in (values, frame):
        found = fetch_both(MappingSource(table, ["score", "loans"]))
        assert found == {"score": 640, "loans": 2}
        assert type(found["score"]) is int  # whole numbers stay whole beside text
    array = MappingSource(np.arange(6.0).reshape(2, 3), [0, 1, 2])
    assert array.fetch(Request(1, (0, 2), (0, 2), "k")) == {0: 3.0, 2: 5.0}
    for kind in (MappingSource, MockSource):
        named = kind(np.arange(6.0).reshape(2, 3), ["a", "b"], columns=["a", "b", "c"])
        assert named.fetch(Request(1, ("a",), ("a", "c"), "k")) == {"a": 3.0, "c": 5.0}


@pytest.mark.parametrize("entity", [-1, 2, "x", True])
def test_nobody_gets_the_values_of_another(entity):
    source = MappingSource(np.arange(6.0).reshape(2, 3), [0])
    with pytest.raises(SourceError, match="knows no entity") as caught:
        source.fetch(Request(entity, (0,), (0,), "k"))
    assert (caught.value.paid, caught.value.final, caught.value.healthy) == (False, True, True)


def test_tables_are_checked():
    pd = pytest.importorskip("pandas")
    with pytest.raises(SourceError, match="no column 'loans' for entity 'anna'"):
        MappingSource({"anna": {"score": 1}}, ["score"]).fetch(REQUEST)
    for column in (7, "age"):
        with pytest.raises(SourceError, match=r"array without the columns .* with `columns`"):
            MappingSource(np.zeros((1, 1)), [0]).fetch(Request(0, (0,), (column,), "k"))
    with pytest.raises(ValueError, match="columns has 2 names, the table 1 columns"):
        MappingSource(np.zeros((1, 1)), [0], columns=["a", "b"])
    with pytest.raises(TypeError, match="this dict has names"):
        MappingSource({}, [0], columns=["a"])
    twice = pd.DataFrame({"score": [1, 2]}, index=["anna", "anna"])
    with pytest.raises(ValueError, match="'anna' more than once"):
        MappingSource(twice, ["score"])
    with pytest.raises(TypeError, match="not list"):
        MappingSource([], ["score"])
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        MappingSource(np.zeros(3), [0])


# -- mock ---------------------------------------------------------------------------------------------


def test_mock_counts_and_fails_in_order():
    table = {"anna": {"score": 1, "loans": 2}}
    faults = [None, "refused", "timeout", "lost", "nonsense", "missing", KeyError("x")]
    source = MockSource(table, ["score", "loans"], faults=faults, honours_keys=False)
    said = []
    for _ in range(9):
        try:
            said.append(source.fetch(REQUEST))
        except (SourceError, KeyError) as error:
            said.append(getattr(error, "paid", "other"))
    full = {"score": 1, "loans": 2}
    assert said == [full, False, None, None, "nonsense", {"loans": 2}, "other", full, full]
    assert source.n_calls == 9
    assert source.paid == Counter({("anna", "score"): 6, ("anna", "loans"): 6})
    with pytest.raises(ValueError, match="Unknown fault 'typo'"):
        MockSource(table, ["score", "loans"], faults=["typo"]).fetch(REQUEST)


def test_mock_honours_keys_and_takes_its_time():
    source = MockSource(
        {"anna": {"score": 1, "loans": 2}}, ["score", "loans"], latency=lambda: 1e-4
    )
    assert not source.local
    fetch_both(source)
    source.fetch(Request("anna", ("score",), ("score",), "another key"))
    assert source.paid == {("anna", "score"): 2, ("anna", "loans"): 1}


# -- SQL ----------------------------------------------------------------------------------------------


@pytest.fixture
def database(tmp_path):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    url = f"sqlite:///{tmp_path / 'people.db'}"
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        for statement in (
            "create table people (id text, score real, loans integer, town text)",
            "insert into people values ('anna', 640.5, 2, 'x'), ('bert', null, 0, null)",
            "insert into people values ('twice', 1, 1, ''), ('twice', 2, 2, '')",
        ):
            connection.execute(sqlalchemy.text(statement))
    engine.dispose()
    return url


def test_sql(database):
    source = SQLSource(database, "select * from people where id = :entity", ["score", "loans"])
    assert fetch_both(source) == {"score": 640.5, "loans": 2}
    assert source.fetch(Request("bert", ("score",), ("score",), "k")) == {"score": None}
    for entity, found in (
        ("nobody", "no row"),
        ("twice", "several rows"),
        ("' or 1=1 --", "no row"),
    ):
        with pytest.raises(SourceError, match=f"gives {found} for entity") as caught:
            source.fetch(Request(entity, ("score",), ("score",), "k"))
        assert caught.value.paid is False
    source.close()


def test_sql_errors(database):
    with pytest.raises(ValueError, match="does not say :entity"):
        SQLSource(database, "select * from people", ["score"])
    source = SQLSource(database, "select * from strangers where id = :entity", ["score"])
    with pytest.raises(SourceError, match="no such table") as caught:
        source.fetch(REQUEST)
    assert caught.value.paid is None
    source.close()


# -- HTTP ---------------------------------------------------------------------------------------------

httpx = pytest.importorskip("httpx")
FULL = {"score": 640, "loans": 2}


class Endpoint:
    """Answers from a list, one entry per request: a status, a status with headers, or an exception."""

    def __init__(self, *script):
        self.script = list(script)
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        step = self.script.pop(0) if self.script else 200
        if isinstance(step, Exception):
            raise step
        if isinstance(step, httpx.Response):
            return step
        return httpx.Response(step, json=FULL)


def http(endpoint, url="https://bureau.example/v1/{entity}", **options):
    transport = httpx.MockTransport(endpoint)
    options = {"backoff": 0.0, "transport": transport, "async_transport": transport} | options
    return HTTPSource(url, ["score", "loans"], **options)


def test_http_messages():
    endpoint = Endpoint()
    source = http(endpoint, headers={"Authorization": "token"}, key_header="X-Key")
    assert fetch_both(source) == FULL
    post = endpoint.requests[0]
    assert str(post.url) == "https://bureau.example/v1/anna"
    assert (post.headers["X-Key"], post.headers["Authorization"]) == ("key-1", "token")
    assert json.loads(post.content) == {
        "entity": "anna",
        "items": ["score", "loans"],
        "columns": ["score", "loans"],
    }
    get = http(endpoint, method="GET")
    get.fetch(Request("an/na?x=1", ("score", "loans"), ("score",), "k"))
    assert endpoint.requests[-1].url.raw_path == b"/v1/an%2Fna%3Fx%3D1?item=score&item=loans"
    for one in (source, get):
        one.close()
    asyncio.run(source.aclose())


def test_http_numbered_columns_and_parse():
    reply = httpx.Response(200, json={"data": {"0": 1.5, "extra": 2}})
    source = HTTPSource(
        "https://bureau.example",
        [0],
        parse=lambda content: content["data"],
        transport=httpx.MockTransport(lambda request: reply),
    )
    assert source.fetch(Request(7, (0,), (0,), "k")) == {0: 1.5, "extra": 2}
    source.close()


LATE = httpx.ReadTimeout("too late")
NO_WAY = httpx.ConnectError("nobody there")


@pytest.mark.parametrize(
    ("script", "honours", "calls", "paid"),
    [
        ([503, 429], False, 3, "answered"),  # surely unpaid: asked again
        ([NO_WAY, NO_WAY], False, 3, "answered"),
        ([NO_WAY] * 9, False, 3, False),
        ([LATE], True, 2, "answered"),  # the key makes it safe
        ([500, 502], True, 3, "answered"),
        ([LATE], False, 1, None),  # may have been paid: not asked again
        ([500], False, 1, None),
        ([503, LATE], False, 2, None),
        ([LATE, 404], True, 2, None),  # what the first one cost nobody knows
        ([404], True, 1, False),
        ([403], False, 1, False),
        ([500] * 9, True, 3, None),
    ],
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_http_retries(script, honours, calls, paid, asynchronous):
    endpoint = Endpoint(*script)
    source = http(endpoint, honours_keys=honours)

    def fetch():
        return asyncio.run(source.afetch(REQUEST)) if asynchronous else source.fetch(REQUEST)

    if paid == "answered":
        assert fetch() == FULL
    else:
        with pytest.raises(SourceError, match=f"after {calls} attempt") as caught:
            fetch()
        assert caught.value.paid is paid
        assert caught.value.final
        assert caught.value.healthy == (script[-1] == 404)
    assert len(endpoint.requests) == calls
    assert {request.headers["Idempotency-Key"] for request in endpoint.requests} == {"key-1"}
    source.close()


def test_http_waits_between_attempts(monkeypatch):
    pauses = []
    monkeypatch.setattr(http_module.time, "sleep", pauses.append)
    endpoint = Endpoint(503, httpx.Response(429, headers={"Retry-After": "3"}))
    source = http(endpoint, backoff=0.5, timeout=4.0)
    assert source.fetch(REQUEST) == FULL
    assert 0 <= pauses[0] <= 1.0
    assert 3.0 <= pauses[1] <= 4.0
    assert source.longest == 4.0 * 3 + 2 * 4.0
    endpoint = Endpoint(httpx.Response(503, headers={"Retry-After": "Fri, 01 Jan 2027"}))
    assert http(endpoint).fetch(REQUEST) == FULL
    source.close()


def test_http_answers_that_cannot_be_read():
    for reply in (httpx.Response(200, text="<html>"), httpx.Response(200, json={"wrong": 1})):
        source = http(Endpoint(reply), parse=lambda content: content["data"])
        with pytest.raises(SourceError, match="cannot be read") as caught:
            source.fetch(REQUEST)
        assert caught.value.paid is None
        source.close()
    source = http(Endpoint(httpx.Response(200, json=[1, 2])))
    assert source.fetch(REQUEST) == [1, 2]  # a session calls that nonsense
    source.close()
    with pytest.raises(ValueError, match="'GET' or 'POST', not 'PUT'"):
        http(Endpoint(), method="PUT")


# -- extras -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["httpx", "sqlalchemy"])
def test_missing_extras_are_named(monkeypatch, missing):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == missing:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    make = {
        "httpx": lambda: HTTPSource("https://x", ["score"]),
        "sqlalchemy": lambda: SQLSource("sqlite://", "select :entity", ["score"]),
    }
    with pytest.raises(ImportError, match=r"pip install 'sparing\[serve\]'"):
        make[missing]()
