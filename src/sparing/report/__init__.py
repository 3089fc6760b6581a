"""A report for people: a dict of plain data first, then a page.

``summarise`` measures a fitted model on labelled rows.
"""

from sparing.report.summary import summarise

__all__ = ["summarise"]
