"""Looks at the slow loop: at its slots in a planted world, and at one report on trades made up for it."""

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any

from prompts import load_prompt
from schemas.episode import Episode
from schemas.judge import JudgeAction, ReplanVerdict
from schemas.playbook import Eligibility, PlaybookDefinition
from schemas.settings import Settings
from schemas.vocabulary import RecommendedAction, Structure
from services.high_level.narrator import Narrator as Teller
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.measures import alter
from services.slow_loop.cadence import trigger_of
from services.slow_loop.past_runs import PastRun
from services.slow_loop.trial_evidence import Evidence
from tests.services.deliberation.recorded import at_last_report, last_report
from tests.services.high_level.narrators import FALSE, TRUE, Narrator
from tests.services.high_level.test_supported import batch
from tests.services.playbooks.samples import episode
from tests.test_high_level_reflection import reflect
from tests.worker.planted_store import definitions
from tests.worker.settings_walk.runs_seen import BUSY, look_at
from tests.worker.settings_walk.walking import Look, content
from tests.worker.test_judge_with_a_model import Scripted
from trading_core.bars import BarSeries
from worker.bootstrap import assemble
from worker.feeds.sample_data.worlds import make_world
from worker.models import Models
from worker.session import Session

SLOW = ("slow_skip", "high_level_request", "high_level_report", "replan_verdict", "playbook_version")
NAME, CELL = "buys_strength", "sideways/mid"
BAN = JudgeAction(
    kind="set_eligibility", playbook_id=NAME, regime=CELL, eligible=False, life_blocks=9, reason="it loses"
)
TRY = JudgeAction(
    kind="open_experiment", playbook_id=NAME, parameter="side", value=-1.0, life_blocks=9, reason="try it"
)
TRADES = 30


@cache
def world() -> BarSeries:
    return make_world("reverting", seed=3, bars=420, symbols=6)


slots = look_at(world, definitions(), *SLOW)
judged = Models(judge=Scripted({"reasons": [], "comment": None, "keep": []}))
evidence = look_at(world, definitions(), "evidence_plan", "evidence_call", models=judged)


def begun(settings: Settings, books: tuple[PlaybookDefinition, ...] | None = None) -> Session:
    """A session on the planted world whose bars are all over."""
    made = assemble(settings, world(), JournalWriter(MemorySink()), books or definitions())
    made.begin()
    made.clock.advance(int(world().close_times[-1]))
    return made


def losing_trades(*, large: bool = True) -> list[Episode]:
    """Trades of the planted playbook in one regime; two of the last ones are large either way, if wanted."""
    step = len(world().times) // (TRADES + 2)
    found = []
    for number in range(TRADES):
        entry, end = number * step, number * step + 4
        r = -0.9 if number % 5 else 0.4
        if large:
            r = {26: 6.0, 27: -5.0}.get(number, r)
        where = {"symbol": "W00", "timeframe": "4h", "playbook_id": NAME, "regime": CELL}
        where["playbook_hash"] = definitions()[0].content_hash
        when = {
            "entry_label": int(world().times[entry]),
            "exit_label": int(world().times[end]),
            "known_at": int(world().close_times[end]),
        }
        found.append(episode(number, r=r, pnl=r, mae_r=min(r, -0.2), mfe_r=max(r, 0.1), **where, **when))
    return found


def resolved(made: Session, trades: Sequence[Episode]) -> None:
    """Journal trades as if the session had made them."""
    for trade in trades:
        made.journal.append(
            "episode",
            ts_event=trade.known_at,
            known_at=trade.known_at,
            symbol=trade.symbol,
            payload={"episode_id": trade.episode_id, "episode": trade.payload()},
        )


def trigger(settings: Settings) -> Any:
    """What asks for an examination between two slots, once the made-up trades are known."""
    made = begun(settings)
    resolved(made, losing_trades())
    return trigger_of(made.slow_loop.facts.cadence(made.clock.now - 1, made.clock.now - 1))


def report(settings: Settings) -> Any:
    """The report on the made-up trades, and the judge's word on it."""
    return _reported(settings, losing_trades())


def proven_report(settings: Settings) -> Any:
    """The same without the two large trades: a loss that the gate believes."""
    return _reported(settings, losing_trades(large=False))


def opinions(settings: Settings) -> Any:
    """Second opinions of a report on five years of trades."""
    found = reflect(batch(), gate=settings.gate)
    return [None if item.second_opinion is None else item.second_opinion.payload() for item in found.clusters]


def _reported(settings: Settings, trades: list[Episode]) -> Any:
    made = begun(settings)
    resolved(made, trades)

    async def requested() -> Any:
        request, shown = await made.slow_loop.reflect_now(world().shape[0] - 1)
        return request, shown, await made.slow_loop.ask_judge(shown)

    return [content(row.payload()) for row in asyncio.run(requested())]


def permission(settings: Settings) -> Any:
    """Whether a structural change is allowed ten days after the last one."""
    made = begun(settings)
    row, past = world().shape[0] - 1, made.clock.now - 10 * 86_400 * 10**9
    _, report = asyncio.run(made.slow_loop.reflect_now(row))
    verdict = ReplanVerdict(
        decision=RecommendedAction.POLICY_ADJUST,
        report_id=report.content_hash[:16],
        actions=(BAN,),
        reason="-",
        known_at=past,
    )
    name, reply = verdict.report_id, report.recommended_action
    made.slow_loop.facts.runs.add_outside(
        [PastRun(past, past, past, name, report.n_episodes, reply, verdict=verdict)]
    )
    request, _ = asyncio.run(made.slow_loop.reflect_now(row))
    return request.structural_allowed


def shadow_trades(book: PlaybookDefinition) -> Look:
    """A look at the trades of a shadow ledger over the planted world."""

    def looked(settings: Settings) -> Any:
        ledger = begun(settings).slow_loop._trials._ledgers.open(book, tuple(book.rules), 0)
        return [[trade.entry_label, trade.exit_label, trade.r] for trade in ledger.advance(world().shape[0])]

    return looked


SHADOW_TRADES = shadow_trades(BUSY)


def one_cell() -> tuple[PlaybookDefinition, ...]:
    """The playbooks, the planted one open in a single cell."""
    planted, *others = definitions()
    only: dict[str, Any] = {"trend": ("sideways",), "volatility": ("mid",), "structure": tuple(Structure)}
    return (alter(planted, eligibility=dict.fromkeys(planted.rules, Eligibility(**only))), *others)


def carried_out(action: JudgeAction) -> Look:
    """A look at what becomes of a judge's action: versions with their ends, trials, and refusals."""

    def looked(settings: Settings) -> Any:
        made = begun(settings, one_cell())
        moved = made.books.lifecycle.apply(
            (action,), report_id="r", verdict_id="v", at=made.clock.now, timeframe=world().timeframe
        )
        return [
            [version.expires_at for version in moved],
            len(made.books.lifecycle.shadows()),
            [finding.code for finding in made.books.lifecycle.refused],
        ]

    return looked


def trial(settings: Settings) -> Any:
    """What a candidate needs, and whether it or its opposite ends on 25 trades."""
    candidate = JudgeAction(
        kind="set_threshold", playbook_id=NAME, parameter="side", value=-1.0, reason="the grid won"
    )
    made = begun(settings)
    made.books.lifecycle.apply(
        (candidate,), report_id="r", verdict_id="v", at=made.clock.now - 1, timeframe=world().timeframe
    )
    trials = made.slow_loop._trials
    trials.promote = made.books.lifecycle.promote  # what is given here is not what the ledger shows
    trials.step(world().shape[0] - 1, made.clock.now)
    (opened,) = [shadow for shadow in made.books.lifecycle.shadows() if shadow.kind == "candidate"]
    means: Evidence = {"n": 25, "mean_r": 0.4, "mean_raw_r": 0.4, "reference_r": 0.0}
    moved = [
        trials._weigh(
            opened,
            trials._key(opened),
            means | {"e_value": below, "e_value_below": above},
            made.clock.now,
        )
        for below, above in ((0.5, 1.0), (0.5, 15.0), (1e6, 0.5))
    ]
    return [
        trials.shown[opened.version_hash]["e_needed"],
        [[version.state for version in each] for each in moved],
    ]


BANNED, TRIED = carried_out(BAN), carried_out(TRY)


def narrated(settings: Settings) -> Any:
    """What stands of a text that lies, and how often a model was asked for it."""
    model = Narrator([(*TRUE, *FALSE), FALSE])
    teller = Teller(load_prompt("high_level_reflection"), model, settings.deliberation)
    shown = asyncio.run(teller.tell(last_report(), at_last_report()))
    return shown.text, shown.refused, len(model.prompts)
