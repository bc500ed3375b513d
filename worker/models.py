"""The language models of a run: of mode `full`, of the strategist, of the judge, or none where rules decide.

They are asked live, asked and kept in a cassette, or played back from one. The key comes from the environment
only and is not needed to play back. Clients are opened before the first bar, because importing the SDK takes
seconds and would otherwise eat the first deadline.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from agents import language_models
from agents.language_models.accounted import (
    AccountedModel,
    EarlyModel,
    LiveSource,
    RecordedSource,
    ReplySource,
    SplicedSource,
)
from agents.language_models.cassette import Cassette, CassetteWriter, read_cassette
from agents.language_models.paced import RequestRate
from agents.language_models.retrying import RetryingModel
from agents.language_models.wire_model import TakenParameters, WireModel
from agents.model_seats import models_in_use, seats_of, text_models_of
from agents.reply_forms import FORMS_ON_DEMAND, PURSES, SEAT_FORMS, due_of
from prompts import load_prompt
from schemas.errors import ConfigError
from schemas.reasons import REASON
from schemas.settings import Settings
from schemas.settings.providers import OWN_PROVIDER, ModelName, is_private, model_name
from schemas.state import PART, Stateful
from services.context import RunContext
from services.deliberation.forms import CRITICS, REASONS, TEXT_FORMS
from services.deliberation.text_models import TextModels
from services.model_calls.account import ModelAccount
from services.model_calls.language_model import LanguageModel
from services.model_calls.record import Caller, Purse
from services.model_calls.reply_format import ReplyFormat
from services.ports import Critic, Judge, Strategist
from trading_core.tick_guard import TickGuard
from worker.secrets.redaction import is_address, masked_addresses
from worker.secrets.secrets import secret

Names = Mapping[str, tuple[str, ...]]
NAMING_REASONS = frozenset({SEAT_FORMS["strategist"].name, REASONS})
NO_KEY = "none"  # what a server that wants none is sent
STREAMED = frozenset({"slow", "judge"})  # seats whose reply comes in parts, and is given up after a silence


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
    """Models of the fast reflection, the report's narrative, the strategist, the judge; None: rules alone.

    `texts` look at what was written again, by the prompt that each is asked with.
    """

    fast: LanguageModel | None = None
    slow: LanguageModel | None = None
    strategist: LanguageModel | None = None
    judge: LanguageModel | None = None
    texts: Mapping[str, LanguageModel] = field(default_factory=dict)

    def text_models(self) -> TextModels:
        """Those of texts with their prompts."""
        return TextModels(self.texts, {name: load_prompt(name) for name in self.texts})

    def asked_early(self) -> "Models":
        """The accounted models that answer for symbols, asked before their turn."""
        models = {"fast": self.fast, "strategist": self.strategist, **self.texts}
        early = {
            name: EarlyModel(model) for name, model in models.items() if isinstance(model, AccountedModel)
        }
        fast, author = early.pop("fast", None), early.pop("strategist", None)
        return Models(fast, strategist=author, texts=early)

    async def close(self) -> None:
        """Close the connections of live models."""
        for model in (self.fast, self.slow, self.strategist, self.judge, *self.texts.values()):
            close = getattr(model, "close", None)
            if close is not None:
                await close()


@dataclass(frozen=True)
class Replies:
    """What answers the questions of a run.

    Attributes:
        models: are asked; None: the configured ones.
        cassette: recorded replies to play instead; None: the configured one, if there is one.
        past: replies of a run that goes on: played until its past is over, then models are asked.
    """

    models: Models | None = None
    cassette: Cassette | None = None
    past: RecordedPast | None = None


CONFIGURED = Replies()


@dataclass(frozen=True)
class Overrides(Replies):
    """What a caller puts around parts of a session, or in the place of what answers it.

    Attributes:
        strategist, judge: given ours; what they return is asked.
        critics: asked beside our checks.
        names: say what is the caller's own, for people.
        prepare: changes the session once it has begun; only studies have a use for it.
        say: hears in one line what the run will take, once its models were asked some questions.
    """

    strategist: Callable[[Strategist], Strategist] = lambda ours: ours
    judge: Callable[[Judge], Judge] = lambda ours: ours
    critics: tuple[Critic, ...] = ()
    names: tuple[str, ...] = ()
    prepare: Callable[[Any], None] = lambda session: None
    say: Callable[[str], None] = lambda line: None


NO_OVERRIDES = Overrides()


@dataclass(frozen=True)
class RunModels(Stateful):
    """The models of a run and what was spent on them.

    Attributes:
        live: whose connections are open.
        account: admits, records and counts every call.
        accounted: what is asked: each model through the account, or a record of its replies.
    """

    STATE: ClassVar = {"account": PART}
    REBUILT = frozenset({"live", "accounted"})

    live: Models
    account: ModelAccount
    accounted: Models


def model_key(settings: Settings, environment: Mapping[str, str], request: ModelName) -> str:
    """The key that a model is asked with.

    Raises:
        ConfigError: there is none and its provider wants one, or it cannot be one.
    """
    if request.provider == OWN_PROVIDER:
        raise ConfigError(
            f"provider {OWN_PROVIDER!r} is an object that a script hands over, "
            "`thinktwice.backtest(model=...)`: give it there, or name another"
        )
    variable = request.row.key
    key = secret(variable, environment)
    if key is None:
        if request.row.keyless:
            return NO_KEY
        asker, instead = ("reflection mode 'full'", "deterministic")
        if settings.policy_loop.strategist != "rules" and settings.reflection.mode != "full":
            asker, instead = f"strategist {settings.policy_loop.strategist!r}", "rules"
        elif settings.reflection.mode != "full" and settings.planner.judge == "model":
            asker, instead = "the planner of evidence", "rules"
        elif settings.reflection.mode != "full":
            asker, instead = f"judge.replan {settings.judge.replan!r}", "rules"
        local = (
            " (any word, for a server that wants none)" if settings.llm.base_url or request.address else ""
        )
        raise ConfigError(
            f"{asker} needs a key: set {variable}{local}, play a cassette with --llm replay, or use "
            f"{instead!r}"
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"{variable} holds a blank, a line end or another character that no key has")
    return key


def one_model(settings: Settings, model: LanguageModel) -> Models:
    """One model in the place of every model that the settings ask."""
    return Models(model, model, model, model, dict.fromkeys(text_models_of(settings), model))


def model_address(settings: Settings, environment: Mapping[str, str], request: ModelName) -> str:
    """Where a model is asked: as its name, the settings or the environment say, else where its provider is.

    Raises:
        ConfigError: none of them says it, it is no address of a server, or the environment moves a model that
            counts as free to a public one.
    """
    llm, variable = settings.llm, request.address_variable
    given = (
        (
            f"the address of {request.name!r}" if request.address else "llm.base_url",
            llm.given_address(request),
        ),
        (variable, environment.get(variable)),
        (f"the address of {request.provider!r}", request.row.address),
    )
    named, address = next(((name, value) for name, value in given if value is not None), ("", None))
    if address is None:
        raise ConfigError(request.address_missing())
    shown = masked_addresses(address)[:80]
    if not is_address(address):
        raise ConfigError(f"{named} is {shown!r}: give http://HOST:PORT or https://HOST, or unset it")
    priced = llm.configured_price(request.provider, request.name) is not None
    if named == variable and request.row.free and not is_private(address) and not priced:
        raise ConfigError(
            f"{variable} is {shown!r}, which is of no private network, and llm.prices has no price of "
            f"{request.name!r}: settings decide what a run costs, so give the address as llm.base_url or "
            "behind the name (provider/name@ADDRESS), or give the price"
        )
    return address


def check_models(settings: Settings, environment: Mapping[str, str], *, goes_on: bool = False) -> None:
    """Refuse what would only fail later: no key, no address, no cassette to play or to write.

    A run that `goes_on` may find the cassette that it was recording.

    Raises:
        ConfigError: one of them.
    """
    if not settings.uses_models:
        return
    if settings.runtime.llm != "replay":
        for request in map(model_name, models_in_use(settings)):
            model_key(settings, environment, request)
            model_address(settings, environment, request)
    configured_cassette(settings)
    if not goes_on:
        open_recording(settings)


@dataclass(frozen=True)
class _ModelSource:
    """What every model of a run is opened with; `learned` is what servers turned out to take."""

    settings: Settings
    environment: Mapping[str, str]
    guard: TickGuard
    rate: RequestRate
    learned: dict[tuple[str | None, str], TakenParameters] = field(default_factory=dict)

    def open_model(self, place: str, word: str, form: ReplyFormat) -> RetryingModel:
        """The model of a seat or prompt at one form of its replies, its connection open."""
        settings, request = self.settings, model_name(word)
        llm = settings.llm
        model = wire_model(request.row.wire)(
            request.name,
            api_key=model_key(settings, self.environment, request),
            guard=self.guard,
            row=request.row,
            base_url=model_address(settings, self.environment, request),
            stall_ms=llm.stall_ms if place in STREAMED else None,
            effort=llm.effort,
            thought_tokens=llm.thought_tokens,
            reply_format=form if llm.structured_output else None,
            accept=llm.accept_models,
            temperature=temperature_of(settings, form.name),
            learned=self.learned,
        )
        model.open()
        return RetryingModel(model, attempts=llm.attempts, first_wait_ms=llm.first_wait_ms, rate=self.rate)


def configured_models(
    settings: Settings,
    guard: TickGuard,
    environment: Mapping[str, str],
    texts: Mapping[str, str] | None = None,
    names: Names | None = None,
) -> Models:
    """The models to ask; none where rules decide alone or a cassette answers.

    `texts` names the model of each prompt about texts; None: as the settings have it. `names` are those of
    the run that replies may hold.

    Raises:
        ConfigError: a model without a key.
    """
    if not settings.uses_models or settings.runtime.llm == "replay":
        return Models()
    llm = settings.llm
    source = _ModelSource(settings, environment, guard, RequestRate(llm.at_once, llm.per_minute))
    return _seat_models(settings, texts, names, source.open_model)


def _seat_models(
    settings: Settings,
    texts: Mapping[str, str] | None,
    names: Names | None,
    seat_model: Callable[[str, str, ReplyFormat], LanguageModel | None],
) -> Models:
    """What is made for each seat and each prompt about texts, of its name, its model's and its form."""
    request = text_models_of(settings) if texts is None else texts
    seats = {
        seat: seat_model(seat, word, form_of(SEAT_FORMS[seat], names))
        for seat, word in seats_of(settings).items()
    }
    found = {
        name: seat_model(name, word, form_of(FORMS_ON_DEMAND[name], names)) for name, word in request.items()
    }
    return Models(**seats, texts={name: model for name, model in found.items() if model is not None})


def configured_cassette(settings: Settings) -> Cassette | None:
    """The cassette that answers; None where models are asked.

    Raises:
        ConfigError: it cannot be read.
    """
    path = settings.runtime.cassette
    return (
        None
        if path is None or settings.runtime.llm != "replay"
        else read_cassette(Path(path), settings.runtime.max_bytes)
    )


def assemble_models(
    context: RunContext,
    environment: Mapping[str, str],
    replies: Replies = CONFIGURED,
    *,
    texts: Mapping[str, str] | None = None,
    names: Names | None = None,
    decides: bool = True,
) -> RunModels:
    """The models that the settings name, on an account of their own.

    Args:
        context: of the run; its clock is the account's, its journal that of the calls.
        environment: holds the key.
        replies: where they come from.
        texts: names the model of each prompt about texts; None: as the settings have it.
        names: of the run, by the field of a reply that takes them; None: any name can be written.
        decides: whether anything is decided, for which texts leave something.

    Raises:
        ConfigError: a model without a key, or a cassette that cannot be read or made.
    """
    settings, guard, past = context.settings, context.guard, replies.past
    tape = replies.cassette if replies.cassette is not None else configured_cassette(settings)
    asks = replies.models is None and tape is None
    live = (
        configured_models(settings, guard, environment, texts, names) if asks else replies.models or Models()
    )
    due = due_of(seats_of(settings), text_models_of(settings)) if decides else None
    account = ModelAccount(settings.llm, context.events, context.clock, due)
    writer = open_recording(settings, past) if tape is None and settings.uses_models else None
    if writer is not None:
        account.keep = writer.keep

    def account_for(place: str, word: str, form: ReplyFormat) -> LanguageModel | None:
        source = _source(live.texts.get(place) or getattr(live, place, None), tape, past)
        caller = caller_of(settings, word, form, load_prompt(form.name).hash)
        return None if source is None else AccountedModel(caller, source, account, guard)

    uses = settings.uses_models
    accounted = _seat_models(settings, texts, names, account_for) if uses else Models()
    return RunModels(live, account, accounted)


def form_of(form: ReplyFormat, names: Names | None) -> ReplyFormat:
    """The form of a reply with the names of a run; what reasons and parameters are called is one field."""
    if names is None:
        return form
    found = {field: called for field, called in names.items() if field != REASON}
    reasons = {"name": names[REASON]} if REASON in names and form.name in NAMING_REASONS else {}
    return form.naming(found | reasons)


def caller_of(settings: Settings, word: str, form: ReplyFormat, prompt_hash: str) -> Caller:
    """Who asks: one model at one prompt, with the form of its replies."""
    request, llm = model_name(word), settings.llm
    return Caller(
        request.provider,
        request.name,
        form.name,
        prompt_hash,
        llm.effort,
        form if llm.structured_output else None,
        form.reads,
        temperature_of(settings, form.name),
        PURSES.get(form.name, Purse.DECISION),
        0 if llm.effort == "none" else llm.thought_tokens,
    )


def temperature_of(settings: Settings, prompt: str) -> float | None:
    """The temperature that a prompt about texts asks for; None for every other prompt."""
    shown = settings.deliberation
    request = shown.critique_temperature if prompt in CRITICS else shown.writing_temperature
    return request if prompt in TEXT_FORMS else None


def wire_model(wire: str) -> type[WireModel]:
    """What asks the models of an API: `MODEL` of the module that has its name."""
    module = importlib.import_module(f"{language_models.__name__}.{wire}")
    found: type[WireModel] = module.MODEL
    return found


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


def open_recording(settings: Settings, past: RecordedPast | None = None) -> CassetteWriter | None:
    """What replies are recorded into, made with the first; None where none are.

    Raises:
        ConfigError: the file is there already, and not of a run that goes on.
    """
    path = settings.runtime.cassette
    if path is None or settings.runtime.llm != "record":
        return None
    return CassetteWriter(Path(path), past.lasts if past is not None and past.recorded else None)
