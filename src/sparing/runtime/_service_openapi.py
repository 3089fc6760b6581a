"""Descriptions of the service's requests and problems, with the columns of the model that is served."""

from __future__ import annotations

import sys
from collections.abc import Collection, Hashable, Sequence
from typing import Any

from sparing.runtime._service_problem import PROBLEM
from sparing.runtime._service_replies import SCORE, Schema, or_null
from sparing.runtime._service_request import LARGEST_ENTITY, LONGEST_TEXT
from sparing.system import System

ABOUT = """Predictions that spend only what they need.

Send an **entity**, and the service buys what its stages need, the cheapest first. Or send the **columns** you have: the
answer is the prediction, or the items still needed with a token; buy them and send all columns again with the token, as
long as it takes. `answer_now` makes do with what is there. Values are numbers, texts, booleans, or null for missing.

Errors are problems as of RFC 9457.
"""

KEYS: Schema = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
"""The two ways to send a key."""

_PROBLEM: Schema = {
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
    403: "This key may not do it; or the service runs without keys, for its own machine alone.",
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
_LARGEST = sys.float_info.max


def problems(*statuses: int) -> dict[int | str, Schema]:
    """Responses of a path that are problems."""
    return {
        status: {"description": _WHY[status], "content": {PROBLEM: {"schema": _PROBLEM}}}
        for status in statuses
    }


def request_body(schema: Schema, examples: dict[str, Any]) -> Schema:
    """A JSON body as OpenAPI describes it."""
    named = {name: {"value": value} for name, value in examples.items()}
    content = {"application/json": {"schema": schema, "examples": named}}
    return {"requestBody": {"required": True, "content": content}}


def predict_body(
    system: System,
    numbers: Collection[Hashable],
    complete: Collection[Hashable] = (),
    *,
    needed: Collection[Hashable] | None = None,
) -> Schema:
    """The request for an answer: with an entity, or with columns and what goes with them.

    Parameters
    ----------
    system : what is served.
    numbers : columns that hold numbers for sure.
    complete : columns in which a missing value is refused.
    needed : columns that must come with an entity, as no source sells them; None where there are no sources.

    Examples
    --------
    >>> from sparing.runtime._examples import lender
    >>> body = predict_body(lender()[0], {"income"}, needed=())["requestBody"]["content"]["application/json"]
    >>> [way["required"] for way in body["schema"]["anyOf"]]
    [['entity'], ['columns']]
    """
    values = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            str(column): _value(column in numbers, column not in complete)
            for column in system.costs.columns
        },
        "description": "Values that are there already, by column.",
    }
    entity = {
        "anyOf": [
            {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT},
            {"type": "integer", "minimum": -LARGEST_ENTITY, "maximum": LARGEST_ENTITY},
        ],
        "description": "Whom the server buys for, as its sources call it.",
    }
    token = {"type": "string", "description": "Continues where items were needed."}
    now = {"type": "boolean", "default": False, "description": "Make do with what is there."}
    nothing = {"type": "null"}
    ways = [
        _body(
            ["columns"],
            {"entity": nothing, "columns": values, "token": or_null(token), "answer_now": now},
        )
    ]
    first = {str(system.costs.columns[j]): 0.5 for j in system.stages[0].columns.tolist()[:3]}
    examples: dict[str, Any] = {
        "the client buys": {"columns": first},
        "the client goes on": {"columns": first, "token": "eyJ..."},
    }
    if needed is not None:
        sent = [str(column) for column in system.costs.columns if column in needed]
        known = {**values, "required": sent} if sent else values
        here = {
            "entity": entity,
            "columns": known,
            "token": nothing,
            "answer_now": {"const": False},
        }
        ways.insert(0, _body(["entity", "columns"] if sent else ["entity"], here))
        given = {"columns": dict.fromkeys(sent, 0.5)} if sent else {}
        examples = {"the server buys": {"entity": "customer-1", **given}, **examples}
    return request_body({"anyOf": ways}, examples)


def _body(required: list[str], fields: Schema) -> Schema:
    return {
        "type": "object",
        "required": required,
        "properties": fields,
        "additionalProperties": False,
    }


def _value(is_number: bool, may_miss: bool) -> Schema:
    kinds: list[Schema] = [
        {"type": "number", "minimum": -_LARGEST, "maximum": _LARGEST},
        {"type": "boolean"},
    ]
    if not is_number:
        kinds.append({"type": "string", "maxLength": LONGEST_TEXT})
    if may_miss:
        kinds.append({"type": "null"})
    return {"anyOf": kinds}


def exit_body(gates: Sequence[int]) -> Schema:
    """The request that moves the lever.

    Parameters
    ----------
    gates : number of gates of the system at each position.
    """
    schema = {
        "type": "object",
        "additionalProperties": False,
        "minProperties": 1,
        "properties": {
            "position": {
                "type": "integer",
                "minimum": 0,
                "maximum": len(gates) - 1,
                "description": "On the frontier, cheapest first.",
            },
            "thresholds": {
                "type": "array",
                "items": SCORE,
                "minItems": min(gates),
                "maxItems": max(gates),
                "description": "One per gate: above it a row goes on. The texts inf and -inf are numbers too.",
            },
            "target": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": _LARGEST,
                "description": "Of the pacer.",
            },
        },
    }
    by_hand = {"position": 0, "thresholds": [0.25] * gates[0]}
    return request_body(schema, {"on the frontier": {"position": 0}, "by hand": by_hand})
