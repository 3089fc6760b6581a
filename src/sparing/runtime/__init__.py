"""A fitted system at work: stored in a file, buying what it needs, keeping the books.

Nothing here learns. The rooms of this package import ``system`` and ``costs`` and what stands below them, never the
learners.
"""

from sparing.runtime._archive import BundleError
from sparing.runtime._models import TRUSTED as TRUSTED_TYPES
from sparing.runtime._restored import Bundle
from sparing.runtime.bundle import inspect, load, save
from sparing.runtime.ledger import Ledger
from sparing.runtime.limits import LimitError, Limits, Policy
from sparing.runtime.pacing import Pacer
from sparing.runtime.session import Answer, NoAnswerError, Session
from sparing.runtime.sources import (
    CallableSource,
    HTTPSource,
    MappingSource,
    MockSource,
    Request,
    Source,
    SourceError,
    SQLSource,
)

__all__ = [
    "TRUSTED_TYPES",
    "Answer",
    "Bundle",
    "BundleError",
    "CallableSource",
    "HTTPSource",
    "Ledger",
    "LimitError",
    "Limits",
    "MappingSource",
    "MockSource",
    "NoAnswerError",
    "Pacer",
    "Policy",
    "Request",
    "SQLSource",
    "Session",
    "Source",
    "SourceError",
    "inspect",
    "load",
    "save",
]
