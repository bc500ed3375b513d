import json
from dataclasses import dataclass

import pytest


@dataclass
class Result:
    title: str
    passed: bool
    evidence: list[str]


HELD = Result("a month of bars", True, ["model calls [0]", "memory reads 0"])
FAILED = Result("an inconsistent plan", False, ["status pass"])


@pytest.fixture
def scenarios(shell, monkeypatch):
    def run(results, *words):
        made = []
        monkeypatch.setattr("worker.cli.check.ready_engine", lambda: made.append(True))
        monkeypatch.setattr("worker.studies.scenarios.run_scenarios", lambda: results * len(made))
        return shell.run("scenarios", *words)

    return run


def test_scenarios_that_hold_print_their_evidence_and_exit_zero(scenarios):
    result = scenarios([HELD, HELD])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:3] == [
        "1. a month of bars: ok",
        "   model calls [0]",
        "   memory reads 0",
    ]
    assert "2 of 2 scenarios hold" in result.stdout


def test_scenarios_one_that_fails_exits_one(scenarios):
    result = scenarios([HELD, FAILED])
    assert result.exit_code == 1
    assert "2. an inconsistent plan: FAILED" in result.stdout


def test_scenarios_json_holds_the_same(scenarios):
    result = scenarios([FAILED], "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == [
        {"title": FAILED.title, "passed": False, "evidence": FAILED.evidence}
    ]
