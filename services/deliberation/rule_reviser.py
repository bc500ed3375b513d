"""The reviser without a model: it puts stored values in the place of false ones and strikes the rest."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.fact_check import CheckedClaim
from services.deliberation.budget import Budget
from services.deliberation.policies import Round
from services.deliberation.refine import NOTHING_LEFT, Draft, Task
from services.deliberation.rule_critics import ClaimCritic, cut_off
from services.model_calls.asking import NoReply
from services.text.claims import sentences

ONE_FIGURE = re.compile(r"[-+−]?[$€£]?\d[\d,.]*\s?(?:%|R|percent|bars?|days?|trades?)?", re.I)
REPLACED = frozenset({"number", "percent", "count", "grade"})  # another name would be another claim


@dataclass(frozen=True)
class RuleReviser:
    """Replaces, then strikes, then ends the text where its last sentence ends."""

    facts: ClaimCritic | None = None

    async def revise(self, task: Task, rounds: Sequence[Round], budget: Budget) -> Draft | NoReply:
        """The text that is left, or why nothing is."""
        text = self.repaired(rounds[-1].candidate.text)
        return Draft(text, "rules") if text else NoReply(NOTHING_LEFT, "nothing of the text holds")

    def repaired(self, text: str) -> str:
        """The text with stored values, without what still fails, and without its unfinished end."""
        checked = None if self.facts is None else self.facts.check(text)
        if self.facts is not None and checked is not None:
            again = self.facts.check(replaced(text, checked.failures, self.facts.names))
            text = text if again is None else again.struck_text
        return ended(text)


def replaced(text: str, failures: Sequence[CheckedClaim], names: Sequence[str]) -> str:
    """The text with the one value that would pass in each place where there is one.

    Only in a sentence that names one of `names`: of "the account" a figure may be of another whole.
    """
    for claim in sorted(failures, key=lambda claim: claim.start, reverse=True):
        if claim.verdict == "contradicted" and claim.kind in REPLACED and _fits(claim, names):
            text = text[: claim.start] + claim.would_pass[0] + text[claim.end :]
    return text


def _fits(claim: CheckedClaim, names: Sequence[str]) -> bool:
    """Whether there is one value that would pass, and it reads in the place of what was said."""
    if len(claim.would_pass) != 1 or not any(name in claim.text for name in names):
        return False
    return claim.kind == "grade" or all(map(ONE_FIGURE.fullmatch, (claim.said, claim.would_pass[0])))


def ended(text: str) -> str:
    """The text up to the end of its last whole sentence; as it is where it does not break off."""
    if cut_off(text) is None:
        return text
    shorter = (text[: span.start].rstrip() for span in reversed(list(sentences(text))))
    return next((part for part in shorter if cut_off(part) is None), "")
