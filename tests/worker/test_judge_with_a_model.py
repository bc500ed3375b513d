"""The model judge in running backtests: what it drops has no effect, over the wire and played back."""

import asyncio
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import ConfigError, ModelError
from schemas.settings import LlmSettings, Settings
from schemas.settings.llm import ModelPrice
from services.model_calls.language_model import ModelReply
from services.playbooks.loader import load_playbooks
from services.store import NewRun, open_store
from tests.agents.language_models.wire_server import Handler, events, in_turn, reset, stream
from tests.worker.replays import backtest_replay
from tests.worker.shared_runs import Run, losing_settings, run_on
from tests.worker.wire import wire
from trading_core.bars import BarSeries
from worker.feeds.sample_data.worlds import make_world
from worker.models import Models
from worker.runs.backtest import run_backtest
from worker.runs.replay import ReplayReport
from worker.runs.store_run import record_run
from worker.studies.scenarios import PLANTED

PRICES = (ModelPrice(model="claude-test", input_usd=1.0, output_usd=5.0),)


def settings(judge: str = "model") -> Settings:
    base = losing_settings()
    return base.model_copy(
        update={
            "judge": base.judge.model_copy(update={"replan": judge}),
            "llm": LlmSettings(
                model="anthropic/claude-test", prices=PRICES, attempts=1, breaker_failures=1_000
            ),
        }
    )


@cache
def world() -> BarSeries:
    """So long that the rules open the first experiment."""
    return make_world("reverting", seed=3, bars=420, symbols=6)


@cache
def definitions() -> tuple[Any, ...]:
    return load_playbooks(PLANTED)


class Scripted:
    """Answers each question in the same way."""

    def __init__(self, reply: dict[str, Any] | None) -> None:
        self.reply = reply
        self.requested = 0

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        self.requested += 1
        if self.reply is None:
            raise ModelError("the wire is cut", retryable=True, kind="network")
        return ModelReply(json.dumps(self.reply), "claude-test", 1, 1, 0.1)


def run(reply: dict[str, Any] | None) -> Run:
    return run_on(world(), settings(), definitions(), models=Models(judge=Scripted(reply)))


def states(made: Run) -> list[str]:
    return [version["state"] for version in made.of("playbook_version")]


@cache
def by_rules() -> Run:
    return run_on(world(), settings("rules"), definitions())


def verdicts(made: Run) -> list[dict[str, Any]]:
    """Those about which the judge has something to ask."""
    found = [verdict["verdict"] for verdict in made.of("replan_verdict")]
    return [verdict for verdict in found if verdict["fallback"] != "nothing_to_drop"]


def test_run_whose_model_judge_drops_everything_moves_no_playbook() -> None:
    assert states(by_rules()) == ["active", "candidate", "shadow"]
    made = run({"reasons": [], "comment": None, "keep": []})
    assert states(made) == ["active"]
    assert {verdict["decision"] for verdict in verdicts(made)} == {"hold"}
    assert {finding["code"] for item in verdicts(made) for finding in item["refused"]} == {"dropped_by_model"}
    assert made.document["judge"]["refused"]["dropped_by_model"] == len(verdicts(made))


def test_run_whose_model_judge_adds_an_action_or_fails_goes_by_the_rules_and_says_so() -> None:
    other = {"reasons": [], "comment": None, "keep": ["a9"]}
    for reply, fallback in ((other, "unknown_action"), (None, "network")):
        made = run(reply)
        assert states(made) == states(by_rules())
        assert {verdict["fallback"].split(":")[0] for verdict in verdicts(made)} == {fallback}
        decided = [verdict["verdict"]["actions"] for verdict in made.of("replan_verdict")]
        assert decided == [verdict["verdict"]["actions"] for verdict in by_rules().of("replan_verdict")]


def test_run_with_a_model_judge_and_no_model_says_what_to_set() -> None:
    with pytest.raises(ConfigError, match=r"judge\.replan 'model' needs a key: set ANTHROPIC_API_KEY"):
        run_on(world(), settings(), definitions())
    with pytest.raises(ConfigError, match=r"judge\.replan asks a model but none was given"):
        run_on(world(), settings(), definitions(), models=Models(fast=Scripted(None)))


def recorded(path: Path) -> tuple[list[dict[str, Any]], ReplayReport]:
    """A run into a store and its replay: rows of calls and verdicts, and what the replay found."""
    made = settings()
    new = NewRun(
        "x", 0, "backtest", made.config_hash, made.payload(), {"sha256": world().sha256, "path": None}, {}
    )

    async def scenario() -> tuple[list[dict[str, Any]], ReplayReport]:
        async with await open_store(f"sqlite:///{path}", create=True) as store:
            kept = await record_run(run_backtest, made, world(), store, new, definitions=definitions())
            kinds = {"model_call", "replan_verdict"}
            rows = [
                json.loads(row.payload) async for row in store.journal.rows(kept.record.run_id, kinds=kinds)
            ]
            replay = backtest_replay(made, world(), store, kept.record, definitions())
            return rows, await replay.compare()

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("handler", "outcome", "fallback"),
    [
        (stream(events(json.dumps({"reasons": [], "comment": None, "keep": []}))), "reply", None),
        (stream(events('{"keep": ["r1"]')), "reply", "reply_malformed"),
        (in_turn(reset), "network", "network"),
    ],
)
def test_run_asks_its_judge_over_the_wire_is_paid_for_and_replays(
    handler: Handler, outcome: str, fallback: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wire(monkeypatch, handler, handler) as server:
        rows, replay = recorded(tmp_path / "t.db")
    calls = [row["call"] for row in rows if "call" in row]
    lines = [row["verdict"] for row in rows if "verdict" in row]
    lines = [verdict for verdict in lines if verdict["fallback"] != "nothing_to_drop"]
    assert len(server.requests) == len(calls) == len(lines) >= 1
    assert {(call["prompt"], call["outcome"]) for call in calls} == {("judge_replanning", outcome)}
    assert "call" in rows[0], "the raw reply is stored before the verdict"
    assert {(item["fallback"] or "").split(":")[0] or None for item in lines} == {fallback}
    assert {len(item["actions"]) for item in lines} == {0 if fallback is None else 1}
    assert (outcome != "reply") or sum(row["usd"] for row in rows if "call" in row) > 0
    assert replay.ok, replay
