"""Own parts and models of a sweep's runs: by name to every worker, in the key of the task, no key in it."""

import json
import pickle
import sys
from importlib import import_module, reload
from typing import Any

import pytest

import thinktwice as tt
from schemas.settings import Settings
from services.playbooks.loader import load_playbooks
from tests.worker.wire import GOOD, KEY_VARIABLE, wire
from thinktwice.named_parts import named_parts
from worker.feeds.sample_data.worlds import make_world
from worker.studies.executors.agent_runs import agent_answers, agent_settings
from worker.studies.executors.choosing import opened_executor
from worker.studies.executors.executor import SerialExecutor

RUNS: dict[str, Any] = {"level": "agent", "symbols": ["IBM"], "start": "2011-06-01"}
GRID = {"execution__fee_bps": [1.0, 9.0]}
AGENT = '''
"""An agent of a script."""
import how_often
import thinktwice as tt

class EverySecond:
    def __init__(self, ours):
        self.ours, self.number = ours, 0

    async def answer(self, snapshot, revision):
        self.number += 1
        if self.number % 2:
            return tt.StrategistAnswer(kind="abstain", reason="not this time")
        return await self.ours.answer(snapshot, revision)

def never(request):
    return tt.finding("never_today", "not for today")

OBJECT = EverySecond(None)

class Refuses:
    def __init__(self, ours):
        raise KeyError("no desk")

def fails(ours):
    class Fails:
        async def answer(self, snapshot, revision):
            raise RuntimeError("no idea")
    return Fails()
'''


class Says:
    """A model that agrees with everything."""

    name = "agrees"
    prompts: list[str] = []

    def complete(self, *, system, prompt, max_tokens, deadline_ms):
        self.prompts.append(prompt)
        return "I would rather not."


@pytest.fixture
def agent(tmp_path, monkeypatch):
    (tmp_path / "agent_of_mine.py").write_text(AGENT)
    (tmp_path / "breaks.py").write_text("raise RuntimeError('not today')")
    (tmp_path / "how_often.py").write_text("EVERY = 2")
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("agent_of_mine")
    for name in ("agent_of_mine", "how_often"):
        sys.modules.pop(name, None)


def swept(grid=GRID, **given):
    return tt.sweep(None, None, grid, **(RUNS | given)).table


def test_own_strategist_of_a_sweep_is_the_one_of_a_backtest_on_every_executor(agent):
    serial = swept(executor="serial", strategist=agent.EverySecond)
    assert not serial.equals(swept(executor="serial"))
    for row, fee in zip(serial.to_dict("records"), GRID["execution__fee_bps"], strict=True):
        alone = tt.backtest(
            start=RUNS["start"], symbols=["IBM"], execution__fee_bps=fee, progress=False,
            strategist="agent_of_mine:EverySecond",
        )  # fmt: skip
        assert (row["trades"], row["return"]) == (alone.summary["trades"], alone.summary["total_return"])
    for executor in ("processes", "local"):
        assert serial.equals(swept(executor=executor, processes=2, strategist="agent_of_mine:EverySecond"))
    never = swept(executor="serial", critics=[agent.never], settings=tt.settings(account__cash=9_000.0))
    assert never["trades"].tolist() == [0, 0]


def nested():
    def inside(ours):
        return ours

    return inside


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda agent: {"strategist": lambda ours: ours}, "lambda.* is no class or function.*no lambda"),
        (lambda agent: {"judge": nested()}, r"judge .*nested\.<locals>\.inside' is no class or function"),
        (lambda agent: {"strategist": agent.OBJECT}, "strategist .*: write one at the top level of a module"),
        (lambda agent: {"strategist": "agent_of_mine:OBJECT"}, "'agent_of_mine:OBJECT' is no class"),
        (lambda agent: {"critics": ["agent_of_mine:Nobody"]}, "'agent_of_mine:Nobody' cannot be loaded"),
        (lambda agent: {"strategist": "nowhere:Agent"}, "cannot be loaded: No module named 'nowhere'"),
        (lambda agent: {"strategist": "breaks:Agent"}, "'breaks:Agent' cannot be loaded: not today"),
        (lambda agent: {"strategist": "mine"}, "no package offers it .nor is it 'MODULE:NAME'"),
        (lambda agent: {"model": Says}, "nothing asks one"),
        (lambda agent: {"runtime__llm": "record", "runtime__cassette": "c.jsonl", "strategist": "model",
                        "model": "anthropic/claude-test"}, "write one cassette together"),
    ],
)  # fmt: skip
def test_part_that_no_run_could_import_is_refused_by_name_and_place(agent, given, message):
    with pytest.raises(tt.ConfigError, match=message):
        swept(executor="serial", **given(agent))


def test_class_of_the_script_is_refused_before_workers_get_it_and_runs_here(agent, monkeypatch):
    monkeypatch.setattr(agent.EverySecond, "__module__", "__main__")
    monkeypatch.setitem(sys.modules, "__main__", agent)  # as in a script: its source is in a file
    with pytest.raises(tt.ConfigError, match="strategist '__main__:EverySecond' is defined in '__main__'"):
        swept(executor="processes", processes=2, strategist=agent.EverySecond)
    assert len(swept(executor="serial", strategist=agent.EverySecond)) == 2


def test_source_of_a_part_is_in_the_key_of_its_tasks_and_of_the_ledger(agent, tmp_path):
    answers, url = tmp_path / "answers", f"sqlite:///{tmp_path / 's.sqlite'}"
    given: dict[str, Any] = {
        "executor": "serial",
        "resume": answers,
        "strategist": "agent_of_mine:EverySecond",
    }
    made = named_parts(given["strategist"])
    befores = [tt.sweep(None, None, GRID, **RUNS, **given, db=url).before for _ in range(2)]
    assert (befores, len(list(answers.iterdir()))) == ([0, 0], 2)
    (tmp_path / "agent_of_mine.py").write_text(AGENT.replace("% 2", "% 3 "))
    reload(agent)
    assert tt.sweep(None, None, GRID, **RUNS, **given, db=url).before == 2
    assert len(list(answers.iterdir())) == 4
    (tmp_path / "how_often.py").write_text("EVERY = 3")
    assert tt.sweep(None, None, GRID, **RUNS, **given, db=url).before == 4
    assert len(list(answers.iterdir())) == 6
    with pytest.raises(tt.ConfigError, match="the source of its module is not the one here"):
        made.load(Settings())


def test_own_model_of_a_sweep_is_asked_by_its_runs():
    Says.prompts.clear()
    (row,) = swept(
        {"seed": [0]}, executor="serial", model=Says, strategist="model", start="2012-06-01"
    ).to_dict("records")
    assert Says.prompts
    assert "the strategist answered 0 of" in row["problem"]
    assert "the rules decided alone" in row["problem"]


def test_set_whose_own_part_fails_is_none_that_counts_and_runs_again(agent, tmp_path):
    found = tt.sweep(
        None, None, GRID, **RUNS, executor="serial", strategist="agent_of_mine:fails", resume=tmp_path / "a"
    )
    assert list((tmp_path / "a").iterdir()) == []
    assert "errors were contained" in found.table["problem"][0]
    assert found.worth.sets_tried == 0


def test_set_whose_own_part_cannot_be_made_says_why(agent):
    problems = swept(executor="serial", strategist=agent.Refuses)["problem"]
    assert "Refuses'> cannot be made (KeyError: 'no desk')" in problems[0]


class Watched(SerialExecutor):
    """Keeps what would go to a worker."""

    def __init__(self):
        super().__init__()
        self.sent = b""

    def run(self, work, tasks, look):
        self.sent += pickle.dumps(tasks)
        return super().run(work, tasks, look)


def test_model_of_a_provider_is_asked_by_workers_with_the_key_of_their_environment(monkeypatch):
    terms: dict[str, Any] = {
        "strategist": "model", "model": "anthropic/claude-test", "start": "2012-06-01", "llm__attempts": 1,
        "llm__prices": [{"model": "claude-test", "input_usd": 0.0, "output_usd": 0.0}],
        "llm__strategist_deadline_ms": 60_000,
    }  # fmt: skip
    watched, secret = Watched(), "sk-of-nobody"
    with wire(monkeypatch, GOOD, key=secret) as server:
        serial = swept(executor=watched, **terms, runtime__db=f"postgresql://me:{secret}@nowhere/x")
        asked = len(server.requests)
        assert asked > 0
        assert secret.encode() not in watched.sent
        assert b"claude-test" in watched.sent
        pool = swept(executor="processes", processes=2, **terms)
        assert len(server.requests) == 2 * asked
        assert all(secret in " ".join(headers.values()) for headers, _ in server.requests)
    assert serial.equals(pool)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with pytest.raises(tt.ConfigError, match=f"environment of a worker cannot ask.*set {KEY_VARIABLE}"):
        swept(executor="serial", **terms)


def test_cassette_that_answers_is_in_the_key_of_a_task(tmp_path):
    tape, keys = tmp_path / "c.jsonl", []
    changes = {
        "runtime__llm": "replay", "runtime__cassette": str(tape), "policy_loop__strategist": "model",
        "llm__model": "anthropic/claude-test",
    }  # fmt: skip

    class Keys(SerialExecutor):
        def run(self, work, tasks, look):
            keys.extend(tasks)
            return super().run(work, {}, look)

    for text in ("", json.dumps({"other": 1})):
        tape.write_text(text)
        with opened_executor(Keys()) as executor, pytest.raises(KeyError):
            agent_answers(
                executor, make_world("random_walk", seed=3, bars=100, symbols=1),
                [(agent_settings(Settings(), changes), load_playbooks(None))], kept=None, keep=False,
                shown=lambda done, of: None,
            )  # fmt: skip
    assert len(set(keys)) == 2
