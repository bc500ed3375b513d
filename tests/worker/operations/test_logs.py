"""Logs as a process writes them: no secret in any part of a record, and nothing that raises."""

import asyncio
import io
import json
import logging
import os
import stat
import sys

import pytest
import structlog

from schemas.errors import ConfigError
from schemas.settings import Settings
from worker.operations.logs import LIBRARIES, RedactingFormatter, configure_logging, logger
from worker.secrets.redaction import Redactor

CANARY = "c4nary-0123456789-value"
DB_PASSWORD = "c4nary-db-pass"
ENVIRONMENT = {"SOME_API_KEY": CANARY}


@pytest.fixture
def logged(monkeypatch):
    """Configures logging over a captured stderr; gives back what was written."""
    stream = io.StringIO()
    opened = []

    def configured(**operations):
        monkeypatch.setattr(sys, "stderr", stream)
        runtime = {"db": f"postgresql://me:{DB_PASSWORD}@host/db", "operations": operations}
        opened.append(configure_logging(Settings.model_validate({"runtime": runtime}), ENVIRONMENT))
        return opened[-1], stream

    yield configured
    for bar in opened:
        bar.close()


def failing():
    local = CANARY  # noqa: F841 - a traceback with the values of variables would show it
    raise ValueError(f"cannot reach postgresql://me:{DB_PASSWORD}@host/db with {CANARY}")


def log_everything():
    log = logger("test", run_id="r0001")
    log.info(f"message {CANARY}", field=CANARY, api_key="anything", deep={"a": [CANARY]}, raw=CANARY.encode())
    try:
        failing()
    except ValueError:
        log.exception("structlog failed")
        logging.getLogger("ccxt.base").exception("library failed %s", CANARY, stack_info=True)
    logging.getLogger("other").warning("args %s", CANARY, extra={"note": CANARY})
    logging.getLogger("other").error({"password": "xyz", "value": CANARY})
    logging.getLogger("other").error(ValueError(CANARY))
    structlog.stdlib.get_logger("foreign").warning("bearer", header=f"Bearer {CANARY}")


@pytest.mark.parametrize("form", ["json", "console"])
def test_no_part_of_a_record_shows_a_secret(logged, form):
    _, stream = logged(log_format=form)
    log_everything()
    text = stream.getvalue()
    assert text.count("***") >= 8
    assert "Traceback" in text
    assert CANARY not in text
    assert DB_PASSWORD not in text
    assert "0123456789" not in text


def test_json_records_are_one_object_a_line_with_time_level_and_logger(logged):
    _, stream = logged(log_format="json")
    log_everything()
    records = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert records[0]["event"] == "message ***"
    assert records[0]["api_key"] == "***"
    assert records[0]["run_id"] == "r0001"
    assert records[0]["level"] == "info"
    assert records[0]["logger"] == "thinktwice.test"
    assert records[0]["timestamp"].endswith("Z")
    assert records[1]["exception"].startswith("Traceback")
    assert records[3]["note"] == "***"


def test_foreign_text_cannot_write_a_line_of_its_own(logged):
    _, stream = logged(log_format="console")
    logger("test").warning("a\n2024-01-01 [info] forged", reason="b\r\n2024 forged\x1b[2J")
    assert stream.getvalue().count("\n") == 1
    assert "\x1b[2J" not in stream.getvalue()


@pytest.mark.parametrize(("level", "seen"), [("info", 2), ("warning", 1), ("error", 0)])
def test_level_holds_for_our_loggers_and_libraries_stay_at_info_or_above(logged, level, seen):
    _, stream = logged(log_level=level)
    logger("test").info("ours")
    logging.getLogger("ccxt").warning("theirs")
    assert len(stream.getvalue().splitlines()) == seen
    assert all(logging.getLogger(name).level >= logging.INFO for name in LIBRARIES)


def test_debug_level_keeps_libraries_from_telling_prompts_and_headers(logged):
    _, stream = logged(log_level="debug")
    logging.getLogger("anthropic._base_client").debug("Request options: prompt")
    logging.getLogger("httpx2").info("HTTP Request: POST https://hooks.example.com/T0/key")
    logger("test").debug("ours")
    assert [line for line in stream.getvalue().splitlines() if "ours" not in line] == []


def test_record_that_cannot_be_rendered_is_never_printed_and_the_next_one_is(logged):
    class Hostile:
        def __str__(self):
            raise RuntimeError(CANARY)

        __repr__ = __str__

    _, stream = logged(log_format="json")
    logging.getLogger("other").warning("%s and %s", CANARY)
    logging.getLogger("other").warning("x", extra={"hostile": Hostile()})
    logger("test").info("still there")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["still there"]


def test_full_disk_loses_records_and_nothing_else(logged):
    logs, stream = logged(log_file="/dev/full")
    logger("test").info("lost")
    logs.close()
    assert stream.getvalue() == ""


def test_log_file_is_for_its_owner_takes_every_record_and_follows_rotation(logged, tmp_path):
    file = tmp_path / "worker.log"
    _, stream = logged(log_file=str(file), log_format="json")
    logger("test").info("one", shown_on_stdout=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    os.rename(file, tmp_path / "worker.log.1")
    logger("test").info("two")
    assert json.loads((tmp_path / "worker.log.1").read_text())["event"] == "one"
    assert json.loads(file.read_text())["event"] == "two"
    assert stream.getvalue() == ""


def test_what_stdout_shows_is_not_repeated_on_stderr(logged):
    _, stream = logged()
    logger("test").info("result", shown_on_stdout=True)
    assert stream.getvalue() == ""


def test_log_file_that_cannot_be_written_is_an_error_of_the_operator(logged, tmp_path):
    with pytest.raises(ConfigError, match="log_file .* cannot be written: No such file"):
        logged(log_file=str(tmp_path / "absent" / "worker.log"))


def test_closing_gives_the_process_back_as_it_was(logged):
    root = logging.getLogger()
    before = (root.handlers[:], root.level, logging.getLogger("ccxt").level)
    logs, _ = logged(log_level="error")
    logs.close()
    assert (root.handlers[:], root.level, logging.getLogger("ccxt").level) == before


def test_task_that_nobody_waited_for_is_logged_without_its_secret(logged):
    _, stream = logged(log_format="json")

    async def forgotten():
        asyncio.get_running_loop().call_exception_handler(
            {"message": "lost", "exception": ValueError(CANARY)}
        )

    asyncio.run(forgotten())
    assert "ValueError: ***" in stream.getvalue()
    assert CANARY not in stream.getvalue()


def test_field_with_the_name_of_a_secret_is_masked_whatever_it_holds(logged):
    _, stream = logged(log_format="json")
    logger("test").info("x", token=123, nested={"password": ("a", "b")})
    record = json.loads(stream.getvalue())
    assert (record["token"], record["nested"]) == ("***", {"password": "***"})


def test_formatter_cleans_the_finished_text_whatever_the_processors_left():
    formatter = RedactingFormatter(Redactor([CANARY]), processor=structlog.processors.JSONRenderer())
    record = logging.LogRecord("x", logging.INFO, "", 0, "said %s", (CANARY,), None)
    assert "said ***" in formatter.format(record)
