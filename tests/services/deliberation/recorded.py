"""Facts of runs as of their last report, kept so that labelled sentences stay true.

`python -m tests.services.deliberation.recorded STORE NAME` writes those of a name anew from a store: of the
embedded run, and of two runs over drawn bars.
"""

import asyncio
import json
import lzma
import sys
from functools import cache
from pathlib import Path
from typing import Any

from schemas.episode import Episode
from schemas.fact_check import FactRow
from schemas.reflection import HighLevelReflectionReport
from services.evidence.run_facts import KnownEpisode, KnownPlaybook, KnownVersion, RunFacts
from services.high_level.report_lines import report_lines
from services.slow_loop.artefacts import with_moments
from services.store import open_store

EMBEDDED = "embedded_2012"
WORLDS = {"embedded": EMBEDDED, "w1": "drawn_hours_2022", "w2": "drawn_days_2015"}
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


def recorded_report() -> HighLevelReflectionReport:
    """The report itself."""
    report = recorded().report
    assert report is not None
    return report


def _file(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.json.xz")


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
    asyncio.run(_write(*sys.argv[1:3]))
