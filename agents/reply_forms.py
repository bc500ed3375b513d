"""The form of the replies to each prompt that a model is asked, and the purse that pays for them."""

from collections.abc import Collection, Mapping
from math import inf

from agents.change_reply import FORM as CHANGE
from agents.judge_reply import FORM as JUDGE
from agents.planning.plan_reply import FORM as PLAN
from agents.strategies.strategist_reply import FORM as STRATEGIST
from services.deliberation.forms import TEXT_FORMS
from services.high_level.narrative_reply import FORM as NARRATIVE
from services.model_calls.budget import Due
from services.model_calls.record import Purse
from services.model_calls.reply_format import ReplyFormat
from services.policy_checks.consolidation import FORM as CONSOLIDATION

SEAT_FORMS: Mapping[str, ReplyFormat] = {
    "fast": CONSOLIDATION,
    "slow": NARRATIVE,
    "strategist": STRATEGIST,
    "judge": JUDGE,
}
FORMS_ON_DEMAND: Mapping[str, ReplyFormat] = {**TEXT_FORMS, CHANGE.name: CHANGE, PLAN.name: PLAN}
PURSES: Mapping[str, Purse] = {
    **dict.fromkeys((*TEXT_FORMS, NARRATIVE.name), Purse.TEXT),
    **dict.fromkeys((CONSOLIDATION.name, STRATEGIST.name), Purse.EVENT),
    PLAN.name: Purse.EVIDENCE,
}


def due_of(seats: Collection[str], prompts: Collection[str]) -> Due:
    """From which purses the models of some seats and prompts are paid but texts; a report has one judge."""
    in_events = {Purse.EVENT: inf} if {"fast", "strategist"} & set(seats) else {}
    in_slots = {Purse.DECISION: 1.0} if "judge" in seats else {}
    return Due(in_events, in_slots | ({Purse.EVIDENCE: inf} if PLAN.name in prompts else {}))
