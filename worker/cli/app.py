"""The command tree and the one place where errors become a line on stderr and an exit code.

Every command's module is imported here and must stay light: heavy libraries are imported inside the function
that needs them, so that `--help`, `journal` and `runs` answer at once.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from schemas.errors import OperatorError, StoreError, ThinktwiceError
from services.store.open_files import too_few_files
from worker.cli import (
    ablate,
    backtest,
    check,
    config,
    data,
    db,
    doctor,
    evidence,
    gate,
    journal,
    model,
    paper,
    playbooks,
    prompt_commands,
    reflect,
    replan,
    reports,
    requests,
    runs,
    scenarios,
    schema,
    status,
    trials,
    verify,
    why,
    worker,
    worlds,
)
from worker.cli.console import complain
from worker.operations.tracebacks import guard_tracebacks
from worker.runs.interrupts import RunInterrupted

OK, MISMATCH, BAD_INPUT, CTRL_C = 0, 1, 2, 130


class OneLineErrors(TyperGroup):
    """Every failure is one line: 2 for what the operator can mend, 1 for what we must, 130 for Ctrl-C."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run a command and exit with its code."""
        guard_tracebacks()
        given = list(sys.argv[1:] if args is None else args) or ["--help"]
        extra["standalone_mode"] = False
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
            complain(f"{error.format_message()} See --help.")
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
            limited = too_few_files(error)
            if limited is None:
                raise
            complain(limited)
            return BAD_INPUT
        return code if isinstance(code, int) else OK

    def invoke(self, ctx: Any) -> Any:
        """Run a command; a reader that went away is reported as such, before it counts as an error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK


app = typer.Typer(
    cls=OneLineErrors,
    name="thinktwice",
    help="A trading agent that reflects before a policy is frozen and before a lesson is believed.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("backtest")(backtest.backtest)
app.command("paper")(paper.paper)
app.command("status")(status.status)
app.command("verify")(verify.verify)
app.command("journal")(journal.journal)
app.command("runs")(runs.runs)
app.command("trials")(trials.trials)
app.command("why")(why.why)
app.command("report")(reports.report)
app.command("reports")(reports.reports)
app.command("reflect")(reflect.reflect)
app.command("replan")(replan.replan)
app.command("kill")(requests.kill)
app.command("requests")(requests.requests)
app.command("scenarios")(scenarios.scenarios)
app.command("check")(check.check)
app.command("schema")(schema.schema)
evidence.add_commands(app)
app.command("gate")(gate.gate)
app.command("worlds")(worlds.worlds)
app.command("ablate")(ablate.ablate)
app.command("worker")(worker.worker)
app.command("doctor")(doctor.doctor)
app.add_typer(playbooks.app, name="playbooks")
app.add_typer(model.app, name="model")
app.add_typer(prompt_commands.app, name="prompts")
app.add_typer(config.app, name="config")
app.add_typer(db.app, name="db")
app.add_typer(data.app, name="data")
