"""What a playbook is.

What a trader writes in a file and the engine trades, with bounds within which a lesson may move it.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from schemas.contract import Contract, FrozenMap
from schemas.order_terms import OrderTerms, far_target
from schemas.regime import RegimeLabels
from schemas.vocabulary import Direction, Structure, Trend, VersionState, VolatilityBand

LONGEST_HORIZON = 250  # own bars: the most that a plan may hold, see `InvariantContext`


class DirectionRules(Contract):
    """Rules of one direction. `{name}` stands for a parameter.

    Entry, stop, target, trail and refinement are price expressions.

    `activation` None means: the setup itself orders at its close, or, where there is an activation window, a
    close within it beyond the setup bar's extreme in the direction. `entry` is the price of a limit or stop
    entry. `refinement` is a tighter stop or a better limit, read on every bar of the activation window;
    `trail` a stop that follows the open position. See `OrderTerms`. `exit` is read at every close while a
    position is open; it and `trail` may use `POSITION_VARIABLES`.

    Of `target`, `invalidation`, `exit` and `trail` one is enough. A target that is left out lies so far away
    that the other exits come first, see `has_far_target`.
    """

    sparse_fields: ClassVar = frozenset({"exit"})

    setup: str
    activation: str | None = None
    stop: str
    entry: str | None = None
    invalidation: str | None = None
    target: str = Field(default_factory=far_target, validate_default=True)
    refinement: str | None = None
    trail: str | None = None
    exit: str | None = None

    @model_validator(mode="after")
    def _has_a_way_out(self) -> "DirectionRules":
        if (self.invalidation, self.exit, self.trail) == (None, None, None) and self.has_far_target:
            raise ValueError(
                "give a way out beside the stop: target (a price), exit (a condition that closes), "
                "invalidation (one that also ends a waiting thesis), or trail (a stop that follows)"
            )
        return self

    @property
    def has_far_target(self) -> bool:
        """Whether the target is the one that stands for none."""
        return self.target == far_target(self.__dict__)


class Expectation(Contract):
    """What trades of this playbook are expected to look like; R multiples after costs, holds in bars.

    `source` is `design` of what a person wrote, `default` where nobody wrote one, `prior` where it is to be
    `measured` and is not yet: of `trades` by the playbook's rules alone, closed by `known_at` (ns).
    """

    sparse_fields: ClassVar = frozenset({"known_at", "trades"})

    source: Literal["default", "design", "prior", "measured"] = "design"
    known_at: int | None = None
    trades: int | None = None
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

    @property
    def is_written(self) -> bool:
        """Whether a person claims it, or trades show it."""
        return self.source not in ("default", "prior")

    @classmethod
    def by_default(cls, horizon_bars: int, source: Literal["default", "prior"] = "default") -> "Expectation":
        """That of a bracket without an edge, held as long as the horizon lets it: nobody's claim."""
        return cls(
            source=source,
            hit_rate=0.4,
            hold_p50_bars=min(8, horizon_bars),
            hold_p90_bars=max(20, horizon_bars),
            winner_mae_p80_r=-0.8,
            mfe_p50_r=1.0,
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

    trend: tuple[Trend, ...] = Field(default=tuple(Trend), min_length=1)
    volatility: tuple[VolatilityBand, ...] = Field(default=tuple(VolatilityBand), min_length=1)
    structure: tuple[Structure, ...] = Field(default=tuple(Structure), min_length=1)
    banned: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether no regime is asked for."""
        return self == Eligibility()

    def allows(self, labels: RegimeLabels | None) -> bool:
        """Whether these labels are eligible; None, not known yet, where no regime is asked for."""
        if labels is None:
            return self.is_open
        return (
            labels.trend in self.trend
            and labels.volatility in self.volatility
            and labels.structure in self.structure
            and (not self.banned or labels.key not in self.banned)
        )


class PlaybookDefinition(OrderTerms):
    """One version of a playbook. The version number is part of the content; its hash is its identity.

    A file needs `id` and, in `rules` of a direction, `setup`, `stop` and a target or an invalidation. What
    else is left out trades: in every regime, at the close of the setup, for as long as a plan may hold.
    """

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)
    version: int = Field(default=1, ge=1)
    title: str = Field(default_factory=lambda known: known.get("id", "").replace("_", " "))
    description: str = Field(default_factory=lambda known: known.get("title", ""))
    enabled: bool = True
    timeframes: tuple[str, ...] = ()
    rules: FrozenMap[Direction, DirectionRules]
    eligibility: FrozenMap[Direction, Eligibility] = Field(
        default_factory=lambda known: dict.fromkeys(known.get("rules", ()), Eligibility()),
        validate_default=True,
    )
    parameters: FrozenMap[str, Parameter] = Field(default={}, validate_default=True)
    horizon_bars: int = Field(default=LONGEST_HORIZON, ge=2, le=500)
    activation_window_bars: int = Field(
        default_factory=lambda known: 3 if _activations(known.get("rules", {})) else 0,
        ge=0,
        le=50,
        description="own bars that a setup waits for its activation; 0: the setup itself orders at its close",
    )
    risk_fraction: float = Field(default=0.005, gt=0, le=0.02)
    minimum_episodes: int = Field(default=20, ge=20)
    expectation: Expectation = Field(
        default_factory=lambda known: Expectation.by_default(known.get("horizon_bars", LONGEST_HORIZON))
    )
    known_at: int | None = Field(default=None, description="ns; None for a version that came in a file")

    def __repr__(self) -> str:
        return f"PlaybookDefinition({self.id!r}, version {self.version}, {' and '.join(self.rules)})"

    @field_validator("expectation", mode="before")
    @classmethod
    def _to_be_measured(cls, given: Any, info: ValidationInfo) -> Any:
        if given != "measured":
            return given
        return Expectation.by_default(info.data.get("horizon_bars", LONGEST_HORIZON), "prior")

    @model_validator(mode="after")
    def _same_directions(self) -> "PlaybookDefinition":
        if not self.rules:
            raise ValueError("rules: give at least one of rules.long and rules.short")
        if set(self.eligibility) != set(self.rules):
            raise ValueError(
                f"eligibility must name the same directions as rules, {sorted(self.rules)}, or be left out"
            )
        return self

    @model_validator(mode="after")
    def _rules_fit_terms(self) -> "PlaybookDefinition":
        activated = _activations(self.rules)
        if activated and self.activation_window_bars == 0:
            raise ValueError(
                f"activation_window_bars is 0, yet rules.{activated[0]} has an activation: leave one out"
            )
        is_said = "activation_window_bars" in self.model_fields_set
        if activated and not is_said and set(self.rules) > set(activated):
            raise ValueError(
                f"rules.{activated[0]} has an activation and the other direction has none: give both one, or "
                "activation_window_bars, within which the other waits for a close beyond its setup bar"
            )
        for direction, rules in self.rules.items():
            self.refuse_rules(rules.entry, rules.refinement, f"rules.{direction}.")
            if self.target_moves and rules.has_far_target:
                raise ValueError(f"target_moves is true, yet rules.{direction} has no target: leave it out")
        return self


class OwnPlaybook(PlaybookDefinition):
    """What a plan with its own rules is held to: itself. It is no version, so it has no hash."""

    expectation: Expectation = Expectation.by_default(LONGEST_HORIZON)
    risk_fraction: float = Field(default=0.005, gt=0, le=1)

    @cached_property
    def content_hash(self) -> str:
        """None: its plan's hash says what it is."""
        return ""


def _activations(rules: Mapping[Direction, DirectionRules]) -> list[Direction]:
    """Directions whose rules have an activation."""
    return [direction for direction, given in rules.items() if given.activation is not None]


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
