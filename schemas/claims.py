"""Typed claims on a run: everything that a text may say of it, as data.

Whoever writes a text picks and orders claims; code looks each one up, refuses what is not so, and writes the
words with their rows. Free words stand apart as a comment, which holds no figure and no name of the run.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from schemas.contract import Contract
from schemas.vocabulary import Direction, EvidenceGrade, ExitReason, FailureMode, RecommendedAction

LONGEST_COMMENT = 300
MOST_TOPIC = 60  # characters
DAY = r"\d{4}(-\d{2}(-\d{2})?)?"
PERIOD = rf"{DAY}(/{DAY})?"

Dimension = Literal[
    "playbook", "symbol", "regime", "direction", "exit_reason", "failure_mode", "outcome", "year"
]
MeasureName = Literal[
    # of the trades of a subject
    "trades", "winners", "losers", "longs", "shorts", "win_rate", "loss_rate", "mean_r", "median_r",
    "total_r", "best_r", "worst_r", "profit_factor", "hold_mean", "hold_p50", "hold_max", "hold_min",
    "mean_mae", "mean_mfe", "worst_mae", "best_mfe", "mfe_p50", "pnl", "gross_pnl", "mean_pnl", "best_pnl",
    "worst_pnl", "fees", "mean_fees",
    # of a cluster that the newest report graded
    "gate_trades", "blocks", "gate_mean_r", "lower_r", "upper_r", "e_value", "detectable_r", "hold_p90",
    "mae_p80", "psr", "dsr", "track_record",
    # what a playbook's file expects
    "expected_hold_p50", "expected_hold_p90", "expected_mae_p80", "expected_mfe_p50",
    # of the account and of the whole run
    "equity", "cash", "drawdown", "max_drawdown", "exposure", "account_return", "buy_and_hold", "cagr",
    "sharpe", "sortino", "calmar", "volatility", "drawdown_days", "open_positions", "evaluations",
    "proposals", "sent_back", "stand_downs", "reports", "recommendations", "fee_bps", "slippage_bps",
    # of the newest bar of a symbol
    "close",
    # of the newest report as a whole
    "report_trades", "expectation_misses", "decay_alarms", "regime_shift_p", "unclassified_share",
]  # fmt: skip


class FactRow(Contract):
    """A journal row that a fact stands in; `seq` is None for a report that is not stored yet."""

    seq: int | None
    kind: str


class Of(Contract):
    """Which trades, or which part of the run; what is left out is left open, and nothing at all is the run.

    Attributes:
        period: of the entries: a year, a month or a day of UTC, or two of them as `FROM/TO`, both inclusive.
    """

    playbook: str | None = None
    symbol: str | None = None
    regime: str | None = None
    direction: Direction | None = None
    exit_reason: ExitReason | None = None
    failure_mode: FailureMode | None = None
    outcome: Literal["won", "lost"] | None = None
    period: str | None = Field(default=None, pattern=f"^{PERIOD}$")


WHOLE = Of()
# A figure as a text gives it, in the unit of its measure: percent for shares.
Stated = Annotated[str, Field(pattern=r"^[+-]?\d{1,12}(\.\d{1,9})?$")]


class ValueClaim(Contract):
    """A measure of a subject; `stated` is the figure that a foreign text gives."""

    kind: Literal["value"] = "value"
    measure: MeasureName
    of: Of = WHOLE
    stated: Stated | None = None


class ShareClaim(Contract):
    """How many trades of a whole are a part of it; `stated` is the count, or the percentage with its `%`."""

    kind: Literal["share"] = "share"
    part: Of
    whole: Of = WHOLE
    stated: Annotated[str, Field(pattern=r"^\d{1,9}(\.\d{1,9})?%?$")] | None = None


class CompareClaim(Contract):
    """One subject against another one, by figures as they are shown."""

    kind: Literal["compare"] = "compare"
    measure: MeasureName
    left: Of
    relation: Literal["more", "less", "same"]
    right: Of


class RankClaim(Contract):
    """Who stands at a place, counted from the highest or the lowest figure; a shared place is nobody's."""

    kind: Literal["rank"] = "rank"
    measure: MeasureName
    by: Dimension
    who: str
    place: int = Field(default=1, ge=1, le=20)
    counted_from: Literal["highest", "lowest"] = "highest"
    within: Of = WHOLE
    without: tuple[str, ...] = ()


class EveryClaim(Contract):
    """All members of a dimension, but those named, lie above or below a bound, and those named do not."""

    kind: Literal["every"] = "every"
    measure: MeasureName
    by: Dimension
    relation: Literal["above", "below"]
    bound: Stated
    within: Of = WHOLE
    but: tuple[str, ...] = ()


class SignClaim(Contract):
    """Whether a measure that may be lost is positive, negative, or zero as it is shown."""

    kind: Literal["sign"] = "sign"
    measure: MeasureName
    of: Of = WHOLE
    sign: Literal["positive", "negative", "zero"]


class GradeClaim(Contract):
    """How much the newest report has proven of a playbook, in a regime or in all."""

    kind: Literal["grade"] = "grade"
    of: Of
    grade: EvidenceGrade


class AdviceClaim(Contract):
    """What the newest report recommends, for a playbook or in all."""

    kind: Literal["advice"] = "advice"
    action: RecommendedAction
    of: Of = WHOLE


Claim = Annotated[
    ValueClaim | ShareClaim | CompareClaim | RankClaim | EveryClaim | SignClaim | GradeClaim | AdviceClaim,
    Field(discriminator="kind"),
]


class Section(Contract):
    """One topic of a text: its claims in order, and words of the writer that nobody checks."""

    topic: str = Field(min_length=1, max_length=MOST_TOPIC)
    claims: tuple[Claim, ...] = Field(max_length=40)
    comment: str | None = None


class Statement(Contract):
    """A claim that holds, in the words that code gave it, with the rows that it stands on.

    Where a text is stored, its rows are looked up anew by whoever shows it.
    """

    telemetry_fields: ClassVar[frozenset[str]] = frozenset({"rows"})

    claim: Claim
    text: str
    rows: tuple[FactRow, ...] = ()


class RefusedClaim(Contract):
    """A claim that does not hold, and what is so; `known` is false where the run has no answer."""

    claim: Claim
    so: str
    known: bool = True


class WrittenSection(Contract):
    """A section after its claims were looked up; `comment` is the model's, not checked."""

    topic: str
    statements: tuple[Statement, ...]
    comment: str | None = None


ClaimVerdict = Literal["verified", "contradicted", "unverifiable"]
CLAIM_VERDICTS: tuple[ClaimVerdict, ...] = ("verified", "contradicted", "unverifiable")


class CheckedClaim(Contract):
    """One claim and what the run says of it; `start` and `end` count characters of a foreign text.

    Attributes:
        confidence: how surely the claim says what its writer meant; 1 where the writer gave it as data.
        text: the sentence that stands for it where it holds, or the words that it was read from.
        so: what is so, where it does not hold.
    """

    claim: Claim
    verdict: ClaimVerdict
    confidence: float = Field(default=1.0, ge=0, le=1)
    text: str = ""
    so: str | None = None
    rows: tuple[FactRow, ...] = ()
    start: int | None = None
    end: int | None = None


class FactCheck(Contract):
    """All claims of one text, held against one run as of `known_at`.

    Attributes:
        dropped_comments: comments of its writer with a figure, a name of the run, or too many characters.
    """

    known_at: int
    claims: tuple[CheckedClaim, ...] = ()
    dropped_comments: int = 0

    def count(self, verdict: ClaimVerdict) -> int:
        """Claims with this verdict."""
        return sum(claim.verdict == verdict for claim in self.claims)

    @property
    def counts(self) -> dict[str, int]:
        """Claims by verdict."""
        return {verdict: self.count(verdict) for verdict in CLAIM_VERDICTS}

    @property
    def holds(self) -> bool:
        """Whether every claim is verified."""
        return all(claim.verdict == "verified" for claim in self.claims)

    @property
    def failures(self) -> tuple[CheckedClaim, ...]:
        """Claims that are not verified, in the order of the text."""
        return tuple(claim for claim in self.claims if claim.verdict != "verified")
