"""A rule that is tried while a run goes on joins the tested family of its next report; a replay agrees."""

import asyncio
import json
from typing import Any

import pytest

from schemas.canonical import content_hash
from schemas.settings import Settings
from schemas.trials import TrialLedger
from services.store import Store, open_store
from services.store.trials import TriedOn
from tests.worker.live.paper_runs import address, read_requests, replayed, rows_stored
from tests.worker.live.test_paper_commands import Asked, bars
from worker.review.rule_trial import BY_RULE

TRIED_AT, REPLAN_AT = 200, 300


def rule(entry: str = "close > sma_50", symbols: tuple[str, ...] = ("AAPL", "IBM")) -> TriedOn:
    times = bars().times
    return TriedOn(
        config_hash=content_hash({"entry": entry}),
        playbooks=BY_RULE,
        data="another file of the same bars",
        timeframe=bars().timeframe,
        symbols=symbols,
        first_label=int(times[0]),
        last_label=int(times[150]),
    )


class Tried(Asked):
    """A live run; rules are tried on its bars before some rows of it."""

    def __init__(self, rules: dict[int, list[TriedOn]], **named: Any) -> None:
        super().__init__({REPLAN_AT: ("replan", {"report_id": None})}, **named)
        self.rules = rules
        self.numbers: list[int] = []

    async def between(self, number: int) -> None:
        await super().between(number)
        for on in self.rules.get(number, []):
            self.answered.clear()
            waiting = len(await self.store.operator.all("r0001"))
            self.numbers.append(await self.store.trials.note_rule(on))
            if len(await self.store.operator.all("r0001")) > waiting:
                await asyncio.wait_for(self.answered.wait(), 20.0)


def requests_of(folder: Any) -> list[Any]:
    async def found(store: Store) -> list[Any]:
        return await store.operator.all("r0001")

    return list(read_requests(folder, found))


def payloads(folder: Any, kind: str) -> list[Any]:
    return [json.loads(row.payload) for row in rows_stored(folder, "latest", kind)]


def commands(folder: Any) -> list[Any]:
    return [payload for payload in payloads(folder, "operator_command") if payload["kind"] == "rule_tried"]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("plain")
    asyncio.run(Tried({}).trade(folder))
    return folder


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("tried")
    live = Tried({TRIED_AT: [rule(), rule()]})
    asyncio.run(live.trade(folder))
    assert live.numbers[0] == live.numbers[1]
    return folder


def test_rule_tried_during_a_live_run_makes_the_next_family_larger_and_its_gate_stricter(
    plain, tried
) -> None:
    before, after = (payloads(folder, "high_level_request")[-1]["request"] for folder in (plain, tried))
    assert before.get("ledger") is None
    assert (after["ledger"]["configurations"], after["ledger"]["hypotheses"]) == (1, 1)
    levels = [
        {
            (episode["playbook_id"], episode["regime"]): episode["alpha"]
            for episode in report["report"]["clusters"]
        }
        for report in (payloads(folder, "high_level_report")[-1] for folder in (plain, tried))
    ]
    assert levels[0]
    assert levels[0].keys() == levels[1].keys()
    tested = [key for key, alpha in levels[0].items() if alpha is not None]
    assert tested
    for key in tested:
        assert levels[1][key] == pytest.approx(levels[0][key] / 2)


def test_rule_arrives_once_as_an_input_of_the_operators_queue_and_replays(tried) -> None:
    [command] = commands(tried)
    assert command["payload"].keys() == {"trial", "rule"}
    first = requests_of(tried)[0]
    assert (first.kind, first.state, first.number) == ("rule_tried", "done", command["number"])
    assert first.result == {"trial": command["payload"]["trial"]}
    report = replayed(tried, Settings())
    assert (report.ok, report.problem) == (True, None)


def test_rule_on_other_bars_is_told_to_nobody(tmp_path) -> None:
    asyncio.run(Tried({TRIED_AT: [rule(symbols=("MSFT",))]}).trade(tmp_path))
    assert commands(tmp_path) == []
    assert payloads(tmp_path, "high_level_request")[-1]["request"].get("ledger") is None


def test_rule_that_was_tried_before_a_run_is_counted_when_it_begins_and_told_no_second_time(tmp_path) -> None:
    async def before() -> None:
        async with await open_store(address(tmp_path), create=True) as store:
            await store.trials.note_rule(rule())

    asyncio.run(before())
    asyncio.run(Tried({TRIED_AT: [rule()]}).trade(tmp_path))
    assert commands(tmp_path) == []
    [genesis] = payloads(tmp_path, "genesis")
    assert (genesis["ledger"]["configurations"], genesis["ledger"]["hypotheses"]) == (1, 1)
    request = payloads(tmp_path, "high_level_request")[-1]["request"]
    assert request["ledger"] == genesis["ledger"]


def test_run_that_is_over_is_told_of_no_rule(plain) -> None:
    before = len(requests_of(plain))

    async def note(store: Store) -> int:
        return await store.trials.note_rule(rule("close < sma_20"))

    assert read_requests(plain, note) > 0
    assert len(requests_of(plain)) == before


def test_fresh_ledger_counts_from_the_rule_on() -> None:
    fresh = TrialLedger(configurations=7, hypotheses=70, fresh=True)
    assert fresh.with_a_rule == TrialLedger(configurations=1, hypotheses=1)
    assert TrialLedger(configurations=7, hypotheses=70).with_a_rule == TrialLedger(
        configurations=8, hypotheses=71
    )
