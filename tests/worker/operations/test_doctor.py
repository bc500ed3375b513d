"""`thinktwice doctor`: each thing that can be wrong is found, with the next step, and nothing is changed."""

import asyncio
import json
import socket
import sqlite3
from collections import namedtuple
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from schemas.settings import Settings
from schemas.settings.providers import PROVIDERS
from services.store import open_store
from tests.agents.language_models.wire_formats import FORMATS, saying
from tests.agents.language_models.wire_server import answer
from tests.services.store.plans import MADE, change_plan
from tests.services.store.stores import new_run
from tests.worker.wire import wire
from trading_core.compiled import ImageCache
from worker.doctor import checks as doctor_checks
from worker.doctor.checks import DoctorContext, run_checks

CANARY = "c4nary-0123456789"
HOOK = f"https://hooks.example.com/{CANARY}/{CANARY}"


@pytest.fixture
def doctor(shell, monkeypatch):
    """Runs the doctor; gives back its findings by name."""
    without_compiling(monkeypatch)

    def ran(*words: str, code: int) -> Any:
        done = shell.run("doctor", "--json", *words)
        assert done.exit_code == code, done.output
        document = json.loads(done.stdout)
        assert document["ok"] is (code == 0)
        assert CANARY not in done.output
        return {entry["name"]: entry for entry in document["checks"]}

    return ran


def without_compiling(monkeypatch):
    """Compiling takes a while; one test below does it."""
    quick = tuple(check for check in doctor_checks.CHECKS if check is not doctor_checks.kernel)
    monkeypatch.setattr(doctor_checks, "CHECKS", quick)


def made_store(folder, name="thinktwice.db"):
    async def made():
        async with await open_store(f"sqlite:///{folder}/{name}", create=True):
            pass

    asyncio.run(made())


def test_doctor_of_a_fresh_folder_finds_nothing_wrong_and_makes_nothing(doctor):
    found = doctor(code=0)
    assert {trial["state"] for trial in found.values()} == {"ok"}
    assert [item["next_step"] for item in found.values()] == [None] * len(found)
    assert found["store"]["found"] == "sqlite:///thinktwice.db is made by the first run"
    assert list(Path().iterdir()) == []


def test_doctor_prints_a_line_a_check(shell, monkeypatch):
    without_compiling(monkeypatch)
    monkeypatch.setenv("THINKTWICE_OPERATIONS_TOKEN", "weak")
    monkeypatch.setenv("THINKTWICE_RUNTIME__OPERATIONS__PORT", "0")
    done = shell.run("doctor")
    assert done.exit_code == 1
    [failed] = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
    assert failed.startswith(
        "FAILED   endpoint        THINKTWICE_OPERATIONS_TOKEN is too weak: at least 32 bytes"
    )


def test_store_is_examined_and_left_as_it_is(doctor):
    made_store(Path())
    before = (Path() / "thinktwice.db").read_bytes()
    found = doctor(code=0)
    assert "(current), 0 runs" in found["store"]["found"]
    assert found["store_writable"]["found"] == "rows can be written"
    assert (Path() / "thinktwice.db").read_bytes() == before


@pytest.mark.parametrize(
    ("db", "name", "quoted"),
    [
        ("sqlite:///absent/x.db", "store", "does not exist"),
        ("sqlite:///other.db", "store", "holds other tables"),
        ("sqlite:///text.db", "store", "is not a SQLite database"),
        ("postgresql://me:c4nary-0123456789@127.0.0.1:1/db", "store", "cannot be reached"),
        ("mysql://x/y", "store", "'mysql' is not known"),
    ],
)
def test_store_that_cannot_be_used_is_said_with_the_next_step(doctor, monkeypatch, db, name, quoted):
    (Path() / "text.db").write_text("no database at all, but long enough to be read as one" * 20)
    with closing(sqlite3.connect(Path() / "other.db")) as other:
        other.execute("CREATE TABLE somebody (x)")
    monkeypatch.setenv("THINKTWICE_RUNTIME__DB", db)
    found = doctor(code=1)[name]
    assert found["state"] == "failed"
    assert quoted in found["found"]
    assert found["next_step"]


def test_locked_store_cannot_be_written_now(doctor, monkeypatch):
    monkeypatch.setattr(doctor_checks, "PATIENCE_S", 0.1)
    made_store(Path())
    with closing(sqlite3.connect(Path() / "thinktwice.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        found = doctor(code=1)["store_writable"]
    assert "is locked by another process" in found["found"]


def test_database_is_checked_for_revision_rights_and_clock(doctor, monkeypatch, postgres_url):
    monkeypatch.setenv("THINKTWICE_RUNTIME__DB", postgres_url)
    assert doctor(code=1)["store"]["next_step"].endswith("`thinktwice db upgrade`")

    async def made():
        async with await open_store(postgres_url, create=True):
            pass

    asyncio.run(made())
    found = doctor(code=0)
    assert "(current)" in found["store"]["found"]
    assert found["store_clock"]["found"].endswith("s apart")
    monkeypatch.setattr(doctor_checks, "MAY_WRITE", "SELECT false")
    monkeypatch.setattr(doctor_checks, "MOST_SKEW_S", -1.0)
    found = doctor(code=1)
    assert "can only be read" in found["store_writable"]["found"]
    assert found["store_clock"]["state"] == "warning"


def test_settings_that_cannot_be_read_are_a_finding_and_the_rest_is_still_checked(doctor):
    (Path() / "mine.toml").write_text(f'[llm]\napi_key = "{CANARY}"\n')
    found = doctor("mine.toml", code=1)
    assert "'llm.api_key' looks like a secret" in found["settings"]["found"]
    assert found["python"]["state"] == "ok"


def test_password_on_the_command_line_is_a_warning(doctor):
    found = doctor("--db", f"postgresql://me:{CANARY}@127.0.0.1:1/db", code=1)
    assert found["settings"]["state"] == "warning"


@pytest.mark.parametrize(
    ("environment", "name", "state", "quoted"),
    [
        ({"THINKTWICE_RUNTIME__OPERATIONS__HOST": "0.0.0.0"}, "endpoint", "ok", "none is wanted"),
        (
            {
                "THINKTWICE_RUNTIME__OPERATIONS__HOST": "0.0.0.0",
                "THINKTWICE_RUNTIME__OPERATIONS__PORT": "0",
            },
            "endpoint",
            "failed",
            "is reached by others",
        ),
        ({"THINKTWICE_WEBHOOK_URL": HOOK}, "webhook", "ok", "https://hooks.example.com/***; not signed"),
        (
            {"THINKTWICE_WEBHOOK_URL": HOOK, "THINKTWICE_WEBHOOK_SECRET": CANARY},
            "webhook",
            "ok",
            "https://hooks.example.com/***, signed",
        ),
        (
            {"THINKTWICE_WEBHOOK_URL": HOOK.replace("https", "http")},
            "webhook",
            "warning",
            "is not encrypted",
        ),
        ({"THINKTWICE_WEBHOOK_URL": f"ftp://{CANARY}"}, "webhook", "failed", "is no address"),
        ({"THINKTWICE_WEBHOOK_URL_FILE": "absent"}, "secret_files", "failed", "cannot be read"),
        (
            {"THINKTWICE_RUNTIME__OPERATIONS__LOG_FILE": "absent/x.log"},
            "log_file",
            "failed",
            "cannot be written",
        ),
        (
            {"THINKTWICE_REFLECTION__MODE": "full", "THINKTWICE_LLM__MODEL": "anthropic/claude-haiku-5-5"},
            "model",
            "failed",
            "needs a key",
        ),
        (
            {
                "THINKTWICE_REFLECTION__MODE": "full",
                "THINKTWICE_LLM__MODEL": "anthropic/claude-haiku-5-5",
                "ANTHROPIC_API_KEY": CANARY,
            },
            "model",
            "ok",
            "there is a key, nobody was asked",
        ),
    ],
)
def test_what_is_reached_and_who_reaches_it_is_checked(doctor, monkeypatch, environment, name, state, quoted):
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    found = doctor(code=1 if state == "failed" else 0)[name]
    assert found["state"] == state
    assert quoted in found["found"]
    assert (found["next_step"] is None) == (state == "ok")


def test_port_that_is_taken_is_found(doctor, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv("THINKTWICE_RUNTIME__OPERATIONS__PORT", str(taken.getsockname()[1]))
        assert "address already in use" in doctor(code=1)["endpoint"]["found"].lower()


def test_secret_file_that_others_read_is_a_warning_with_the_command(doctor, monkeypatch):
    file = Path() / "token"
    file.write_text("c3b5a1f09e7d48260f1e8d7c6b3a5942\n")
    file.chmod(0o644)
    monkeypatch.setenv("THINKTWICE_OPERATIONS_TOKEN_FILE", "token")
    found = doctor(code=0)["secret_files"]
    assert (found["state"], found["next_step"]) == ("warning", "chmod 600 token")
    with pytest.MonkeyPatch.context() as container:
        container.setattr("worker.doctor.access_checks.os.geteuid", lambda: file.stat().st_uid + 1)
        assert "another user owns it" in doctor(code=0)["secret_files"]["next_step"]
    file.chmod(0o600)
    assert doctor(code=0)["secret_files"]["state"] == "ok"


@pytest.mark.parametrize(
    ("feed", "state", "quoted"),
    [
        ("replay", "ok", "bars come"),
        ("csv", "failed", "--feed csv follows a file"),
        ("kraken", "failed", "is not one of replay, csv, ccxt:NAME"),
        ("ccxt:kraken", "failed", "needs --symbols and --timeframe"),
    ],
)
def test_feed_is_opened_without_the_network(doctor, feed, state, quoted):
    found = doctor("--feed", feed, code=1 if state == "failed" else 0)["feed"]
    assert found["state"] == state
    assert quoted in found["found"]


def test_small_disk_old_clock_and_lost_libraries_are_found(monkeypatch):
    usage = namedtuple("usage", "total used free")
    patient = DoctorContext(Settings(), {})
    monkeypatch.setattr("worker.doctor.checks.shutil.disk_usage", lambda _: usage(1, 1, 10 * 2**20))
    monkeypatch.setattr(doctor_checks, "EARLIEST", doctor_checks.LATEST)
    monkeypatch.setattr(
        doctor_checks, "requires", lambda _: ["not-there>=1", "absent; extra == 'x'", "numpy"]
    )
    monkeypatch.setattr(doctor_checks, "SOME_ZONES", ("UTC", "Nowhere/City"))
    checks = [getattr(doctor_checks, name) for name in ("disk", "clock", "libraries", "time_zones")]
    found = asyncio.run(run_checks(patient, checks))
    assert [finding.state for finding in found] == ["failed", "failed", "failed", "warning"]
    assert found[2].found == "missing: not-there"


def test_compiled_code_needs_a_folder_that_stays(monkeypatch, tmp_path):
    patient = DoctorContext(Settings(), {})
    monkeypatch.setenv("THINKTWICE_CACHE_DIR", str(tmp_path / "file" / "below"))
    (tmp_path / "file").write_text("")
    [found] = asyncio.run(run_checks(patient, [doctor_checks.compiled_code]))
    assert found.state == "warning"
    assert "THINKTWICE_CACHE_DIR" in str(found.next_step)


def test_kernel_whose_compiled_code_was_damaged_names_the_file(monkeypatch, tmp_path):
    monkeypatch.setattr(ImageCache, "emptied", ["/cache/loop.advance.nbi was damaged: it is made again"])
    monkeypatch.setattr(doctor_checks, "cache_folder", lambda: tmp_path)
    (tmp_path / "loop.advance-1.nbi").touch()
    [found] = asyncio.run(run_checks(DoctorContext(Settings(), {}), [doctor_checks.kernel]))
    assert (found.state, found.found) == ("warning", ImageCache.emptied[0])


def test_kernel_without_its_compiler_fails_and_says_what_to_unset(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    [found] = asyncio.run(run_checks(DoctorContext(Settings(), {}), [doctor_checks.kernel]))
    assert (found.state, found.next_step) == ("failed", "unset it")
    assert found.found == "NUMBA_DISABLE_JIT is set, and the engine runs compiled only"


def test_kernel_is_compiled_and_runs():
    [found] = asyncio.run(run_checks(DoctorContext(Settings(), {}), [doctor_checks.kernel]))
    assert found.state == "ok"


def test_check_that_breaks_is_a_finding_and_the_next_one_runs():
    async def broken(_):
        raise RuntimeError("bug")

    found = asyncio.run(run_checks(DoctorContext(Settings(), {}), [broken, doctor_checks.python]))
    assert (found[0].state, found[0].found) == ("failed", "RuntimeError: bug")
    assert found[1].state == "ok"


def asked_over_the_wire(monkeypatch, provider, handler, doctor, code, **settings):
    monkeypatch.setenv("THINKTWICE_REFLECTION__MODE", "full")
    monkeypatch.setenv("THINKTWICE_LLM__MODEL", f"{provider}/claude-test")
    price = '[{"model": "claude-test", "input_usd": 0, "output_usd": 0}]'
    monkeypatch.setenv("THINKTWICE_LLM__PRICES", price)
    for name, value in settings.items():
        monkeypatch.setenv(f"THINKTWICE_REFLECTION__{name}", value)
    shown = FORMATS[provider]
    streamed = shown.streamed("h", stop="max_tokens")
    with wire(monkeypatch, handler(shown), streamed, provider) as server:
        return doctor("--network", code=code)["model"], server


@pytest.mark.parametrize("provider", sorted(FORMATS))
def test_doctor_asks_the_model_one_token_and_says_which_deadline_it_holds(doctor, monkeypatch, provider):
    def cut(shown):
        return saying(shown, "h", stop="max_tokens")

    long = {"BUDGET_EVENT_MS": "60000", "BUDGET_HEARTBEAT_MS": "60000"}
    found, server = asked_over_the_wire(monkeypatch, provider, cut, doctor, 0, **long)
    assert [body[PROVIDERS[provider].bound] for _, body in server.requests] == [1, 1]
    assert found["state"] == "ok"
    assert (
        "ms and holds reflection.budget_event_ms 60000, reflection.budget_heartbeat_ms 60000"
        in found["found"]
    )
    short = {"BUDGET_EVENT_MS": "0.001", "BUDGET_HEARTBEAT_MS": "60000"}
    found, _ = asked_over_the_wire(monkeypatch, provider, cut, doctor, 0, **short)
    assert found["state"] == "warning"
    assert "too slow for reflection.budget_event_ms 0.001" in found["found"]
    assert "raise the deadlines" in found["next_step"]


@pytest.mark.parametrize("provider", sorted(FORMATS))
def test_doctor_tells_a_key_that_is_turned_away(doctor, monkeypatch, provider):
    found, _ = asked_over_the_wire(
        monkeypatch, provider, lambda shown: answer(shown.error("authentication_error", "x"), 401), doctor, 1
    )
    assert found["state"] == "failed"
    assert "HTTP 401 authentication_error" in found["found"]
    assert "check the key" in found["next_step"]


def test_doctor_counts_change_plans_that_wait_for_a_person(doctor):
    async def made():
        async with await open_store("sqlite:///thinktwice.db", create=True) as store:
            run_id = (await store.runs.create(new_run())).run_id
            for number in range(2):
                await store.plans.put(run_id, change_plan(MADE + number))

    asyncio.run(made())
    found = doctor(code=0)["plans_waiting"]
    assert (found["state"], found["found"]) == ("warning", "2 change plans for a person to decide")
    assert found["next_step"] == "see `thinktwice plans list --state awaiting_approval`"
