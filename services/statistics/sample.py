"""What one cluster has shown at one look, and what may be claimed of it."""

from dataclasses import dataclass
from functools import cached_property

from schemas.vocabulary import Claim
from services.statistics.calendar_units import BlockUnit

CLAIMS: tuple[Claim, Claim] = ("losing", "gaining")
INTERVAL_ALPHA = 0.05
PROVEN_E = 2.0 / INTERVAL_ALPHA  # for one claim of two: what the interval excludes


@dataclass(frozen=True)
class Sample:
    """What one cluster has shown at one look.

    Attributes:
        n: resolved trades.
        counted: those of complete blocks; the means and the evidence are theirs.
        blocks: complete ones.
        unit: what one block is.
        reference: the mean R under both hypotheses.
        mean_r, mean_raw: over the counted trades, winsorised and as it is; None without a block.
        e_values: of losing and gaining, with restarts.
        plain: the same without restarts.
        together: blocks of the longest groups that have to agree with single blocks; 1 where none do.
        otherwise: the other reading, where rows may be one trade or several; a claim has to stand in both.
    """

    n: int
    counted: int
    blocks: int
    unit: BlockUnit
    reference: float
    mean_r: float | None
    mean_raw: float | None
    e_values: tuple[float, float]
    plain: tuple[float, float]
    together: int
    otherwise: "Sample | None" = None

    @property
    def readings(self) -> tuple["Sample", ...]:
        """This reading of the rows, and the other one, if there is one."""
        return (self,) if self.otherwise is None else (self, self.otherwise)

    @cached_property
    def side(self) -> Claim | None:
        """The claim on whose side all means of all readings lie."""
        sides = {reading._own_side for reading in self.readings}
        return sides.pop() if len(sides) == 1 else None

    @property
    def _own_side(self) -> Claim | None:
        if self.mean_r is None or self.mean_raw is None:
            return None
        if max(self.mean_r, self.mean_raw) < self.reference:
            return "losing"
        return "gaining" if min(self.mean_r, self.mean_raw) > self.reference else None

    @property
    def contested(self) -> bool:
        """Whether the other claim is proven by some stretch: then the means of all trades say nothing."""
        return self._against >= PROVEN_E

    @property
    def _against(self) -> float:
        """The largest evidence of a reading for the claim that the means do not lie on the side of."""
        if self.side is None:
            return 1.0
        return max(reading.e_values[1 - CLAIMS.index(self.side)] for reading in self.readings)

    @property
    def leaning(self) -> Claim | None:
        """The claim on whose side both means lie, unless the other one is proven by some stretch."""
        return None if self.contested else self.side

    @property
    def e_value(self) -> float:
        """Evidence for what the cluster leans to, the smaller of both readings; 1 while that is nothing."""
        if self.leaning is None:
            return 1.0
        return min(reading.e_values[CLAIMS.index(self.leaning)] for reading in self.readings)

    def proof_of(self, claim: Claim) -> float:
        """Evidence for a claim without restarts; 1 where the means do not lie on its side."""
        if self.leaning != claim:
            return 1.0
        return min(reading.plain[CLAIMS.index(claim)] for reading in self.readings)

    def _torn_by_readings(self) -> list[str]:
        """That the other reading lies elsewhere, or proves less; nothing where this one has no claim."""
        own, other = self._own_side, self.otherwise
        if own is None or other is None or other.mean_r is None or other.mean_raw is None:
            return []
        nearest = (min if own == "gaining" else max)(other.mean_r, other.mean_raw)
        both = f"the mean is {self.mean_r:+.3g}R or {nearest:+.3g}R, by which rows are a trade"
        step = "name trades by a column position_id"
        if self.side is None:
            return [f"{both}: its side depends on that, and no claim stands; {step}"]
        here, there = (reading.e_values[CLAIMS.index(own)] for reading in self.readings)
        text = f"{both}, and E {here:.4g} or {there:.4g}: the smaller one counts; {step}"
        return [text] if there < here else []

    @property
    def note(self) -> str:
        """What was odd about the blocks: a mean that turned, several held together; mostly empty."""
        found = []
        if self.side is not None and self.contested:
            other = 1 - CLAIMS.index(self.side)
            found.append(
                f"the means of all trades lie on the {self.side} side, but a stretch of blocks proves "
                f"{CLAIMS[other]} (E {self._against:.4g}, at least {PROVEN_E:g}): the mean has "
                "turned, and no claim stands"
            )
        found += self._torn_by_readings()
        together = max(reading.together for reading in self.readings)
        if together > 1:
            found.append(
                f"{self.unit}s resemble each other, or trades outlast them: what up to {together} of them "
                "show together counts where it is less"
            )
        return "; ".join(found)
