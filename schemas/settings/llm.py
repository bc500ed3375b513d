"""Which language models are asked, what they may cost, how patient a run is: `llm` of the configuration."""

from collections.abc import Iterable
from datetime import date
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from schemas.contract import Contract
from schemas.model_table import PUBLISHED, is_version_of, published_row
from schemas.settings.providers import (
    NO_MODEL,
    OWN_PROVIDER,
    Effort,
    ModelName,
    ModelWord,
    is_private,
    model_name,
    named_word,
)


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
    cache_hour_usd: float | None = Field(
        default=None, ge=0, description="written to be kept for an hour; None: twice other input"
    )


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


def _model_or_none(word: str) -> str:
    return word if word == NO_MODEL else named_word(word)


class LlmSettings(Contract):
    """The language model, when one is configured: which, at what price, within which limits.

    A limit that a call might break is not tried: the deterministic tier decides and the journal says so.
    """

    model: Annotated[str, AfterValidator(_model_or_none)] = Field(
        default=NO_MODEL,
        description="the model of every seat, as `provider/name` or `provider/name@http://HOST/v1`: "
        "`anthropic/claude-haiku-5-5`, `gemini/...`, `ollama/qwen3:8b`; another provider than those in the "
        "table is any server of chat completions. `none`: no model",
    )
    fast: ModelWord | None = Field(
        default=None, description="the model of the fast reflection, named in the same way; None: `model`"
    )
    slow: ModelWord | None = Field(
        default=None, description="the model of the slow reflection and its texts; None: `model`"
    )
    strategist: ModelWord | None = Field(
        default=None, description="the model of the strategist; None: `model`"
    )
    judge: ModelWord | None = Field(
        default=None, description="the model of the judge and its planner; None: that of the slow reflection"
    )
    base_url: str | None = Field(
        default=None,
        description="where the provider of `model` is asked, like http://127.0.0.1:11434/v1; None: by "
        "`OPENAI_BASE_URL` or the like of the environment, named after the provider, else its own address",
    )
    accept_models: tuple[str, ...] = Field(
        default=(),
        description="names of models that may answer besides the one asked for and its dated versions",
    )
    structured_output: bool = Field(
        default=True,
        description="send the closed schema of the reply with every question, as long as its server does not "
        "refuse it",
    )
    anonymise: bool = Field(
        default=False,
        description="name no symbol, no day and no price of the market in any question, so that what a "
        "model remembers of them does not help it; the run then has a headline",
    )
    effort: Effort = Field(
        default="low",
        description="how much a model thinks before it answers, sent as its API has it; `none`: not at all, "
        "where it can do without",
    )
    thought_tokens: int = Field(
        default=8_000,
        ge=0,
        le=200_000,
        description="room for thoughts in the bound of a reply, on top of what its answer may take",
    )
    strategist_deadline_ms: float = Field(
        default=20_000.0,
        gt=0,
        description="for one answer of the strategist, with its retries and its one correction",
    )
    prices: tuple[ModelPrice, ...] = Field(
        default=(),
        validate_default=True,
        description="tables of `model` (its name, or `provider/name`), `input_usd`, `output_usd`, "
        "`cache_write_usd`, `cache_read_usd`, `cache_hour_usd`: US dollars per million tokens, before those "
        "of the published table; for a model that has none here the published one is entered",
    )
    unknown_price: Literal["dearest", "zero"] = Field(
        default="dearest",
        description="what a model counts as whose price nobody names; a run reports it",
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
    first_wait_ms: float = Field(
        default=20.0,
        ge=0,
        description="before the second request, then doubled; a second at least where a server throttles and "
        "names no pause",
    )
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
        description="where the server turns questions of a seat away for good (HTTP 400, 401, 402, 403, 404, "
        "or throttled alike without a pause to wait for), three in a row or six of ten: rules go on alone, "
        "or the run stops. None: stop a backtest, let a live run go on",
    )
    stall_ms: float = Field(
        default=10_000.0, gt=0, description="longest silence within the streamed reply of the slow model"
    )

    @property
    def fast_model(self) -> str:
        """The model of the fast reflection."""
        return self.fast or self.model

    @property
    def slow_model(self) -> str:
        """The model of the slow reflection."""
        return self.slow or self.model

    @property
    def strategist_model(self) -> str:
        """The model of the strategist."""
        return self.strategist or self.model

    @property
    def judge_model(self) -> str:
        """The model of the judge."""
        return self.judge or self.slow_model

    @field_validator("prices")
    @classmethod
    def _with_published(cls, given: tuple[ModelPrice, ...], info: ValidationInfo) -> tuple[ModelPrice, ...]:
        """The prices of all seats are stored with a run: a later table prices it as this one does."""
        llm = cls.model_construct(**info.data, prices=given)
        return (*given, *llm._unstored_prices(llm._seats()))

    def with_price_of(self, word: str) -> "LlmSettings":
        """The same with the published price of one model more, which is stored with a run as those are."""
        return self.model_copy(update={"prices": (*self.prices, *self._unstored_prices([model_name(word)]))})

    def _unstored_prices(self, models: Iterable[ModelName]) -> list[ModelPrice]:
        found = []
        for each in dict.fromkeys(models):
            price = self.known_price(each.provider, each.name)
            if price is not None and price not in self.prices and price.output_usd:
                found.append(price.model_copy(update={"model": f"{each.provider}/{each.name}"}))
        return found

    def _seats(self) -> list[ModelName]:
        words = (self.model, self.fast, self.slow, self.strategist, self.judge)
        return [model_name(word) for word in words if word not in (None, NO_MODEL)]

    def configured_price(self, provider: str, name: str) -> ModelPrice | None:
        """The price in `prices` that names a model most closely.

        Its own id comes before the one without the date of a snapshot, with its provider before without.
        """
        words = (f"{provider}/{name}", name)
        named = [price for word in words for price in self.prices if price.model == word]
        dated = [price for word in words for price in self.prices if is_version_of(word, price.model)]
        return next(iter(named + dated), None)

    def known_price(self, provider: str, name: str) -> ModelPrice | None:
        """The price of a model: as configured, nothing on a machine of one's own, as published, else None."""
        configured = self.configured_price(provider, name)
        if configured is not None:
            return configured
        if provider == OWN_PROVIDER or self._is_free(provider, name):
            return ModelPrice(model=name, input_usd=0.0, output_usd=0.0)
        row = published_row(name)
        return None if row is None or not row.usd else ModelPrice(model=name, **row.usd)

    def _is_free(self, provider: str, name: str) -> bool:
        """Whether a model runs on a machine of one's own: by its provider, and each address given for it."""
        request = ModelName(provider, name)
        seats = [seat for seat in self._seats() if (seat.provider, seat.name) == (provider, name)] or [
            request
        ]
        return request.row.free and all(map(is_private, filter(None, map(self.given_address, seats))))

    def given_address(self, request: ModelName) -> str | None:
        """Where the settings say that a model is asked; None: they do not."""
        is_main = self.model == NO_MODEL or model_name(self.model).provider == request.provider
        return request.address or (self.base_url if is_main else None)

    def price(self, provider: str, name: str) -> ModelPrice:
        """What a model counts as; where nobody names its price, the dearest published one or nothing."""
        known = self.known_price(provider, name)
        if known is not None:
            return known
        if self.unknown_price == "zero":
            return ModelPrice(model=name, input_usd=0.0, output_usd=0.0)
        dearest = max((row.usd for row in PUBLISHED if row.usd), key=lambda usd: usd["output_usd"])
        return ModelPrice(model=name, **dearest)
