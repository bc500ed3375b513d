"""What `thinktwice check` refuses: exit 2 and one line with the place, the value and the next step."""

import json

import pytest

from tests.each_case import check_each
from tests.worker.cli.checking import HELD, POSITION, checked, complaint, edited, name_of, run, unedited
from worker.studies.plan_check.check_request import MAX_BYTES, MAX_DEPTH

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
    message = complaint(text)
    assert message.startswith("thinktwice: standard input: ")
    assert all(part in message for part in [*parts, "thinktwice check --example"]), message


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
        ({"invariants__no_learn_zones": [ZONE]}, "no_learn_zones[0].start: "),
    ],
    ids=name_of,
)  # fmt: skip
def test_check_request_with_a_wrong_part_is_refused_with_place_and_next_step(changes, part):
    text = complaint(json.dumps(edited(**changes)))
    assert part.rstrip() in text
    assert "See `thinktwice schema PolicyLevelReflectionRequest`" in text


NOW = edited()["snapshot"]["ts_event"]
YEARS_AHEAD = NOW + 31 * 365 * 86_400 * 10**9


@check_each(
    ("changes", "part"),
    [
        ({"snapshot__known_at": YEARS_AHEAD}, f"snapshot: known_at {YEARS_AHEAD} is not ts_event {NOW}:"),
        ({"snapshot__ts_event": NOW + 1}, f"snapshot: known_at {NOW} is not ts_event {NOW + 1}: both"),
        ({"snapshot__bar_label": NOW - 1}, f"snapshot: bar_label {NOW - 1} is neither open"),
        ({"snapshot__timeframe": "2w"}, "snapshot.timeframe: '2w' is not one of"),
        ({"snapshot__timeframe": "1h"}, "of a 1h bar that closes at ts_event"),
        ({"snapshot__close": 9.0}, "snapshot: close 9.0 is not features.close 184.5: they are"),
        (
            {"snapshot__base_rates": {"population": 40, "winners": 30, "losers": 30}},
            "snapshot.base_rates: winners 30 and losers 30 are more than population 40: an episode",
        ),
        (
            {"memory__base_rates": {"population": 40, "winners": 30, "losers": 30}},
            "memory.base_rates: winners 30 and losers 30 are more than population 40",
        ),
        ({"snapshot__base_rates__losers": -1}, "snapshot.base_rates.losers: -1: input should be greater"),
        (
            {"snapshot__expectations__0__hit_rate": 0.9},
            "snapshot.expectations[0]: hit_rate 0.9 over n 0 is not prior.hit_rate 0.4: nothing was measured",
        ),
        ({"snapshot__expectations__0__mfe_p50_r": 3.0}, "mfe_p50_r 3.0 over n 0 is not prior.mfe_p50_r"),
        (
            {"snapshot__expectations__0__n": 5, "snapshot__expectations__0__hit_rate": 0.9},
            "snapshot.expectations[0]: hit_rate 0.9 over n 5: with the prior's 0.4 over 20 trades",
        ),
        (
            {"snapshot__expectations__0__n": 5, "snapshot__expectations__0__hold_p50_bars": 99.0},
            "hold_p90_bars 15.0 is below hold_p50_bars 99.0",
        ),
        ({"snapshot__expectations": [*edited()["snapshot"]["expectations"]] * 2}, "name a playbook twice"),
        ({"snapshot__data_window__bars": -4}, "snapshot.data_window.bars: -4: input should be greater"),
        ({"snapshot__data_window__first_label": NOW + 1}, "snapshot.data_window: first_label"),
        ({"snapshot__data_window__last_label": NOW}, "snapshot: data_window.last_label"),
        ({"snapshot__position": POSITION}, "snapshot: state IDLE has no position, but one is given"),
        (
            {"snapshot__position": {**POSITION, "r_now": 0.9}},
            "snapshot.position: r_now 0.9 lies outside mae_r -0.2 to mfe_r 0.7",
        ),
        (
            HELD | {"snapshot__position": {**POSITION, "entry_label": NOW}},
            "snapshot: position.entry_label",
        ),
        ({"memory__winners__0__known_at": NOW + 1}, f"memory: winners[0].known_at {NOW + 1} lies after"),
        ({"memory__winners__2__r": -0.9}, "memory: winners[2].r -0.9: winners have an R above zero"),
        ({"memory__losers__1__r": 0.0}, "memory: losers[1].r 0.0: losers have an R below zero"),
        ({"memory__winners__2__distance": 0.01}, "memory: winners[2].distance 0.01 is below the one before"),
        ({"memory__losers__1__episode_id": "loser1"}, "losers[1].episode_id 'loser1' is in losers twice"),
        ({"memory__losers__1__episode_id": "winner1"}, "'winner1' is among the winners and among the losers"),
        ({"memory__losers__1__direction": "short"}, "memory: cases are long and short"),
        ({"memory__base_rates__winners": 2}, "memory: 3 winners are given, base_rates.winners says 2"),
        ({"memory__winners": edited()["memory"]["winners"] * 7}, "memory.winners: tuple should have at most"),
        ({"memory__degraded": "over_budget"}, "says that nothing was retrieved, but there are cases"),
        ({"invariants__no_learn_zones": [{**ZONE, "start": 2}]}, "a zone must not end before it starts"),
    ],
    ids=name_of,
)  # fmt: skip
def test_check_request_that_contradicts_itself_is_refused_with_value_place_and_next_step(changes, part):
    text = complaint(json.dumps(edited(**changes)))
    assert part in text
    assert "See `thinktwice schema PolicyLevelReflectionRequest`" in text


@pytest.mark.parametrize(
    "changes",
    [
        {"snapshot__features__close": None},
        {"snapshot__bar_label": NOW, "snapshot__data_window__last_label": NOW},
        {"snapshot__base_rates": {"population": 42, "winners": 22, "losers": 20}},
        {"snapshot__expectations__0__n": 5, "snapshot__expectations__0__hit_rate": 0.52},
        HELD,
        {"memory__known_at": NOW - 1, "memory__winners": [], "memory__losers": []},
    ],
    ids=name_of,
)
def test_check_request_at_the_edge_of_what_agrees_is_taken(changes):
    assert checked(edited(**changes))[0] in (0, 3, 4)


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
        (["-", "--reflection", "full"], "set llm.model"),
        (["-", "--playbook", "trend_pullback"], "--playbook chooses what --example prints"),
        (["-", "--example"], "leave FILE out"),
        (["--example", "--reflection", "full"], "leave --reflection out"),
        (["--example", "--playbook", "trend_pullbak"], "Did you mean 'trend_pullback'?"),
        (["--example", "--direction", "lonng"], "there are long, short. Did you mean 'long'?"),
        (["--exmple"], "--example"),
    ],
)
def test_check_command_line_that_cannot_be_meant_is_one_line(words, part):
    result = run("check", *words, stdin=json.dumps(unedited()))
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert result.stderr.count("\n") == 1
    assert part in result.stderr
