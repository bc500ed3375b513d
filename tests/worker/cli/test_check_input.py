"""What `thinktwice check` refuses: exit 2 and one line with the place, the value and the next step."""

import json

import pytest

from tests.worker.cli.checking import complaint, edited, name_of, run, unedited
from worker.strict_json import MAX_BYTES, MAX_DEPTH

ZONE = {"start": "noon", "end": 1, "reason": "halt"}
DEEP = '{"snapshot": ' + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1) + "}"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["not JSON", "line 1, column 1"]),
        ("{", ["not JSON", "line 1, column 2"]),
        ("nonsense", ["not JSON"]),
        (b"\xff\xfe{\x00", ["not UTF-8 at byte 0"]),
        ("[]", ["should be an object"]),
        ("null", ["should be an object"]),
        ('{"state": "IDLE", "state": "IDLE"}', ["state: the key stands twice"]),
        ('{"snapshot": {"close": NaN}}', ["snapshot.close: NaN is no number"]),
        ('{"snapshot": {"close": -Infinity}}', ["snapshot.close: -Infinity is no number"]),
        ('{"snapshot": {"close": 1e999}}', ["snapshot.close: 1e999 is beyond"]),
        ('{"snapshot": {"close": ' + "9" * 5_000 + "}}", ["snapshot.close: 9999", "... is beyond"]),
        ('{"state": "\\ud800"}', ["state: half of a surrogate pair"]),
        (DEEP, ["snapshot: nested deeper than 32 levels"]),
        ("[" * 200_000, ["nested deeper than 32 levels"]),
        (" " * (MAX_BYTES + 1), ["more than 5,000,000 bytes"]),
    ],
    ids=name_of,
)
def test_check_text_that_is_no_plain_json_is_refused_in_one_line(text, parts):
    said = complaint(text)
    assert said.startswith("thinktwice: standard input: ")
    assert all(part in said for part in [*parts, "thinktwice check --example"]), said


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"proposal__conviction": 1.4}, "proposal.conviction: 1.4: input should be less than or equal to 1 "),
        ({"proposal__conviction": "0.4"}, 'proposal.conviction: "0.4": input should be a valid number'),
        ({"proposal__conviction": True}, "proposal.conviction: true: input should be a valid number"),
        ({"proposal__horizon_bars": 2.5}, "proposal.horizon_bars: 2.5: input should be a valid integer"),
        ({"proposal__direction": "lnog"}, "Did you mean 'long'?"),
        ({"proposal__convicton": 0.4}, "proposal.convicton: unknown key. Did you mean 'conviction'?"),
        ({"playbook__rules__long__stopp": "close"}, "long.stopp: unknown key. Did you mean 'stop'?"),
        ({"snapshot__regime__labels__trendd": "up"}, "trendd: unknown key. Did you mean 'trend'?"),
        ({"memory__winners__0__rr": 1.0}, "memory.winners[0].rr: unknown key."),
        ({"proposal__scale_out_r": 1.0}, "proposal: scale_out_r 1.0 and scale_out_share"),
        ({"playbook__rules__long__stop": "close - {nope}"}, "playbook.rules.long.stop: {nope} is not"),
        ({"playbook__rules__long__setup": "close >"}, "playbook.rules.long.setup: "),
        ({"playbook__parameters": {}}, "is not a declared parameter"),
        ({"playbook__rationale_terms__long": []}, "playbook.rationale_terms.long: "),
        ({"invariants__no_learn_zones": [ZONE]}, "no_learn_zones[0].start: "),
    ],
    ids=name_of,
)  # fmt: skip
def test_check_request_with_a_wrong_part_is_refused_with_place_and_next_step(changes, part):
    said = complaint(json.dumps(edited(**changes)))
    assert part.rstrip() in said
    assert "See `thinktwice schema PolicyLevelReflectionRequest`" in said


def test_check_request_without_a_part_names_it():
    request = edited()
    del request["proposal"]["stop"], request["state"]
    assert "standard input: proposal.stop: missing (1 more). See" in complaint(json.dumps(request))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "thinktwice check --example > plan.json"),
        (["nowhere.json"], "file 'nowhere.json' does not exist"),
        (["."], "file '.' cannot be read"),
        (["-", "nowhere.toml"], "config file 'nowhere.toml' does not exist"),
        (["-", "--reflection", "off"], "reflection mode 'off' checks nothing"),
        (["-", "--reflection", "ful"], "Did you mean 'full'?"),
        (["-", "--reflection", "full"], "set llm.provider"),
        (["-", "--playbook", "trend_pullback"], "--playbook chooses what --example prints"),
        (["-", "--example"], "leave FILE out"),
        (["--example", "--reflection", "full"], "leave --reflection out"),
        (["--example", "--playbook", "trend_pullbak"], "Did you mean 'trend_pullback'?"),
        (["--example", "--direction", "lonng"], "has rules for long, short. Did you mean 'long'?"),
        (["--exmple"], "--example"),
    ],
)
def test_check_command_line_that_cannot_be_meant_is_one_line(words, part):
    result = run("check", *words, stdin=json.dumps(unedited()))
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert result.stderr.count("\n") == 1
    assert part in result.stderr
