"""What trades of a playbook look like by its rules alone: measured at slots, for those that leave it open."""

from dataclasses import dataclass, field
from math import fsum

from schemas.playbook import Expectation, PlaybookDefinition
from services.playbooks.expectations import ExpectationBook, TradeOutcomes
from services.ports import EventJournal, PlaybookReader
from services.slow_loop.shadow_ledger import ShadowLedger, ShadowLedgers
from services.statistics.quantiles import quantile

FEWEST_TRADES = 20  # below them the prior stands


@dataclass(frozen=True)
class ExpectationMeter:
    """Measures on the bars of a run; never inside the policy loop, which reads the book alone."""

    ledgers: ShadowLedgers
    book: ExpectationBook
    playbooks: PlaybookReader
    journal: EventJournal
    _traded: dict[str, tuple[ShadowLedger, TradeOutcomes]] = field(default_factory=dict, init=False)

    def measure(self, row: int, now: int) -> None:
        """Measure on the bars up to row `row`, which closed at `now` (ns); a row of what has changed."""
        for definition in (version.definition for version in self.playbooks.active()):
            if definition.expectation.source != "prior":
                continue
            found = self._read_trades(definition, row, now)
            if found is not None and self.book.measure(definition, found):
                payload = {"playbook_id": definition.id, "version": definition.version, "expectation": found}
                self.journal.append("expectation_measured", ts_event=now, known_at=now, payload=payload)

    def _read_trades(self, definition: PlaybookDefinition, row: int, now: int) -> Expectation | None:
        new = self.ledgers.open(definition, tuple(definition.rules), 0), TradeOutcomes()
        ledger, seen = self._traded.setdefault(definition.content_hash, new)
        seen.take(ledger.resolve_learnable(row + 1))
        count = len(seen.r)
        if count < FEWEST_TRADES:
            return None
        return Expectation(
            source="measured",
            known_at=now,
            trades=count,
            expectancy_r=fsum(seen.r) / count,
            hit_rate=len(seen.mae_of_winners) / count,
            hold_p50_bars=max(1.0, quantile(seen.holds, 0.5)),
            hold_p90_bars=max(1.0, quantile(seen.holds, 0.9)),
            winner_mae_p80_r=min(0.0, quantile(seen.mae_of_winners, 0.2)),
            mfe_p50_r=max(0.0, quantile(seen.mfe, 0.5)),
        )
