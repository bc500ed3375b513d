"""Plans to plant faults into: those of a stored run, or of a run by rules over embedded bars."""

import json
from types import MappingProxyType

from schemas.errors import ConfigError
from schemas.playbook import PlaybookVersion
from schemas.settings import Settings
from services.journal.consolidations import reflected_plans
from services.journal.index import Event, JournalIndex
from services.journal.kinds import GENESIS
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.registry import RegistryReader
from services.policy_loop.invariant_context import invariant_context
from services.slow_loop.evidence_epochs import follow
from worker.studies.faults.planting import CheckedPlan

KINDS = frozenset({GENESIS, "playbook_version", "policy_snapshot", "policy_proposal", "policy_reflection"})
FROM, TO = "2003-01-01", "2004-12-31"  # of the embedded bars, where no run is named


def plans_of_run(index: JournalIndex, settings: Settings) -> list[CheckedPlan]:
    """Every plan by a playbook that a run reflected on, under the guardrails of its settings, in order.

    Raises:
        ConfigError: there is none.
        StoreError: its rows cannot be read.
    """
    active: dict[str, PlaybookVersion] = {}
    symbols: tuple[str, ...] = ()
    found = []
    requests = {event.row.seq: request for event, request in reflected_plans(index)}
    for event in index.events:
        if event.row.kind == GENESIS:
            symbols = tuple(event.payload["symbols"])
        elif event.row.kind == "playbook_version":
            follow(active, PlaybookVersion.of_row(event.payload))
        elif (request := requests.get(event.row.seq)) is not None:
            reader = RegistryReader(MappingProxyType(dict(active)), MappingProxyType({}))
            limits = invariant_context(settings, request.snapshot, reader, symbols)
            found.append(CheckedPlan(request.model_copy(update={"invariants": limits}), reader))
    if not found:
        raise ConfigError(
            "the run reflected on no plan by a playbook: name another run, or none for the embedded bars"
        )
    return found


async def embedded_plans(settings: Settings) -> list[CheckedPlan]:
    """The plans of a run by rules over two years of the embedded bars, with its playbooks."""
    from worker.feeds.sample_data import load_embedded_bars
    from worker.runs.backtest import run_backtest

    sink, index, told = MemorySink(), JournalIndex(), rules_alone(settings)
    await run_backtest(told, load_embedded_bars(start=FROM, end=TO), JournalWriter(sink))
    for row in sink.rows:
        index.add(Event(row, json.loads(row.payload)))
    return plans_of_run(index, told)


def rules_alone(settings: Settings) -> Settings:
    """The settings with nobody to ask but rules."""
    told = {"reflection": {"mode": "deterministic"}, "policy_loop": {"strategist": "rules"}}
    told["judge"] = {"replan": "rules"}
    parts = {name: getattr(settings, name).model_copy(update=words) for name, words in told.items()}
    return settings.model_copy(update=parts)
