"""The ledger of trials: what was tried on the bars of a run, in its store, before the run began."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from schemas.contract import Contract

MOST = 1_000_000_000_000
COUNTS = ("configurations", "hypotheses", "candidates", "promotions")  # that a ledger shows
NOUNS = (("hypothesis", "hypotheses"), ("candidate", "candidates"), ("promotion", "promotions"))


class TrialCounts(Contract):
    """What one run has tried so far: hypotheses of its family, candidates and bans begun, and promotions."""

    hypotheses: int = Field(default=0, ge=0, le=MOST)
    candidates: int = Field(default=0, ge=0, le=MOST)
    promotions: int = Field(default=0, ge=0, le=MOST)

    @model_validator(mode="after")
    def _promoted_what_began(self) -> "TrialCounts":
        if self.promotions > self.candidates:
            raise ValueError(f"{self.promotions} promotions of {self.candidates} that began")
        return self


class TrialLedger(TrialCounts):
    """Sums over the distinct configurations that were tried on overlapping bars before a run.

    Attributes:
        configurations: how many; the budget of every hypothesis is shared with them.
        fresh: they are told and not counted, as the operator asked with `--fresh-ledger`.
    """

    configurations: int = Field(default=0, ge=0, le=MOST)
    fresh: bool = False

    @property
    def in_force(self) -> "TrialLedger":
        """What is counted."""
        return NO_TRIALS if self.fresh else self

    @property
    def shown(self) -> "TrialLedger | None":
        """What stands in genesis rows, requests and reports: nothing where nothing was tried before."""
        return self if self.configurations else None

    @property
    def with_a_rule(self) -> "TrialLedger":
        """With one more configuration of one hypothesis; a fresh ledger counts from here on."""
        before = self.in_force
        more = {name: min(getattr(before, name) + 1, MOST) for name in ("configurations", "hypotheses")}
        return before.model_copy(update=more)

    def document(self) -> dict[str, Any]:
        """What was tried, and beside it what of it is counted: all, or nothing of a fresh ledger."""
        return {**self.payload(), "counted": self.in_force.model_dump(exclude={"fresh"})}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> "TrialLedger":
        """What `document` was made of."""
        return cls.model_validate({name: document[name] for name in cls.model_fields})

    @property
    def sums(self) -> str:
        """`41 hypotheses, 1 candidate, 0 promotions`."""
        shown = zip((self.hypotheses, self.candidates, self.promotions), NOUNS, strict=True)
        return ", ".join(f"{count:,} {row if count == 1 else several}" for count, (row, several) in shown)

    def line(self) -> str | None:
        """One line for people; None where nothing was tried before."""
        if not self.configurations:
            return None
        single = self.configurations == 1
        tried = f"{self.configurations:,} earlier configuration{'' if single else 's'}"
        held = f"{tried} on these bars {'is' if single else 'are'}"
        if self.fresh:
            return f"fresh ledger: {held} not counted"
        return f"ledger of trials: {held} counted ({self.sums})"


NO_TRIALS = TrialLedger()


def count_ledger(ledger: TrialLedger | None) -> TrialLedger:
    """What is counted of a ledger that a request or report may have."""
    return NO_TRIALS if ledger is None else ledger.in_force
