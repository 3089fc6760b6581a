"""A service in this process, asked without a network; and small systems for it to serve."""

import asyncio
import atexit
import io
import json
import logging
from contextlib import contextmanager

import httpx
import numpy as np

from handmade import Margin, Sigmoid
from sparing import FeatureCosts
from sparing.runtime import MockSource
from sparing.runtime._service_log import LOGGER, JSONLines
from sparing.runtime.service import create_app
from sparing.system import ConfidenceGate, Stage, System

RUNNER = asyncio.Runner()
"""One event loop for all: it outlives the tests."""
atexit.register(RUNNER.close)

KEY = "the-key-of-the-tests"
NAMES = ("age", "income", "bureau", "loans", "ratio")


def lender(call_price=(0.1, 0.0, 0.3)):
    """Three stages over named columns; bureau and loans share a fee, the ratio is derived from both."""
    costs = FeatureCosts(
        {"age": 1.0, "income": 2.5, "bureau": 4.0, "loans": 0.7, "ratio": 0.0},
        shared={"fee": (2.0, ["bureau", "loans"])},
        derived={"ratio": ["bureau", "loans"]},
        call_price=list(call_price),
    )
    stages = (
        Stage(Sigmoid(0), Margin(0), -0.8, name="first"),
        Stage(Sigmoid(1, 2.0, also=(2,)), ConfidenceGate(), 0.3, name="second"),
        Stage(Sigmoid(2, 5.0, also=(3, 4)), name="last"),
    )
    return System(stages, costs, np.array(["no", "yes"]))


def people(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return {
        f"person-{i}": dict(zip(NAMES, row, strict=True))
        for i, row in enumerate(rng.normal(size=(n, len(NAMES))).tolist())
    }


def sold(system, table, **options):
    return MockSource(table, list(system.costs.items), **options)


class Caller:
    """Asks an application, always in the same event loop."""

    def __init__(self, app, key=KEY, address="127.0.0.1", host="service", **headers):
        self.runner = RUNNER
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app, client=(address, 123)),
            base_url=f"http://{host}",
            headers=self._headers,
        )

    def __call__(self, method, path, **options):
        return self.runner.run(self.ask(method, path, **options))

    async def ask(self, method, path, **options):
        return await self._client.request(method, path, **options)

    def predict(self, **body):
        return self("POST", "/v1/predict", json=body)

    def raw(self, content, **headers):
        return self(
            "POST",
            "/v1/predict",
            content=content,
            headers={"Content-Type": "application/json", **headers},
        )

    def converse(self, row, first, **more):
        """Buy whatever is asked for; the last answer, and the items bought on the way."""
        columns, bought, token = {name: row[name] for name in first}, [], {}
        for _ in range(10):
            answer = self.predict(columns=columns, **token, **more)
            assert answer.status_code == 200, answer.text
            content = answer.json()
            if content["status"] == "answered":
                return content, bought
            assert content["columns"]
            bought += content["items"]
            columns |= {name: row[name] for name in content["columns"]}
            token = {"token": content["token"]}
        raise AssertionError("The conversation does not end.")


def served(system=None, table=None, *, sources=None, **options):
    """A caller of a service that sells everything."""
    system = lender() if system is None else system
    if sources is None:
        sources = [sold(system, people() if table is None else table)]
    options = {"keys": {"tests": KEY}, "rate": None} | options
    return Caller(create_app(system, sources, **options))


@contextmanager
def logged():
    """Lines that the service logs, as it would write them to stderr."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JSONLines())
    before = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.propagate = False
    LOGGER.setLevel(logging.INFO)
    lines = []
    try:
        yield lines
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(before)
        LOGGER.propagate = True
        lines += [json.loads(line) for line in stream.getvalue().splitlines()]


def problem(response, status, kind):
    """Check that a response is a problem, and give it back."""
    content = response.json()
    assert (response.status_code, content["type"]) == (status, f"urn:sparing:problem:{kind}"), (
        content
    )
    assert response.headers["content-type"] == "application/problem+json"
    assert content["status"] == status
    assert content["title"]
    assert content["request_id"] == response.headers["x-request-id"]
    return content
