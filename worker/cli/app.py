"""The command tree and the one place where errors become a line on stderr and an exit code.

The module of a command is imported when the command is called or its help is shown, and must stay light even
so: heavy libraries are imported inside the function that needs them, so that `--help` answers at once.

Uncaught failures are printed without secrets: tracebacks, threads, records of unconfigured logs.
"""

import errno
import os
import re
import signal
import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from inspect import iscoroutine
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from schemas.errors import OperatorError, StoreError, ThinktwiceError, nearest
from services.store.open_files import NEEDED, describe_limit, limit, too_few_files
from worker.cli.printing import complain, print_line
from worker.operations.tracebacks import guard_tracebacks
from worker.runs.interrupts import RunInterrupted, run_async

OK, MISMATCH, BAD_INPUT, CTRL_C = 0, 1, 2, 130
HELPING = frozenset({"--help", "-h", "--version"})
# As `--help` groups them.
GROUPS: dict[str, tuple[str, ...]] = {
    "Trade": ("init", "backtest", "paper", "worker", "console", "guard", "status", "kill", "requests"),
    "Look": ("runs", "journal", "verify", "why", "page", "report", "reports", "playbooks", "plans"),
    "Ask": (
        *("ask", "reflect", "replan", "check", "factcheck", "calibration", "deliberate"),
        *("mcp", "tools"),
    ),
    "Research": ("gate", "sweep", "ablate", "faults", "ask-again", "trials", "scenarios"),
    "Operate": ("doctor", "config", "db", "data", "schema"),
}
# The module under `worker.cli` and what is in it, where they are not both called as the command.
ELSEWHERE = {
    name: f"{name}:app"
    for name in ("ask", "console", "guard", "playbooks", "plans", "mcp", "config", "db", "data")
}
ELSEWHERE |= {
    name: f"{module}:{name}"
    for module, names in {
        "status": ("kill", "requests"),
        "runs": ("journal", "verify", "why", "trials"),
        "reports": ("report", "reflect", "page"),
        "check": ("scenarios",),
        "config": ("schema",),
        "texts": ("factcheck", "deliberate"),
    }.items()
    for name in names
}
ELSEWHERE |= {"tools": "mcp:tools_app", "ask-again": "ask_again:ask_again"}
COMMANDS = {name: ELSEWHERE.get(name, f"{name}:{name}") for names in GROUPS.values() for name in names}


class Commands(Mapping[str, Any]):
    """The commands by name, each imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(import_module(f"{__package__}.{module}"), attribute)
        parent = typer.Typer(rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            parent.add_typer(found, name=name)
        else:
            parent.command(name)(found)
        return _with_examples(get_group(parent).commands[name], name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def _with_examples(command: Any, words: str) -> Any:
    command.format_epilog = lambda _, formatter: _write_examples(words, formatter)
    for name, inner in getattr(command, "commands", {}).items():
        _with_examples(inner, f"{words} {name}")
    return command


def _write_examples(words: str, formatter: Any) -> None:
    from worker.cli.examples import write_examples

    write_examples(words, formatter)


def _with_nearest(error: typer.TyperException) -> str:
    """What was wrong with the words; an unknown command or option with the nearest, whatever its case."""
    context: Any = getattr(error, "ctx", None)
    if context is not None and hasattr(error, "possibilities"):
        known = [name for option in context.command.get_params(context) for name in option.opts]
        return f"{error.message}.{nearest(getattr(error, 'option_name', ''), known)}"
    text = error.format_message()
    if text.startswith("Got unexpected extra") and context is not None:
        return f"{text}. {' '.join(context.get_usage().split())}."
    unknown = re.fullmatch(r"No such command '(.*)'\.", text)
    commands = getattr(getattr(context, "command", None), "commands", ())
    return text if unknown is None else text + nearest(unknown[1], commands)


class OneLineErrors(TyperGroup):
    """Every failure is one line: 2 for what the operator can mend, 1 for what we must, 130 for Ctrl-C."""

    def __init__(self, **given: Any) -> None:
        ours: Any = Commands()
        super().__init__(**{**given, "commands": ChainMap(given["commands"], ours)})

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run a command and exit with its code."""
        guard_tracebacks()
        given = list(sys.argv[1:] if args is None else args) or ["--help"]
        extra["standalone_mode"] = False
        if limit() < NEEDED and HELPING.isdisjoint(given):
            complain(describe_limit())
            sys.exit(BAD_INPUT)
        sys.exit(self._exit_code(given, *rest, **extra))

    def _exit_code(self, args: Sequence[str], *rest: Any, **extra: Any) -> int:
        try:
            code = super().main(args, *rest, **extra)
            sys.stdout.flush()
        except BrokenPipeError:
            # `| head` has read enough. What is still buffered must not fail once more at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        except typer.TyperException as error:
            complain(f"{_with_nearest(error)} See --help.")
            return BAD_INPUT
        except (OperatorError, StoreError) as error:
            complain(str(error))
            return BAD_INPUT
        except ThinktwiceError as error:
            complain(f"{type(error).__name__}: {error}")
            return MISMATCH
        except RunInterrupted as interruption:
            complain(str(interruption))
            return interruption.exit_code
        except KeyboardInterrupt:
            complain("stopped by SIGINT")
            return CTRL_C
        except Exception as error:
            shown = too_few_files(error) or _too_long(error) or _out_of_memory(error)
            if shown is None:
                raise
            complain(shown)
            return BAD_INPUT
        return code if isinstance(code, int) else OK

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands by what they are for."""
        width = formatter.width - 6 - max(map(len, COMMANDS))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(width)) for name in names])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Show how the program is begun with."""
        _write_examples("", formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run a command, an asynchronous one in a loop; a lost reader and Ctrl-C are told of before typer."""
        try:
            found = super().invoke(ctx)
            return run_async(found) if iscoroutine(found) else found
        except KeyboardInterrupt as stop:
            raise RunInterrupted(signal.SIGINT) from stop
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK


def _too_long(error: Exception) -> str | None:
    if not isinstance(error, OSError) or error.errno != errno.ENAMETOOLONG or error.filename is None:
        return None
    return f"{str(error.filename)!r}: {error.strerror}; give a shorter one"


def _out_of_memory(error: Exception) -> str | None:
    out = "this machine has not the memory for it: free some, or give fewer bars or a shorter range"
    return out if isinstance(error, MemoryError) else None


def thinktwice(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version.")] = False,
) -> None:
    """A trading agent that reflects before a policy is frozen and before a lesson is believed."""
    if version:
        from importlib.metadata import version as installed

        print_line(f"thinktwice {installed('thinktwice')}")
        raise typer.Exit


app = typer.Typer(
    cls=OneLineErrors,
    callback=thinktwice,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    name="thinktwice",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
