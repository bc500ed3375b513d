"""The language models of a run: of mode `full`, of the strategist, of the judge, or none where rules decide.

They are asked live, asked and kept in a cassette, or played back from one. The key comes from the environment
only and is not needed to play back. Clients are opened before the first bar, because importing the SDK takes
seconds and would otherwise eat the first deadline.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from agents.judge_model import PROMPT as JUDGE_PROMPT
from agents.language_models.accounted import (
    AccountedModel,
    LiveSource,
    RecordedSource,
    ReplySource,
    SplicedSource,
)
from agents.language_models.anthropic import AnthropicModel
from agents.language_models.cassette import Cassette, CassetteWriter, read_cassette
from agents.language_models.retrying import RetryingModel
from agents.strategies.model_strategist import PROMPT as STRATEGIST_PROMPT
from prompts import load_prompt
from schemas.config import Settings
from schemas.errors import ConfigError
from services.high_level_reflection_service import PROMPT_NAME as SLOW_PROMPT
from services.model_calls.account import ModelAccount, price_for
from services.model_calls.record import Caller
from services.policy_level_reflection_service import PROMPT as FAST_PROMPT
from services.ports import LanguageModel
from trading_core.tick_guard import TickGuard
from worker.operations.redaction import masked_addresses
from worker.operations.secrets import MODEL_KEY, secret

KEY_VARIABLE = MODEL_KEY
URL_VARIABLE = "ANTHROPIC_BASE_URL"


@dataclass(frozen=True)
class RecordedPast:
    """The replies of a run that goes on.

    Attributes:
        cassette: what was answered.
        lasts: whether the run still stands where it was recorded.
        recorded: whether there is a past at all.
    """

    cassette: Cassette
    lasts: Callable[[], bool]
    recorded: bool = True


@dataclass(frozen=True)
class Models:
    """Models of the fast reflection, the report's narrative, the strategist, the judge; None: rules alone."""

    fast: LanguageModel | None = None
    slow: LanguageModel | None = None
    strategist: LanguageModel | None = None
    judge: LanguageModel | None = None

    async def close(self) -> None:
        """Close the connections of live models."""
        for model in (self.fast, self.slow, self.strategist, self.judge):
            close = getattr(model, "close", None)
            if close is not None:
                await close()


def model_key(settings: Settings, environment: Mapping[str, str]) -> str | None:
    """The key of the models to ask; None when the settings ask none.

    Raises:
        ConfigError: a model without a key, unless the replies are played back.
    """
    if not settings.uses_models or settings.runtime.llm == "replay":
        return None
    key = secret(KEY_VARIABLE, environment)
    if key is None:
        who, instead = ("reflection mode 'full'", "deterministic")
        if settings.policy_loop.strategist != "rules" and settings.reflection.mode != "full":
            who, instead = f"strategist {settings.policy_loop.strategist!r}", "rules"
        elif settings.reflection.mode != "full":
            who, instead = f"judge.replan {settings.judge.replan!r}", "rules"
        raise ConfigError(
            f"{who} needs a key: set {KEY_VARIABLE}, play a cassette with --llm replay, or use {instead!r}"
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"{KEY_VARIABLE} holds a blank, a line end or another character that no key has")
    return key


def model_address(environment: Mapping[str, str]) -> str | None:
    """Where the models are asked; None leaves it to the SDK.

    Raises:
        ConfigError: the variable holds no address of a server.
    """
    address = environment.get(URL_VARIABLE)
    if address is None:
        return None
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port or a bracket that is none
        usable = False
    if not usable or not address.isascii() or not address.isprintable() or " " in address:
        raise ConfigError(
            f"{URL_VARIABLE} is {masked_addresses(address)[:80]!r}: give http://HOST:PORT or https://HOST, "
            "or unset it"
        )
    return address


def models_in_use(settings: Settings) -> tuple[str, ...]:
    """Names of the models that the settings ask, each once."""
    names = []
    if settings.reflection.mode == "full":
        names += [settings.llm.fast_model, settings.llm.slow_model]
    if settings.policy_loop.strategist != "rules":
        names.append(settings.llm.strategist_model)
    if settings.judge.replan != "rules":
        names.append(settings.llm.slow_model)
    return tuple(dict.fromkeys(names))


def check_models(settings: Settings, environment: Mapping[str, str], *, goes_on: bool = False) -> None:
    """Refuse what would only fail later: no key, no price, no cassette to play or to write.

    A run that `goes_on` may find the cassette that it was recording.

    Raises:
        ConfigError: one of them.
    """
    if not settings.uses_models:
        return
    if model_key(settings, environment) is not None:
        model_address(environment)
    for model in models_in_use(settings):
        price_for(settings.llm, model)
    configured_cassette(settings)
    if not goes_on:
        check_recording(settings)


def check_recording(settings: Settings) -> None:
    """Refuse to record into a file that is there already.

    Raises:
        ConfigError: it is.
    """
    _writer(settings, None)


def configured_models(settings: Settings, guard: TickGuard, environment: Mapping[str, str]) -> Models:
    """The models to ask; none where rules decide alone or a cassette answers.

    Raises:
        ConfigError: a model without a key.
    """
    key = model_key(settings, environment)
    if key is None:
        return Models()
    base_url = model_address(environment)
    llm = settings.llm

    def opened(name: str, stall_ms: float | None = None) -> RetryingModel:
        model = AnthropicModel(
            name,
            api_key=key,
            guard=guard,
            base_url=base_url,
            stall_ms=stall_ms,
            thinking=settings.llm.may_think(name),
        )
        model.open()
        return RetryingModel(model, attempts=llm.attempts, first_wait_ms=llm.first_wait_ms)

    full, proposes = settings.reflection.mode == "full", settings.policy_loop.strategist != "rules"
    return Models(
        fast=opened(llm.fast_model) if full else None,
        slow=opened(llm.slow_model, llm.stall_ms) if full else None,
        strategist=opened(llm.strategist_model) if proposes else None,
        judge=opened(llm.slow_model, llm.stall_ms) if settings.judge.replan != "rules" else None,
    )


def configured_cassette(settings: Settings) -> Cassette | None:
    """The cassette that answers; None where models are asked.

    Raises:
        ConfigError: it cannot be read.
    """
    path = settings.runtime.cassette
    return None if path is None or settings.runtime.llm != "replay" else read_cassette(Path(path))


def accounted_models(
    settings: Settings,
    models: Models,
    account: ModelAccount,
    guard: TickGuard,
    cassette: Cassette | None,
    past: RecordedPast | None = None,
) -> Models:
    """The models as a run uses them: admitted, recorded and paid for, or played back from the cassette.

    Raises:
        ConfigError: the file to record into cannot be made.
    """
    if not settings.uses_models:
        return Models()
    writer = _writer(settings, past) if cassette is None else None
    if writer is not None:
        account.keep = writer.keep

    def accounted(model: LanguageModel | None, provider: str, name: str, prompt: str) -> LanguageModel | None:
        source = _source(model, cassette, past)
        if source is None:
            return None
        caller = Caller(provider, name, prompt, load_prompt(prompt).hash, settings.llm.may_think(name))
        return AccountedModel(caller, source, account, guard)

    llm, who, judge = settings.llm, settings.policy_loop.strategist, settings.judge.replan
    full = settings.reflection.mode == "full"
    return Models(
        fast=accounted(models.fast, llm.provider, llm.fast_model, FAST_PROMPT) if full else None,
        slow=accounted(models.slow, llm.provider, llm.slow_model, SLOW_PROMPT) if full else None,
        strategist=None
        if who == "rules"
        else accounted(models.strategist, who, llm.strategist_model, STRATEGIST_PROMPT),
        judge=None if judge == "rules" else accounted(models.judge, judge, llm.slow_model, JUDGE_PROMPT),
    )


def _source(
    model: LanguageModel | None, cassette: Cassette | None, past: RecordedPast | None
) -> ReplySource | None:
    live = LiveSource(model) if cassette is None and model is not None else None
    present: ReplySource | None = live if cassette is None else RecordedSource(cassette)
    if past is None:
        return present
    if present is None:
        return RecordedSource(past.cassette)
    return SplicedSource(past.lasts, RecordedSource(past.cassette), present)


def _writer(settings: Settings, past: RecordedPast | None) -> CassetteWriter | None:
    path = settings.runtime.cassette
    if path is None or settings.runtime.llm != "record":
        return None
    return CassetteWriter(Path(path), past.lasts if past is not None and past.recorded else None)
