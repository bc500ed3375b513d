"""A banned cell comes back when its ledger proves it, at default settings; without proof the ban is renewed.

The ban is scripted; everything after it is the run's own: ledger, report, judge, lifecycle, account.
"""

import json
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from schemas.judge import JudgeAction, ReplanVerdict
from schemas.settings import Settings
from schemas.slow_reflection import HighLevelReflectionReport
from schemas.vocabulary import RecommendedAction
from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.loader import load_playbooks
from services.slow_loop.loop_facts import LoopFacts
from tests.worker.momentum_worlds import momentum_world
from tests.worker.shared_runs import played
from worker.bootstrap import assemble
from worker.studies.scenarios import PLANTED

NAME, CELL = "buys_strength", "up/mid"


class BansFirst:
    """Answers the first report with a ban, and every other one with hold, or as the judge of the run does."""

    def __init__(self, inner: Any, life: int, *, holds: bool) -> None:
        self.inner = inner
        self.life = life
        self.holds = holds
        self.requested = 0

    async def replan(self, report: HighLevelReflectionReport, *rest: Any) -> ReplanVerdict:
        self.requested += 1
        if self.requested > 1 and not self.holds:
            reply: ReplanVerdict = await self.inner.replan(report, *rest)
            return reply
        ban = JudgeAction(
            kind="set_eligibility",
            playbook_id=NAME,
            regime=CELL,
            eligible=False,
            life_blocks=self.life,
            lowers_exposure=True,
            reason="scripted",
        )
        return ReplanVerdict(
            decision=RecommendedAction.POLICY_ADJUST if self.requested == 1 else RecommendedAction.HOLD,
            report_id=report.content_hash[:16],
            actions=(ban,) if self.requested == 1 else (),
            reason="scripted",
            known_at=report.known_at,
        )


class Banned(NamedTuple):
    """A run whose cell is banned for `life` weeks and renewed by `again`; `holds`: no report lifts it."""

    strength: float
    life: int = Settings().judge.action_life_blocks
    again: int = Settings().judge.action_life_blocks
    holds: bool = False

    @property
    def settings(self) -> Settings:
        """The defaults but for what a measure gets when it is renewed."""
        judge = Settings().judge.model_copy(update={"action_life_blocks": self.again})
        return Settings().model_copy(update={"judge": judge})


@cache
def rows(run: Banned) -> tuple[JournalRow, ...]:
    """The journal of a run in which the cell was banned."""
    sink = MemorySink()
    books = load_playbooks(PLANTED)
    world = momentum_world(strength=run.strength, bars=420, symbols=24)
    made = assemble(run.settings, world, JournalWriter(sink), books)
    judge: Any = BansFirst(made.slow_loop._judge, run.life, holds=run.holds)
    made.slow_loop._judge = judge
    made.begin()
    played(made)
    assert made.slow_loop.counters.errors == 0
    return tuple(sink.rows)


def of(run: Banned, kind: str) -> list[tuple[int, dict[str, Any]]]:
    return [(row.known_at, json.loads(row.payload)) for row in rows(run) if row.kind == kind]


def versions(run: Banned) -> list[tuple[int, dict[str, Any]]]:
    return [version for version in of(run, "playbook_version") if version[1]["playbook_id"] == NAME]


def weeks_later(at: int, weeks: int) -> int:
    """A moment, ns, so many weeks later; it is the beginning of a week."""
    assert np.datetime64(at, "ns") == np.datetime64(at, "ns").astype("datetime64[D]")
    assert np.is_busday(np.datetime64(at, "ns").astype("datetime64[D]"), weekmask="Mon")
    return at + weeks * 7 * 86_400 * 10**9


def banned(version: dict[str, Any]) -> bool:
    return CELL in version["definition"]["eligibility"]["long"]["banned"]


MOMENTUM, NULL = Banned(1.0), Banned(0.0, life=6)
UNHEARD = Banned(1.0, life=3, again=4, holds=True)


def test_ban_is_lifted_once_the_ledger_of_its_cell_has_shown_what_a_promotion_needs() -> None:
    messages = versions(MOMENTUM)
    states = [(version["version"], version["state"], banned(version)) for _, version in messages]
    assert states == [
        (1, "active", False), (1, "retired", False), (2, "active", True), (2, "retired", True),
        (3, "active", False),
    ]  # fmt: skip
    lifted = messages[-1][1]
    shown = lifted["evidence"]
    assert lifted["reason"] == "proven in shadow"
    assert shown["e_value"] >= shown["e_needed"] == 40.0
    assert shown["n"] >= Settings().judge.promotion_minimum_trades
    assert shown["mean_r"] > 0.0
    assert messages[-1][0] < messages[2][1]["expires_at"], "before its time was up"


def test_lifted_ban_was_recommended_by_a_report_and_accepted_by_the_judge() -> None:
    lifted = versions(MOMENTUM)[-1][1]
    report = next(
        payload["report"]
        for _, payload in of(MOMENTUM, "high_level_report")
        if payload["report_id"] == lifted["report_id"]
    )
    questions = [change for change in report["recommendations"] if change["change"].get("eligible")]
    assert [(episode["playbook_id"], episode["regime"]) for episode in questions] == [(NAME, CELL)]
    verdict = next(
        claim["verdict"]
        for _, claim in of(MOMENTUM, "replan_verdict")
        if claim["verdict_id"] == lifted["verdict_id"]
    )
    assert [(event["kind"], event["eligible"]) for event in verdict["actions"]] == [("set_eligibility", True)]
    trial = next(event for event in report["shadow_trials"] if event["kind"] == "banned_cell")
    assert lifted["evidence"]["e_value"] == trial["e_value"]


def test_lifted_ban_counts_only_paper_trades_since_the_ban() -> None:
    shown = versions(MOMENTUM)
    begun, ended = shown[2][0], shown[-1][0]
    rows_of_cell = [event for _, event in of(MOMENTUM, "shadow_episode") if event["kind"] == "banned_cell"]
    assert {row["cell"] for row in rows_of_cell} == {CELL}
    paper = [row["episode"] for row in rows_of_cell]
    known = [item for item in paper if item["known_at"] <= ended]
    assert len(known) == shown[-1][1]["evidence"]["n"]
    assert all(episode["entry_label"] >= begun for episode in known)


def test_cell_whose_ban_was_lifted_trades_again_and_not_before() -> None:
    shown = versions(MOMENTUM)
    frozen = [
        (at, entry["policy"]["regime_key"])
        for at, entry in of(MOMENTUM, "policy_frozen")
        if entry["policy"]["playbook_id"] == NAME
    ]
    begun, ended = shown[2][0], shown[-1][0]
    assert not [at for at, cell in frozen if cell == CELL and begun < at < ended]
    assert [at for at, cell in frozen if cell == CELL and at > ended]


def test_ban_in_a_world_without_an_edge_is_renewed_at_the_end_of_its_life_and_never_ends() -> None:
    shown = versions(NULL)
    assert [(version["version"], version["state"]) for _, version in shown if banned(version)][0] == (
        2,
        "active",
    )
    assert {version["state"] for _, version in shown if version["version"] == 2} == {"active"}
    ((at, renewed),) = of(NULL, "measure_renewed")
    assert renewed["measure"] == f"ban of {CELL} long"
    assert at >= shown[2][1]["expires_at"]
    assert renewed["until"] == weeks_later(shown[2][1]["expires_at"], 26)
    assert renewed["shown"]["n"] > 0
    assert renewed["shown"]["e_value"] < renewed["shown"]["e_needed"] == 40.0
    reports = [payload["report"] for _, payload in of(NULL, "high_level_report")]
    trials = [
        event for report in reports for event in report["shadow_trials"] if event["kind"] == "banned_cell"
    ]
    assert trials[-1]["n"] >= 20, "there were trades enough"
    questions = [
        change
        for report in reports
        for change in report["recommendations"]
        if change["change"].get("eligible")
    ]
    assert questions == []


def test_ban_that_its_ledger_contradicts_ends_with_its_life_though_no_report_was_heard() -> None:
    shown = versions(UNHEARD)
    renewals = of(UNHEARD, "measure_renewed")
    lifted_at, lifted = shown[-1]
    assert [(version["version"], version["state"]) for _, version in shown[1:]] == [
        (1, "retired"), (2, "active"), (2, "retired"), (3, "active"),
    ]  # fmt: skip
    assert lifted["reason"] == "proven in shadow"
    assert lifted["evidence"]["e_value"] >= lifted["evidence"]["e_needed"] == 40.0
    assert lifted["evidence"]["n"] >= 20
    ends = [shown[2][1]["expires_at"], *(entry["until"] for _, entry in renewals)]
    assert len(renewals) > 1
    assert [weeks_later(end, 4) for end in ends[:-1]] == ends[1:]
    assert lifted_at >= ends[-1], "with its life, and no report lifted it before"
    assert all(entry["shown"]["e_value"] < entry["shown"]["e_needed"] for _, entry in renewals)
    assert not [claim for _, claim in of(UNHEARD, "replan_verdict")[1:] if claim["verdict"]["actions"]]


def test_ban_that_ended_by_itself_begins_an_epoch_and_a_renewal_does_not() -> None:
    lifted_at = versions(UNHEARD)[-1][0]
    epochs_of = [(at, payload["request"]["epochs"]) for at, payload in of(UNHEARD, "high_level_request")]
    questions = [(at, item[f"{NAME}|*"]) for at, item in epochs_of]
    renewed_at = [at for at, _ in of(UNHEARD, "measure_renewed")]
    assert {epochs for at, epochs in questions if renewed_at[0] < at < lifted_at} == {1}
    assert {epochs for at, epochs in questions if at > lifted_at} == {2}
    cell = f"{NAME}|{CELL}"
    assert {item.get(cell) for at, item in epochs_of if at < lifted_at} == {None}
    assert {item[cell] for at, item in epochs_of if at > lifted_at} == {1}


@pytest.mark.parametrize("run", [MOMENTUM, UNHEARD, NULL])
def test_worker_reads_the_same_ledgers_and_levels_from_the_journal(run: Banned) -> None:
    facts, compared = LoopFacts(run.settings), 0
    for row in rows(run):
        if row.kind == "high_level_request":
            request = json.loads(row.payload)["request"]
            wanted = [cell for cell in request["shadow_trials"] if cell["n"]]
            read = facts.shadow_trials(row.known_at)
            assert [cell for cell in read if cell["n"]] == wanted
            compared += any(event["kind"] == "banned_cell" for event in wanted)
        if row.kind in facts.kinds:
            facts.add(row)
    assert compared > 3
