"""What a language model may cost and how patient a run is with it: the `llm` section of the configuration.

Prices are in US dollars per million tokens, as the provider's model pages listed them in November 2026
(platform.claude.com/docs, overview of each model); lists change, so they are settings. Prompts here stay far
below the length from which some models charge more.
"""

from datetime import date
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from schemas.contract import Contract
from schemas.errors import nearest


def _iso_date(text: str) -> str:
    if date.fromisoformat(text).isoformat() != text:
        raise ValueError(f"{text!r} is not a date: write it like 2026-06-30")
    return text


class ModelPrice(Contract):
    """Price of one model in US dollars per million tokens."""

    model: str = Field(min_length=1)
    input_usd: float = Field(ge=0)
    output_usd: float = Field(ge=0)
    cache_write_usd: float | None = Field(default=None, ge=0, description="None: as other input")
    cache_read_usd: float | None = Field(default=None, ge=0, description="None: as other input")


class ModelLimits(Contract):
    """What may be used before the deterministic tier decides alone; None: any amount."""

    calls: int | None = Field(default=None, ge=0, description="calls made")
    tokens: int | None = Field(default=None, ge=0, description="input and output together")
    usd: float | None = Field(default=None, ge=0, description="US dollars")
    seconds: float | None = Field(default=None, ge=0, description="waited for replies")


class EventLimits(ModelLimits):
    """Of one policy event, with its revision rounds, or one slot of the slow loop."""

    calls: int | None = Field(default=10, ge=0, description="calls made")


class RunLimits(ModelLimits):
    """Of the whole run."""

    usd: float | None = Field(default=10.0, ge=0, description="US dollars")


class ProviderAddress(NamedTuple):
    """Variables of the environment that hold a provider's key, and its address if it is not the usual one."""

    key_variable: str
    url_variable: str


# A provider is a line here and the module of its name under `agents/language_models`.
PROVIDERS = {
    "anthropic": ProviderAddress("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "openai": ProviderAddress("OPENAI_API_KEY", "OPENAI_BASE_URL"),
}
NO_PROVIDER = "none"
OWN_PROVIDER = "own"  # an object that a script hands over; no file can name one


def _known_provider(name: str) -> str:
    if name not in (NO_PROVIDER, OWN_PROVIDER) and name not in PROVIDERS:
        known = [NO_PROVIDER, *PROVIDERS]
        raise ValueError(f"no such provider, there are {', '.join(known)}.{nearest(name, known)}")
    return name


PRICES = (
    ModelPrice(model="claude-haiku-5-5", input_usd=0.10, output_usd=0.50, cache_write_usd=0.125),
    ModelPrice(
        model="claude-opus-5-5", input_usd=4.0, output_usd=20.0, cache_write_usd=5.0, cache_read_usd=0.20
    ),
)


class LlmSettings(Contract):
    """The language model, when one is configured: which, at what price, within which limits.

    A limit that a call might break is not tried: the deterministic tier decides and the journal says so.
    """

    provider: Annotated[str, AfterValidator(_known_provider)] = Field(
        default=NO_PROVIDER,
        description="whose API the models are asked over: `none`, `anthropic`, or `openai`: any server of "
        "chat completions, which needs the extra `openai`",
    )
    base_url: str | None = Field(
        default=None,
        description="where that API is, like http://127.0.0.1:11434/v1; None: `ANTHROPIC_BASE_URL` or "
        "`OPENAI_BASE_URL` of the environment, else the provider's own",
    )
    accept_models: tuple[str, ...] = Field(
        default=(),
        description="names of models that may answer besides the one asked for and its dated versions",
    )
    structured_output: bool = Field(
        default=True,
        description="send the closed schema of the reply with every question; off for a server that refuses "
        "it",
    )
    anonymise: bool = Field(
        default=False,
        description="name no symbol, no day and no price of the market in any question, so that what a "
        "model remembers of them does not help it; the run then has a headline",
    )
    fast_model: str = Field(default="claude-haiku-5-5", description="model of the fast reflection")
    slow_model: str = Field(default="claude-opus-5-5", description="model of the slow reflection")
    strategist_model: str = Field(default="claude-haiku-5-5", description="model of the strategist")
    strategist_deadline_ms: float = Field(
        default=20_000.0,
        gt=0,
        description="for one answer of the strategist, with its retries and its one correction",
    )
    prices: tuple[ModelPrice, ...] = Field(
        default=PRICES,
        description="tables of `model`, `input_usd`, `output_usd`, `cache_write_usd`, "
        "`cache_read_usd`: US dollars per million tokens of every model in use, 0 for one of your own",
    )
    thinking_off: tuple[str, ...] = Field(
        default=("claude-haiku-5-5",),
        description="models asked not to think first: their thoughts would take the time and the tokens of "
        "the reply; a model that cannot do without is left out",
    )
    knowledge_cutoff: Annotated[str, AfterValidator(_iso_date)] | None = Field(
        default=None,
        description="last day that the models may know, like 2026-06-30; None: as published, see the label "
        "`contamination` of a run",
    )
    quote_per_usd: float = Field(default=1.0, gt=0, description="account currency for one US dollar")
    per_event: EventLimits = EventLimits()
    per_day: ModelLimits = ModelLimits()
    per_run: RunLimits = RunLimits()
    decision_share: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="share of each limit that texts leave to decisions, and of that the planner of evidence "
        "to the judge, where models decide",
    )
    attempts: int = Field(default=2, ge=1, le=5, description="requests of one call, within its one deadline")
    first_wait_ms: float = Field(default=20.0, ge=0, description="before the second request; then doubled")
    at_once: int = Field(
        default=10,
        ge=1,
        le=1_000,
        description="requests under way at once, and symbols of a bar asked together; others wait",
    )
    per_minute: int | None = Field(
        default=None,
        ge=1,
        description="requests begun in any minute; others wait, and one whose turn would come behind its "
        "deadline is not sent. None: any number",
    )
    breaker_failures: int = Field(default=5, ge=1, description="in a row; then the model is left alone")
    breaker_pause: int = Field(default=20, ge=1, description="calls not made before the next try")
    on_lost: Literal["rules", "stop"] | None = Field(
        default=None,
        description="where the server turns questions away for good, with HTTP 400, 401, 403 or 404 three "
        "times in a row: rules go on alone, or the run stops. None: stop a backtest, let a live run go on",
    )
    stall_ms: float = Field(
        default=10_000.0, gt=0, description="longest silence within the streamed reply of the slow model"
    )

    def may_think(self, model: str) -> bool:
        """Whether a model may think before it answers."""
        return model not in self.thinking_off

    def price(self, model: str) -> ModelPrice | None:
        """The price of a model; None when the table does not have it."""
        return next((price for price in self.prices if price.model == model), None)
