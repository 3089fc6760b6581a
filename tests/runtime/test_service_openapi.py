"""The description of the service, and the service held against it: every request it makes up, every answer."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
import pytest
from service_cases import KEY, NAMES, Caller, lender, people, served, sold

from sparing.runtime import MockSource
from sparing.runtime.service import create_app

HERE = Path(__file__).parent


def description(ask):
    return ask("GET", "/openapi.json").json()


def operation(described, method, path):
    return described["paths"][path][method]


def examples(operation):
    named = operation["requestBody"]["content"]["application/json"]["examples"]
    return {name: example["value"] for name, example in named.items()}


def test_examples_are_answered():
    ask = served(table={"customer-1": dict.fromkeys(NAMES, 0.5)})
    described = description(ask)
    bodies = examples(operation(described, "post", "/v1/predict"))
    assert list(bodies) == ["the server buys", "the client buys", "the client goes on"]
    for name in list(bodies)[:2]:  # a token in an example is nobody's
        assert ask.predict(**bodies[name]).status_code == 200
    for body in examples(operation(described, "put", "/v1/exit")).values():
        assert ask("PUT", "/v1/exit", json=body).status_code == 200


def test_columns_that_nobody_sells_come_with_the_entity():
    system = lender()
    source = MockSource(people(), [item for item in system.costs.items if item != "age"])
    ask = served(system, sources=[source])
    operation_ = operation(description(ask), "post", "/v1/predict")
    entity = operation_["requestBody"]["content"]["application/json"]["schema"]["anyOf"][0]
    assert entity["required"] == ["entity", "columns"]
    assert entity["properties"]["columns"]["required"] == ["age"]
    body = examples(operation_)["the server buys"] | {"entity": "person-1"}
    assert ask.predict(**body).status_code == 200


def test_keys_are_described_where_there_are_any():
    described = description(served())
    assert set(described["components"]["securitySchemes"]) == {"bearer", "header"}
    assert described["security"] == [{"bearer": []}, {"header": []}]
    assert operation(described, "get", "/healthz")["security"] == []
    app = create_app(lender(), no_keys=True)
    described = description(Caller(app, key=None, host="127.0.0.1"))
    assert "security" not in described


@pytest.mark.parametrize("whole", [1, 1.0])
def test_whole_numbers_may_be_written_with_a_point(whole):
    ask = served(table={1: dict.fromkeys(NAMES, 0.5)})
    assert ask.predict(entity=whole).json()["status"] == "answered"
    assert ask("PUT", "/v1/exit", json={"position": whole - 1}).status_code == 200


@pytest.mark.parametrize("field", ["position", "thresholds", "target"])
def test_the_lever_takes_no_null(field):
    body = {"position": 0} | {field: None}
    response = served()("PUT", "/v1/exit", json=body)
    assert response.json()["type"] == "urn:sparing:problem:exit"


# -- schemathesis -------------------------------------------------------------------------------------------

SERVER = """
import sys
sys.path[:0] = {paths!r}
from test_service_openapi import serve_lender
serve_lender({port})
"""
SETTINGS = """
[checks.positive_data_acceptance]
# What the description cannot say: a token that this service did not make.
expected-statuses = [200, 400, 401, 403, 404, 409, 503]
"""
METHODS = ("GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH")
CASES = 600
"""Requests of the fuzzing phase for each operation, at most."""
PATHS = (
    "/v1/predict",
    "/v1/model",
    "/v1/spend",
    "/v1/exit",
    "/healthz",
    "/metrics",
    "/openapi.json",
)


def typed():
    """A row with the types of the columns: numbers."""
    return pd.DataFrame(np.zeros((1, len(NAMES))), columns=list(NAMES))


def serve_lender(port):
    from sparing.runtime.service import serve

    system = lender()
    source = sold(system, people() | {"customer-1": dict.fromkeys(NAMES, 0.5)})
    serve(system, port=port, sources=[source], keys=[KEY], rate=None, like=typed())


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_ready(port, process):
    for _ in range(600):
        try:
            if httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
        assert process.poll() is None, "The server has ended."
    raise AssertionError("The server does not answer.")


@pytest.mark.slow
def test_the_service_keeps_to_its_description(tmp_path):
    pytest.importorskip("schemathesis")
    port = free_port()
    log, settings = tmp_path / "log", tmp_path / "schemathesis.toml"
    settings.write_text(SETTINGS)
    script = SERVER.format(paths=[str(HERE), str(HERE.parent)], port=port)
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    with log.open("w") as lines:
        server = subprocess.Popen([sys.executable, "-c", script], stderr=lines, env=one_thread)
    try:
        wait_until_ready(port, server)
        found = subprocess.run(
            [
                *(
                    sys.executable,
                    "-c",
                    "from schemathesis.cli import schemathesis; schemathesis()",
                ),
                *("--config-file", str(settings), "run", f"http://127.0.0.1:{port}/openapi.json"),
                *("--header", f"Authorization: Bearer {KEY}", "--checks", "all", "--seed", "1"),
                *("--phases", "examples,coverage,fuzzing", "--max-examples", str(CASES)),
                *("--request-timeout", "10", "--max-response-time", "5", "--continue-on-failure"),
                *("--suppress-health-check", "all", "--no-color"),
            ],
            capture_output=True,
            text=True,
            timeout=1500,
            cwd=tmp_path,
        )
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-2000:]
    requests = [json.loads(line) for line in log.read_text().splitlines()]
    requests = [line for line in requests if "status" in line]
    assert len(requests) > 1000
    assert {line["status"] for line in requests} <= {200, 400, 401, 404, 405, 409, 415, 422, 503}
    allowed = {"json", "token-invalid"}
    assert {line["problem"] for line in requests if line["status"] == 400} <= allowed
    # Nothing of a request is in its line: texts are the service's own words, and few.
    names = {name for line in requests for name in line} - {"request_id", "time"}
    words = {
        name: {line[name] for line in requests if isinstance(line.get(name), str)} for name in names
    }
    assert words["route"] <= {*PATHS, "unmatched"}
    assert words["method"] <= {*METHODS, "other"}
    assert max(map(len, words.values())) < 30, words
    assert not any(len(word) > 40 for some in words.values() for word in some), words
    print(f"{len(requests)} requests")
