"""A report for people: a dict of plain data, then one HTML file that needs no network.

``summarise`` measures a fitted model on labelled rows, ``render`` makes a page of the dict, ``write_report`` does both.
The page needs jinja2: ``pip install 'sparing[report]'``; the dict does not.
"""

from sparing.report.html import render, write_report
from sparing.report.summary import summarise

__all__ = ["render", "summarise", "write_report"]
