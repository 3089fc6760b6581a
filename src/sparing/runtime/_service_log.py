"""One line of JSON per event. What is logged is listed here; values of columns and entities are not on the list."""

from __future__ import annotations

import json
import logging
import re
import traceback
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("sparing.service")
_WARNING = re.compile(r"(?:.*/)?([^/:]+:\d+): (\w+): ")


class JSONLines(logging.Formatter):
    """Writes records as lines of JSON, errors and warnings by type and place and without their message.

    Messages of errors quote what they are about, which may be a person.

    Examples
    --------
    >>> record = logging.makeLogRecord({"msg": "request", "levelname": "INFO", "fields": {"status": 200}})
    >>> json.loads(JSONLines().format(record))["status"]
    200
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.name == "py.warnings":  # a model's warning may quote what it was given
            found = _WARNING.match(line["event"])
            line["event"] = "warning" if found is None else f"{found[2]} at {found[1]}"
        if record.exc_info and record.exc_info[1] is not None:
            line |= describe(record.exc_info[1])
        return json.dumps(line, default=str)


def describe(error: BaseException) -> dict[str, Any]:
    """Type of an error and of what caused it, and where it was raised.

    Examples
    --------
    >>> describe(ValueError("anna earns 2500"))
    {'error': ['ValueError'], 'where': []}
    """
    kinds: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(kinds) < 8:
        kinds.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    where = [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}" for frame in frames]
    return {"error": kinds, "where": where}


def log_settings(level: str) -> dict[str, Any]:
    """Settings for ``logging.config.dictConfig``: everything the service and uvicorn say, as JSON on stderr."""
    handler = {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JSONLines}},
        "handlers": {"stderr": handler},
        "loggers": {
            name: {"handlers": ["stderr"], "level": level.upper(), "propagate": False}
            for name in ("sparing.service", "uvicorn", "py.warnings")
        },
    }
