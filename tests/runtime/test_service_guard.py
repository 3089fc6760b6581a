"""Who is let in, how much and how often; and what never leaves: values in logs, insides in errors."""

import asyncio
import json
import logging
import re

import pytest
from service_cases import KEY, Caller, lender, logged, problem, served, sold

from sparing.runtime._service_keys import Keys, Rates, read_keys
from sparing.runtime._service_log import JSONLines
from sparing.runtime._service_page import OPEN_PAGE, PAGE, page_policy
from sparing.runtime.service import create_app

LOCKED = ["/v1/model", "/v1/spend", "/v1/exit", "/metrics", "/openapi.json", "/nothing", "/docs"]
APP = create_app(lender(), keys={"tests": KEY}, rate=None)

# -- keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LOCKED)
def test_every_path_with_data_wants_a_key(path):
    for key in ("", "wrong", KEY[:-1], KEY + "x", KEY.upper()):
        response = Caller(create_app(lender(), keys=[KEY]), key)("GET", path)
        content = problem(response, 401, "key")
        assert response.headers["www-authenticate"] == "Bearer"
        assert KEY not in json.dumps(content)


def test_predict_wants_a_key():
    problem(Caller(APP, "").predict(columns={"age": 1.0}), 401, "key")


def test_two_ways_to_send_a_key():
    assert Caller(APP, KEY)("GET", "/v1/model").status_code == 200
    assert Caller(APP, "", X_API_Key=KEY)("GET", "/v1/model").status_code == 200
    problem(Caller(APP, "", Authorization=f"Basic {KEY}")("GET", "/v1/model"), 401, "key")


def test_open_paths_hold_no_data():
    ask = Caller(APP, "")
    assert ask("GET", "/healthz").json() == {"status": "ok"}
    assert ask("GET", "/").text == PAGE  # the same for every model
    local = Caller(create_app(lender(), no_keys=True), key=None, host="127.0.0.1")
    assert local("GET", "/").text == OPEN_PAGE != PAGE


def test_only_operators_move_the_lever():
    app = create_app(lender(), keys={"tests": KEY}, operator_keys={"boss": "b" * 20})
    body = {"thresholds": [0.0, 0.0]}
    problem(Caller(app)("PUT", "/v1/exit", json=body), 403, "key")
    boss = Caller(app, "b" * 20)
    assert boss("PUT", "/v1/exit", json=body).status_code == 200
    assert boss.predict(columns={"age": 1.0}).status_code == 200


def test_wrong_keys_are_slowed_down():
    ask = Caller(create_app(lender(), keys=[KEY]), "wrong")
    statuses = [ask("GET", "/v1/model").status_code for _ in range(30)]
    assert statuses[:20] == [401] * 20
    assert set(statuses[21:]) == {429}


def test_keys_are_needed_and_long_enough(tmp_path):
    with pytest.raises(ValueError, match="needs keys"):
        create_app(lender())
    with pytest.raises(ValueError, match="choose one"):
        create_app(lender(), keys=[KEY], no_keys=True)
    with pytest.raises(ValueError, match="choose one"):
        create_app(lender(), operator_keys=[KEY], no_keys=True)
    with pytest.raises(ValueError, match="at least 16"):
        Keys(["short"])
    with pytest.raises(ValueError, match="ASCII"):
        Keys(["ä" * 20])
    with pytest.raises(TypeError, match="not one text"):
        Keys(KEY)
    with pytest.raises(ValueError, match="two names"):
        Keys({"a": "1" * 20}) | Keys({"a": "2" * 20})
    (tmp_path / "keys").write_text("a: " + "1" * 20 + "\njust-a-secret\n")
    with pytest.raises(ValueError, match="line 2") as caught:
        read_keys(tmp_path / "keys")
    assert "just-a-secret" not in str(caught.value)


def test_hashes_are_compared_in_constant_time(monkeypatch):
    import hmac

    pairs = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: pairs.append((a, b)) or real(a, b))
    keys = Keys({"a": "1" * 20, "b": "2" * 20, "c": "3" * 20})
    assert (keys.name_of("1" * 20), keys.name_of("4")) == ("a", None)
    # All are looked at, whichever fits, and all have the same length.
    assert len(pairs) == 6
    assert {len(part) for pair in pairs for part in pair} == {32}


# -- without keys -------------------------------------------------------------------------------------------


def test_without_keys_this_machine_alone_is_answered():
    app = create_app(lender(), no_keys=True)
    for host in ("localhost", "127.0.0.1:8000", "[::1]:8000"):
        ask = Caller(app, "", host=host)
        assert ask.predict(columns={"age": 9.0}).status_code == 200
        assert ask("PUT", "/v1/exit", json={"thresholds": [0, 0]}).status_code == 200
    refused = [
        Caller(app, "", address="10.0.0.8", host="localhost"),
        Caller(app, "", host="evil.example"),  # a name of another site that points here
        Caller(app, "", host="localhost", X_Forwarded_For="10.0.0.8"),  # a proxy
        Caller(app, "", host="localhost", Forwarded="for=10.0.0.8"),
    ]
    for ask in refused:
        for path in ("/", "/healthz", "/v1/model"):
            problem(ask("GET", path), 403, "local")


# -- how much -------------------------------------------------------------------------------------------------


def test_rates_are_each_keys_own():
    keys = {"a": "1" * 20, "b": "2" * 20}
    app = create_app(lender(), keys=keys, rate=0.001, burst=3)
    one, two = Caller(app, keys["a"]), Caller(app, keys["b"])
    responses = [one("GET", "/v1/model") for _ in range(5)]
    assert [r.status_code for r in responses] == [200, 200, 200, 429, 429]
    problem(responses[-1], 429, "rate")
    assert int(responses[-1].headers["retry-after"]) >= 900
    assert two("GET", "/v1/model").status_code == 200


def test_rates_hold_in_the_long_run_and_forget_callers():
    now = 0.0
    rates = Rates(5.0, 10.0, clock=lambda: now)
    passed = 0
    for step in range(1000):
        now = 0.01 * step
        passed += rates.wait("a") == 0.0
    assert passed == pytest.approx(10 + 5 * 9.99, abs=1)
    for number in range(20_000):
        rates.wait(f"caller {number}")
    assert len(rates._buckets) <= 10_000


def test_a_long_body_is_refused_before_it_is_read():
    ask = Caller(create_app(lender(), keys=[KEY], max_body=1000))
    problem(ask.raw(b" " * 1001), 413, "size")
    assert ask.raw(b'{"columns":{"age":9}}' + b" " * 900).status_code == 200

    async def chunks():
        for _ in range(10_000):
            yield b" " * 100
        raise AssertionError("All of it was read.")

    problem(ask.raw(chunks()), 413, "size")


@pytest.mark.parametrize("length", [b"-1", b"1e3", b"99999999999999999999", b"x", b""])
def test_lengths_that_are_none(length):
    status, content = raw_request([(b"content-length", length)], [b"{}"])
    assert status == 413
    assert content["type"].endswith(":size")


def raw_request(headers, bodies, delay=0.0, **options):
    """A request straight to the application, as no client would send it."""
    app = create_app(lender(), keys=[KEY], **options)
    sent = []
    parts = iter(bodies)

    async def receive():
        await asyncio.sleep(delay)
        body = next(parts, None)
        if body is None:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": body, "more_body": True}

    async def send(message):
        sent.append(message)

    headers = [
        (b"authorization", b"Bearer " + KEY.encode()),
        (b"content-type", b"application/json"),
        *headers,
    ]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/predict",
        "raw_path": b"/v1/predict",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("service", 80),
        "scheme": "http",
        "http_version": "1.1",
        "root_path": "",
    }
    asyncio.run(asyncio.wait_for(app(scope, receive, send), 10))
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_a_body_that_drips_is_given_up():
    status, content = raw_request([], [b" "] * 1000, delay=0.02, body_seconds=0.2)
    assert (status, content["type"]) == (408, "urn:sparing:problem:slow")


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded"])
def test_other_content_is_refused(kind):
    # A form of another site could send these without asking.
    response = Caller(APP).raw(b'{"columns":{"age":9}}', **{"Content-Type": kind})
    problem(response, 415, "content-type")


# -- what never leaves ----------------------------------------------------------------------------------------


def test_logs_have_no_values_no_entities_no_paths_and_no_keys():
    row = {"age": 0.987654321, "income": 31337.25, "bureau": 4242.5, "loans": 1.0, "ratio": 2.0}
    secrets = ("0.98765", "31337", "4242", "anna-smith", KEY, "token=", "private")
    source = sold(lender(), {"anna-smith": row})
    ask = served(sources=[source])
    with logged() as lines:
        assert ask.predict(entity="anna-smith").status_code == 200
        ask.converse(row, ["age"])
        ask.predict(entity="anna-smith", columns={"age": "private"})
        ask.predict(columns={"age": "private"})
        ask.predict(columns={"private": 1.0})
        ask.predict(entity="private")
        ask.raw(b'{"columns": {"age": 31337')
        ask("GET", "/private/anna-smith?token=31337")
        ask("PRIVATE", "/v1/predict")
        ask("GET", "/v1/model", headers={"User-Agent": "private", "X-Request-Id": "private"})
    text = json.dumps(lines)
    assert len(lines) >= 10
    for secret in secrets:
        assert secret not in text
    assert {line["key"] for line in lines} == {"tests"}
    assert lines[0]["route"] == "/v1/predict"
    assert lines[0]["cost"] > 0


def test_errors_tell_nothing_of_the_inside(monkeypatch):
    from sparing.runtime._service_activity import Activity

    def fails(self):
        raise RuntimeError("password=hunter2 in /srv/app.py")

    monkeypatch.setattr(Activity, "summary", fails)
    with logged() as lines:
        response = served()("GET", "/v1/spend")
    content = problem(response, 500, "internal")
    assert set(content) == {"type", "title", "status", "detail", "request_id"}
    assert "hunter2" not in response.text + json.dumps(lines)
    assert lines[0]["error"] == ["RuntimeError"]
    assert "fails" in lines[0]["where"][-1]


def test_warnings_are_logged_without_their_message():
    text = "/site-packages/sklearn/encoders.py:246: UserWarning: unknown category 'anna-smith'\n  warnings.warn(\n"
    record = logging.makeLogRecord({"name": "py.warnings", "msg": "%s", "args": (text,)})
    line = json.loads(JSONLines().format(record))
    assert line["event"] == "UserWarning at encoders.py:246"
    assert "anna" not in json.dumps(line)


def test_a_client_that_is_gone_does_no_harm():
    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        raise OSError("gone")

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/v1/model",
        "headers": [],
        "client": ("::1", 1),
    }
    with logged() as lines:
        asyncio.run(APP(scope, receive, send))
    assert lines[0]["status"] == 401


def test_paths_and_methods_that_are_not_there():
    ask = Caller(APP)
    problem(ask("GET", "/v2/predict"), 404, "http")
    problem(ask("POST", "/v1/predict/", json={}), 404, "http")
    response = ask("GET", "/v1/predict")
    problem(response, 405, "http")
    assert response.headers["allow"] == "POST"
    response = ask("DELETE", "/v1/exit")
    problem(response, 405, "http")
    assert response.headers["allow"] == "GET, PUT"
    # The method is wrong whatever the body would have been.
    problem(ask("PUT", "/v1/spend", content=b"x"), 405, "http")


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/model", "/nothing", "/v1/predict"])
def test_headers_are_safe(path):
    headers = Caller(APP)("GET", path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "access-control-allow-origin" not in headers


def test_a_websocket_is_turned_away():
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    asyncio.run(APP({"type": "websocket", "path": "/", "headers": []}, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


# -- the page -------------------------------------------------------------------------------------------------


def test_the_page_is_whole_and_its_policy_fits():
    response = Caller(APP, "")("GET", "/")
    assert response.headers["content-type"].startswith("text/html")
    assert response.headers["content-security-policy"] == page_policy(response.text)
    assert "script-src 'sha256-" in page_policy(PAGE)
    # Nothing from elsewhere: the only address is the name of SVG.
    assert set(re.findall(r"https?://[^\"' ]+", PAGE)) == {"http://www.w3.org/2000/svg"}
    # The policy forbids these; they would silently not work.
    assert not re.search(r"\son\w+=|\sstyle=|innerHTML|javascript:", PAGE)
    assert len(re.findall("<script>", PAGE)) == len(re.findall("<style>", PAGE)) == 1


def test_every_control_of_the_page_has_a_label():
    for name in re.findall(r"<input id=\"(\w+)\"", PAGE):
        assert f'for="{name}"' in PAGE
    ids = re.findall(r"\bid=\"([\w-]+)\"", PAGE)
    assert len(ids) == len(set(ids))
    used = set(re.findall(r"\$\(\"([\w-]+)\"\)", PAGE)) | set(
        re.findall(r"labelledby=\"([\w-]+)\"", PAGE)
    )
    assert used <= set(ids)
