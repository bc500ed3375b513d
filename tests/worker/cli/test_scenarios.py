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


def test_scenarios_print_their_evidence_and_exit_by_whether_all_hold(scenarios):
    held, failed = scenarios([HELD, HELD]), scenarios([HELD, FAILED])
    assert (held.exit_code, failed.exit_code) == (0, 1)
    assert held.stdout.splitlines()[:2] == ["1. a month of bars: ok", "   model calls [0]"]
    assert "2 of 2 scenarios hold" in held.stdout
    assert "2. an inconsistent plan: FAILED" in failed.stdout
    document = scenarios([FAILED], "--json")
    assert json.loads(document.stdout) == [vars(FAILED)]
    assert document.exit_code == 1
