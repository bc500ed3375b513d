"""One fold: what a worker reads from the store leads to what the run decided and asked as it wrote."""

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from schemas.canonical import canonical_json
from schemas.settings import HighLevelSettings, Settings
from services.slow_loop.cadence import Run, Skip, due
from services.slow_loop.loop_facts import LoopFacts
from tests.worker.shared_runs import embedded_bars, embedded_run, planted_run, run_on, slice_run
from trading_core.research.counterfactual import PaperPlans
from trading_core.rules import RuleColumns

RUNS = pytest.mark.parametrize(("run", "settings"), [(embedded_run, Settings), (planted_run, Settings)])


def decisions(rows):
    """(row, payload) of every decision of the slow loop."""
    found = [
        (row, json.loads(row.payload)) for row in rows if row.kind in ("slow_skip", "high_level_request")
    ]
    return [(row, payload.get("request", payload)) for row, payload in found]


def replayed(run, settings):
    """Facts before each decision, with the decision."""
    facts = LoopFacts(settings)
    decided = {row.seq: payload for row, payload in decisions(run.rows)}
    for row in run.rows:
        if row.seq in decided:
            yield facts, row, decided[row.seq]
        if row.kind in facts.kinds:
            facts.add(row)


@RUNS
def test_loop_facts_lead_to_every_decision_of_the_backtest(run, settings):
    for facts, row, decided in replayed(run(), settings()):
        answer = due(facts.cadence(decided["slot"], row.known_at))
        if row.kind == "slow_skip":
            assert isinstance(answer, Skip)
            assert str(answer.reason) == decided["reason"]
            assert answer.counted == decided["facts"]["episodes"]
            assert answer.next_eligible == decided["next_eligible"]
        else:
            assert isinstance(answer, Run)
            assert answer.trigger == decided["drift_inputs"]["trigger"]


def test_loop_facts_look_anew_at_the_cadence_only_where_something_was_told(monkeypatch):
    """At every close of a run the facts are those of a look that reads everything."""
    run, look, looks = embedded_run(), LoopFacts._look, 0

    def counted(self, *asked):
        nonlocal looks
        looks += 1
        return look(self, *asked)

    monkeypatch.setattr(LoopFacts, "_look", counted)
    facts, closes, telling, now = LoopFacts(Settings()), 0, 0, 0
    for row in run.rows:
        if row.known_at > now and facts.begun:
            assert facts.cadence(now, now, last_examined=0) == look(facts, now, now, None, 0)
            closes += 1
        now = row.known_at
        if row.kind in facts.kinds:
            facts.add(row)
            telling += row.kind in ("episode", "playbook_version", *facts.runs.takers)
    assert 0 < looks <= telling < closes / 2


@RUNS
def test_loop_facts_resolve_the_untraded_signals_of_every_request_on_the_bars(run, settings):
    columns, shown = RuleColumns(run().result.session.bars), 0
    for facts, row, decided in replayed(run(), settings()):
        if row.kind == "high_level_request":
            answer = Run(decided["slot"], "slot", decided["structural_allowed"])
            made = facts.request(answer, row.known_at, PaperPlans(columns)).untraded_signals
            assert (
                json.loads(canonical_json([item.payload() for item in made])) == decided["untraded_signals"]
            )
            shown += len(made)
    assert shown > 20


def of_days(window: int) -> Settings:
    return Settings(high_level=HighLevelSettings(window_bars=window))


@cache
def windowed() -> Any:
    return run_on(embedded_bars("2003-01-01", "2005-10-31"), of_days(90))


@pytest.mark.parametrize(
    ("run", "settings"), [(embedded_run, Settings), (planted_run, Settings), (windowed, lambda: of_days(90))]
)
def test_loop_facts_make_every_request_of_the_backtest(run, settings):
    """Byte for byte, from rows as the store holds them."""
    columns, question = RuleColumns(run().result.session.bars), 0
    for facts, row, decided in replayed(run(), settings()):
        if row.kind == "slow_skip":
            continue
        answer = due(facts.cadence(decided["slot"], row.known_at))
        assert isinstance(answer, Run)
        request = facts.request(answer, row.known_at, PaperPlans(columns))
        assert request.content_hash == json.loads(row.payload)["request_hash"]
        assert json.loads(canonical_json(request.payload())) == decided
        question += 1
    assert question > 1


def test_loop_facts_window_counts_bars_and_not_the_days_between_them():
    labels, question = [int(at) for at in windowed().result.session.bars.times], 0
    for row, request in decisions(windowed().rows):
        if row.kind == "high_level_request":
            (last,) = [number for number, at in enumerate(labels) if at + 86_400 * 10**9 == row.known_at]
            assert request["window_start"] == labels[max(0, last - 89)]
            question += last > 89
    assert question > 1


def test_loop_facts_leave_out_what_a_no_learn_zone_keeps_from_the_lessons():
    facts, shut_out = LoopFacts(Settings()), list[str]()
    for row in slice_run().rows:
        if row.kind == "episode" and len(shut_out) < 3:
            payload = json.loads(row.payload)
            payload["episode"]["no_learn"] = True
            shut_out.append(payload["episode"]["episode_id"])
            row = replace(row, payload=json.dumps(payload))
        if row.kind in facts.kinds and not row.kind.startswith(("high_level", "replan")):
            facts.add(row)
    end = slice_run().rows[-1].known_at
    read = facts.request(Run(end, "slot", structural_allowed=True), end, None)
    assert len(read.episode_ids) == len(facts.fresh(end, end)) == len(slice_run().of("episode")) - 3
    assert not set(read.episode_ids) & set(shut_out)
    shown = sum(len(fires["now"]["r"]) for fires in read.drift_inputs["fires"].values())
    assert shown == len(read.episode_ids)
