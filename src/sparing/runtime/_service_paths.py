"""The paths of a service: each reads its request, calls one method and writes the result."""

from __future__ import annotations

from typing import Any

from sparing.runtime._service_answers import Answers
from sparing.runtime._service_keys import Keys
from sparing.runtime._service_metrics import Metrics
from sparing.runtime._service_model import described
from sparing.runtime._service_openapi import exit_body, predict_answers, predict_body, problems
from sparing.runtime._service_page import PAGE, PAGE_POLICY
from sparing.runtime._service_problem import PROBLEM, Problem, to_bytes
from sparing.system import System

try:
    from fastapi import FastAPI, Request, Response
    from starlette.exceptions import HTTPException
except ImportError as error:
    raise ImportError("The service is made with FastAPI: pip install 'sparing[serve]'.") from error

__all__ = ["FastAPI", "HTTPException", "add_paths", "http_problem"]


def add_paths(
    app: FastAPI, answers: Answers, metrics: Metrics, system: System, operators: Keys | None
) -> None:
    """Add the paths of a service; ``operators`` are the keys that may move the lever, None lets everybody."""
    lever = answers.lever
    numbers = lever.serving.desk.numbers

    @app.post(
        "/v1/predict",
        summary="Answer, or say what is needed.",
        responses=predict_answers(system),
        openapi_extra=predict_body(system, numbers),
        response_class=_JSON,
    )
    async def predict(request: Request) -> Response:
        state = request.state
        body = await request.body()
        return _JSON(await answers.predict(body, state.caller, state.request_id, state.notes))

    @app.get(
        "/v1/model",
        summary="Columns, items, prices and stages.",
        responses=problems(401, 429),
        response_class=_JSON,
    )
    async def model() -> Response:
        return _JSON(described(system, lever, numbers))

    @app.get(
        "/v1/spend",
        summary="Answers and money, since the start and over time.",
        responses=problems(401, 429),
        response_class=_JSON,
    )
    async def spend() -> Response:
        return _JSON(await answers.spend())

    @app.get(
        "/v1/exit",
        summary="Where the lever stands and where it can go.",
        responses=problems(401, 429),
        response_class=_JSON,
    )
    async def exit() -> Response:
        return _JSON(answers.places())

    @app.put(
        "/v1/exit",
        summary="Move the lever: a position on the frontier, thresholds, or the pacer's target.",
        responses=problems(400, 401, 408, 409, 413, 415, 422, 429),
        openapi_extra=exit_body(),
        response_class=_JSON,
    )
    async def move(request: Request) -> Response:
        state = request.state
        if operators is not None and state.caller not in operators:
            raise Problem(403, "key", "This key may not move the lever.")
        return _JSON(await answers.move(await request.body(), state.notes))

    @app.get("/healthz", summary="Whether it takes requests.", response_class=_JSON)
    async def healthz() -> Response:
        ready = not answers.closing
        return _JSON({"status": "ok" if ready else "closing"}, status_code=200 if ready else 503)

    @app.get("/metrics", summary="For Prometheus.", responses=problems(401, 429))
    async def prometheus() -> Response:
        return Response(metrics.text(), headers={"content-type": metrics.content_type})

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        policy = {"content-security-policy": PAGE_POLICY}
        return Response(PAGE, media_type="text/html", headers=policy)


class _JSON(Response):
    media_type = "application/json"

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
    return Response(
        to_bytes(problem.content(request.state.request_id)),
        status_code=error.status_code,
        headers={**(error.headers or {}), "content-type": PROBLEM},
    )
