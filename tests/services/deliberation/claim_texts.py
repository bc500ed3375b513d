"""Claims on the embedded run as of its last report, true and false ones, and texts of them."""

from typing import Any

from schemas.claims import Section
from services.deliberation.claim_critics import ClaimText
from services.deliberation.refine import Draft
from services.high_level.report_sections import TOPICS
from tests.services.deliberation.recorded import at_last_report
from tests.services.deliberation.scripted import section

MEAN = {"kind": "value", "measure": "mean_r", "of": {"playbook": "channel_breakout"}}
TRADES = {"kind": "value", "measure": "trades", "of": {"playbook": "channel_breakout"}}
GRADE = {"kind": "grade", "of": {"playbook": "squeeze_breakout"}, "grade": "count_only"}
LIE = {"kind": "sign", "measure": "mean_r", "of": {"playbook": "squeeze_breakout"}, "sign": "positive"}
UNKNOWN = {"kind": "value", "measure": "mean_r", "of": {"symbol": "NVDA"}}
GIVEN, BETTER = section(MEAN), section(MEAN, TRADES)


def writer() -> ClaimText:
    """Writes claims on the run."""
    return ClaimText(at_last_report(), topics=TOPICS)


def draft_of(*sections: dict[str, Any]) -> Draft:
    """A text that was given, of these sections."""
    return writer().draft([Section.model_validate(item) for item in sections], author="given")


DRAFT = draft_of(GIVEN)
