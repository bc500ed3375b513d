"""A banned cell comes back when its ledger proves it, at default settings; without proof when its time is up.

The ban is scripted; everything after it is the run's own: ledger, report, judge, lifecycle, account.
"""

import asyncio
import json
from functools import cache
from typing import Any

from schemas.config import Settings
from schemas.judge import JudgeAction, ReplanVerdict
from schemas.reflection import HighLevelReflectionReport
from schemas.vocabulary import RecommendedAction
from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.registry import load_playbooks
from services.slow_loop.journal_facts import JournalFacts
from tests.worker.momentum_worlds import momentum_world
from worker.bootstrap import assemble
from worker.scenarios import PLANTED
from worker.timing import Timing

NAME, CELL = "buys_strength", "up/mid"


class BansFirst:
    """Answers the first report with a ban, and leaves every other one to the judge of the run."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.asked = 0

    async def replan(self, report: HighLevelReflectionReport, *rest: Any) -> ReplanVerdict:
        self.asked += 1
        if self.asked > 1:
            said: ReplanVerdict = await self.inner.replan(report, *rest)
            return said
        ban = JudgeAction(
            kind="set_eligibility",
            playbook_id=NAME,
            regime=CELL,
            eligible=False,
            life_blocks=Settings().judge.action_life_blocks,
            lowers_exposure=True,
            reason="scripted",
        )
        return ReplanVerdict(
            decision=RecommendedAction.POLICY_ADJUST,
            report_id=report.content_hash[:16],
            actions=(ban,),
            reason="scripted",
            known_at=report.known_at,
        )


@cache
def rows(strength: float) -> tuple[JournalRow, ...]:
    """The journal of a run in which the cell was banned."""
    sink = MemorySink()
    books = (*load_playbooks(PLANTED), *load_playbooks(None))
    made = assemble(Settings(), momentum_world(strength=strength), JournalWriter(sink), books)
    made.slow_loop._judge = BansFirst(made.slow_loop._judge)  # type: ignore[assignment]
    made.begin()

    async def drive() -> None:
        timing = Timing()
        while not made.engine.done:
            await made.step(timing)
        made.finish()
        await made.journal.flush()

    asyncio.run(drive())
    assert made.slow_loop.counters.errors == 0
    return tuple(sink.rows)


def of(strength: float, kind: str) -> list[tuple[int, dict[str, Any]]]:
    return [(row.known_at, json.loads(row.payload)) for row in rows(strength) if row.kind == kind]


def versions(strength: float) -> list[tuple[int, dict[str, Any]]]:
    return [one for one in of(strength, "playbook_version") if one[1]["playbook_id"] == NAME]


def banned(version: dict[str, Any]) -> bool:
    return CELL in version["definition"]["eligibility"]["long"]["banned"]


MOMENTUM, NULL = 0.5, 0.0


def test_ban_is_lifted_once_the_ledger_of_its_cell_has_shown_what_a_promotion_needs() -> None:
    told = versions(MOMENTUM)
    states = [(one["version"], one["state"], banned(one)) for _, one in told]
    assert states == [
        (1, "active", False), (1, "retired", False), (2, "active", True), (2, "retired", True),
        (3, "active", False),
    ]  # fmt: skip
    lifted = told[-1][1]
    shown = lifted["evidence"]
    assert lifted["reason"] == "proven in shadow"
    assert shown["e_value"] >= shown["e_needed"] == 40.0
    assert shown["n"] >= Settings().judge.promotion_minimum_trades
    assert shown["mean_r"] > 0.0
    assert told[-1][0] < told[2][1]["expires_at"], "before its time was up"


def test_lifted_ban_was_recommended_by_a_report_and_accepted_by_the_judge() -> None:
    lifted = versions(MOMENTUM)[-1][1]
    report = next(
        one["report"]
        for _, one in of(MOMENTUM, "high_level_report")
        if one["report_id"] == lifted["report_id"]
    )
    asked = [one for one in report["recommendations"] if one["change"].get("eligible")]
    assert [(one["playbook_id"], one["regime"]) for one in asked] == [(NAME, CELL)]
    verdict = next(
        one["verdict"]
        for _, one in of(MOMENTUM, "replan_verdict")
        if one["verdict_id"] == lifted["verdict_id"]
    )
    assert [(one["kind"], one["eligible"]) for one in verdict["actions"]] == [("set_eligibility", True)]
    trial = next(one for one in report["shadow_trials"] if one["kind"] == "banned_cell")
    assert lifted["evidence"]["e_value"] == trial["e_value"]


def test_lifted_ban_counts_only_paper_trades_since_the_ban() -> None:
    told = versions(MOMENTUM)
    begun, ended = told[2][0], told[-1][0]
    rows_of_cell = [one for _, one in of(MOMENTUM, "shadow_episode") if one["kind"] == "banned_cell"]
    assert {one["cell"] for one in rows_of_cell} == {CELL}
    paper = [one["episode"] for one in rows_of_cell]
    known = [one for one in paper if one["known_at"] <= ended]
    assert len(known) == told[-1][1]["evidence"]["n"]
    assert all(one["entry_label"] >= begun for one in known)


def test_cell_whose_ban_was_lifted_trades_again_and_not_before() -> None:
    told = versions(MOMENTUM)
    frozen = [
        (at, one["policy"]["regime_key"])
        for at, one in of(MOMENTUM, "policy_frozen")
        if one["policy"]["playbook_id"] == NAME
    ]
    begun, ended = told[2][0], told[-1][0]
    assert not [at for at, cell in frozen if cell == CELL and begun < at < ended]
    assert [at for at, cell in frozen if cell == CELL and at > ended]


def test_ban_in_a_world_without_an_edge_lasts_until_its_time_is_up() -> None:
    told = versions(NULL)
    ended = next(one for _, one in told if (one["version"], one["state"]) == (2, "expired"))
    assert ended["reason"] == f"time is up: ban of {CELL} long"
    assert "proven in shadow" not in {one["reason"] for _, one in told}
    reports = [one["report"] for _, one in of(NULL, "high_level_report")]
    trials = [one for report in reports for one in report["shadow_trials"] if one["kind"] == "banned_cell"]
    assert trials[-1]["n"] >= 20, "there were trades enough"
    asked = [one for report in reports for one in report["recommendations"] if one["change"].get("eligible")]
    assert asked == []


def test_worker_reads_the_same_ledgers_and_levels_from_the_journal() -> None:
    facts, compared = JournalFacts(Settings()), 0
    for row in rows(MOMENTUM):
        if row.kind == "high_level_request":
            request = json.loads(row.payload)["request"]
            wanted = [one for one in request["shadow_trials"] if one["n"]]
            read = facts.request_facts(request["slot"], row.known_at, "slot").shadow_trials
            assert [one for one in read if one["n"]] == wanted
            compared += any(one["kind"] == "banned_cell" for one in wanted)
        if row.kind in facts.kinds:
            facts.add(row)
    assert compared > 3
