"""What a playbook is.

What a trader writes in a file and the engine trades, with bounds within which a lesson may move it.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from schemas.contract import Contract, FrozenMap
from schemas.order_terms import OrderTerms
from schemas.regime import RegimeLabels
from schemas.vocabulary import Direction, Structure, Trend, VersionState, VolatilityBand


class DirectionRules(Contract):
    """Rules of one direction. `{name}` stands for a parameter.

    Entry, stop, target, trail and refinement are price expressions.

    `activation` None means: the setup bar's extreme is broken in the direction. `entry` is the price of a
    limit or stop entry. `refinement` is a tighter stop or a better limit, read on every bar of the activation
    window; `trail` a stop that follows the open position. See `OrderTerms`.
    """

    setup: str
    activation: str | None = None
    stop: str
    target: str
    invalidation: str
    refinement: str | None = None
    entry: str | None = None
    trail: str | None = None


class Expectation(Contract):
    """What trades of this playbook are expected to look like; R multiples after costs, holds in bars."""

    source: Literal["design", "measured"] = "design"
    expectancy_r: float = 0.0
    weight_trades: float = Field(default=20.0, gt=0)
    hit_rate: float = Field(ge=0, le=1)
    hold_p50_bars: float = Field(gt=0)
    hold_p90_bars: float = Field(gt=0)
    winner_mae_p80_r: float = Field(le=0, description="80 % of winners stay above this excursion, in R")
    mfe_p50_r: float = Field(ge=0, description="median best excursion, in R")
    target_r: float | None = Field(
        default=None,
        gt=0,
        le=20,
        description="largest R that a trade takes as its profit; None: learned from trades, 4 at first",
    )

    @model_validator(mode="after")
    def _quantiles_ascend(self) -> "Expectation":
        if self.hold_p90_bars < self.hold_p50_bars:
            raise ValueError(
                f"hold_p90_bars {self.hold_p90_bars} is below hold_p50_bars {self.hold_p50_bars}"
            )
        return self


class Parameter(Contract):
    """A number used in rules, with the small grid from which a lesson may choose another value."""

    value: float
    grid: tuple[float, ...] = Field(min_length=2, max_length=9)
    role: Literal["threshold", "invalidation"] = "threshold"
    risk_reducing: Literal["up", "down", "none"] = "none"

    @model_validator(mode="after")
    def _value_on_grid(self) -> "Parameter":
        if tuple(sorted(set(self.grid))) != self.grid:
            raise ValueError(f"grid {list(self.grid)} must ascend without repeats")
        if self.value not in self.grid:
            raise ValueError(f"value {self.value} is not on its grid {list(self.grid)}")
        return self


class Eligibility(Contract):
    """Regimes in which a playbook may be proposed.

    `banned` holds `trend/volatility` cells taken out by a lesson.
    """

    trend: tuple[Trend, ...] = Field(min_length=1)
    volatility: tuple[VolatilityBand, ...] = Field(min_length=1)
    structure: tuple[Structure, ...] = Field(min_length=1)
    banned: tuple[str, ...] = ()

    def allows(self, labels: RegimeLabels) -> bool:
        """Whether these labels are eligible."""
        return (
            labels.trend in self.trend
            and labels.volatility in self.volatility
            and labels.structure in self.structure
            and labels.key not in self.banned
        )


class PlaybookDefinition(OrderTerms):
    """One version of a playbook. The version number is part of the content; its hash is its identity."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)
    version: int = Field(default=1, ge=1)
    title: str
    description: str
    enabled: bool = True
    timeframes: tuple[str, ...] = ()
    eligibility: FrozenMap[Direction, Eligibility]
    rules: FrozenMap[Direction, DirectionRules]
    parameters: FrozenMap[str, Parameter] = Field(default={}, validate_default=True)
    horizon_bars: int = Field(ge=2, le=500)
    activation_window_bars: int = Field(default=3, ge=1, le=50)
    risk_fraction: float = Field(default=0.005, gt=0, le=0.02)
    minimum_episodes: int = Field(default=20, ge=20)
    expectation: Expectation
    known_at: int | None = Field(default=None, description="ns; None for a version that came in a file")

    def __repr__(self) -> str:
        return f"PlaybookDefinition({self.id!r}, version {self.version}, {' and '.join(self.rules)})"

    @model_validator(mode="after")
    def _same_directions(self) -> "PlaybookDefinition":
        if not self.rules:
            raise ValueError("rules: give at least one of rules.long and rules.short")
        if set(self.eligibility) != set(self.rules):
            raise ValueError(f"eligibility must name the same directions as rules: {sorted(self.rules)}")
        return self

    @model_validator(mode="after")
    def _rules_fit_terms(self) -> "PlaybookDefinition":
        for direction, rules in self.rules.items():
            self.refuse_rules(rules.entry, rules.refinement, f"rules.{direction}.")
        return self


class PlaybookVersion(Contract):
    """One definition with its place in the lifecycle and the reason it is there."""

    definition: PlaybookDefinition
    state: VersionState
    parent_hash: str | None = None
    report_id: str | None = None
    verdict_id: str | None = None
    action_id: str | None = None
    since: int = Field(description="ns; the bar close from which the state holds")
    expires_at: int | None = None
    reason: str
    evidence: dict[str, float | int | str | None] = {}

    @classmethod
    def of_row(cls, payload: Mapping[str, Any]) -> "PlaybookVersion":
        """The transition that the payload of a `playbook_version` row tells, among other fields."""
        return cls.model_validate({name: payload[name] for name in cls.model_fields if name in payload})
