"""A fitted system at work: stored in a file, buying what it needs, keeping the books.

Nothing here learns. The rooms of this package import ``system`` and ``costs`` and what stands below them, never the
learners.
"""

from sparing.runtime._archive import BundleError
from sparing.runtime._models import TRUSTED as TRUSTED_TYPES
from sparing.runtime.bundle import Bundle, inspect, load, save

__all__ = ["TRUSTED_TYPES", "Bundle", "BundleError", "inspect", "load", "save"]
