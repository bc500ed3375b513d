"""Facts of three runs as of their end, with every report, kept for tests of what a text may claim.

`python -m tests.services.deliberation.recorded STORE NAME` writes those of a name anew from a store:

* `whole_embedded`: `thinktwice backtest`
* `whole_drawn`: `thinktwice backtest --data BARS --tz UTC`, of the bars that `drawn_bars.py` writes
* `whole_costly`: `thinktwice backtest SETTINGS --symbols AAPL,IBM,MSFT --from 2003-06-02 --to 2009-12-31
  --reflection off`, with cash 250,000, fee_bps 12, slippage_bps 4, risk_fraction 0.01 and the three playbooks
  channel_breakout, mean_reversion and momentum_continuation allowed
"""

import asyncio
import json
import lzma
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from schemas.claims import FactRow
from schemas.episode import Episode
from schemas.slow_reflection import HighLevelReflectionReport
from services.evidence.observed import Observed
from services.evidence.run_facts import KnownPlaybook, RunFacts
from services.evidence.selection import KnownEpisode
from services.store import open_store
from worker.review.run_facts import read_facts

EMBEDDED = "whole_embedded"
WHOLE = (EMBEDDED, "whole_drawn", "whole_costly")
OF_THE_END = ("cash", "settings", "ended")


@cache
def _kept(name: str) -> dict[str, Any]:
    return dict(json.loads(lzma.decompress(_file(name).read_bytes())))


@cache
def reports_of(name: str = EMBEDDED) -> tuple[tuple[HighLevelReflectionReport, FactRow], ...]:
    """Every report of a run with its row, oldest first."""
    return tuple(
        (
            HighLevelReflectionReport.model_validate(item),
            FactRow(seq=seq, kind="high_level_report"),
        )
        for seq, item in _kept(name)["reports"]
    )


@cache
def whole(name: str = EMBEDDED) -> RunFacts:
    """As of the end of a run."""
    kept, reports = _kept(name), reports_of(name)
    report, row = reports[-1] if reports else (None, FactRow(seq=None, kind="high_level_report"))
    episodes = [
        KnownEpisode(Episode.model_validate(item), FactRow(seq=seq, kind="episode"))
        for seq, item in kept["episodes"]
    ]
    return RunFacts(
        known_at=kept["known_at"],
        episodes=tuple(episodes),
        report=report,
        report_row=row,
        reports=len(reports),
        playbooks=tuple(KnownPlaybook(name, tuple(names)) for name, names in kept["playbooks"]),
        symbols=tuple(kept["symbols"]),
        observed=Observed(**{name: kept[name] for name in OF_THE_END}),
    )


@cache
def at_reports(name: str = EMBEDDED) -> tuple[RunFacts, ...]:
    """A run as of each of its reports, oldest first; its playbooks are those of the end."""
    run, found = whole(name), []
    for count, (report, row) in enumerate(reports_of(name), 1):
        known = tuple(item for item in run.episodes if item.episode.known_at <= report.known_at)
        observed = Observed(cash=run.observed.cash, settings=run.observed.settings)
        found.append(
            replace(
                run,
                known_at=report.known_at,
                episodes=known,
                report=report,
                report_row=row,
                reports=count,
                observed=observed,
            )
        )
    return tuple(found)


def at_last_report() -> RunFacts:
    """The embedded run as of its last report."""
    return at_reports()[-1]


def last_report() -> HighLevelReflectionReport:
    """The last report of the embedded run."""
    report = whole().report
    assert report is not None
    return report


def _file(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.json.xz")


async def _write(address: str, name: str) -> None:
    async with await open_store(address, create=False) as store:
        run = await store.runs.find("latest")
        facts = await read_facts(store, run)
        kinds = frozenset({"high_level_report"})
        rows = [row async for row in store.journal.rows(run.run_id, kinds=kinds)]
    kept = {
        "known_at": facts.known_at,
        "symbols": facts.symbols,
        "episodes": [[known.row.seq, known.episode.payload()] for known in facts.episodes],
        "reports": [[row.seq, json.loads(row.payload)["report"]] for row in rows],
        "playbooks": [[playbook.id, playbook.parameters] for playbook in facts.playbooks],
        **{name: getattr(facts.observed, name) for name in OF_THE_END},
    }
    _file(name).write_bytes(lzma.compress(json.dumps(kept, sort_keys=True).encode(), preset=9))


if __name__ == "__main__":
    asyncio.run(_write(*sys.argv[1:3]))
