"""Requests that mean harm: none ends in an error of the server, none hangs, none finds its way into the logs."""

import json
import random
import time

import httpx
import pytest
from service_cases import KEY, NAMES, Caller, lender, logged, people, sold

from sparing.runtime.service import create_app

# The largest numbers overflow in the handmade models: a warning elsewhere, an error only in these tests.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

MARK = "7193048265"
"""Digits that stand in every value and entity sent, and in no line of the log."""

ODD_JSON = [
    *("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e308", "-1e308", "5e-324", "-0.0"),
    *("null", "true", "false", "[]", "{}", "[1]", '{"a":1}', '""', '"x"', '"\\ud800"', '"\\u0000"'),
    *('"NaN"', '"1"', '"1e5"', "9" * 400, "9" * 5000, "1" + "0" * 18, '"' + "x" * 3000 + '"'),
    *("[" * 3000, "[" * 200 + "]" * 200, '{"a":' * 500, "0x10", "1_000", "01", "+1", ".5", "tru"),
]
ODD_TEXT = [
    *(
        "'; drop table purchases; --",
        "../../etc/passwd",
        "<script>alert(1)</script>",
        "\u202e",
        "\x00",
    ),
    *("{{7*7}}", "%s%n", "${jndi:ldap://x}", "\ud800", "é" * 500, "\r\nX-Evil: 1", "None", ""),
]
PATHS = [
    *(
        "/v1/predict",
        "/v1/exit",
        "/v1/spend",
        "/v1/model",
        "/metrics",
        "/healthz",
        "/",
        "/openapi.json",
    ),
    *("/v1/predict/", "//v1/predict", "/v1/../v1/predict", "/%2e%2e/", "/v1/predict%00", "/docs"),
    *("/v1/exit?position=0", "/" + "a" * 3000, "/%ff%fe", "/.env"),
]
STATUSES = {200, 400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 422, 429, 503}


class Attacker:
    """Makes requests up from a seed; some begin as good ones and are spoilt."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self.tokens = []

    def request(self):
        draw = self._random
        kind = draw.random()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
        if draw.random() < 0.05:
            headers |= draw.choice(
                [
                    {"Content-Type": "text/plain"},
                    {"Content-Type": "application/json; charset=utf-7"},
                    {"Authorization": "Bearer "},
                    {"Authorization": "Bearer " + "x" * 5000},
                    {"X-Forwarded-For": "1.2.3.4", "Content-Encoding": "gzip"},
                    {"Content-Length": "5"},
                ]
            )
        if kind < 0.85:
            method, path = "POST", "/v1/predict"
            body = self._predict()
        elif kind < 0.93:
            method, path = "PUT", "/v1/exit"
            fields = ["position", "thresholds", "target", "other"]
            body = self._object(
                {draw.choice(fields): self._value() for _ in range(draw.randint(0, 3))}
            )
        else:
            method = draw.choice(
                ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"]
            )
            path, body = draw.choice(PATHS), self._predict()
        return method, path, headers, self._spoilt(body.encode("utf-8", "surrogatepass"))

    def _predict(self):
        draw = self._random
        fields = {}
        if draw.random() < 0.3:
            fields["entity"] = draw.choice(
                [self._text(), str(int(MARK)), self._value(), '"person-1"']
            )
        if draw.random() < 0.85:
            names = draw.sample([*NAMES, "other", "0", "__class__", ""], draw.randint(0, 6))
            fields["columns"] = (
                self._object({name: self._value() for name in names})
                if draw.random() < 0.95
                else self._value()
            )
        if draw.random() < 0.3:
            fields["token"] = self._token()
        if draw.random() < 0.1:
            fields["answer_now"] = draw.choice(["true", "false", self._value()])
        if draw.random() < 0.03:
            fields[draw.choice(["extra", "__proto__", "columns "])] = self._value()
        return self._object(fields)

    def _object(self, fields):
        return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in fields.items()) + "}"

    def _value(self):
        draw = self._random
        kind = draw.random()
        if kind < 0.6:
            return f"{draw.choice(['', '-'])}0.{draw.randint(0, 9)}{MARK}"
        return draw.choice(ODD_JSON) if kind < 0.9 else self._text()

    def _text(self):
        return json.dumps(self._random.choice(ODD_TEXT) + MARK)

    def _token(self):
        draw = self._random
        if not self.tokens or draw.random() < 0.2:
            return draw.choice(
                [self._value(), '"a.b"', '"eyJhIjoxfQ.AAAA"', '"' + "A" * 9000 + '.B"']
            )
        token = draw.choice(self.tokens)
        if draw.random() < 0.5:
            place = draw.randrange(len(token))
            token = token[:place] + draw.choice("AZaz09-_.=") + token[place + 1 :]
        return json.dumps(token)

    def _spoilt(self, body):
        draw = self._random
        if draw.random() > 0.15 or not body:
            return body
        place = draw.randrange(len(body))
        return draw.choice(
            [
                body[:place],
                body[:place] + bytes([draw.randrange(256)]) + body[place + 1 :],
                body + body,
                b"\xff\xfe" + body,
                body.decode("utf-8", "replace").encode("utf-16"),
                b" " * 80_000 + body,
                b"",
            ]
        )


def attack(ask, n, seed, seconds=2.0):
    """Statuses of many hostile requests, and the lines logged meanwhile."""
    attacker = Attacker(seed)
    statuses = []
    with logged() as lines:
        for _ in range(n):
            method, path, headers, body = attacker.request()
            begin = time.perf_counter()
            try:
                response = ask(method, path, headers=headers, content=body)
            except (httpx.InvalidURL, httpx.LocalProtocolError):
                continue  # the client itself will not send it
            assert time.perf_counter() - begin < seconds, (method, path, body[:200])
            assert response.status_code in STATUSES, (
                response.status_code,
                method,
                path,
                body[:300],
            )
            statuses.append(response.status_code)
            if response.status_code >= 400 and method != "HEAD":
                assert response.headers["content-type"] == "application/problem+json"
                assert "Traceback" not in response.text
            if response.status_code == 200 and b"items_needed" in response.content[:40]:
                attacker.tokens = [*attacker.tokens[-20:], response.json()["token"]]
    return statuses, lines


def check(statuses, lines, n):
    assert len(statuses) > 0.95 * n
    assert len(lines) >= len(statuses)
    assert MARK not in json.dumps(lines)
    assert "person-1" not in json.dumps(lines)
    # It got past the door: answers, refused values and refused tokens are all among them.
    assert {200, 400, 401, 405, 413, 415, 422} <= set(statuses)
    assert statuses.count(200) > 0.02 * n


def hostile_service():
    system = lender()
    source = sold(system, people() | {int(MARK): dict.fromkeys(NAMES, 0.1)})
    return Caller(create_app(system, [source], keys=[KEY], rate=None))


def test_hostile_requests():
    check(*attack(hostile_service(), 500, seed=0), 500)


@pytest.mark.slow
def test_many_hostile_requests():
    check(*attack(hostile_service(), 10_000, seed=1), 10_000)
