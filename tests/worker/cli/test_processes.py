"""What only a real process shows: what is imported, a broken pipe, a signal from outside."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from schemas.judge import JudgeAction
from schemas.plan import ChangePlan, Proposed
from schemas.settings import Settings
from services.plans.drafting import PlanFacts, draft
from services.playbooks.loader import load_playbooks
from services.store import open_store
from tests.commands.started import run_to_end
from tools.docs_examples import shell_environment

HEAVY = (
    "numba", "pandas", "pyarrow", "anthropic", "mcp", "scipy", "numpy", "llvmlite", "alembic", "bokeh",
    "sqlalchemy.orm",
)  # fmt: skip
RUN = "import sys; from worker.cli import app\n"
LOADED = """
import json
found, known = [], set()
for words in {commands!r}:
    try:
        app(words)
    except SystemExit as end:
        code = end.code
    new = sorted({{*sys.modules}} & {{*{heavy!r}}} - known)  # told of the command that loads it first
    known.update(new)
    found.append([words, new, code])
print(json.dumps(found), file=sys.stderr)
"""
WITH_FAKE_ENGINE = (
    "from worker.runs import run_inputs\n"
    "from tests.worker.cli.fake_runner import FakeRunner\n"
    "run_inputs.playbooks = lambda settings: ()\n"
    "run_inputs.backtest_runner = lambda *tell: FakeRunner(at_bar={at_bar})\n"
    "app({words!r})\n"
)
SLOW_BAR = "lambda t: (print(t, file=sys.stderr, flush=True), __import__('time').sleep(0.05))"


def python(program: str) -> list[str]:
    return [sys.executable, "-c", f"{RUN}{program}"]


def begun(program: str, folder: Path) -> subprocess.Popen[str]:
    environment = shell_environment({})
    return subprocess.Popen(python(program), cwd=folder, env=environment, stdout=PIPE, stderr=PIPE, text=True)


@pytest.fixture
def stored_run(shell):
    assert shell.backtest().exit_code == 0
    return shell.folder


READING = [
    ["--help"],
    ["runs"],
    ["journal", "r0001", "--jsonl"],
    ["why", "zz", "--run", "r0001"],
    ["report", "r0001"],
    ["report", "r0001", "latest", "--html", "page.html"],
    ["page", "--help"],
    ["backtest", "--help"],
    ["config", "show"],
    ["schema"],
    ["schema", "PolicyLevelReflectionRequest"],
    ["check", "--help"],
    ["ask-again", "--help"],
    ["faults", "--help"],
    ["plans", "list"],
    ["plans", "--help"],
    ["mcp", "--help"],
    ["mcp", "config"],
    ["tools", "list"],
]


def loaded(commands: list[list[str]], heavy: tuple[str, ...], folder: Path) -> list[list[object]]:
    """Of each command in turn, in one process: its words, what it loads of these, and its exit code."""
    done = run_to_end(python(LOADED.format(commands=commands, heavy=heavy)), folder)
    found: list[list[object]] = json.loads(done.stderr.splitlines()[-1])
    return found


def test_reading_command_loads_no_heavy_library(stored_run):
    codes = [2 if words[0] == "why" else 0 for words in READING]
    wanted = [[words, [], code] for words, code in zip(READING, codes, strict=True)]
    assert loaded(READING, HEAVY, stored_run) == wanted


def test_help_of_all_commands_loads_no_page_templates(tmp_path):
    assert loaded([["--help"]], ("jinja2",), tmp_path) == [[["--help"], [], 0]]


def test_journal_into_a_reader_that_stops_is_quiet(shell):
    assert shell.run("backtest", "--symbols", "AAPL", "--to", "2005-12-31").exit_code == 0
    process = begun("app(['journal', 'r0001', '--jsonl'])", shell.folder)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith('{"seq":0,')
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert (process.wait(30), complaint) == (0, "")


def test_backtest_interrupted_from_outside_keeps_a_journal_that_verifies(shell):
    program = WITH_FAKE_ENGINE.format(
        words=["backtest", "--symbols", "AAPL", "--to", "2000-12-31"], at_bar=SLOW_BAR
    )
    process = begun(program, shell.folder)
    assert process.stderr is not None
    assert process.stderr.readline() == "0\n"
    process.send_signal(signal.SIGINT)
    printed, complaint = process.communicate(timeout=30)
    assert (process.returncode, printed) == (130, "")
    assert complaint.splitlines()[-1].startswith("thinktwice: stopped by SIGINT: run r0001 is kept")
    result = shell.run("verify", "r0001")
    assert result.exit_code == 0, result.output
    assert "(interrupted)" in result.stdout


def folder_plan(folder: Path) -> ChangePlan:
    """A plan of less risk for a playbook that the package brings."""
    now, (definition, *_) = time.time_ns(), load_playbooks(None)
    action = JudgeAction(
        kind="set_risk_fraction", playbook_id=definition.id, value=0.002, reason="less of it"
    )
    facts = PlanFacts(
        at=now,
        expires_at=now + 10**15,
        definitions={definition.id: definition},
        next_versions={definition.id: 2},
        judge=Settings().judge,
    )
    plan = draft([Proposed(action)], facts, "text", understanding="risk less", folder=str(folder))
    assert isinstance(plan, ChangePlan)
    return plan


def test_commands_of_plans_load_neither_compiler_nor_frames_nor_model_sdk(stored_run):
    async def planned():
        async with await open_store(f"sqlite:///{stored_run}/thinktwice.db", create=True) as store:
            plans = [folder_plan(stored_run / name) for name in ("edited", "approved", "cancelled")]
            for plan in plans:
                await store.plans.put("r0001", plan)
            return plans

    edited, approved, cancelled = asyncio.run(planned())
    commands = {
        ("show", edited.plan_id): 0,
        ("show", edited.plan_id, "--json"): 0,
        ("diff", edited.plan_id): 0,
        ("edit", edited.plan_id, "--set", "steps.1.value=0.001"): 0,
        ("approve", approved.plan_id, "--hash", approved.content_hash): 1,
        ("cancel", cancelled.plan_id): 0,
    }
    heavy = ("numba", "pandas", "pyarrow", "anthropic", "openai", "scipy", "llvmlite", "alembic", "bokeh")
    found = loaded([["plans", *words] for words in commands], heavy, stored_run)
    assert found == [[["plans", *words], [], code] for words, code in commands.items()]
