"""A fitted system at work: stored in a file, buying what it needs, keeping the books.

Nothing here learns. The rooms of this package import ``system`` and ``costs`` and what stands below them, never the
learners.
"""
