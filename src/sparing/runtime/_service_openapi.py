"""Descriptions of the service's requests and answers, with the columns and items of the model that is served."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

from sparing.runtime._service_problem import PROBLEM
from sparing.system import System

ABOUT = """Predictions that spend only what they need.

Send an **entity**, and the service buys what its stages need, the cheapest first. Or send the **columns** you have: the
answer is the prediction, or the items still needed with a token; buy them and send all columns again with the token, as
long as it takes. `answer_now` makes do with what is there. Values are numbers, texts, booleans, or null for missing.

Errors are problems as of RFC 9457.
"""

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "request_id": {"type": "string"},
        "column": {"type": "string"},
        "columns": {"type": "array", "items": {"type": "string"}},
    },
}
_WHY = {
    400: "Not JSON, or a token that is not this service's.",
    401: "No key, or a wrong one.",
    404: "A source does not know the entity.",
    408: "The body came too slowly.",
    409: "The token belongs to other columns or another model; or the lever cannot be moved there.",
    410: "The token has expired.",
    413: "The body is too long.",
    415: "The body is not application/json.",
    422: "A field, a column or a value is wrong; it is named.",
    429: "Too many requests.",
    503: "No stage can answer: sources fail, limits are reached, or the service is busy.",
    504: "No answer in time.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Responses of a path that are problems."""
    return {
        status: {"description": _WHY[status], "content": {PROBLEM: {"schema": _PROBLEM}}}
        for status in statuses
    }


def request_body(schema: dict[str, Any], examples: dict[str, Any]) -> dict[str, Any]:
    """A JSON body as OpenAPI describes it."""
    named = {name: {"value": value} for name, value in examples.items()}
    content = {"application/json": {"schema": schema, "examples": named}}
    return {"requestBody": {"required": True, "content": content}}


def predict_body(system: System, numbers: Collection[Hashable]) -> dict[str, Any]:
    """The request for an answer.

    Examples
    --------
    >>> from sparing.runtime._examples import lender
    >>> body = predict_body(lender()[0], {"income"})["requestBody"]["content"]["application/json"]
    >>> body["schema"]["properties"]["columns"]["properties"]["income"]
    {'type': ['number', 'boolean', 'null']}
    """
    columns = system.costs.columns
    number, any_type = ["number", "boolean", "null"], ["number", "string", "boolean", "null"]
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "entity": {
                "type": ["string", "integer"],
                "description": "Whom the server buys for, as its sources call it.",
            },
            "columns": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    str(column): {"type": number if column in numbers else any_type}
                    for column in columns
                },
                "description": "Values that are there already, by column.",
            },
            "token": {"type": "string", "description": "Continues where items were needed."},
            "answer_now": {"type": "boolean", "default": False},
        },
    }
    first = {str(columns[j]): 0.5 for j in system.stages[0].columns.tolist()[:3]}
    examples = {
        "the server buys": {"entity": "customer-1"},
        "the client buys": {"columns": first},
        "the client goes on": {"columns": first, "token": "eyJ..."},
    }
    return request_body(schema, examples)


def predict_answers(system: System) -> dict[int | str, dict[str, Any]]:
    """The two kinds of answer, and what can go wrong."""
    costs = system.costs
    stage = system.stages[0]
    item = costs.items[0]
    share = 1.0 / len(system.classes)
    answered = {
        "status": "answered",
        "prediction": system.classes.tolist()[0],
        "probabilities": [share] * len(system.classes),
        "stage": 0,
        "stage_name": stage.name,
        "cost": float(costs.item_prices[0]),
        "bought": [item],
        "reused": [],
        "exits": [],
        "degraded": False,
        "reason": None,
    }
    needed = {
        "status": "items_needed",
        "stage": 0,
        "stage_name": stage.name,
        "items": [{"item": item, "price": float(costs.item_prices[0]), "columns": [str(item)]}],
        "columns": [str(item)],
        "price": float(costs.item_prices[0]),
        "token": "eyJ...",
    }
    kinds = ["answered", "items_needed"]
    schema = {
        "type": "object",
        "required": ["status", "stage", "stage_name"],
        "properties": {"status": {"enum": kinds}},
    }
    examples = {"answered": {"value": answered}, "items needed": {"value": needed}}
    content = {"application/json": {"schema": schema, "examples": examples}}
    return {
        200: {"description": "The prediction, or the items still needed.", "content": content},
        **problems(400, 401, 404, 408, 409, 410, 413, 415, 422, 429, 503, 504),
    }


def exit_body() -> dict[str, Any]:
    """The request that moves the lever."""
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "position": {"type": "integer", "minimum": 0, "description": "On the frontier."},
            "thresholds": {
                "type": "array",
                "items": {"type": ["number", "string"]},
                "description": "One per gate: above it a row goes on. The texts inf and -inf are numbers too.",
            },
            "target": {"type": "number", "exclusiveMinimum": 0, "description": "Of the pacer."},
        },
    }
    return request_body(
        schema, {"on the frontier": {"position": 2}, "by hand": {"thresholds": [0.25]}}
    )
