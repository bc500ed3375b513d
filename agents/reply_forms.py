"""The form of the replies to each prompt that a model is asked."""

from collections.abc import Mapping

from agents.change_reply import FORM as CHANGE
from agents.judge_reply import FORM as JUDGE
from agents.planning.plan_reply import FORM as PLAN
from agents.strategies.strategist_reply import FORM as STRATEGIST
from services.deliberation.forms import TEXT_FORMS
from services.high_level.narrative_reply import FORM as NARRATIVE
from services.model_calls.reply_format import ReplyFormat
from services.policy_checks.consolidation import FORM as CONSOLIDATION

SEAT_FORMS: Mapping[str, ReplyFormat] = {
    "fast": CONSOLIDATION,
    "slow": NARRATIVE,
    "strategist": STRATEGIST,
    "judge": JUDGE,
}
FORMS_ON_DEMAND: Mapping[str, ReplyFormat] = {**TEXT_FORMS, CHANGE.name: CHANGE, PLAN.name: PLAN}
