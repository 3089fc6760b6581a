"""What a service says when it cannot do what was asked: RFC 9457, and nothing about its inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

PROBLEM = "application/problem+json"


class Problem(Exception):  # noqa: N818
    """A request that ends without an answer, as the client is told about it.

    Parameters
    ----------
    status : int
    kind : str
        Short name, the last part of the problem's ``type``.
    detail : str
        What is wrong and how to mend it. It goes to the client and never to the log: it may quote the request.
    headers : mapping, optional
    more : more members of the problem, such as the column.

    Examples
    --------
    >>> problem = Problem(422, "column-value", "Column 'age' is infinite.", column="age")
    >>> problem.content("7f3a")["title"], problem.content("7f3a")["column"]
    ('Unprocessable Content', 'age')
    """

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(kind)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = more

    def content(self, request_id: str) -> dict[str, Any]:
        """The problem as plain data."""
        title = {422: "Unprocessable Content"}.get(self.status) or HTTPStatus(self.status).phrase
        return {
            "type": f"urn:sparing:problem:{self.kind}",
            "title": title,
            "status": self.status,
            "detail": self.detail,
            "request_id": request_id,
            **self.more,
        }


def to_bytes(content: Any) -> bytes:
    r"""JSON in ASCII: any text survives, half a surrogate pair too; NaN and infinity never leave.

    Examples
    --------
    >>> to_bytes({"price": 2.5, "name": "Zoë"})
    b'{"price":2.5,"name":"Zo\\u00eb"}'
    """
    return json.dumps(content, allow_nan=False, separators=(",", ":"), default=str).encode()


def finite(number: float) -> float | str | None:
    """A number as JSON can say it: infinity as text, NaN as null.

    Examples
    --------
    >>> finite(0.5), finite(float("-inf")), finite(float("nan"))
    (0.5, '-inf', None)
    """
    number = float(number)
    if number != number:
        return None
    if number in (float("inf"), float("-inf")):
        return "inf" if number > 0 else "-inf"
    return number
