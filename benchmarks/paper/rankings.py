"""Rankings: documents of queries, with the prices of their columns.

Microsoft publishes no prices for MSLR. The rule below was written down before any result on these data was computed;
its scale is that of the Yahoo! features, {1, 5, 20, 50, 100, 150, 200} units of processor time. What a column costs
depends on what must be read to compute it:

===================================================================== ============== ===========================
columns                                                               anchor, title, body, whole document
                                                                      URL
===================================================================== ============== ===========================
11-15 length of a stream; 126-133 URL, links, page ranks, quality           1                 1
134-136 clicks and dwell time, from a log                                   5                 5
1-10, 16-20, 96-100 which query terms occur, IDF, boolean model             5                20
21-95 statistics of term frequencies, plain, normalised, times IDF         20                50
101-110 vector space model, BM25                                           50               100
111-125 language models, which need statistics of the collection          100               150
===================================================================== ============== ===========================

A document is relevant from grade 2 on MSLR (about one in seven) and from grade 3 on Yahoo! (about one in ten), where
the paper does not tell the grade.
"""

from __future__ import annotations

from sklearn.utils import Bunch

from sparing import FeatureCosts
from sparing.datasets import fetch_mslr, fetch_yahoo_ltr

STREAMS = ("body", "anchor", "title", "URL", "whole document")
"""Columns 1 to 125 come in fives, one for each stream in this order."""

LONG = ("body", "whole document")

KINDS = (
    (range(1, 11), 5, 20),
    (range(11, 16), 1, 1),
    (range(16, 21), 5, 20),
    (range(21, 96), 20, 50),
    (range(96, 101), 5, 20),
    (range(101, 111), 50, 100),
    (range(111, 126), 100, 150),
    (range(126, 134), 1, 1),
    (range(134, 137), 5, 5),
)
"""Numbers of columns, their price where they read a short stream, and where they read a long one."""


def mslr_costs() -> FeatureCosts:
    """Prices of the 136 columns of MSLR, by the rule above."""
    prices = {}
    for numbers, short, long in KINDS:
        for number in numbers:
            is_long = number <= 125 and STREAMS[(number - 1) % 5] in LONG
            prices[f"feature_{number}"] = float(long if is_long else short)
    return FeatureCosts(prices)


def mslr() -> Bunch:
    """Microsoft's documents at these prices; relevant from grade 2."""
    bunch = _with_relevance(fetch_mslr(), 2)
    bunch.costs = mslr_costs()
    return bunch


def yahoo() -> Bunch:
    """Yahoo!'s documents at Yahoo!'s prices; relevant from grade 3."""
    return _with_relevance(fetch_yahoo_ltr(), 3)


def _with_relevance(bunch: Bunch, relevant_from: int) -> Bunch:
    """Binary labels to learn from; grades are kept for the gain of a ranking."""
    bunch.grade = bunch.target
    bunch.target = (bunch.grade >= relevant_from).astype(int)
    return bunch
