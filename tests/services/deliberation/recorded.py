"""Facts of runs as of their last report, kept so that labelled sentences stay true.

`python -m tests.services.deliberation.recorded STORE NAME [REPORT]...` writes those of a name anew from a
store: of the embedded run, and of two runs over drawn bars. The names of `WHOLE` and `GUIDED` are kept as of
the end of their run, with every report, or those of the given numbers, and the figures of its document:

* `whole_embedded`: `thinktwice backtest`
* `guided_days`, `guided_shares`, `guided_hours`, `guided_coins`: backtests of drawn daily, 4 h and 1 h
  bars, with some of their reports
* `whole_drawn`: `thinktwice backtest --data BARS --tz UTC`, of the bars that `drawn_bars.py` writes
* `whole_costly`: `thinktwice backtest SETTINGS --symbols AAPL,IBM,MSFT --from 2003-06-02 --to 2009-12-31
  --reflection off`, with cash 250,000, fee_bps 12, slippage_bps 4, risk_fraction 0.01 and the three playbooks
  channel_breakout, mean_reversion and momentum_continuation allowed
"""

import asyncio
import json
import lzma
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from schemas.episode import Episode
from schemas.fact_check import FactCheck, FactRow
from schemas.reflection import HighLevelReflectionReport
from services.deliberation.fact_check import check_facts
from services.evidence.observed import Observed
from services.evidence.run_facts import KnownEpisode, KnownPlaybook, KnownVersion, RunFacts
from services.high_level.report_lines import report_lines
from services.slow_loop.artefacts import with_moments
from services.store import open_store
from worker.review.run_facts import read_facts

EMBEDDED = "embedded_2012"
WORLDS = {"embedded": EMBEDDED, "w1": "drawn_hours_2022", "w2": "drawn_days_2015"}
WHOLE = ("whole_embedded", "whole_drawn", "whole_costly")
GUIDED = ("guided_days", "guided_hours", "guided_coins", "guided_shares")
OF_THE_END = ("cash", "settings", "ended")
REPORTS = 13  # of the embedded run, the last one of July 2012


@cache
def recorded(name: str = EMBEDDED) -> RunFacts:
    """As of the last report; of the embedded run that of 2012-07-20: 262 trades of five playbooks."""
    kept = json.loads(lzma.decompress(_file(name).read_bytes()))
    report = HighLevelReflectionReport.model_validate(with_moments(kept["report"]))
    row = FactRow(seq=kept["report_seq"], kind="high_level_report")
    episodes = [
        KnownEpisode(Episode.model_validate(item), FactRow(seq=seq, kind="episode"))
        for seq, item in kept["episodes"]
    ]
    return RunFacts(
        known_at=report.known_at,
        episodes=tuple(episodes),
        report=report,
        report_row=row,
        reports=kept.get("reports", REPORTS),
        playbooks=tuple(
            KnownPlaybook(name, 1, parameters, FactRow(seq=seq, kind="playbook_version"))
            for seq, name, parameters in kept["playbooks"]
        ),
        versions=tuple(
            KnownVersion(name, version, state, since, FactRow(seq=seq, kind="playbook_version"))
            for seq, name, version, state, since in kept["versions"]
        ),
        ids={known.episode.episode_id: known.row for known in episodes},
        symbols=tuple(kept["symbols"]),
        texts=report_lines(report),
    )


@cache
def whole(name: str) -> RunFacts:
    """As of the end of a run."""
    kept = json.loads(lzma.decompress(_file(name).read_bytes()))
    reports = [
        (
            HighLevelReflectionReport.model_validate(with_moments(item)),
            FactRow(seq=seq, kind="high_level_report"),
        )
        for seq, item in kept["reports"]
    ]
    report, row = reports[-1] if reports else (None, FactRow(seq=None, kind="high_level_report"))
    episodes = [
        KnownEpisode(Episode.model_validate(item), FactRow(seq=seq, kind="episode"))
        for seq, item in kept["episodes"]
    ]
    playbook = {"kind": "playbook_version"}
    return RunFacts(
        known_at=kept["known_at"],
        episodes=tuple(episodes),
        report=report,
        report_row=row,
        reports=len(reports),
        playbooks=tuple(
            KnownPlaybook(name, version, parameters, FactRow(seq=seq, **playbook))
            for seq, name, version, parameters in kept["playbooks"]
        ),
        versions=tuple(
            KnownVersion(name, version, state, since, FactRow(seq=seq, **playbook))
            for seq, name, version, state, since in kept["versions"]
        ),
        symbols=tuple(kept["symbols"]),
        texts=() if report is None else report_lines(report),
        past=tuple(reports),
        observed=Observed(**{name: kept[name] for name in OF_THE_END}),
    )


def checked(text: str, run: str = "whole_embedded") -> FactCheck:
    """A text against a run as of its end."""
    return check_facts(text, whole(run))


def labelled(name: str, fields: int) -> list[list[str]]:
    """The sentences of a file in fields, the last of which is the text."""
    lines = Path(__file__).with_name(f"{name}.txt").read_text("utf-8").splitlines()
    return [line.split("|", fields - 1) for line in lines if line and not line.startswith("#")]


def recorded_report() -> HighLevelReflectionReport:
    """The report itself."""
    report = recorded().report
    assert report is not None
    return report


def _file(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.json.xz")


async def _write_whole(address: str, name: str, numbers: Sequence[int]) -> None:
    async with await open_store(address, create=False) as store:
        run = await store.runs.find("latest")
        facts = await read_facts(store, run)
        kinds = frozenset({"high_level_report"})
        rows = [row async for row in store.journal.rows(run.run_id, kinds=kinds)]
    rows = [rows[number - 1] for number in numbers] or rows
    kept = {
        "known_at": facts.known_at,
        "symbols": facts.symbols,
        "episodes": [[known.row.seq, known.episode.payload()] for known in facts.episodes],
        "reports": [[row.seq, json.loads(row.payload)["report"]] for row in rows],
        "playbooks": [[p.row.seq, p.id, p.version, dict(p.parameters)] for p in facts.playbooks],
        "versions": [[v.row.seq, v.playbook, v.version, v.state, v.since] for v in facts.versions],
        **{name: getattr(facts.observed, name) for name in OF_THE_END},
    }
    _file(name).write_bytes(lzma.compress(json.dumps(kept, sort_keys=True).encode(), preset=9))


async def _write(address: str, name: str) -> None:
    kept: dict[str, Any] = {"episodes": [], "playbooks": [], "versions": []}
    async with await open_store(address, create=False) as store:
        run = await store.runs.find("latest")
        rows = [row async for row in store.journal.rows(run.run_id)]
    reports = [row for row in rows if row.kind == "high_level_report"]
    kept["report"] = json.loads(reports[-1].payload)["report"]
    kept["report_seq"], kept["reports"] = reports[-1].seq, len(reports)
    for row in rows:
        payload = json.loads(row.payload)
        if row.kind == "genesis":
            kept["symbols"] = payload["symbols"]
        elif row.kind == "episode" and row.known_at <= kept["report"]["known_at"]:
            kept["episodes"].append([row.seq, payload["episode"]])
        elif row.kind == "playbook_version" and row.known_at <= kept["report"]["known_at"]:
            definition = payload["definition"]
            what = [definition["id"], definition["version"], payload["state"], payload["since"]]
            kept["versions"].append([row.seq, *what])
            if row.seq >= 20:
                continue
            values = {name: float(item["value"]) for name, item in definition["parameters"].items()}
            kept["playbooks"].append([row.seq, definition["id"], values])
    _file(name).write_bytes(lzma.compress(json.dumps(kept, sort_keys=True).encode(), preset=9))


if __name__ == "__main__":
    store, name, *numbers = sys.argv[1:]
    if name in (*WHOLE, *GUIDED):
        asyncio.run(_write_whole(store, name, [int(number) for number in numbers]))
    else:
        asyncio.run(_write(store, name))
