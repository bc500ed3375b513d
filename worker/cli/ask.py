"""`thinktwice ask`: a question about a run, answered from its rows; a change becomes a plan that waits.

The tools are subcommands that are made from the schemas of their arguments.
"""

import os
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from inspect import Parameter, Signature
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from schemas.errors import ConfigError, StoreError
from services.evidence.tools import TOOLS, EvidenceTool
from services.model_calls.quoting import visible
from worker.cli import options
from worker.cli.answer_text import answer_parts
from worker.cli.options import LATEST, OnceCommand, operator_name, option, visible_name
from worker.cli.printing import complain, print_document, print_line, time_option
from worker.cli.stores import open_for_run, open_for_writing, open_to_read, open_to_write, store_address
from worker.runs.progress import ReadingBar, step
from worker.settings import load_settings

if TYPE_CHECKING:
    from schemas.settings import Settings
    from services.ports import ToolHost
    from services.store import RunRecord, Store
    from services.store.conversations import ConversationTurn
    from worker.review.asking import Answer

ANSWERED, BAD_INPUT, ASKED_BACK, PLANNED = 0, 2, 3, 4
CODES = {"answered": ANSWERED, "clarify": ASKED_BACK, "abstained": ASKED_BACK, "plan": PLANNED}
LONGEST_QUESTION = 8_000
WORDS = "QUESTION"  # of the command that takes one; typed, it is a word as any other
TYPES: dict[str, type] = {"integer": int, "number": float, "boolean": bool}


async def ask_in_words(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="What you want to know, in your words.", show_default=False),
    ] = None,
    run: options.RunOption = LATEST,
    at: options.Clock = None,
    config: options.ModelConfig = None,
    conversation: Annotated[
        str | None,
        option(metavar="NAME", help="Go on with this conversation: `that symbol`, `it` are read from it."),
    ] = None,
    server: Annotated[
        list[str] | None,
        option("--server", metavar="NAME", help="Offer tools of this [planner.servers], too; repeatable."),
    ] = None,
    into: Annotated[
        Path | None,
        option(metavar="DIR", help="Where a change plan of a run that is over would write playbooks."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Show the last answer of the conversation; nothing is asked.")
    ] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Delete the conversation.")] = False,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Ask a run in your words; the answer names the call that was made and the rows of each figure.

    Without a model these are understood: the market of a symbol, trades, an update on a symbol, why a
    playbook or the last trade lost, why a fill happened (by its id), the rules of a playbook, and what is
    proven; with names of the run, one date or span, and one number. Anything else is asked back with the
    nearest subcommands. What a question says beside that needs a model (--config).

    Exit 0: answered. 3: asked back. 4: it asks for a change, and a change plan waits for a decision. 2: bad
    input, also an id or a time that the run does not have.
    """
    question = " ".join(words) if words else None
    settings = load_settings(config, flags={"runtime.db": ("--db", db)}).settings
    name = None if conversation is None else visible_name(conversation, "--conversation")
    if show or forget:
        await _kept_alone(settings, name, question, shows=show, forgets=forget, json=json)
        return
    moment = None if at is None else time_option(at, "--at")
    shown = Asked(checked_question(question), run, moment, name, tuple(server or ()), into)
    first = None if json or not _is_attended() else FirstAnswer()
    with step("asking") if sys.stderr.isatty() else nullcontext():
        document, names_nothing = await _answer(shown, settings, first)
    if first is None or not first.stands(document):
        print_document(document, json, answer_parts)
    raise typer.Exit(BAD_INPUT if names_nothing else CODES[document["status"]])


@dataclass(frozen=True)
class Asked:
    """What a command was given: the question, checked, the clock in ns, and names."""

    question: str
    run: str
    at: int | None
    conversation: str | None
    servers: tuple[str, ...]
    into: Path | None


def checked_question(question: str | None) -> str:
    """The question on one line.

    Raises:
        ConfigError: it is empty, too long, or holds what cannot be seen.
    """
    plain = " ".join((question or "").split())
    if not plain:
        raise ConfigError('the question is empty: ask something, such as "why did the last trade lose?"')
    if len(question or "") > LONGEST_QUESTION:
        length = f"{len(question or ''):,}"
        raise ConfigError(f"the question has {length} characters, at most {LONGEST_QUESTION:,}: shorten it")
    if visible(plain) != plain:
        unseen = next(character for character in plain if visible(character) != character)
        raise ConfigError(f"the question holds '{visible(unseen)}', which cannot be seen: ask without it")
    return plain


class FirstAnswer:
    """The answer of the rules, shown at once while a model writes it again."""

    def __init__(self) -> None:
        self._shown: str | None = None

    def __call__(self, document: dict[str, Any]) -> None:
        """Show it."""
        self._shown = document["answer"]
        print_line("first answer, by rules; a model reads it again:")
        print_document(document, False, answer_parts)

    def stands(self, document: dict[str, Any]) -> bool:
        """Whether the answer is still the one that was shown; says what became of it."""
        if self._shown is None:
            return False
        same = bool(document["answer"] == self._shown)
        print_line("the first answer stands" if same else "the answer as the model wrote it:")
        return same


async def _answer(
    shown: Asked, settings: "Settings", first: FirstAnswer | None
) -> tuple[dict[str, Any], bool]:
    """The document of the answer, kept in its conversation, and whether it names what is not there."""
    from worker.review.change_answers import answer_change, asks_for_change, change_request

    db = settings.runtime.db
    names_nothing = False
    async with open_for_run(db, shown.run, read_only=True) as (store, record):
        reply, statement = asks_for_change(shown.question, record, settings)
        if statement is None:
            found = await _evidence(store, record, shown, settings, first)
            document, names_nothing = found.document, found.names_nothing
    if statement is not None:
        if shown.at is not None:
            raise ConfigError("--at looks back, and a change is of now: leave out --at")
        request = change_request(record, shown.into, operator_name())
        async with open_to_write(db, record.run_id) as (store, _):
            document = await answer_change(store, request, statement, settings, attended=_is_attended())
    document["two_phase"] = document["two_phase"] or reply.payload()
    if shown.conversation is not None:
        await _keep(db, shown.conversation, shown.question, {"answer": document})
    return document, names_nothing


def _is_attended() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


async def _evidence(
    store: "Store", record: "RunRecord", shown: Asked, settings: "Settings", first: FirstAnswer | None
) -> "Answer":
    from worker.review.asking import AskedQuestion
    from worker.review.asking import ask as answered

    turns: tuple[ConversationTurn, ...] = ()
    if shown.conversation is not None:
        turns = await store.conversations.last(shown.conversation, settings.planner.history)
    with ReadingBar() as reading:
        async with _hosts(settings, shown.servers) as hosts:
            request = AskedQuestion(
                shown.question, record, shown.at, _is_attended(), turns, hosts, first, reading
            )
            return await answered(store, request, settings, os.environ)


@asynccontextmanager
async def _hosts(settings: "Settings", names: Sequence[str]) -> AsyncIterator[dict[str, "ToolHost"]]:
    if not names:
        yield {}
        return
    from worker.review.tool_listing import require_extra, servers_named

    servers = servers_named(settings, list(names))
    require_extra()
    from agents.tool_hosts.mcp import configured_tools

    async with AsyncExitStack() as stack:
        pins = (await stack.enter_async_context(await open_for_writing(settings.runtime.db))).tool_pins
        hosts = {name: configured_tools(name, settings.planner, os.environ, pins) for name in servers}
        yield {name: await stack.enter_async_context(host) for name, host in hosts.items()}


async def _keep(db: str, name: str, question: str, turn: dict[str, Any]) -> None:
    """Keep a turn; an answer stands also where its conversation cannot be kept."""
    try:
        async with await open_for_writing(db) as store:
            await store.conversations.keep(name, question, turn)
    except StoreError as error:
        complain(f"conversation {name!r} does not keep this turn: {error}")


async def _kept_alone(
    settings: "Settings", name: str | None, question: str | None, *, shows: bool, forgets: bool, json: bool
) -> None:
    if name is None:
        raise ConfigError("--show and --forget are of a conversation: name it with --conversation NAME")
    if question is not None or shows == forgets:
        raise ConfigError("--show, --forget or a QUESTION: give one of them")
    db = settings.runtime.db
    async with await open_to_read(db, read_only=True) as store:  # a store that is not there is not made
        turns = await store.conversations.last(name, 1) if shows else ()
    if shows and not turns:
        raise ConfigError(
            f"no conversation {name!r}: `thinktwice ask QUESTION --conversation NAME` begins one"
        )
    if shows:
        print_document(dict(turns[0].document["answer"]), json, answer_parts)
        return
    async with await open_for_writing(db) as store:
        gone = await store.conversations.forget(name)
    print_document(
        {"conversation": name, "forgotten": gone},
        json,
        lambda found: [f"conversation {name!r} had {found['forgotten']} turns: they are deleted"],
    )


class ToolCommand(OnceCommand):
    """One tool; where words follow that are none of its arguments, a question may be meant."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments of the tool.

        Raises:
            ConfigError: words follow that it does not take; the line that asks them as a question is named.
        """
        words = list(takewhile(lambda word: not word.startswith("-"), args))
        line = ["thinktwice", "ask", " ".join([str(ctx.info_name), *words]), *args[len(words) :]]
        try:
            found: list[str] = super().parse_args(ctx, args)
        except typer.TyperException as error:
            if not words or hasattr(error, "option_name"):
                raise
            text = f"{error.format_message()}, and `{ctx.info_name}` is a tool"
            raise ConfigError(f"{text}: quote a question in words: {shlex.join(line)}") from error
        return found


def _command(tool: EvidenceTool) -> Callable[..., Awaitable[None]]:
    async def call(**given: Any) -> None:
        db, as_json = given.pop("db"), given.pop("json")
        named = {name: value for name, value in given.items() if value is not None}
        await _call_tool(tool, named, db, as_json=as_json)

    parameters = [_parameter(tool, name) for name in tool.arguments.model_fields]
    parameters.sort(key=lambda parameter: parameter.default is not Parameter.empty)
    keyword = Parameter.KEYWORD_ONLY
    parameters += [
        Parameter("db", keyword, default=None, annotation=options.Db),
        Parameter("json", keyword, default=False, annotation=options.Json),
    ]
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _parameter(tool: EvidenceTool, name: str) -> Parameter:
    """An argument of a tool: of the command line by position where it is required, else an option."""
    schema = tool.definition.payload()["input_schema"]
    payload = schema["properties"][name]
    variants = [part for part in payload.get("anyOf", [payload]) if part.get("type") != "null"]
    one = variants[0]
    word = name.removesuffix("_id")
    metavar = "|".join(map(str, one["enum"])) if "enum" in one else word.upper().replace("_", "-")
    default = payload.get("default")
    words = payload.get("description") or word.replace("_", " ")
    help_text = f"{words[:1].upper()}{words[1:]}." + ("" if default is None else f" [{default}]")
    kind: Any = TYPES.get(one.get("type", ""), str)
    keyword = Parameter.KEYWORD_ONLY
    if name in schema.get("required", ()):
        annotation = Annotated[kind, typer.Argument(metavar=metavar, help=help_text, show_default=False)]
        return Parameter(name, keyword, annotation=annotation)
    option = typer.Option(f"--{word.replace('_', '-')}", metavar=metavar, help=help_text, show_default=False)
    return Parameter(name, keyword, default=None, annotation=Annotated[kind | None, option])


async def _call_tool(tool: EvidenceTool, given: dict[str, Any], db: str | None, *, as_json: bool) -> None:
    from worker.review.asking import ask_tool
    from worker.review.rule_trial import trial_noting

    address = store_address(db)
    async with await open_to_read(address, read_only=True) as store:
        note = None if tool.reads_only else trial_noting(address)
        document = await ask_tool(store, tool.name, given, note=note)
    print_document(document, as_json, answer_parts)


class ToolCommands(TyperGroup):
    """The tools are subcommands; a first word that is none of them begins a question."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command of questions before them."""
        if args and args[0] not in {*TOOLS, *ctx.help_option_names}:
            args = [WORDS, *args]
        found: list[str] = super().parse_args(ctx, args)
        return found


app = typer.Typer(
    cls=ToolCommands,
    help="Ask a run: a tool with its options, or a question in your words, of which `thinktwice ask QUESTION "
    "--help` says more. Nothing changes by asking.",
    rich_markup_mode=None,
)
for _tool in TOOLS.values():
    app.command(_tool.name, cls=ToolCommand, help=_tool.description)(_command(_tool))
app.command(WORDS, cls=OnceCommand, hidden=True)(ask_in_words)
