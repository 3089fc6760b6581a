"""A service answers as a session does, whoever buys, and its lever, accounts and tokens hold."""

import asyncio
import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import httpx
import numpy as np
import pytest
from bundle_cases import fitted, numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from service_cases import KEY, NAMES, Caller, lender, logged, people, problem, served, sold

from sparing.frontier import Frontier
from sparing.runtime import Ledger, Limits, MappingSource, Pacer, Policy, Session, load, save
from sparing.runtime._service_lever import Lever, Serving, places_of
from sparing.runtime.service import create_app, serve

PEOPLE = people()
FREE = lender(call_price=(0, 0, 0))


def matrix(table):
    return np.array([[row[name] for name in NAMES] for row in table.values()])


# -- the server buys ------------------------------------------------------------------------------------


def test_answers_of_the_server_are_the_batchs():
    system, ask = lender(), served()
    X = matrix(PEOPLE)
    answers = [ask.predict(entity=person).json() for person in PEOPLE]
    assert [a["prediction"] for a in answers] == system.predict(X).tolist()
    assert [a["stage"] for a in answers] == system.route(X).tolist()
    assert [a["cost"] for a in answers] == system.acquisition_cost(X).tolist()
    np.testing.assert_allclose([a["probabilities"] for a in answers], system.predict_proba(X))
    assert {a["status"] for a in answers} == {"answered"}


def test_known_columns_are_not_bought():
    system = lender()
    source = sold(system, PEOPLE)
    ask = served(sources=[source])
    answer = ask.predict(entity="person-0", columns={"age": 0.0}).json()
    expected = Session(system, [sold(system, PEOPLE)]).predict("person-0", {"age": 0.0})
    assert (answer["bought"], answer["cost"]) == (list(expected.bought), expected.cost)
    assert ("person-0", "age") not in source.paid


def test_columns_nobody_sells_are_asked_for():
    system = lender()
    ask = served(sources=[MappingSource(PEOPLE, ["income", "bureau", "loans", "fee"])])
    content = problem(ask.predict(entity="person-0"), 422, "columns-needed")
    assert content["columns"] == ["age"]
    row = PEOPLE["person-0"]
    answer = ask.predict(entity="person-0", columns={"age": row["age"]}).json()
    assert answer["prediction"] == system.predict(matrix(PEOPLE))[0]


def test_without_sources_an_entity_is_refused():
    problem(served(sources=[]).predict(entity="person-0"), 422, "no-sources")


def test_numbered_columns_and_entities():
    from handmade import two_stages

    X = np.random.default_rng(0).normal(size=(20, 3))
    system = two_stages()
    ask = served(system, sources=[MappingSource(X, range(3))])
    answers = [ask.predict(entity=i).json()["prediction"] for i in range(20)]
    assert answers == system.predict(X).tolist()
    given_all = [
        ask.predict(columns=dict(zip("012", row, strict=True))).json() for row in X.tolist()
    ]
    assert [a["prediction"] for a in given_all] == answers
    problem(ask.predict(entity=999), 404, "entity-unknown")


# -- the client buys ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    return served(sources=[])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(PEOPLE)), st.sets(st.sampled_from(NAMES)))
def test_a_conversation_ends_as_a_session_does(client, person, first):
    row = PEOPLE[person]
    system = lender()
    known = {name: row[name] for name in first}
    expected = Session(system, [sold(system, PEOPLE)]).predict(person, known)
    answer, bought = client.converse(row, first)
    assert answer["prediction"] == expected.prediction
    assert answer["probabilities"] == expected.probabilities.tolist()
    assert (answer["stage"], answer["cost"]) == (expected.stage, expected.cost)
    assert answer["bought"] == list(expected.bought) == [item["item"] for item in bought]
    assert [e["score"] for e in answer["exits"]] == [e.score for e in expected.exits]


def test_a_shared_fee_is_asked_for_once(client):
    hard = {"age": 0.0, "income": 0.0, "bureau": 0.1, "loans": 0.3, "ratio": 0.5}
    answer, bought = client.converse(hard, [])
    assert [item["item"] for item in bought].count("fee") == 1
    assert answer["stage"] == 2
    assert answer["cost"] == pytest.approx(1 + 2.5 + 4 + 0.7 + 2 + 0.1 + 0.3)


def test_answer_now_makes_do_with_what_is_there(client):
    needed = client.predict(columns={"age": 0.0}).json()
    assert needed["status"] == "items_needed"
    answer = client.predict(columns={"age": 0.0}, token=needed["token"], answer_now=True).json()
    assert (answer["stage"], answer["degraded"]) == (0, True)
    assert "client asked" in answer["reason"]
    problem(client.predict(columns={}, answer_now=True), 409, "no-answer")


def test_half_of_the_items_are_not_enough(client):
    needed = client.predict(columns={"age": 0.0}).json()
    assert set(needed["columns"]) == {"income", "bureau"}
    again = client.predict(columns={"age": 0.0, "income": 0.0}, token=needed["token"]).json()
    assert again["columns"] == ["bureau"]
    last = client.predict(
        columns={"age": 0.0, "income": 3.0, "bureau": 0.0}, token=needed["token"]
    ).json()
    assert last["cost"] == pytest.approx(1 * 0 + 2.5 + 4 + 2 + 0.1)


def test_calls_of_a_stage_are_paid_once_in_a_conversation(tmp_path):
    with Ledger(tmp_path / "books.db") as ledger:
        ask = served(sources=[], ledger=ledger)
        answer, _ = ask.converse(dict.fromkeys(NAMES, 0.0), [])
        assert answer["stage"] == 2
        assert ledger.total() == pytest.approx(0.1 + 0.3)
        for _ in range(2):
            ask.converse(dict.fromkeys(NAMES, 0.0), NAMES)
        assert ledger.total() == pytest.approx(3 * (0.1 + 0.3))
        assert ledger.at_risk() == 0


def test_a_limit_on_calls_holds_for_clients():
    ask = served(sources=[], limits=Limits(per_window={3600: 0.35}))
    answers = [ask.predict(columns={"age": 5.0}) for _ in range(5)]
    assert [a.status_code for a in answers] == [200, 200, 200, 503, 503]
    problem(answers[-1], 503, "limit")


# -- tokens -----------------------------------------------------------------------------------------------


def needed_token(ask):
    return ask.predict(columns={"age": 0.125}).json()["token"]


def test_a_changed_token_is_refused(client):
    token = needed_token(client)
    for place in range(0, len(token), 7):
        changed = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
        problem(client.predict(columns={"age": 0.125}, token=changed), 400, "token-invalid")
    body, _, signature = token.partition(".")
    more = json.loads(base64.urlsafe_b64decode(body + "=="))
    more["until"] += 10**6
    forged = base64.urlsafe_b64encode(json.dumps(more).encode()).rstrip(b"=").decode()
    for bad in (
        "",
        ".",
        body,
        f"{body}.",
        f".{signature}",
        f"{forged}.{signature}",
        "ä.ö",
        token + "=",
    ):
        problem(client.predict(columns={"age": 0.125}, token=bad), 400, "token-invalid")


def test_a_token_expires():
    ask = served(sources=[], token_seconds=0.01)
    token = needed_token(ask)
    time.sleep(1.1)  # the time of expiry is kept in whole seconds
    problem(ask.predict(columns={"age": 0.125}, token=token), 410, "token-expired")


def test_a_token_is_of_one_key_one_model_and_one_row(client):
    token = needed_token(client)
    problem(served(sources=[]).predict(columns={"age": 0.125}, token=token), 400, "token-invalid")
    problem(client.predict(columns={"age": 0.25}, token=token), 409, "token-values")
    problem(client.predict(columns={"income": 1.0}, token=token), 409, "token-values")
    app = create_app(lender(), keys={"one": "1" * 20, "two": "2" * 20})
    one, two = Caller(app, "1" * 20), Caller(app, "2" * 20)
    problem(two.predict(columns={"age": 0.125}, token=needed_token(one)), 400, "token-invalid")


def test_a_token_of_another_model_is_refused(tmp_path):
    clf, X = fitted("gbrt")
    tokens = []
    for number, threshold in enumerate((-50.0, -60.0)):
        save(clf.system_.with_thresholds(threshold), tmp_path / f"{number}.sparing")
        ask = served(tmp_path / f"{number}.sparing", sources=[], secret=b"s" * 32)
        cheap = [str(j) for j in load(tmp_path / "0.sparing").stages[0].columns]
        columns = {name: float(X[0, int(name)]) for name in cheap}
        tokens.append((ask, columns, ask.predict(columns=columns).json()["token"]))
    ask, columns, _ = tokens[1]
    problem(ask.predict(columns=columns, token=tokens[0][2]), 409, "token-model")


def test_processes_with_one_secret_read_each_others_tokens():
    one, two = (served(sources=[], secret=b"s" * 32) for _ in range(2))
    other = served(FREE, sources=[], secret=b"s" * 32)
    problem(other.predict(columns={"age": 0.125}, token=needed_token(one)), 409, "token-model")
    answer = two.predict(
        columns={"age": 0.125, "income": 9.0, "bureau": 0.0}, token=needed_token(one)
    )
    assert answer.json()["status"] == "answered"


def test_a_token_holds_no_value(client):
    token = client.predict(columns={"age": 0.123456789}).json()["token"]
    content = base64.urlsafe_b64decode(token.partition(".")[0] + "==").decode()
    assert "0.12345678" not in content.replace('"scores":[-0.123456789]', "")
    # 1 and 1.0 are the same number to a client in another language.
    token = client.raw(b'{"columns": {"age": 0.0}}').json()["token"]
    assert (
        client.raw(json.dumps({"columns": {"age": 0}, "token": token}).encode()).status_code == 200
    )


# -- the lever ----------------------------------------------------------------------------------------------


def test_thresholds_move_and_conversations_keep_theirs():
    ask = served()
    needed = ask.predict(columns={"age": 0.0}).json()
    assert ask("GET", "/v1/exit").json()["as_fitted"]
    moved = ask("PUT", "/v1/exit", json={"thresholds": ["inf", 0.3]})
    assert moved.json()["thresholds"] == ["inf", 0.3]
    assert not moved.json()["as_fitted"]
    # New answers stop at once; the one under way goes on at the threshold it began with.
    assert ask.predict(columns={"age": 0.0}).json()["stage"] == 0
    assert {ask.predict(entity=p).json()["stage"] for p in PEOPLE} == {0}
    row = {"age": 0.0, "income": 9.0, "bureau": 0.0}
    assert ask.predict(columns=row, token=needed["token"]).json()["stage"] == 1
    back = ask("PUT", "/v1/exit", json={"position": 0}).json()
    assert back["as_fitted"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"thresholds": [0.1]},
        {"thresholds": 0.1},
        {"thresholds": [0.1, None]},
        {"thresholds": [0.1, "much"]},
        {"thresholds": [True, 0.2]},
        {"thresholds": [10**400, 0.2]},
        {"position": 7},
        {"position": -1},
        {"position": 0.5},
        {"position": True},
        {"target": "x"},
        {"other": 1},
    ],
)
def test_wrong_moves_are_refused_and_change_nothing(body):
    ask = served()
    before = ask("GET", "/v1/exit").json()
    problem(ask("PUT", "/v1/exit", json=body), 422, "field" if "other" in body else "exit")
    assert ask("GET", "/v1/exit").json() == before


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    clf, X = fitted("gbrt")
    path = tmp_path_factory.mktemp("bundle") / "gbrt.sparing"
    frontier = Frontier.evaluate(clf.staged_systems()[::25], X, numbers()[1])
    save(clf, path, frontier=frontier, certificate={"promise": "kept"})
    return path, X


def test_the_lever_goes_along_the_frontier(bundle, tmp_path):
    path, X = bundle
    with Ledger(tmp_path / "books.db") as ledger:
        source = MappingSource(X, range(5), time_to_live=0)
        options = {"sources": [source], "ledger": ledger, "limits": Limits(per_entity=1e6)}
        ask = served(path, **options)
        assert ask("GET", "/v1/model").json()["certificate"] == {"promise": "kept"}
        lever = ask("GET", "/v1/exit").json()
        costs = [p["cost"] for p in lever["places"] if p["cost"] is not None]
        assert len(costs) > 2
        assert costs == sorted(costs)
        systems = served_places(path)
        for position in range(len(lever["places"])):
            state = ask("PUT", "/v1/exit", json={"position": position}).json()
            assert state["position"] == position
            system = systems[position]
            answers = [ask.predict(entity=i).json() for i in range(8)]
            assert [a["prediction"] for a in answers] == system.predict(X[:8]).tolist()
            assert [a["stage"] for a in answers] == system.route(X[:8]).tolist()
        moved = next(p for p in range(len(systems)) if p != lever["fitted_position"])
        ask("PUT", "/v1/exit", json={"position": moved})
        assert ask("GET", "/v1/model").json()["certificate"] is None
        # A new process goes on where the lever stood; one with another model does not.
        assert served(path, **options)("GET", "/v1/exit").json()["position"] == moved
        other = served(sources=[], ledger=ledger)("GET", "/v1/exit").json()
        assert other["as_fitted"]


def test_a_kept_position_that_is_no_longer_sold_does_not_stop_the_service(bundle, tmp_path):
    system, X = load(bundle[0]), bundle[1]
    _, own = places_of(system)
    sold_now = set()

    def open_serving(system, position):
        if position not in sold_now:
            raise ValueError("No source sells item 4.")
        return Serving(Session(system, [MappingSource(X, range(5))]), None, position)

    with Ledger(tmp_path / "books.db") as ledger:
        sold_now |= {own, own - 1}
        Lever(system, open_serving, ledger=ledger).move(position=own - 1)
        sold_now.remove(own - 1)
        with logged() as lines:
            lever = Lever(system, open_serving, ledger=ledger)
        assert lever.is_fitted
        assert lines[0]["level"] == "warning"
        assert (lines[0]["kept_position"], lines[0]["position"]) == (own - 1, own)
        sold_now.add(own - 1)  # sold again
        assert Lever(system, open_serving, ledger=ledger).position == own - 1


def served_places(path):
    places, own = places_of(load(path))
    assert places[own].system.thresholds == load(path).thresholds
    return [place.system for place in places]


def test_limits_without_a_ledger_survive_the_lever():
    ask = served(limits=Limits(per_window={3600: 3.0}), policy=Policy(on_failure="raise"))
    spent = 0.0
    for number, person in enumerate(PEOPLE):
        ask("PUT", "/v1/exit", json={"thresholds": [-0.1 * number, 0.3]})
        response = ask.predict(entity=person)
        spent += response.json()["cost"]
    assert 0 < spent <= 3.0


def test_a_pacers_target_is_the_lever():
    pacer = Pacer(2.0, [[0.0, 0.5], [-3.0, 0.0]], rate=0.01)
    ask = served(pacer=pacer)
    for person in PEOPLE:
        ask.predict(entity=person)
    for _ in range(5):
        ask.converse(PEOPLE["person-1"], [])
    assert pacer.n_answers == len(PEOPLE) + 5
    state = ask("PUT", "/v1/exit", json={"target": 4.5}).json()
    assert (state["kind"], state["target"], pacer.target) == ("pacer", 4.5, 4.5)
    problem(ask("PUT", "/v1/exit", json={"thresholds": [0, 0]}), 409, "exit")
    problem(served()("PUT", "/v1/exit", json={"target": 4.5}), 409, "exit")


# -- the accounts -------------------------------------------------------------------------------------------


def test_accounts_add_up(tmp_path):
    with Ledger(tmp_path / "books.db") as ledger:
        ask = served(FREE, ledger=ledger)
        here = [ask.predict(entity=person).json() for person in list(PEOPLE)[:20]]
        there = [ask.converse(row, ["age"])[0] for row in list(PEOPLE.values())[:10]]
        spend = ask("GET", "/v1/spend").json()
        metrics = ask("GET", "/metrics").text
    paid_here = sum(a["cost"] for a in here)
    assert spend["spent"]["server"] == pytest.approx(paid_here)
    assert spend["spent"]["client"] == pytest.approx(sum(a["cost"] for a in there))
    assert spend["ledger"]["paid"] == pytest.approx(paid_here)
    assert spend["answers"] == 30
    assert sum(s["answers"] for s in spend["recent_by_stage"]) == 30
    assert sum(m["spent"] for m in spend["over_time"]) == pytest.approx(
        sum(spend["spent"].values())
    )
    bought = sum(len(a["bought"]) for a in here + there)
    assert sum(i["bought"] for i in spend["by_item"]) == bought
    counted = dict(re.findall(r'sparing_spent_total\{buyer="(\w+)"\} (\S+)', metrics))
    assert float(counted["server"]) == pytest.approx(paid_here)
    answered = re.findall(r"sparing_answers_total\{.*\} (\S+)", metrics)
    assert sum(map(float, answered)) == 30


def test_degraded_answers_are_told_without_saying_of_whom():
    system = lender()
    faults = [None] + ["refused"] * 50
    source = sold(system, {"anna": dict.fromkeys(NAMES, 0.0625)}, faults=faults)
    ask = served(sources=[source], policy=Policy(retries=0))
    with logged() as lines:
        answer = ask.predict(entity="anna").json()
        failed = ask.predict(entity="anna")
        spend = ask("GET", "/v1/spend").json()
    assert (answer["degraded"], answer["stage"]) == (True, 0)
    assert answer["reason"] == "a source, or a model, did not answer at stage 1"
    problem(failed, 503, "no-answer")
    (latest,) = spend["latest_degraded"]
    assert (latest["cause"], latest["failed_at"], latest["answered_by"]) == ("source", 1, 0)
    assert latest["request_id"] == lines[0]["request_id"]
    assert (spend["degraded"], spend["without_answer"]) == (1, 1)
    assert lines[0]["degraded"] == "source"
    for text in (json.dumps(lines), json.dumps(spend), answer["reason"], failed.text):
        assert "anna" not in text
        assert "0.0625" not in text


def test_a_limit_is_the_cause_of_a_degraded_answer():
    ask = served(FREE, {"anna": dict.fromkeys(NAMES, 0.0)}, limits=Limits(per_entity=3.0))
    answer = ask.predict(entity="anna").json()
    assert answer["reason"] == "a spending limit was reached at stage 1"


# -- time ---------------------------------------------------------------------------------------------------


def test_a_client_is_sent_away_and_the_purchase_ends_all_the_same():
    system = lender()
    source = sold(system, {"anna": dict.fromkeys(NAMES, 5.0)}, latency=0.2)
    ask = served(sources=[source], timeout=0.05)

    async def both():
        first = await ask.ask("POST", "/v1/predict", json={"entity": "anna"})
        await asyncio.sleep(0.3)
        return first, (await ask.ask("GET", "/v1/spend")).json()

    first, spend = ask.runner.run(both())
    problem(first, 504, "timeout")
    assert (spend["answers"], spend["spent"]["server"]) == (1, pytest.approx(1.1))


def test_too_many_at_once_are_sent_away():
    system = lender()
    source = sold(system, {"anna": dict.fromkeys(NAMES, 5.0)}, latency=0.1)
    ask = served(sources=[source], max_in_flight=2)

    async def crowd():
        asks = (ask.ask("POST", "/v1/predict", json={"entity": "anna"}) for _ in range(5))
        return await asyncio.gather(*asks)

    answers = ask.runner.run(crowd())
    assert sorted(a.status_code for a in answers) == [200, 200, 503, 503, 503]


def test_closing_waits_for_answers_under_way():
    system = lender()
    source = sold(system, {"anna": dict.fromkeys(NAMES, 5.0)}, latency=0.1)
    app = create_app(system, [source], keys={"tests": KEY})
    ask = Caller(app)

    async def life():
        async with app.router.lifespan_context(app):
            under_way = asyncio.ensure_future(
                ask.ask("POST", "/v1/predict", json={"entity": "anna"})
            )
            await asyncio.sleep(0.03)
        return (
            await under_way,
            await ask.ask("GET", "/healthz"),
            await ask.ask("POST", "/v1/predict", json={"entity": "anna"}),
        )

    answer, health, late = ask.runner.run(life())
    assert answer.json()["status"] == "answered"
    assert (health.status_code, health.json()["status"]) == (503, "closing")
    problem(late, 503, "busy")


# -- models that cannot take what they get ------------------------------------------------------------------


def test_text_where_the_model_wants_a_number_is_the_clients_fault(client):
    content = problem(client.predict(columns={"age": "old"}), 422, "columns-refused")
    assert content["columns"] == ["age"]
    assert "old" not in content["detail"]


def test_text_from_a_source_where_the_model_wants_a_number_is_not():
    ask = served(table={"anna": dict.fromkeys(NAMES, "secret-text")})
    with logged() as lines:
        response = ask.predict(entity="anna")
    content = problem(response, 503, "no-answer")
    assert content["bought"] == ["age"]
    assert "secret-text" not in response.text + json.dumps(lines)


# -- descriptions -------------------------------------------------------------------------------------------


def test_the_description_fits_the_service(bundle):
    ask = served(bundle[0], sources=[])
    described = ask("GET", "/openapi.json").json()
    paths = {f"{m.upper()} {p}" for p, ms in described["paths"].items() for m in ms}
    assert paths == {
        "POST /v1/predict",
        *(f"GET /v1/{name}" for name in ("model", "spend", "exit")),
        *("PUT /v1/exit", "GET /healthz", "GET /metrics"),
    }
    body = described["paths"]["/v1/predict"]["post"]["requestBody"]["content"]["application/json"]
    ways = body["schema"]["anyOf"]
    assert [way["required"] for way in ways] == [["columns"]]  # no sources, no entities
    assert list(ways[0]["properties"]["columns"]["properties"]) == list("01234")
    example = body["examples"]["the client buys"]["value"]
    assert ask.predict(**example).status_code == 200
    responses = described["paths"]["/v1/predict"]["post"]["responses"]
    assert set(responses["200"]["content"]["application/json"]["examples"]) == {
        "answered",
        "items needed",
    }
    assert "application/problem+json" in responses["422"]["content"]


def test_the_model_is_described():
    model = served()("GET", "/v1/model").json()
    assert [s["price"] for s in model["stages"]] == pytest.approx([1.1, 9.6, 10.6])
    assert [s["threshold"] for s in model["stages"]] == [-0.8, 0.3, None]
    ratio = model["columns"][-1]
    assert ratio["name"] == "ratio"
    assert set(ratio["items"]) == {"bureau", "loans", "fee"}


# -- a real server ------------------------------------------------------------------------------------------

PROGRAM = """
import sys
from sparing.runtime import MockSource
from sparing.runtime._examples import lender
from sparing.runtime.service import serve
system, people = lender()
serve(system, port=int(sys.argv[1]), sources=[MockSource(people, ["income", "bureau"], latency=0.5)],
      ledger=sys.argv[2])
"""


def test_a_server_ends_gracefully(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"SPARING_KEYS": KEY, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, str(port), str(tmp_path / "books.db")]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                httpx.get(f"{url}/healthz")
                break
            except httpx.ConnectError:
                time.sleep(0.1)

        async def ask_and_end():
            headers = {"X-API-Key": KEY}
            async with httpx.AsyncClient(base_url=url, headers=headers, timeout=20) as client:
                asked = asyncio.ensure_future(client.post("/v1/predict", json={"entity": "bert"}))
                await asyncio.sleep(0.3)
                process.send_signal(signal.SIGTERM)
                return await asked

        answer = asyncio.run(ask_and_end())
        assert answer.json()["cost"] == 6.0
        lines = [json.loads(line) for line in process.communicate(timeout=20)[1].splitlines()]
    finally:
        process.kill()
        process.wait()
    assert {"request", "start", "end"} <= {line["event"] for line in lines}
    assert "bert" not in json.dumps(lines)
    with Ledger(tmp_path / "books.db") as ledger:
        assert ledger.total() == 6.0


def test_serve_says_what_is_missing(monkeypatch):
    monkeypatch.delenv("SPARING_KEYS", raising=False)
    with pytest.raises(ValueError, match="needs keys"):
        serve(lender())
    with pytest.raises(ValueError, match="this machine alone"):
        serve(lender(), host="0.0.0.0", no_keys=True)
    with pytest.raises(ValueError, match="module:name"):
        serve(lender(), no_keys=True, sources="nonsense")
    with pytest.raises(TypeError, match="not int"):
        create_app(3, keys=[KEY])


def test_serve_says_what_is_wrong_with_the_address_or_the_books(tmp_path):
    system = lender()
    for port in (99999, -1, "8000"):
        with pytest.raises(ValueError, match=f"port is {port!r}, must be a whole number from 0 to"):
            serve(system, port=port, no_keys=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"Port {port} of 127.0.0.1 is in use.*choose another"):
            serve(system, port=port, no_keys=True)
    with pytest.raises(OSError, match=r"Host '192\.0\.2\.1' is no address of this machine"):
        serve(system, host="192.0.2.1", keys=[KEY])
    path = tmp_path / "loans.csv"
    path.write_text("age,income\n" * 100)
    with pytest.raises(ValueError, match=r"loans\.csv is not a ledger"):
        serve(system, no_keys=True, ledger=path)
