"""What a service says, described for OpenAPI: every field of every answer, and no other.

The descriptions are strict, so that a field that is added, dropped or of another kind is found by those who hold the
answers against them (``tests/runtime/test_service_openapi.py``, and schemathesis in the long tests).
"""

from __future__ import annotations

from typing import Any

from sparing.system import System

Schema = dict[str, Any]


def record(**fields: Schema) -> Schema:
    """An object with these fields and no other.

    Examples
    --------
    >>> record(stage={"type": "integer"})["required"]
    ['stage']
    """
    return {
        "type": "object",
        "required": list(fields),
        "properties": fields,
        "additionalProperties": False,
    }


def many(of: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": of}


def or_null(schema: Schema) -> Schema:
    """The same, or nothing."""
    return {"anyOf": [schema, {"type": "null"}]}


TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
MONEY: Schema = {"type": "number"}
YES_OR_NO: Schema = {"type": "boolean"}
NAME: Schema = {"type": ["string", "number", "boolean"]}
"""Labels and items are called what the model calls them."""
SCORE: Schema = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]}
"""A number; JSON has no infinite ones."""
SHARE = or_null({"type": "number", "minimum": 0, "maximum": 1})

_EXIT = record(stage=COUNT, score=or_null(SCORE), threshold=SCORE)
_ANSWERED = record(
    status={"const": "answered"},
    prediction=NAME,
    probabilities=many(SHARE),
    stage=COUNT,
    stage_name=TEXT,
    cost=MONEY,
    bought=many(NAME),
    reused=many(NAME),
    exits=many(_EXIT),
    degraded=YES_OR_NO,
    reason=or_null(TEXT),
)
_NEEDED = record(
    status={"const": "items_needed"},
    stage=COUNT,
    stage_name=TEXT,
    items=many(record(item=NAME, price=MONEY, columns=many(TEXT))),
    columns=many(TEXT),
    price=MONEY,
    token=TEXT,
)
_MODEL = record(
    digest=TEXT,
    classes=many(NAME),
    columns=many(record(name=TEXT, number=YES_OR_NO, items=many(NAME), bought_here=YES_OR_NO)),
    items=many(record(item=NAME, price=MONEY)),
    stages=many(record(name=TEXT, columns=many(TEXT), price=MONEY, threshold=or_null(SCORE))),
    sources={"type": "object", "additionalProperties": many(TEXT)},
    as_fitted=YES_OR_NO,
    certificate=or_null({"type": "object"}),
    metadata={"type": "object"},
)
_BY_STAGE = many(record(stage=COUNT, answers=COUNT))
_DEGRADED = record(
    time=MONEY,
    request_id=TEXT,
    answered_by=COUNT,
    failed_at=COUNT,
    cause={"enum": ["limit", "source", "client"]},
    cost=MONEY,
)
_BOOKS = record(
    paid=MONEY,
    at_risk=MONEY,
    by_day=many(record(day=TEXT, purchases=COUNT, spent=MONEY)),
    by_item=many(record(item=NAME, purchases=COUNT, spent=MONEY)),
)
_SPEND = record(
    since=MONEY,
    answers=COUNT,
    without_answer=COUNT,
    degraded=COUNT,
    spent=record(server=MONEY, client=MONEY),
    mean_cost=or_null(MONEY),
    by_stage=_BY_STAGE,
    recent_by_stage=_BY_STAGE,
    by_item=many(record(item=NAME, buyer={"enum": ["server", "client"]}, bought=COUNT)),
    over_time=many(record(minute=COUNT, answers=COUNT, spent=MONEY)),
    latest_degraded=many(_DEGRADED),
    stage_names=many(TEXT),
    stage_prices=many(MONEY),
    breakers={
        "type": "object",
        "additionalProperties": {"enum": ["closed", "open", "half-open"]},
    },
    ledger=or_null(_BOOKS),
)
_EXITS = record(
    kind={"enum": ["frontier", "pacer"]},
    position=COUNT,
    fitted_position=COUNT,
    as_fitted=YES_OR_NO,
    at_place=YES_OR_NO,
    thresholds=many(SCORE),
    stages=many(TEXT),
    target=or_null(MONEY),
    places=many(
        record(
            position=COUNT,
            cost=or_null(MONEY),
            score=or_null(SCORE),
            stage_rates=many(SHARE),
        )
    ),
    recent_scores=many(many(MONEY)),
)


def reply(description: str, schema: Schema, **examples: Any) -> Schema:
    """A response in JSON."""
    content: Schema = {"schema": schema}
    if examples:
        content["examples"] = {
            name.replace("_", " "): {"value": value} for name, value in examples.items()
        }
    return {"description": description, "content": {"application/json": content}}


MODEL = reply("The model that is served.", _MODEL)
SPEND = reply("Answers and money.", _SPEND)
EXITS = reply("Where the lever stands and where it can go.", _EXITS)
HEALTHY = reply("It takes requests.", record(status={"const": "ok"}))
CLOSING = reply("It is closing.", record(status={"const": "closing"}))
METRICS: Schema = {
    "description": "Prometheus's text format.",
    "content": {"text/plain": {"schema": TEXT}},
}


def predicted(system: System) -> Schema:
    """The two kinds of answer, with examples in the words of the model.

    Examples
    --------
    >>> from sparing.runtime._examples import lender
    >>> list(predicted(lender()[0])["content"]["application/json"]["examples"])
    ['answered', 'items needed']
    """
    costs, stage = system.costs, system.stages[0]
    item, price = costs.items[0], float(costs.item_prices[0])
    answered = {
        "status": "answered",
        "prediction": system.classes.tolist()[0],
        "probabilities": [1.0 / len(system.classes)] * len(system.classes),
        "stage": 0,
        "stage_name": stage.name,
        "cost": price,
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
        "items": [{"item": item, "price": price, "columns": [str(item)]}],
        "columns": [str(item)],
        "price": price,
        "token": "eyJ...",
    }
    schema = {"oneOf": [_ANSWERED, _NEEDED]}
    return reply(
        "The prediction, or the items still needed.", schema, answered=answered, items_needed=needed
    )
