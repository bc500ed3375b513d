"""The critic that holds a text against the facts of a run: claim by claim, each text once."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from schemas.canonical import content_hash
from schemas.deliberation import Critique, CritiqueSource, TextCandidate, TextFinding
from schemas.errors import StoreError
from schemas.fact_check import FactCheck
from schemas.vocabulary import Severity
from services.deliberation.budget import Budget
from services.deliberation.fact_check import check_facts
from services.deliberation.policies import Round
from services.deliberation.refine import FACTS_FAILED, Task
from services.deliberation.rule_critics import critique_of
from services.evidence.run_facts import RunFacts
from services.model_calls.asking import NoReply

# Only a text without a word and a figure claims nothing that a run could answer: any word may be a claim.
MAY_CLAIM = re.compile(r"\d|[A-Za-z]{2}|\w_\w")


@dataclass
class FactCritic:
    """Holds every claim of a text against the facts of a run; keeps each check by the text's hash.

    `facts` may be a function: then they are read when the first text that may claim something needs them.
    `only` holds figures of these questions alone against them; None: everything.
    """

    facts: RunFacts | Callable[[], Awaitable[RunFacts]]
    name: str = "facts"
    checks: dict[str, FactCheck] = field(default_factory=dict)
    only: frozenset[str] | None = None
    source: ClassVar[CritiqueSource] = "data"

    def check(self, text: str) -> FactCheck | None:
        """The check of a text, made once; None where no facts were read."""
        if not isinstance(self.facts, RunFacts):
            return None
        key = content_hash(text)
        if key not in self.checks:
            self.checks[key] = check_facts(text, self.facts, self.only)
        return self.checks[key]

    @property
    def names(self) -> tuple[str, ...]:
        """Playbooks and symbols of the run; none where no facts were read."""
        known = self.facts if isinstance(self.facts, RunFacts) else None
        return () if known is None else (*known.playbook_ids, *known.symbols)

    async def read_for(self, text: str) -> NoReply | None:
        """Read the facts where a text may claim something; why they could not be read, or None."""
        if isinstance(self.facts, RunFacts) or not MAY_CLAIM.search(text):
            return None
        try:
            self.facts = await self.facts()
        except StoreError as error:
            return NoReply(FACTS_FAILED, str(error))
        return None

    async def critique(
        self, task: Task, candidate: TextCandidate, rounds: Sequence[Round], budget: Budget
    ) -> Critique | NoReply:
        """A finding for each claim that is not verified; the score is the share of those that are."""
        failed = await self.read_for(candidate.text)
        if failed is not None:
            return failed
        checked = self.check(candidate.text)
        if checked is None:
            return critique_of(self.name, self.source, candidate, "accuracy", None, ())
        findings = [
            TextFinding(
                code=f"{claim.verdict}_{claim.kind}",
                severity=Severity.MAJOR,
                dimension="accuracy",
                message=f"{claim.said!r} is {claim.verdict}" + (f": {claim.found}" if claim.found else ""),
                said=claim.said,
                within=claim.text,
                would_pass=claim.would_pass,
            )
            for claim in checked.failures
        ]
        score = None if not checked.claims else checked.count("verified") / len(checked.claims)
        return critique_of(self.name, self.source, candidate, "accuracy", score, findings)
