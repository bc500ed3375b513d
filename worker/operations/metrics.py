"""The status of a process as OpenMetrics text, for Prometheus and everything that reads its format."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
)
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from worker.operations.status import SECOND, ProcessStatus

CONTENT_TYPE = CONTENT_TYPE_LATEST
PREFIX = "thinktwice"
STATES = ("running", "safe_mode", "stopping")


@dataclass(frozen=True, eq=False)
class _OneReading(Collector):
    status: ProcessStatus
    now: int
    ready: bool

    def collect(self) -> Iterator[Metric]:
        yield from _process(self.status, self.ready)
        yield from _bars(self.status, self.now)
        yield from _store(self.status, self.now)
        yield from _policy(self.status)
        yield from _account(self.status)
        yield from _slow_loop(self.status)


def exposition(status: ProcessStatus, now: int, *, ready: bool) -> bytes:
    """The text of one scrape; figures of the operating system's view of the process included."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_OneReading(status, now, ready))
    ProcessCollector(namespace=PREFIX, registry=registry)
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]  # the library types it not
    return text


def _process(status: ProcessStatus, ready: bool) -> Iterator[Metric]:
    info = InfoMetricFamily(f"{PREFIX}_run", "What this process works on.")
    info.add_metric(
        [], {"run_id": status.run_id, "mode": status.mode, "role": status.role, "owner": status.owner}
    )
    yield info
    state = StateSetMetricFamily(f"{PREFIX}_state", "Safe mode blocks entries; exits run on.", labels=[])
    state.add_metric([], {name: name == status.state for name in STATES})
    yield state
    yield _gauge("ready", "1 when bars come and the store can be written.", float(ready))
    yield _gauge("started_timestamp_seconds", "When the process started.", status.started / SECOND)


def _bars(status: ProcessStatus, now: int) -> Iterator[Metric]:
    labels = GaugeMetricFamily(
        f"{PREFIX}_last_bar_timestamp_seconds", "Label of the last bar of a symbol.", labels=["symbol"]
    )
    for symbol, label in sorted(status.last_bars.items()):
        labels.add_metric([symbol], label / SECOND)
    yield labels
    yield _optional("bar_lag_seconds", "Time since the last bar arrived.", status.bar_lag_s(now))
    yield CounterMetricFamily(f"{PREFIX}_bars_validated", "Bars through the engine.", status.bars_validated)
    yield _optional("feed_up", "1 while bars can come.", status.feed_ok)
    yield _gauge("stale_symbols", "Symbols without bars for too long.", len(status.stale_symbols))
    blocked = GaugeMetricFamily(
        f"{PREFIX}_blocked_symbols", "Symbols that may not enter, by reason.", labels=["reason"]
    )
    for reason, count in sorted(Counter(status.blocked.values()).items()):
        blocked.add_metric([reason], count)
    yield blocked
    latency = GaugeMetricFamily(
        f"{PREFIX}_tick_latency_seconds", "Time that one row takes.", labels=["quantile"]
    )
    for name, value in sorted(status.tick_latency_ms.items()):
        if value is not None:
            latency.add_metric([name], value / 1_000)
    yield latency


def _store(status: ProcessStatus, now: int) -> Iterator[Metric]:
    away = status.store_away_since
    yield _gauge("store_up", "1 when the store could be reached last time.", float(status.store_ok))
    yield _gauge(
        "store_away_seconds", "Time without the store.", 0.0 if away is None else (now - away) / SECOND
    )
    waiting = len(status.plans_waiting)
    yield _gauge("change_plans_waiting", "Change plans that wait for a decision.", waiting)
    yield _gauge("journal_buffered_rows", "Journal rows that wait for the store.", status.buffered_rows)


def _policy(status: ProcessStatus) -> Iterator[Metric]:
    yield _count_by("policy_evaluations", "Policy evaluations.", "outcome", status.evaluations)
    yield _count_by("policy_skips", "Policy events that started no evaluation.", "reason", status.skips)
    yield _gauge("policy_evaluations_in_flight", "Evaluations that wait for an answer.", status.in_flight)
    yield CounterMetricFamily(f"{PREFIX}_errors", "Contained failures.", status.errors)
    yield CounterMetricFamily(f"{PREFIX}_model_spend_usd", "What models have cost.", status.model_spend)
    yield _count_by("model_calls", "Calls of models.", "outcome", status.model_calls)
    yield _gauge("models_failing", "Models without a usable reply.", len(status.models_failing))
    yield _count_by("notifications", "Notifications.", "result", status.notifications)


def _account(status: ProcessStatus) -> Iterator[Metric]:
    positions = GaugeMetricFamily(
        f"{PREFIX}_position_quantity", "Open quantity, negative when short.", labels=["symbol"]
    )
    for symbol, quantity in sorted(status.open_positions.items()):
        positions.add_metric([symbol], quantity)
    yield positions
    yield _optional("equity", "Equity in quote currency.", status.equity)
    yield _gauge("kill_switch", "1 when the operator has pulled it.", float(status.kill_switch))


def _slow_loop(status: ProcessStatus) -> Iterator[Metric]:
    for name, what, slot in (
        ("last", "Slot of the slow loop that was last decided.", status.slow_loop_last),
        ("next", "Slot of the slow loop that is due next.", status.slow_loop_next),
    ):
        yield _optional(
            f"slow_loop_{name}_slot_timestamp_seconds", what, None if slot is None else slot / SECOND
        )


def _gauge(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{PREFIX}_{name}", what, value)


def _optional(name: str, what: str, value: float | None) -> Metric:
    found = GaugeMetricFamily(f"{PREFIX}_{name}", what, labels=[])
    if value is not None:
        found.add_metric([], float(value))
    return found


def _count_by(name: str, what: str, label: str, counts: Mapping[str, int]) -> Metric:
    found = CounterMetricFamily(f"{PREFIX}_{name}", what, labels=[label])
    for key, count in sorted(counts.items()):
        found.add_metric([key], count)
    return found
