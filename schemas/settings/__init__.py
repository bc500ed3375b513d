"""The configuration tree: frozen, closed, with documented defaults; one TOML section per model.

`runtime` says where things lie and how fast they run and is never hashed; `config_hash` covers everything
else, so two runs of the same decisions share it. Read once by `worker.settings`.
"""

from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from schemas.canonical import content_hash
from schemas.contract import Contract
from schemas.errors import nearest
from schemas.settings.bounds import MAX_COUNT
from schemas.settings.deliberation import DeliberationSettings
from schemas.settings.envelope import CorrelationBucket, EnvelopeSettings, NoTradeWindow
from schemas.settings.execution import AccountSettings, ExecutionSettings
from schemas.settings.gate import GateSettings
from schemas.settings.judge import JudgeSettings
from schemas.settings.live import ConsoleSettings, FeedSettings, OperationsSettings
from schemas.settings.llm import LlmSettings
from schemas.settings.planner import PlannerSettings
from schemas.settings.plans import PlansSettings
from schemas.settings.policy_loop import HEARTBEAT_BARS, PolicyLoopSettings, RegimeSettings
from schemas.settings.providers import EXAMPLE, NO_MODEL, without_address
from schemas.settings.reflection import HighLevelSettings, MemorySettings, ReflectionSettings
from schemas.timeframes import Timeframe

__all__ = [
    "MAX_COUNT",
    "CorrelationBucket",
    "DataSettings",
    "DeliberationSettings",
    "EnvelopeSettings",
    "ExecutionSettings",
    "GateSettings",
    "HEARTBEAT_BARS",
    "HighLevelSettings",
    "JudgeSettings",
    "LlmSettings",
    "MemorySettings",
    "NoTradeWindow",
    "PlannerSettings",
    "PlansSettings",
    "PolicyLoopSettings",
    "ReflectionSettings",
    "RegimeSettings",
    "RuntimeSettings",
    "Settings",
]

OF_ASKING = ("schema_ttl_s", "history", "servers")  # of the planner: they decide nothing in a run
WORDS = ("model", "fast", "slow", "strategist", "judge")  # of `llm`, that name a model


class DataSettings(Contract):
    """What is traded. Where it lies is in `runtime`."""

    label: Literal["open", "close"] = Field(
        default="open", description="whether a label is the open or the close of its bar"
    )
    symbols: tuple[str, ...] = Field(default=(), description="empty: every symbol of the data")
    timeframe: str | None = Field(
        default=None, description="spacing of the bars; unset: as the bars are spaced"
    )
    zone: str = Field(
        default="UTC",
        description="whose calendar says where days, weeks and months begin: how long bars of 1d, 1w and 1M "
        "are, what `resample` and features on higher bars put together, and what sessions and calendar "
        "features (`minute_of_day`) of a rule mean",
    )
    resample: Timeframe | None = Field(
        default=None, description="longer bars that are made of the recorded ones and traded instead"
    )
    adjusted: bool = Field(
        default=False,
        description="multiply the four prices of a file by its adjusted close / close, so that splits and "
        "dividends move none",
    )
    plausibility: Literal["live", "always", "off"] = Field(
        default="live",
        description="where a bar outside the band around the last good close is in doubt, and left out, "
        "until the next two bars of its symbol confirm the new level: on live feeds, `always` also on "
        "recorded bars, which then lose the first two bars of a step that stays as paper does, or nowhere",
    )
    on_doubt: Literal["warn", "refuse"] = Field(
        default="warn",
        description="what is done where recorded bars hold a split, an implausible bar, a week without "
        "movement or a row that stands twice: they are named, or the run is refused",
    )
    plausible_change: float = Field(
        default=0.5,
        gt=0,
        le=1_000,
        description="half the width of that band at least, as a share of the last good close",
    )
    plausible_atr: float = Field(
        default=20.0,
        ge=0,
        le=10_000,
        description="half the width of that band at least, in mean true ranges of the last 14 good bars",
    )

    @field_validator("zone")
    @classmethod
    def _zone_is_known(cls, zone: str) -> str:
        from zoneinfo import ZoneInfo, available_timezones

        try:
            return ZoneInfo(zone).key
        except (KeyError, ValueError, OSError) as error:
            advice = f"give a name like UTC or America/New_York.{nearest(zone, available_timezones())}"
            raise ValueError(f"{zone!r} is no time zone: {advice}") from error


class RuntimeSettings(Contract):
    """Where things lie; never hashed."""

    db: str = Field(
        default="sqlite:///thinktwice.db",
        description="the store; `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST/DATABASE`",
    )
    data: str | None = Field(
        default=None, min_length=1, description="bar file; None: the embedded daily bars"
    )
    max_bytes: int = Field(
        default=2_000_000_000,
        ge=1,
        le=10**15,
        description="most bytes, unpacked, of a bar file, a folder of such, a file of trades or a cassette",
    )
    tz: str | None = Field(default=None, description="zone of times in the file that have none")
    date_format: str | None = Field(
        default=None,
        min_length=1,
        description="how times of the file are written, as Python's strptime has it; unset: as they look",
    )
    decimal: Literal[".", ","] | None = Field(
        default=None, description="what marks decimals in the file; unset: what most of its prices say"
    )
    columns: str | None = Field(
        default=None,
        min_length=1,
        description="columns of the file by what they are, as `time=Fecha,open=Apertura`, or by their number "
        "from 1: time, clock, symbol, open, high, low, close, volume, adjusted; unset: as their names say",
    )
    start: str | None = Field(default=None, description="first bar label kept, UTC")
    end: str | None = Field(default=None, description="last bar label kept, UTC; a date is its whole day")
    out: str | None = Field(default=None, description="folder for summary, trades, equity and reports")
    playbooks: str | None = Field(
        default=None,
        description="folder of playbook files, one file, or the name of one of ours; None: the embedded ones",
    )
    flush_rows: int = Field(default=2_000, le=MAX_COUNT, ge=1, description="journal rows per transaction")
    llm: Literal["live", "record", "replay"] = Field(
        default="live",
        description="where replies of a model come from: asked for; asked for and kept in `cassette`; "
        "played from `cassette`, without key or network",
    )
    cassette: str | None = Field(default=None, description="file of recorded replies, JSON lines")
    feed: FeedSettings = FeedSettings()
    operations: OperationsSettings = OperationsSettings()
    console: ConsoleSettings = ConsoleSettings()


class Settings(Contract):
    """The whole tree."""

    seed: int = Field(
        default=0,
        le=MAX_COUNT,
        ge=0,
        description="recorded in the first journal row; decides whose turn to be tried it is, see "
        "`policy_loop.explore`",
    )
    data: DataSettings = DataSettings()
    account: AccountSettings = AccountSettings()
    execution: ExecutionSettings = ExecutionSettings()
    envelope: EnvelopeSettings = EnvelopeSettings()
    policy_loop: PolicyLoopSettings = PolicyLoopSettings()
    reflection: ReflectionSettings = ReflectionSettings()
    memory: MemorySettings = MemorySettings()
    high_level: HighLevelSettings = HighLevelSettings()
    gate: GateSettings = GateSettings()
    judge: JudgeSettings = JudgeSettings()
    deliberation: DeliberationSettings = DeliberationSettings()
    llm: LlmSettings = Field(default=LlmSettings(), validate_default=True)
    plans: PlansSettings = PlansSettings()
    planner: PlannerSettings = PlannerSettings()
    runtime: RuntimeSettings = RuntimeSettings()

    @field_validator("llm")
    @classmethod
    def _with_price_of_the_critic(cls, llm: LlmSettings, info: ValidationInfo) -> LlmSettings:
        critic = info.data["deliberation"].critique_model if "deliberation" in info.data else None
        return llm if critic is None else llm.with_price_of(critic)

    @model_validator(mode="after")
    def _seats_need_a_model(self) -> "Settings":
        for name, value, instead, words in self._asking():
            if NO_MODEL in words:
                raise ValueError(
                    f"{name} {value!r} needs a model: set llm.model (--model), like {EXAMPLE}, or use "
                    f"{instead!r}"
                )
        return self

    @model_validator(mode="after")
    def _planner_needs_its_judge(self) -> "Settings":
        if self.planner.judge == "model" and self.judge.replan == "rules":
            raise ValueError(
                "planner.judge 'model' plans with the judge's model, and judge.replan is 'rules': set it to "
                "'model', or let rules plan with planner.judge 'rules'"
            )
        return self

    @model_validator(mode="after")
    def _recorded_needs_a_cassette(self) -> "Settings":
        mode, cassette = self.runtime.llm, self.runtime.cassette
        if mode != "live" and cassette is None:
            raise ValueError(f"runtime.llm {mode!r} needs a file: set runtime.cassette (--cassette FILE)")
        if mode != "live" and not self.uses_models:
            raise ValueError(
                f"runtime.llm {mode!r} has no model to speak for: use reflection.mode 'full', "
                "policy_loop.strategist 'model' or judge.replan 'model'"
            )
        if mode == "live" and cassette is not None:
            raise ValueError("runtime.cassette is not used with runtime.llm 'live': say record or replay")
        return self

    @property
    def uses_models(self) -> bool:
        """Whether any part of a run asks a language model."""
        return bool(self._asking())

    def _asking(self) -> list[tuple[str, str, str, tuple[str, ...]]]:
        """Key and value of every setting that asks a model, the value that asks none, and what it asks."""
        mode, strategist, judge = self.reflection.mode, self.policy_loop.strategist, self.judge.replan
        llm = self.llm
        both = llm.fast_model, llm.slow_model
        return [
            *([("reflection.mode", mode, "deterministic", both)] if mode == "full" else []),
            *(
                [("policy_loop.strategist", strategist, "rules", (llm.strategist_model,))]
                if strategist != "rules"
                else []
            ),
            *([("judge.replan", judge, "rules", (llm.judge_model,))] if judge != "rules" else []),
        ]

    def hashed_values(self) -> dict[str, Any]:
        """Everything that decides, as plain data: not `runtime`, nor where a model's API or a server is."""
        payload = self.payload()
        del payload["runtime"], payload["llm"]["base_url"]
        for section, word in (*(("llm", word) for word in WORDS), ("deliberation", "critique_model")):
            named = payload[section][word]
            payload[section][word] = named and without_address(named)
        for name in OF_ASKING:
            del payload["planner"][name]
        return payload

    @property
    def config_hash(self) -> str:
        """SHA-256 over everything but `runtime`."""
        return content_hash(self.hashed_values())
