"""The shadow ledger: what it says of a plan is what the account would have done with it."""

import asyncio
import json
from functools import cache
from typing import Any

import numpy as np

from schemas.proposal import PolicyProposal
from schemas.settings import PolicyLoopSettings, ReflectionSettings, Settings
from tests.worker.shared_runs import Run, embedded_bars, run_on
from worker.studies.ablation.refused_plans import (
    KINDS,
    PaperTrader,
    RefusedPlan,
    banned_trades,
    refused_plans,
)

SLICE = ("2003-01-01", "2008-06-30")


@cache
def reflected() -> Run:
    return run_on(embedded_bars(*SLICE))


async def stored(run: Run, kinds: Any) -> Any:
    for row in run.rows:
        if row.kind in kinds:
            yield row


def plans() -> list[RefusedPlan]:
    return asyncio.run(refused_plans(stored(reflected(), KINDS), embedded_bars(*SLICE)))


def test_refused_plans_are_the_reflections_that_did_not_pass_without_those_in_a_position():
    held, refused = False, 0
    for row in reflected().rows:
        payload = json.loads(row.payload)
        if row.kind == "policy_snapshot":
            held = payload["snapshot"]["position"] is not None
        elif row.kind == "policy_proposal":
            refused += len(payload["passed_over"])
        elif row.kind == "policy_reflection" and not held:
            refused += payload["result"]["status"] != "pass" and payload["amendment"] is None
    found = plans()
    assert len(found) == refused > 30
    assert {plan.reason for plan in found} <= {"blocked", "revised"}


def test_refused_plan_is_in_force_until_the_next_evaluation_of_its_symbol():
    bars = embedded_bars(*SLICE)
    looked: dict[str, list[int]] = {}
    for row in reflected().rows:
        if row.kind == "policy_snapshot":
            at = int(np.searchsorted(bars.close_times, row.ts_event))
            looked.setdefault(str(row.symbol), []).append(at)
    for plan in plans():
        later = [at for at in looked[bars.symbols[plan.s]] if at > plan.row]
        assert plan.row in looked[bars.symbols[plan.s]]
        assert plan.until == (later[0] if later else bars.shape[0] - 1)


def test_paper_trades_of_frozen_plans_are_those_of_the_account():
    """Plans that were frozen, traded on paper as if refused: same entries, exits and R as the account's."""
    bars = embedded_bars(*SLICE)
    proposing = PolicyLoopSettings(explore=0.0)  # by one ranking, so that a stop seldom moves to another's
    run = run_on(bars, Settings(reflection=ReflectionSettings(mode="off"), policy_loop=proposing))
    index = {name: s for s, name in enumerate(bars.symbols)}
    looked: dict[int, list[int]] = {}
    frozen = []
    for row in run.rows:
        s, at = index.get(str(row.symbol), -1), int(np.searchsorted(bars.close_times, row.ts_event))
        if row.kind == "policy_snapshot":
            looked.setdefault(s, []).append(at)
        elif row.kind == "policy_frozen":
            frozen.append(
                (s, at, PolicyProposal.model_validate(json.loads(row.payload)["policy"]["proposal"]))
            )
    ends = {s: [*rows, bars.shape[0] - 1] for s, rows in looked.items()}
    refused = [
        RefusedPlan("blocked", s, at, next((end for end in ends[s] if end > at), at), proposal)
        for s, at, proposal in frozen
    ]
    (paper,) = PaperTrader(bars, Settings().execution).trade(refused)
    account = {(trade.exit_label, trade.entry_label, round(trade.r, 6)) for trade in run.result.trades}
    on_paper = {(exit_label, entry, round(r, 6)) for exit_label, entry, r in paper.outcomes}
    assert len(account) > 40
    assert len(account & on_paper) >= 0.9 * len(account)  # the account also tightens stops and has limits
    assert len(on_paper - account) <= 0.2 * len(on_paper)


def test_paper_trade_that_two_refused_plans_would_have_made_counts_once():
    found = plans()
    trader = PaperTrader(embedded_bars(*SLICE), Settings().execution)
    once, twice = (list(trader.trade(some)) for some in (found, [*found, *found]))
    assert [trades.outcomes for trades in once] == [trades.outcomes for trades in twice]
    assert sum(len(trades.outcomes) for trades in once) > 0
    assert sum(trades.plans for trades in twice) == 2 * sum(trades.plans for trades in once)


def test_paper_trades_use_no_bar_before_the_refusal():
    bars, found = embedded_bars(*SLICE), plans()
    first = {s: min(plan.row for plan in found if plan.s == s) for s in {plan.s for plan in found}}
    for group in PaperTrader(bars, Settings().execution).trade(found):
        for exit_label, entry, _ in group.outcomes:
            assert exit_label >= entry > int(bars.times[min(first.values())])


def test_banned_cells_are_read_from_the_shadow_episodes_of_bans_alone():
    episode = {"exit_label": 2, "entry_label": 1, "r": -0.5}

    async def rows() -> Any:
        for kind in ("banned_cell", "candidate"):
            yield type("Row", (), {"payload": json.dumps({"kind": kind, "episode": episode})})

    async def none() -> Any:
        return
        yield

    found = asyncio.run(banned_trades(rows()))
    assert found is not None
    assert (found.reason, found.outcomes) == ("banned", ((2, 1, -0.5),))
    assert asyncio.run(banned_trades(none())) is None
