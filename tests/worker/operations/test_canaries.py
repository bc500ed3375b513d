"""Canary secrets go in at every door that secrets have, and come out of none (F16).

Model key, webhook, endpoint token and database password are made up here; then commands run, work and fail,
and everything they leave is searched: what they print, log, store, serve, send, and a copy of the database.
"""

import asyncio
import base64
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from typer.testing import CliRunner

from schemas.settings.live import OperationsSettings
from tests.agents.language_models.wire_server import answer
from tests.worker.operations.asking import endpoint, read_requests, status
from tests.worker.operations.receiver import HANG, receiving
from tests.worker.wire import wire
from worker.cli import app
from worker.doctor import checks as doctor_checks
from worker.operations.alerts import Alert
from worker.operations.notifications import Notifier, Webhook
from worker.secrets.redaction import redactor_of

ROOT = Path(__file__).parents[3]
KEY = "c4nary-model-key-0123456789"
TOKEN = "c4nary-endpoint-token-0123456789abcdef"
HOOK = "c4nary-hook-path-0123456789"
SIGNING = "c4nary-signing-secret-0123456789"
PASSWORD = "c4nary-db p@ss/0123456789"
CANARIES = (KEY, TOKEN, HOOK, SIGNING, PASSWORD, quote(PASSWORD, safe=""), "c4nary")
SHORT = ("--symbols", "AAPL", "--from", "2004-01-01", "--to", "2004-12-31")


def found_in(text):
    """Canaries in a text, as they are or in base64."""
    encoded = [base64.b64encode(canary.encode()).decode().rstrip("=") for canary in CANARIES[:-1]]
    return [canary for canary in (*CANARIES, *encoded) if canary in text]


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A folder and an environment with a secret behind every door."""
    for name in [name for name in os.environ if name.startswith("THINKTWICE_")]:
        if name != "THINKTWICE_CACHE_DIR":
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("THINKTWICE_OPERATIONS_TOKEN", TOKEN)
    monkeypatch.setenv("THINKTWICE_WEBHOOK_URL", f"http://127.0.0.1:9/{HOOK}")
    monkeypatch.setenv("THINKTWICE_WEBHOOK_SECRET", SIGNING)
    monkeypatch.setenv("THINKTWICE_RUNTIME__OPERATIONS__LOG_FILE", str(tmp_path / "worker.log"))
    monkeypatch.setenv("THINKTWICE_RUNTIME__OPERATIONS__LOG_LEVEL", "debug")
    quick = tuple(check for check in doctor_checks.CHECKS if check is not doctor_checks.kernel)
    monkeypatch.setattr(doctor_checks, "CHECKS", quick)  # compiling takes seconds and tells nothing
    return tmp_path


def read_text(*words):
    """What a command prints, whether it succeeds or fails."""
    done = CliRunner().invoke(app, list(words))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return f"{words[0]} {done.exit_code}\n{done.output}"


def telling(key):
    """A model server that repeats the key it was given, as a careless gateway does."""
    return answer({"type": "error", "error": {"type": "bad", "message": f"bad key {key}"}}, status=401)


def left_behind(folder):
    """Every file below a folder, as text; stores as what is in them."""
    texts = []
    for path in folder.rglob("*"):
        if path.is_file():
            texts.append(path.read_bytes().decode("utf-8", "replace"))
    return "\n".join(texts)


def test_commands_that_work_and_fail_show_no_secret(planted, monkeypatch):
    with wire(monkeypatch, telling(KEY)) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("THINKTWICE_LLM__MODEL", "anthropic/claude-haiku-5-5")
        printed = [read_text("backtest", *SHORT, "--reflection", "full", "--out", "out", "--json")]
        printed += [read_text("backtest", *SHORT, "--strategist", "model")]
        monkeypatch.delenv("THINKTWICE_LLM__MODEL")
        printed += [read_text("paper", *SHORT, "--new", "--json")]
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    (planted / "secret.toml").write_text(f'[llm]\napi_key = "{KEY}"\n')
    address = f"postgresql://me:{quote(PASSWORD, safe='')}@127.0.0.1:1/db"
    printed += [
        read_text("runs"),
        read_text("journal", "latest", "--jsonl", "--telemetry"),
        read_text("journal", "r0001", "--jsonl", "--telemetry"),
        read_text("config", "show", "--json"),
        read_text("config", "show", "secret.toml"),
        read_text("worker", "--once", "--json", "--run", "r0001"),
        read_text("doctor", "--json", "--db", address),
        read_text("verify", "r0001"),
        read_text("runs", "--db", address),
        read_text("db", "check", "--db", address),
        read_text(
            "worker", "--once", "--db", f"postgresql://127.0.0.1:1/db?password={quote(PASSWORD, safe='')}"
        ),
        read_text("backtest", "--db", f"postgres://me:{PASSWORD}@nowhere:1/x"),
    ]
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"ftp://me:{HOOK}@nowhere")
    printed += [read_text("backtest", *SHORT, "--strategist", "model")]
    monkeypatch.setenv("THINKTWICE_RUNTIME__DB", address)
    printed += [read_text("runs"), read_text("config", "show")]
    text = "\n".join(printed)
    assert KEY in str(server.requests[0])  # what is looked for has been on its way
    assert '"ok": false' in text
    (planted / "secret.toml").unlink()
    assert found_in(text) == []
    assert found_in(left_behind(planted)) == []


def test_database_that_was_reached_with_a_password_keeps_none(planted, monkeypatch, postgres_url):
    password = str(urlsplit(postgres_url).password)
    monkeypatch.setenv("THINKTWICE_RUNTIME__DB", postgres_url)
    printed = [
        read_text("db", "upgrade"),
        read_text("backtest", *SHORT),
        read_text("worker", "--once"),
        read_text("doctor"),
    ]
    printed += [
        read_text("db", "backup", "copy.db"),
        read_text("journal", "latest", "--jsonl"),
        read_text("config", "show"),
    ]
    wrong = postgres_url.replace(password, quote(PASSWORD, safe=""))
    printed += [read_text("runs", "--db", wrong), read_text("backtest", *SHORT, "--db", wrong)]
    assert "refused the user or password" in "\n".join(printed)
    with closing(sqlite3.connect(planted / "copy.db")) as copy:
        dump = "\n".join(copy.iterdump())
    assert "'r0001'" in dump
    for text in ("\n".join(printed), dump, left_behind(planted)):
        assert found_in(text) == []
        assert password not in text


def test_endpoint_and_webhook_hand_on_no_secret(planted):
    redactor = redactor_of()
    known = [KEY, TOKEN, HOOK, SIGNING]
    broken = status(state="safe_mode", reason=f"failed with {KEY}", feed=f"http://x/{HOOK}", owner=SIGNING)

    class Source:
        def status(self):
            return broken

    async def served():
        async with (
            endpoint(Source(), known=known) as one,
            receiving(HANG, b"HTTP/1.1 204 X\r\n\r\n") as there,
        ):
            replies = [
                await read_requests(one, path) for path in ("/metrics", "/ready", "/status", "/health", "/x")
            ]
            hook = Webhook(f"{there.url}/{HOOK}", SIGNING, attempt_s=0.1)
            notifier = Notifier(hook, OperationsSettings(), "r0001", "paper", redactor, first_wait_s=0.0)
            notifier.start()
            notifier.tell(
                Alert("error", f"failed with {KEY}", 0, detail={"url": hook.shown, "deep": [TOKEN]})
            )
            await notifier.close()
            bodies = [body.decode() for _, _, body in there.got]
            assert len(bodies) == 2
            return "\n".join([*(reply.body for reply in replies), *bodies])

    assert found_in(asyncio.run(served())) == []


PROGRAM = """
import logging, sys, threading
sys.path.insert(0, {root!r})
from worker.cli import app

def broken():
    logging.getLogger("library").error("logged %s", {secret!r})
    thread = threading.Thread(target=int, args=({secret!r},))
    thread.start()
    thread.join()
    raise RuntimeError("a bug with " + {secret!r})

app.command("broken")(broken)
app(["broken"])
"""


def test_failure_that_nobody_caught_is_printed_without_its_secret(planted):
    words = [sys.executable, "-c", PROGRAM.format(secret=KEY, root=str(ROOT))]
    done = subprocess.run(words, cwd=planted, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "RuntimeError: a bug with ***" in done.stderr
    assert "logged ***" in done.stderr
    assert "invalid literal for int() with base 10: '***'" in done.stderr
    assert found_in(done.stderr) == []
