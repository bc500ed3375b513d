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
        yield from _names(self.status)
        yield from _gauges(self.status, self.now, self.ready)
        yield from _counts(self.status)


def exposition(status: ProcessStatus, now: int, *, ready: bool) -> bytes:
    """The text of one scrape; figures of the operating system's view of the process included."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_OneReading(status, now, ready))
    ProcessCollector(namespace=PREFIX, registry=registry)
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]  # the library types it not
    return text


def _names(status: ProcessStatus) -> Iterator[Metric]:
    info = InfoMetricFamily(f"{PREFIX}_run", "What this process works on.")
    info.add_metric(
        [], {"run_id": status.run_id, "mode": status.mode, "role": status.role, "owner": status.owner}
    )
    yield info
    state = StateSetMetricFamily(f"{PREFIX}_state", "Safe mode blocks entries; exits run on.", labels=[])
    state.add_metric([], {name: name == status.state for name in STATES})
    yield state


def _gauges(status: ProcessStatus, now: int, ready: bool) -> Iterator[Metric]:
    away = status.store_away_since
    last, due = (
        None if slot is None else slot / SECOND for slot in (status.slow_loop_last, status.slow_loop_next)
    )
    yield from (
        _gauge("ready", "1 when bars come and the store can be written.", ready),
        _gauge("started_timestamp_seconds", "When the process started.", status.started / SECOND),
        _gauge("bar_lag_seconds", "Time since the last bar arrived.", status.bar_lag_s(now)),
        _gauge("feed_up", "1 while bars can come.", status.feed_ok),
        _gauge("stale_symbols", "Symbols without bars for too long.", len(status.stale_symbols)),
        _gauge("store_up", "1 when the store could be reached last time.", status.store_ok),
        _gauge("store_away_seconds", "Time without the store.", 0 if away is None else (now - away) / SECOND),
        _gauge("change_plans_waiting", "Change plans that wait for a decision.", len(status.plans_waiting)),
        _gauge("journal_buffered_rows", "Journal rows that wait for the store.", status.buffered_rows),
        _gauge("policy_evaluations_in_flight", "Evaluations that wait for an answer.", status.in_flight),
        _gauge("models_failing", "Models without a usable reply.", len(status.models_failing)),
        _gauge("equity", "Equity in quote currency.", status.equity),
        _gauge("kill_switch", "1 when the operator has pulled it.", status.kill_switch),
        _gauge("slow_loop_last_slot_timestamp_seconds", "Slot of the slow loop that was last decided.", last),
        _gauge("slow_loop_next_slot_timestamp_seconds", "Slot of the slow loop that is due next.", due),
    )
    bars = {symbol: label / SECOND for symbol, label in status.last_bars.items()}
    latencies = {name: ms / 1_000 for name, ms in status.tick_latency_ms.items() if ms is not None}
    reasons = Counter(status.blocked.values())
    yield _gauge_by("last_bar_timestamp_seconds", "Label of the last bar of a symbol.", "symbol", bars)
    yield _gauge_by("blocked_symbols", "Symbols that may not enter, by reason.", "reason", reasons)
    yield _gauge_by("tick_latency_seconds", "Time that one row takes.", "quantile", latencies)
    positions = status.open_positions
    yield _gauge_by("position_quantity", "Open quantity, negative when short.", "symbol", positions)


def _counts(status: ProcessStatus) -> Iterator[Metric]:
    yield CounterMetricFamily(f"{PREFIX}_bars_validated", "Bars through the engine.", status.bars_validated)
    yield CounterMetricFamily(f"{PREFIX}_errors", "Contained failures.", status.errors)
    yield CounterMetricFamily(f"{PREFIX}_model_spend_usd", "What models have cost.", status.model_spend)
    for name, what, label, counts in (
        ("policy_evaluations", "Policy evaluations.", "outcome", status.evaluations),
        ("policy_skips", "Policy events that started no evaluation.", "reason", status.skips),
        ("model_calls", "Calls of models.", "outcome", status.model_calls),
        ("notifications", "Notifications.", "result", status.notifications),
    ):
        found = CounterMetricFamily(f"{PREFIX}_{name}", what, labels=[label])
        for key, count in sorted(counts.items()):
            found.add_metric([key], count)
        yield found


def _gauge(name: str, what: str, value: float | None) -> Metric:
    found = GaugeMetricFamily(f"{PREFIX}_{name}", what, labels=[])
    if value is not None:
        found.add_metric([], float(value))
    return found


def _gauge_by(name: str, what: str, label: str, values: Mapping[str, float]) -> Metric:
    found = GaugeMetricFamily(f"{PREFIX}_{name}", what, labels=[label])
    for key, value in sorted(values.items()):
        found.add_metric([key], value)
    return found
