"""The paths of a service: each reads its request, calls one method and writes the result."""

from __future__ import annotations

from typing import Any

from sparing.runtime._service_answers import Answers
from sparing.runtime._service_keys import Keys
from sparing.runtime._service_metrics import Metrics
from sparing.runtime._service_model import described
from sparing.runtime._service_openapi import KEYS, exit_body, predict_body, problems
from sparing.runtime._service_page import OPEN_PAGE, PAGE, PAGE_POLICY
from sparing.runtime._service_problem import PROBLEM, Problem, to_bytes
from sparing.runtime._service_replies import (
    CLOSING,
    EXITS,
    HEALTHY,
    METRICS,
    MODEL,
    SPEND,
    predicted,
)
from sparing.system import System

try:
    from fastapi import FastAPI, Request, Response
    from fastapi.responses import JSONResponse, PlainTextResponse
    from starlette.exceptions import HTTPException
    from starlette.routing import Match, Route
except ImportError as error:
    raise ImportError("The service is made with FastAPI: pip install 'sparing[serve]'.") from error

__all__ = ["FastAPI", "HTTPException", "add_paths", "describe_keys", "http_problem"]


def add_paths(
    app: FastAPI, answers: Answers, metrics: Metrics, system: System, operators: Keys | None
) -> None:
    """Add the paths of a service; ``operators`` are the keys that may move the lever, None lets everybody."""
    lever = answers.lever
    desk, session = lever.serving.desk, lever.serving.session
    numbers = desk.numbers
    may_not = (401, 403, 429)
    unreadable = (400, 408, 413, 415, 422)

    @app.post(
        "/v1/predict",
        summary="Answer, or say what is needed.",
        responses={
            200: predicted(system),
            **problems(*may_not, *unreadable, 404, 409, 410, 503, 504),
        },
        openapi_extra=predict_body(
            system,
            numbers,
            desk.complete,
            needed=session.only_known if answers.buys else None,
        ),
        response_class=_JSON,
    )
    async def predict(request: Request) -> Response:
        state = request.state
        body = await request.body()
        return _JSON(await answers.predict(body, state.caller, state.request_id, state.notes))

    @app.get(
        "/v1/model",
        summary="Columns, items, prices and stages.",
        responses={200: MODEL, **problems(*may_not)},
        response_class=_JSON,
    )
    async def model() -> Response:
        return _JSON(described(system, lever, numbers))

    @app.get(
        "/v1/spend",
        summary="Answers and money, since the start and over time.",
        responses={200: SPEND, **problems(*may_not)},
        response_class=_JSON,
    )
    async def spend() -> Response:
        return _JSON(await answers.spend())

    @app.get(
        "/v1/exit",
        summary="Where the lever stands and where it can go.",
        responses={200: EXITS, **problems(*may_not)},
        response_class=_JSON,
    )
    async def exit() -> Response:
        return _JSON(answers.places())

    @app.put(
        "/v1/exit",
        summary="Move the lever: a position on the frontier, thresholds, or the pacer's target.",
        responses={200: EXITS, **problems(*may_not, *unreadable, 409)},
        openapi_extra=exit_body([len(place.system.stages) - 1 for place in lever.places]),
        response_class=_JSON,
    )
    async def move(request: Request) -> Response:
        state = request.state
        if operators is not None and state.caller not in operators:
            raise Problem(403, "key", "This key may not move the lever.")
        return _JSON(await answers.move(await request.body(), state.notes))

    @app.get(
        "/healthz",
        summary="Whether it takes requests.",
        responses={200: HEALTHY, 503: CLOSING, **problems(403, 429)},
        openapi_extra={"security": []},
        response_class=_JSON,
    )
    async def healthz() -> Response:
        ready = not answers.closing
        return _JSON({"status": "ok" if ready else "closing"}, status_code=200 if ready else 503)

    @app.get(
        "/metrics",
        summary="For Prometheus.",
        responses={200: METRICS, **problems(*may_not)},
        response_class=PlainTextResponse,
    )
    async def prometheus() -> Response:
        return Response(metrics.text(), headers={"content-type": metrics.content_type})

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        policy = {"content-security-policy": PAGE_POLICY}
        text = OPEN_PAGE if operators is None else PAGE
        return Response(text, media_type="text/html", headers=policy)


def describe_keys(app: FastAPI) -> None:
    """Say in the description of a service that its paths want a key, all but those that say they do not."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            content = plain()
            content.setdefault("components", {})["securitySchemes"] = KEYS
            content["security"] = [{name: []} for name in KEYS]
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


class _JSON(JSONResponse):
    def render(self, content: Any) -> bytes:
        return to_bytes(content)


async def http_problem(request: Request, error: Exception) -> Response:
    """Unknown paths and methods, as problems."""
    assert isinstance(error, HTTPException)
    detail = {
        404: "There is nothing at this path; see /openapi.json.",
        405: "This path does not take this method; see /openapi.json.",
    }.get(error.status_code, "The request could not be read.")
    problem = Problem(error.status_code, "http", detail)
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    headers["content-type"] = PROBLEM
    if error.status_code == 405:
        headers["allow"] = ", ".join(_methods(request))  # the error knows one route of the path
    return Response(
        to_bytes(problem.content(request.state.request_id)),
        status_code=error.status_code,
        headers=headers,
    )


def _methods(request: Request) -> list[str]:
    """Methods that the path of a request takes."""
    routes = [route for route in request.app.router.routes if isinstance(route, Route)]
    here = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in here for method in route.methods or ()})
