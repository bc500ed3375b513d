"""What the worker reads from a journal is what the slow loop of the backtest had in memory."""

import json
from dataclasses import replace

import pytest

from schemas.config import Settings
from services.slow_loop.cadence import Run, Skip, due
from services.slow_loop.journal_facts import JournalFacts
from services.slow_loop.requests import build_request
from tests.worker.shared_runs import embedded_run, planted_run, slice_run
from trading_core.rules import RuleColumns

ONLY_FROM_BARS = {"untraded_signals", "shadow_trials"}
RUNS = pytest.mark.parametrize(("run", "settings"), [(embedded_run, Settings), (planted_run, Settings)])


def decisions(rows):
    """(row, payload) of every decision of the slow loop."""
    found = [
        (row, json.loads(row.payload)) for row in rows if row.kind in ("slow_skip", "high_level_request")
    ]
    return [(row, payload.get("request", payload)) for row, payload in found]


def replayed(run, settings):
    """Facts before each decision, with the decision."""
    facts = JournalFacts(settings)
    decided = {row.seq: payload for row, payload in decisions(run.rows)}
    for row in run.rows:
        if row.seq in decided:
            yield facts, row, decided[row.seq]
        if row.kind in facts.kinds:
            facts.add(row)


@RUNS
def test_journal_facts_lead_to_every_decision_of_the_backtest(run, settings):
    for facts, row, decided in replayed(run(), settings()):
        answer = due(facts.cadence(decided["slot"], row.known_at, None))
        if row.kind == "slow_skip":
            assert isinstance(answer, Skip)
            assert str(answer.reason) == decided["reason"]
            assert answer.counted == decided["facts"]["episodes"]
            assert answer.next_eligible == decided["next_eligible"]
        else:
            assert isinstance(answer, Run)
            assert answer.trigger == decided["drift_inputs"]["trigger"]


@RUNS
def test_journal_facts_resolve_the_untraded_signals_of_every_request_on_the_bars(run, settings):
    bars = run().result._session.bars
    columns, execution = RuleColumns(bars), settings().execution
    told = 0
    for facts, row, decided in replayed(run(), settings()):
        if row.kind == "slow_skip":
            continue
        since = facts.told_until(decided["slot"], row.known_at)
        made = facts.signals.untraded(bars, columns, execution, since, row.known_at)
        assert json.loads(json.dumps([one.payload() for one in made])) == decided["untraded_signals"]
        told += len(made)
    assert told > 20


@RUNS
def test_journal_facts_make_every_request_of_the_backtest(run, settings):
    for facts, row, decided in replayed(run(), settings()):
        if row.kind == "slow_skip":
            continue
        answer = due(facts.cadence(decided["slot"], row.known_at, None))
        assert isinstance(answer, Run)
        request = build_request(answer, facts.request_facts(answer.slot, row.known_at, answer.trigger))
        made = json.loads(json.dumps(request.model_dump(mode="json")))
        made |= {"window_start": None, "window_end": None}
        wanted = decided | {"window_start": None, "window_end": None}
        differing = {name for name in wanted if made[name] != wanted[name]}
        assert differing <= ONLY_FROM_BARS
        assert request.payload()["window_start"].isoformat()
        known = [one for one in made["shadow_trials"] if one["n"]]
        assert known == [one for one in wanted["shadow_trials"] if one["n"]]


def test_journal_facts_leave_out_what_a_no_learn_zone_keeps_from_the_lessons():
    facts, shut_out = JournalFacts(Settings()), list[str]()
    for row in slice_run().rows:
        if row.kind == "episode" and len(shut_out) < 3:
            payload = json.loads(row.payload)
            payload["episode"]["no_learn"] = True
            shut_out.append(payload["episode"]["episode_id"])
            row = replace(row, payload=json.dumps(payload))
        if row.kind in facts.kinds and not row.kind.startswith(("high_level", "replan")):
            facts.add(row)
    end = slice_run().rows[-1].known_at
    read = facts.request_facts(end, end, "slot")
    assert len(read.evidence) == len(facts.fresh(end, end)) == len(slice_run().of("episode")) - 3
    assert not {one.episode_id for one in read.evidence} & set(shut_out)
    told = sum(len(fires["now"]["r"]) for fires in read.drift_inputs["fires"].values())
    assert told == len(read.evidence)
