"""Metrics of a service in Prometheus' format; everything about answers is read from its activity when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sparing.runtime._service_activity import Activity

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counters of one service, apart from those of any other in the same process.

    Parameters
    ----------
    activity : Activity
    thresholds : callable
        Gives the thresholds of the gates now.
    breakers : callable
        Gives the states of the sources' breakers.

    Examples
    --------
    >>> metrics = Metrics(Activity(), lambda: (0.5,), lambda: {"bureau": "closed"})
    >>> metrics.request("/v1/predict", 200, 0.004)
    >>> b'sparing_requests_total{route="/v1/predict",status="200"} 1.0' in metrics.text()
    True
    """

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(
        self,
        activity: Activity,
        thresholds: Callable[[], tuple[float, ...]],
        breakers: Callable[[], dict[str, str]],
    ) -> None:
        try:
            import prometheus_client
            from prometheus_client import core
        except ImportError as error:
            raise ImportError(
                "The service counts with prometheus-client: pip install 'sparing[serve]'."
            ) from error
        self._generate = prometheus_client.generate_latest
        self._core = core
        self._activity, self._thresholds, self._breakers = activity, thresholds, breakers
        self._registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self._registry)
        self._requests = prometheus_client.Counter(
            "sparing_requests", "Requests.", ["route", "status"], registry=self._registry
        )
        self._seconds = prometheus_client.Histogram(
            "sparing_request_seconds",
            "Seconds from the request to the end of the answer.",
            ["route"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._registry.register(self)

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def collect(self) -> Iterable[Any]:
        """What Prometheus' registry asks for."""
        counter, gauge = self._core.CounterMetricFamily, self._core.GaugeMetricFamily
        activity = self._activity
        answers = counter("sparing_answers", "Answers.", labels=["buyer", "stage", "degraded"])
        for (buyer, stage, degraded), count in activity.answers.items():
            answers.add_metric([buyer, str(stage), str(degraded).lower()], count)
        none = counter("sparing_without_answer", "Requests nobody could answer.", labels=["buyer"])
        for buyer, count in activity.without_answer.items():
            none.add_metric([buyer], count)
        spent = counter("sparing_spent", "Money for items and calls.", labels=["buyer"])
        for buyer, money in activity.spent.items():
            spent.add_metric([buyer], money)
        bought = counter("sparing_items_bought", "Items bought.", labels=["buyer", "item"])
        for (buyer, item), count in activity.items.items():
            bought.add_metric([buyer, str(item)], count)
        threshold = gauge("sparing_threshold", "Above it a row goes on.", labels=["gate"])
        for gate, value in enumerate(self._thresholds()):
            threshold.add_metric([str(gate)], value)
        broken = gauge("sparing_source_open", "1 while a source is left alone.", labels=["source"])
        for source, state in self._breakers().items():
            broken.add_metric([source], float(state == "open"))
        return [answers, none, spent, bought, threshold, broken]

    def text(self) -> bytes:
        """All metrics as Prometheus reads them."""
        return bytes(self._generate(self._registry))
