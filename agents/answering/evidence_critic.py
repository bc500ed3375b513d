"""The fact critic of an answer: what the fact catalogue has no question for may stand in a tool's reply."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.answering.borne_out import stands_in
from agents.answering.rules import ASKED_FOR
from agents.answering.statements import MOST_ROWS, Statement
from schemas.evidence_plan import EvidenceCall
from schemas.fact_check import CheckedClaim, FactCheck, FactRow
from schemas.settings.planner import OWN
from services.deliberation.fact_check import FactCritic, check_facts, strike
from services.evidence.run_facts import RunFacts


@dataclass
class EvidenceCritic(FactCritic):
    """Holds a text against the facts of a run, then what these cannot answer against the replies of tools.

    What the facts contradict stays contradicted. Replies on trades bear nothing out here: the facts answer
    for trades.

    Attributes:
        calls: with the replies.
    """

    calls: Sequence[EvidenceCall] = field(default=())

    def check(self, text: str) -> FactCheck | None:
        """The check of a text; a sentence that a reply bears out is verified by it."""
        checked = super().check(text)
        if checked is None or checked.holds:
            return checked
        claims = tuple(self._look_up(claim, checked.claims) for claim in checked.claims)
        failed = {claim.start for claim in claims if claim.verdict != "verified"}
        return checked.model_copy(update={"claims": claims, "struck_text": strike(text, failed)})

    def _look_up(self, claim: CheckedClaim, claims: Sequence[CheckedClaim]) -> CheckedClaim:
        if claim.verdict != "unverifiable" or not any(character.isdigit() for character in claim.text):
            return claim
        if any(other.verdict == "contradicted" for other in claims if other.text == claim.text):
            return claim
        for call in self.calls:
            if call.reply.is_error or (call.client == OWN and call.method in ASKED_FOR):
                continue
            if stands_in(claim.text, call.reply.text, call.params):
                found = f"{call.client}.{call.method} answered so"
                return claim.model_copy(update={"verdict": "verified", "found": found, "rows": _rows(call)})
        return claim


def keep_believed(
    statements: Sequence[Statement], facts: RunFacts
) -> tuple[tuple[Statement, ...], tuple[CheckedClaim, ...]]:
    """The statements without words of another's server that the run contradicts, and the claims of these.

    Such words are quoted, so no value is put right in them; names of its own are no claims about the run.
    """
    kept, false = list[Statement](), list[CheckedClaim]()
    for statement in statements:
        foreign = any(row.seq is None for row in statement.rows)
        claims = check_facts(statement.text, facts).claims if foreign else ()
        found = [claim for claim in claims if claim.verdict == "contradicted" and claim.kind != "name"]
        false += found
        kept += [] if found else [statement]
    return tuple(kept), tuple(false)


def _rows(call: EvidenceCall) -> tuple[FactRow, ...]:
    content = call.reply.content or {}
    rows = content.get("rows", []) if call.client == OWN else []
    found = tuple(FactRow.model_validate(row) for row in rows[:MOST_ROWS])
    return found or (FactRow(seq=None, kind=f"{call.client}.{call.method}"),)
