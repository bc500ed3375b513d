"""`thinktwice check`: the verdict, its exit code, and the example that passes."""

import asyncio
import json
import re
from typing import Any

import pytest

from schemas.reflection import PolicyLevelReflectionRequest
from schemas.settings import Settings
from schemas.vocabulary import CheckName
from services.playbooks.loader import load_playbooks
from services.policy_level_reflection_service import PolicyLevelReflectionService
from tests.worker.cli.checking import HELD, checked, codes, complaint, edited, example, name_of, run, unedited
from tests.worker.wire import GOOD, wire
from tools.docs_pages import DOCS
from worker.studies.faults import right_plans

PLANS = [(playbook.id, side) for playbook in load_playbooks(None) for side in sorted(playbook.rules)]
FULL = '[reflection]\nmode = "full"\nbudget_heartbeat_ms = 20_000\n[llm]\nmodel = "anthropic/claude-test"\n'
PRICED = '[[llm.prices]]\nmodel = "claude-test"\ninput_usd = 0.1\noutput_usd = 0.5\n'
PRICED += '[[llm.prices]]\nmodel = "claude-opus-5-5"\ninput_usd = 4.0\noutput_usd = 20.0\n'


@pytest.fixture(scope="module")
def embedded():
    return asyncio.run(right_plans.embedded_index(Settings()))


@pytest.mark.parametrize(("playbook", "direction"), PLANS)
def test_check_example_of_every_playbook_and_direction_passes(playbook, direction, embedded, monkeypatch):
    async def index_of(settings: Settings) -> Any:
        return embedded

    monkeypatch.setattr(right_plans, "embedded_index", index_of)
    request = example("--playbook", playbook, "--direction", direction)
    assert (request["proposal"]["playbook_id"], request["proposal"]["direction"]) == (playbook, direction)
    assert PolicyLevelReflectionRequest.model_validate_json(json.dumps(request)).payload() == request
    code, document = checked(request)
    assert (code, document["status"]) == (0, "pass")


def test_check_example_carries_the_limits_and_the_playbooks_of_the_settings(tmp_path, monkeypatch):
    text = (DOCS / "how-to" / "write-a-playbook.md").read_text("utf-8")
    own = text.partition('```toml title="my_playbooks/dip_buyer.toml"\n')[2].partition("```")[0]
    (tmp_path / "dip_buyer.toml").write_text(own)
    monkeypatch.setenv("THINKTWICE_RUNTIME__PLAYBOOKS", str(tmp_path))
    monkeypatch.setenv("THINKTWICE_ENVELOPE__ALLOWED_SYMBOLS", "MSFT")
    monkeypatch.setenv("THINKTWICE_ACCOUNT__CASH", "5000")
    request = example()
    assert (request["playbook"]["id"], request["snapshot"]["symbol"]) == ("dip_buyer", "MSFT")
    assert 4_000.0 < request["snapshot"]["risk"]["equity"] < 6_000.0
    assert checked(request)[0] == 0


def test_check_example_without_a_plan_that_passes_is_one_line(monkeypatch):
    monkeypatch.setenv("THINKTWICE_ENVELOPE__KILL_SWITCH", "true")
    result = run("check", "--example")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "plan" in result.stderr


FAULTS: list[tuple[dict[str, Any], int, str, set[str]]] = [
    ({"invariants__kill_switch": True, "snapshot__risk__kill_switch": True}, 4, "invariant", {"kill_switch"}),
    ({"invariants__allowed_symbols": ["MSFT"]}, 4, "invariant", {"symbol_not_allowed"}),
    ({"proposal__playbook_id": "mean_reversion"}, 4, "invariant", {"playbook_mismatch"}),
    (HELD, 4, "invariant", {"entry_while_in_position"}),
    ({"proposal__stop": " "}, 4, "invariant", {"missing_stop"}),
    ({"proposal__conviction": 0.9}, 3, "expectation", {"over_confident"}),
    ({"proposal__stop": "close + atr_14"}, 3, "coherence", {"stop_on_wrong_side"}),
    ({"proposal__direction": "short"}, 3, "coherence", {"stop_on_wrong_side", "text_contradicts_direction"}),
    ({"proposal__setup": "close >"}, 3, "coherence", {"rule_invalid"}),
    ({"memory": None}, 0, "memory", {"memory_insufficient"}),
]


@pytest.mark.parametrize(("changes", "code", "by", "found"), FAULTS, ids=name_of)
def test_check_fault_is_found_with_its_code_and_exit_code(changes, code, by, found):
    exit_code, document = checked(edited(**changes))
    assert exit_code == code
    assert document["status"] == {0: "pass", 3: "revise", 4: "block"}[code]
    assert found <= set(codes(document)[by])
    assert bool(document["requested_revisions"]) == (code != 0)


def test_check_finding_carries_severity_message_evidence_and_remedy():
    _, document = checked(edited(proposal__conviction=0.9))
    assert document["findings"]["expectation"] == [
        {
            "code": "over_confident",
            "severity": "major",
            "message": "conviction 0.9 against a hit rate of 0.400 over 0 trades",
            "evidence": [],
            "remedy": {"field": "conviction", "op": "at_most", "value": 0.65},
        }
    ]
    assert document["requested_revisions"] == ["over_confident: set conviction to at most 0.65"]


def documented_keys() -> set[str]:
    page = (DOCS / "reference" / "check-document.md").read_text("utf-8")
    return set(re.findall(r"^\| `([^`]+)`", page, re.MULTILINE))


def keys_of(document: dict[str, Any]) -> set[str]:
    """Keys as the page writes them: `[]` for a list of texts, `CHECK` for the name of a check."""
    found = {f"{key}[]" if isinstance(value, list) else key for key, value in document.items()}
    findings = [item for check in document["findings"].values() for item in check]
    inner = {
        f"{key}[]" if isinstance(value, list) else key
        for finding in findings
        for key, value in finding.items()
    }
    return (found - {"findings"}) | {f"findings.CHECK[].{key}" for key in inner}


def test_check_document_has_every_documented_key_and_no_other():
    _, document = checked(edited(proposal__conviction=0.9))
    assert keys_of(document) == documented_keys()
    assert list(document["findings"]) == [name.value for name in CheckName]


def test_check_broken_invariant_ends_it_before_any_other_check():
    _, document = checked(
        edited(invariants__kill_switch=True, snapshot__risk__kill_switch=True, proposal__conviction=0.9)
    )
    assert document["checks_run"] == ["invariant"]
    assert codes(document) == {"invariant": ["kill_switch"]}


def test_check_human_verdict_names_status_code_remedy_and_tier():
    result = run("check", "-", stdin=json.dumps(edited(proposal__conviction=0.9)))
    assert result.exit_code == 3
    lines = result.stdout.splitlines()
    assert lines[0] == "revise   trend_pullback long on AAPL"
    assert lines[2:6] == [
        "expectation",
        "  major   over_confident",
        "          conviction 0.9 against a hit rate of 0.400 over 0 trades",
        "          would satisfy it: conviction at most 0.65",
    ]
    assert lines[-2:-1] == ["checks     invariant, coherence, memory, expectation"]
    assert lines[-1].startswith("reached    deterministic tier, ran in ")


def test_check_file_and_standard_input_say_the_same(tmp_path):
    text = json.dumps(edited(proposal__conviction=0.9))
    (tmp_path / "plan.json").write_text("\ufeff" + text, "utf-8")
    from_file = json.loads(run("check", str(tmp_path / "plan.json"), "--json").stdout)
    from_pipe = json.loads(run("check", "-", "--json", stdin=text).stdout)
    measured = {"latency_ms", "over_budget"}
    assert {key: value for key, value in from_file.items() if key not in measured} == {
        key: value for key, value in from_pipe.items() if key not in measured
    }


def test_check_thresholds_come_from_the_configuration(tmp_path):
    (tmp_path / "strict.toml").write_text("[reflection]\nconviction_tolerance = 0.0\n")
    assert checked(unedited())[0] == 0
    code, document = checked(unedited(), str(tmp_path / "strict.toml"))
    assert (code, codes(document)) == (3, {"expectation": ["over_confident"]})


def test_check_exception_inside_is_an_error_that_is_named(monkeypatch):
    def broken(*args: Any) -> Any:
        raise ZeroDivisionError("a bug in a check")

    monkeypatch.setattr(PolicyLevelReflectionService, "_check", broken)
    code, document = checked(unedited())
    assert (code, document["status"], document["outcome"]) == (5, "error", "error")
    assert document["error"] == {"type": "ZeroDivisionError", "message": "a bug in a check"}
    assert document["findings"] == dict.fromkeys(document["findings"], [])
    result = run("check", "-", stdin=json.dumps(unedited()))
    assert (result.exit_code, result.stdout.splitlines()[0]) == (5, "error   trend_pullback long on AAPL")
    assert result.stderr == "thinktwice: the check itself failed: ZeroDivisionError: a bug in a check\n"


def test_check_full_without_a_key_is_refused_as_in_a_run(tmp_path):
    (tmp_path / "full.toml").write_text(FULL)
    text = complaint(json.dumps(unedited()), str(tmp_path / "full.toml"))
    assert "set ANTHROPIC_API_KEY, play a cassette with --llm replay, or use 'deterministic'" in text


def noted(**changes: Any) -> Any:
    """The request of a plan with a finding of weight, so that a second reader is asked."""
    return edited(invariants__max_risk_fraction=1e-4, **changes)


def test_check_full_asks_the_model_and_plays_its_reply_back(tmp_path, monkeypatch):
    config, tape = tmp_path / "full.toml", str(tmp_path / "tape.jsonl")
    config.write_text(FULL + PRICED)
    with wire(monkeypatch, GOOD) as server:
        code, live = checked(noted(), str(config), "--llm", "record", "--cassette", tape)
        assert len(server.requests) == 1
    assert (code, live["tier"], live["model"]["calls"]) == (0, "consolidated", 1)
    assert codes(live) == {"invariant": ["risk_fraction_over_cap"], "consolidation": ["model_agrees"]}
    code, replayed = checked(noted(), str(config), "--llm", "replay", "--cassette", tape)
    assert (code, replayed["tier"], replayed["findings"]) == (0, "consolidated", live["findings"])
    other = json.dumps(noted(proposal__conviction=0.5))
    assert "no recorded reply" in complaint(other, str(config), "--llm", "replay", "--cassette", tape)


def test_check_full_with_nobody_at_the_address_degrades_and_says_so(tmp_path, monkeypatch):
    (tmp_path / "full.toml").write_text(FULL + PRICED)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    code, document = checked(noted(), str(tmp_path / "full.toml"))
    assert (code, document["tier"], document["outcome"]) == (0, "deterministic", "degraded")
    assert document["skip_reason"].startswith("llm_")
