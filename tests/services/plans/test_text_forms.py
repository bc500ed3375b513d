"""A person's words as typed actions, and what is said of words that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import ConfigError
from schemas.judge import JudgeAction
from schemas.plan import MOST_ACTIONS, RollbackAction
from schemas.settings import JudgeSettings
from services.plans.drafting import EmptyPlan, PlanFacts, draft
from services.plans.text_forms import FORMS, LONGEST_TEXT, UnreadableText, read_text
from services.playbooks.loader import load_playbooks
from services.slow_loop.action_contract import ContractState, check_action, lowers_exposure

BOOKS = {book.id: book for book in load_playbooks()}
JUDGE = JudgeSettings()
BAN = "ban channel_breakout in up/high"


def read(text: str):
    return read_text(text, BOOKS, JUDGE)


def fields(text: str) -> dict[str, object]:
    """What the only action of a text says beside its reason."""
    (proposed,) = read(text)
    told = proposed.action.payload()
    del told["reason"]
    return {name: value for name, value in told.items() if value is not None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            BAN,
            {
                "kind": "set_eligibility",
                "playbook_id": "channel_breakout",
                "regime": "up/high",
                "eligible": False,
                "life_blocks": JUDGE.action_life_blocks,
                "lowers_exposure": True,
            },
        ),
        (
            "allow mean_reversion in sideways/low short",
            {
                "kind": "set_eligibility",
                "playbook_id": "mean_reversion",
                "regime": "sideways/low",
                "direction": "short",
                "eligible": True,
                "life_blocks": JUDGE.shadow_life_blocks,
                "lowers_exposure": False,
            },
        ),
        (
            "set reward of channel_breakout to 2",
            {
                "kind": "set_threshold",
                "playbook_id": "channel_breakout",
                "parameter": "reward",
                "value": 2.0,
                "lowers_exposure": False,
            },
        ),
        (
            "set failure_atr of channel_breakout to 0.5",
            {
                "kind": "set_invalidation",
                "playbook_id": "channel_breakout",
                "parameter": "failure_atr",
                "value": 0.5,
                "lowers_exposure": lowers_exposure(
                    JudgeAction(
                        kind="set_invalidation",
                        playbook_id="channel_breakout",
                        parameter="failure_atr",
                        value=0.5,
                        reason="",
                    ),
                    BOOKS,
                ),
            },
        ),
        (
            "set the risk of channel_breakout to 0.25 %",
            {
                "kind": "set_risk_fraction",
                "playbook_id": "channel_breakout",
                "value": 0.0025,
                "lowers_exposure": True,
            },
        ),
        (
            "set risk of channel_breakout to 0.7%",
            {
                "kind": "set_risk_fraction",
                "playbook_id": "channel_breakout",
                "value": 0.007,
                "lowers_exposure": False,
            },
        ),
        ("roll back trend_pullback", {"kind": "rollback", "playbook_id": "trend_pullback"}),
        ("replan", {"kind": "replan", "lowers_exposure": False}),
    ],
)
def test_form_is_read_as_its_action(text, expected):
    assert fields(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "BAN Channel_Breakout IN Up/High",
        "  ban   'channel_breakout'  in\t\"up/high\" ",
        "- ban “channel_breakout” in up / high.",
        "1. ban `channel_breakout` in `up/high`;",
    ],
)
def test_words_are_read_whatever_their_case_blanks_and_quotes(text):
    assert fields(text) == fields(BAN)


def test_rollback_is_written_in_one_word_or_in_two():
    for text in ("rollback trend_pullback", "Roll-back trend_pullback", "ROLL BACK trend_pullback"):
        assert isinstance(read(text)[0].action, RollbackAction)


def test_several_actions_keep_their_order_and_a_checkpoint_marks_the_one_before_it():
    text = f"{BAN}; set reward of channel_breakout to 2\ncheckpoint\r\nreplan\n\nThen Ask\nreplan"
    found = read(text)
    kinds = [proposed.action.kind for proposed in found]
    assert kinds == ["set_eligibility", "set_threshold", "replan", "replan"]
    assert [proposed.checkpoint for proposed in found] == [False, True, True, False]


def test_reason_is_what_the_person_wrote_and_is_cut():
    assert read(f"{BAN};replan")[0].action.reason == BAN
    long = read_text("replan", BOOKS, JUDGE, reason="because\nit " + "rains " * 1_000)[0].action.reason
    assert long.startswith("because it rains")
    assert len(long) == 300


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ban chanel_breakout in up/high", "Did you mean 'channel_breakout'?"),
        ("roll back zzz", "There are channel_breakout, "),
        ("set stp_atr of channel_breakout to 2", "Did you mean 'stop_atr'?"),
        ("set x of channel_breakout to 2", "It has channel, nearness, stop_atr"),
        ("ban channel_breakout in up/hihg", "Did you mean 'up/high'?"),
        ("ban channel_breakout in north/cold", "Trends are sideways, up, down; "),
        ("set stop_atr of channel_breakout to two", "'two' is no number: stop_atr takes one of [1.5, 2.0"),
        ("set stop_atr of channel_breakout to 2,5", "'2,5' is no number"),
        ("set stop_atr of channel_breakout to 1e1", "'1e1' is no number"),
        ("set stop_atr of channel_breakout to nan", "'nan' is no number"),
        ("set the risk of channel_breakout to 0.005", "write it in percent of equity, as `0.5 %`"),
        ("set the risk of channel_breakout to half a %", "write it in percent"),
        ("checkpoint; replan", "behind no action"),
        ("replan; checkpoint; checkpoint; replan", "behind no action"),
        ("replan; then ask", "nothing stands behind the last checkpoint"),
        ("replan;" * (MOST_ACTIONS + 1), f"at most {MOST_ACTIONS}"),
        ("x" * (LONGEST_TEXT + 1), "at most 8,000: shorten it"),
        (" \n\t ", "the text is empty"),
        ("replan\x07", r"holds '\x07'"),
        ("re\u200bplan", r"holds '\u200b'"),
        ("replan \u202e", r"holds '\u202e'"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line_with_what_would_do(text, said):
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, UnreadableText)


@pytest.mark.parametrize(
    "text",
    [
        "please trade less when it is quiet",
        f"{BAN}; and then do what you think is right",
        "ban channel_breakout",
        "ban channel_breakout in up/high sideways",
        "do not ban channel_breakout in up/high",
        "set reward of channel_breakout to 2 or 3",
        ";;",
        "checkpoints",
    ],
)
def test_text_without_a_form_shows_the_forms(text):
    with pytest.raises(UnreadableText) as caught:
        read(text)
    assert all(form in str(caught.value) for form in FORMS)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=80))
def test_any_text_is_read_or_told(text):
    told = ""
    try:
        found = read(text)
    except ConfigError as error:
        found, told = (), str(error)
    assert bool(found) != bool(told)
    assert "\n" not in told


def test_value_off_the_grid_is_the_contracts_to_refuse_once_with_the_grid():
    (proposed,) = read("set stop_atr of channel_breakout to 1.7")
    refusal = check_action(proposed.action, ContractState(BOOKS, JUDGE))
    assert refusal is not None
    assert (refusal.code, "[1.5, 2.0, 2.5, 3.0]" in refusal.reason) == ("off_grid", True)


def test_text_becomes_a_plan_that_says_its_steps_and_one_that_is_refused_becomes_none():
    facts = PlanFacts(
        at=1, expires_at=2, definitions=BOOKS, next_versions=dict.fromkeys(BOOKS, 2), judge=JUDGE
    )
    plan = draft(
        read(f"{BAN} long\ncheckpoint\nset reward of channel_breakout to 2"), facts, "text", understanding="u"
    )
    assert not isinstance(plan, EmptyPlan)
    assert [
        (step.number, step.action.kind, step.checkpoint, step.lowers_exposure) for step in plan.steps
    ] == [
        (1, "set_eligibility", True, True),
        (2, "set_threshold", False, False),
    ]
    empty = draft(read("set stop_atr of channel_breakout to 1.7"), facts, "text", understanding="u")
    assert isinstance(empty, EmptyPlan)
    assert [item.code for item in empty.refused] == ["off_grid"]
