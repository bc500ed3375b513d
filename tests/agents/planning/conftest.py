"""A store with one run, its tools, and what a question may know of it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.planning.gathering import gather
from agents.planning.rule_planner import RulePlanner
from schemas.evidence_plan import GatheredEvidence
from schemas.settings.planner import OWN, PlannerSettings
from services.ports import EvidenceQuestion
from services.store import open_store
from tests.agents.planning.fakes import CONTEXT
from tests.services.store.stores import opened
from tests.worker.evidence_stores import store_run
from worker.review.evidence import store_tools
from worker.review.run_views import RunViews

Ask = Callable[..., list[GatheredEvidence]]


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_run(tmp_path_factory.mktemp("planned") / "thinktwice.db")


@pytest.fixture(scope="session")
def ids(stored: Path) -> dict[str, str]:
    """Ids of a fill and of a report."""

    def one(kind: str, name: str) -> str:
        query = "select unpacked(payload) from journal where kind = ? order by seq limit 1"
        with opened(stored) as store:
            return str(json.loads(store.execute(query, (kind,)).fetchone()[0])[name])

    fill = one("exit_filled", "fill_id")
    return {"fill": fill, "prefix": fill[:8], "report": one("high_level_report", "report_id")}


@pytest.fixture(scope="session")
def ask(stored: Path) -> Ask:
    """Gathers evidence for questions by the rules, over the store as the commands open it."""

    async def requested(questions: list[tuple[str, dict[str, Any]]], settings: PlannerSettings) -> Any:
        async with await open_store(f"sqlite:///{stored}", create=False, read_only=True) as store:
            hosts = {OWN: store_tools(RunViews(store))}
            return [
                await gather(
                    EvidenceQuestion(text, {**CONTEXT, **known}),
                    RulePlanner(),
                    hosts,
                    settings,
                    attended=True,
                )
                for text, known in questions
            ]

    def gathered(*questions: Any, settings: PlannerSettings | None = None) -> list[GatheredEvidence]:
        pairs = [(question, {}) if isinstance(question, str) else question for question in questions]
        found: list[GatheredEvidence] = asyncio.run(requested(pairs, settings or PlannerSettings()))
        return found

    return gathered
