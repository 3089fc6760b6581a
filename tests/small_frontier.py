"""A small system at several thresholds, evaluated on other rows."""

from handmade import table, two_stages
from sparing.frontier import Frontier, threshold_systems


def curve(n=9, **options):
    """The two stages at thresholds from "all stop" to "all go on"."""
    return threshold_systems(two_stages(**options), table()[0], n=n)


def small_frontier():
    """That curve on other rows."""
    return Frontier.evaluate(curve(), *table(seed=1))
