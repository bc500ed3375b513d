"""The tools as subcommands of `thinktwice ask`, made from the schemas of their arguments."""

import inspect
import shlex
from collections.abc import Awaitable, Callable
from itertools import takewhile
from typing import Annotated, Any

import typer

from schemas.errors import ConfigError
from services.evidence.tools import TOOLS, EvidenceTool
from worker.cli.answer_text import print_answer
from worker.cli.console import print_document
from worker.cli.options import DbOption, JsonOption, OnceCommand, open_to_read, store_address

TYPES: dict[str, type] = {"integer": int, "number": float, "boolean": bool}


def add_tools(app: typer.Typer) -> None:
    """One subcommand for each tool: its words, its arguments and their words are those of its definition."""
    for tool in TOOLS.values():
        app.command(tool.name, cls=ToolCommand, help=tool.description)(_command(tool))


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
            told = f"{error.format_message()}, and `{ctx.info_name}` is a tool"
            raise ConfigError(f"{told}: quote a question in words: {shlex.join(line)}") from error
        return found


def _command(tool: EvidenceTool) -> Callable[..., Awaitable[None]]:
    async def call(**given: Any) -> None:
        db, as_json = given.pop("db"), given.pop("json")
        named = {name: value for name, value in given.items() if value is not None}
        await _answer(tool, named, db, as_json=as_json)

    parameters = [_parameter(tool, name) for name in tool.arguments.model_fields]
    parameters.sort(key=lambda parameter: parameter.default is not inspect.Parameter.empty)
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters += [
        inspect.Parameter("db", keyword, default=None, annotation=DbOption),
        inspect.Parameter("json", keyword, default=False, annotation=JsonOption),
    ]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _parameter(tool: EvidenceTool, name: str) -> inspect.Parameter:
    """An argument of a tool: of the command line by position where it is required, else an option."""
    schema = tool.definition.payload()["input_schema"]
    told = schema["properties"][name]
    variants = [part for part in told.get("anyOf", [told]) if part.get("type") != "null"]
    one = variants[0]
    word = name.removesuffix("_id")
    metavar = "|".join(map(str, one["enum"])) if "enum" in one else word.upper().replace("_", "-")
    default = told.get("default")
    words = told.get("description") or word.replace("_", " ")
    help_text = f"{words[:1].upper()}{words[1:]}." + ("" if default is None else f" [{default}]")
    kind: Any = TYPES.get(one.get("type", ""), str)
    keyword = inspect.Parameter.KEYWORD_ONLY
    if name in schema.get("required", ()):
        annotation = Annotated[kind, typer.Argument(metavar=metavar, help=help_text, show_default=False)]
        return inspect.Parameter(name, keyword, annotation=annotation)
    option = typer.Option(f"--{word.replace('_', '-')}", metavar=metavar, help=help_text, show_default=False)
    return inspect.Parameter(name, keyword, default=None, annotation=Annotated[kind | None, option])


async def _answer(tool: EvidenceTool, given: dict[str, Any], db: str | None, *, as_json: bool) -> None:
    from worker.cli.mcp import trial_noting
    from worker.review.asking import ask_tool

    address = store_address(db)
    async with await open_to_read(address, read_only=True) as store:
        note = None if tool.reads_only else trial_noting(address)
        document = await ask_tool(store, tool.name, given, note=note)
    print_document(document, as_json, print_answer)
