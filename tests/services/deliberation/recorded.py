"""Facts of the embedded run as of one of its reports, kept so that labelled sentences stay true.

`python -m tests.services.deliberation.recorded STORE` writes them anew from a store with the embedded run.
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

FILE = Path(__file__).with_name("embedded_2012.json.xz")
REPORT = 12  # the thirteenth and last, of July 2012


@cache
def recorded() -> RunFacts:
    """As of the report of 2012-07-20: 262 trades of five playbooks."""
    kept = json.loads(lzma.decompress(FILE.read_bytes()))
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
        reports=REPORT + 1,
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


async def _write(address: str) -> None:
    kept: dict[str, Any] = {"episodes": [], "playbooks": [], "versions": []}
    async with await open_store(address, create=False) as store:
        run = await store.runs.find("latest")
        rows = [row async for row in store.journal.rows(run.run_id)]
    reports = [row for row in rows if row.kind == "high_level_report"]
    kept["report"] = json.loads(reports[REPORT].payload)["report"]
    kept["report_seq"] = reports[REPORT].seq
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
    FILE.write_bytes(lzma.compress(json.dumps(kept, sort_keys=True).encode(), preset=9))


if __name__ == "__main__":
    asyncio.run(_write(sys.argv[1]))
