"""A strategist that is a model on a live feed: what it is shown survives lateness, death and savepoints."""

import asyncio
import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from schemas.errors import ModelError
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.account import FAILING
from services.model_calls.language_model import ModelReply
from tests.worker.asking_models import Asked, asking
from tests.worker.live.paper_runs import KillAt, Killed, address, replayed, rows_stored
from tests.worker.live.test_paper_running_feed import Live
from tests.worker.live.test_savepoint_sessions import MARKET, ROWS
from tests.worker.test_strategist_background import gathered, times
from worker.cli.app import app
from worker.live.checkpoints import ResumePoint, SavepointWriter, restore
from worker.live.process import Polling
from worker.live.stepper import LiveStepper
from worker.models import Models, Overrides
from worker.operations.logs import level_of

SETTINGS = asking()


def backgrounds(folder: Path) -> int:
    """How many were shown; none holds anything later than its snapshot."""
    found = gathered(rows_stored(folder, "latest"))
    for snapshot, background in found:
        assert max(times(background), default=0) <= snapshot["known_at"]
    return len(found)


@pytest.fixture(scope="module", params=[0, 1])
def answered(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Live, Asked]:
    """A live run to its end whose model answers, at once or a row later."""
    folder, model = tmp_path_factory.mktemp("answered"), Asked()
    live = Live(request.param, SETTINGS, models=Models(strategist=model))
    outcome = asyncio.run(live.trade(folder))
    assert outcome.document is not None
    assert outcome.document["errors"] == 0
    return folder, live, model


def test_paper_live_strategist_of_a_model_is_shown_its_background_and_the_run_replays(answered) -> None:
    folder, _, model = answered
    assert backgrounds(folder) > 50
    assert any(request.background.get("last_plans") for request in model.questions)
    report = replayed(folder, SETTINGS)
    assert (report.ok, report.problem) == (True, None)


def test_paper_live_run_whose_model_answers_says_nothing_of_failing(answered) -> None:
    folder, live, _ = answered
    assert [detail for kind, detail in live.shown if kind == "model_failing"] == []
    assert live.process.traded.status.status().models_failing == {}
    text = CliRunner().invoke(app, ["status", "--db", address(folder)], catch_exceptions=False).stdout
    assert "usable" not in text


def test_paper_live_strategist_of_a_model_that_died_on_its_way_goes_on_and_replays(tmp_path) -> None:
    first = Live(2, SETTINGS, KillAt("validated", 180), Models(strategist=Asked()))
    with pytest.raises(Killed):
        asyncio.run(first.trade(tmp_path))
    outcome = asyncio.run(Live(1, SETTINGS, models=Models(strategist=Asked())).trade(tmp_path))
    assert outcome.document is not None
    assert outcome.document["errors"] == 0
    assert backgrounds(tmp_path) > 20
    report = replayed(tmp_path, SETTINGS)
    assert (report.ok, report.problem) == (True, None)


class Away(Asked):
    """A model that answers so often and then never again."""

    async def complete(self, **request: Any) -> ModelReply:
        if len(self.requests) >= 3:
            raise ModelError("no connection", kind="network", retryable=True)
        return await super().complete(**request)


def test_paper_live_run_says_that_its_model_answers_no_more_whoever_polls(tmp_path, monkeypatch) -> None:
    async def look(polling: Polling) -> None:
        """See nothing."""

    monkeypatch.setattr(Polling, "_look", look)
    live = Live(0, asking(breaker_failures=1_000), models=Models(strategist=Away()))
    assert asyncio.run(live.trade(tmp_path)).document is not None
    assert level_of("model_failing") == logging.WARNING
    (warned,) = [detail for kind, detail in live.shown if kind == "model_failing"]
    assert warned["model"] == "claude-test (strategist)"
    assert warned["failed_in_a_row"] >= FAILING
    assert warned["reason"] == "no connection"
    status = live.process.traded.status.status()
    assert status.model_calls["reply"] == 3
    failed = status.model_calls["network"]
    assert status.models_failing == {"claude-test (strategist)": failed}
    text = CliRunner().invoke(app, ["status", "--db", address(tmp_path)], catch_exceptions=False).stdout
    assert f"models     network {failed}, reply 3" in text
    assert f"claude-test (strategist) gave no usable reply to its last {failed} calls" in text


class Refused(Asked):
    """A model whose server takes its key no more, until that is mended."""

    def __init__(self, *, mended: bool) -> None:
        super().__init__()
        self.mended = mended

    async def complete(self, **request: Any) -> ModelReply:
        if self.requests and not self.mended:
            self.requests.append(request)
            raise ModelError("HTTP 401 invalid x-api-key", kind="rejected", status=401)
        return await super().complete(**request)


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The store of a run that was killed once its model was lost."""
    folder, first = tmp_path_factory.mktemp("lost"), Refused(mended=False)
    with pytest.raises(Killed):
        asyncio.run(Live(0, SETTINGS, KillAt("committed", 240), Models(strategist=first)).trade(folder))
    assert len(first.requests) == 4, "lost behind the third refusal"
    with closing(sqlite3.connect(folder / "paper.db")) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return (folder / "paper.db").read_bytes()


@pytest.mark.parametrize("mended", [True, False])
def test_paper_that_goes_on_asks_a_lost_model_once_more_and_the_run_replays(lost, tmp_path, mended) -> None:
    (tmp_path / "paper.db").write_bytes(lost)
    again = Live(0, SETTINGS, models=Models(strategist=Refused(mended=mended)))
    again_asked = again.models.strategist.requests
    again_asked += [{}] * (not mended)
    assert asyncio.run(again.trade(tmp_path)).document is not None
    assert len(again_asked) > 20 if mended else len(again_asked) == 2
    shown = [detail for kind, detail in again.shown if kind == "models_asked_again"]
    assert shown == [{"models": ["claude-test (strategist)"]}]
    rows = [row for row in rows_stored(tmp_path, "latest") if row.kind == "operator_command"]
    assert [json.loads(row.payload) for row in rows] == [{"number": 0, "kind": "ask_models", "payload": {}}]
    report = replayed(tmp_path, SETTINGS)
    assert (report.ok, report.problem) == (True, None)


@pytest.mark.parametrize("anonymise", [False, True])
def test_session_restored_asks_a_model_what_the_session_before_it_would_have_asked(anonymise) -> None:
    settings = asking(anonymise=anonymise)
    models = [Asked(), Asked()]

    def stepper(model: Asked) -> LiveStepper:
        journal = JournalWriter(MemorySink(), 10**9)
        given = Models(strategist=model)
        return LiveStepper(
            settings, MARKET, journal, lock_step=True, ask=lambda entry: None, own=Overrides(models=given)
        )

    async def take(one: LiveStepper, start: int, stop: int) -> None:
        for row in ROWS[start:stop]:
            await one.take(row)

    first, again = stepper(models[0]), stepper(models[1])
    asyncio.run(take(first, 0, 200))
    point, _ = SavepointWriter("this program").write(first.session, ResumePoint(first.rows, {}))
    own = Overrides(Models(strategist=models[1]))
    found = restore(point, MARKET, settings, again.journal, own=own)
    again.resume(found.session, found.resume_point.rows, found.resume_point.blocked)
    before = len(models[0].requests)
    for entry in (first, again):
        asyncio.run(take(entry, 200, 360))
    questions = [[(request["system"], request["prompt"]) for request in model.requests] for model in models]
    assert questions[1] == questions[0][before:]
    assert len(models[1].requests) > 10
    assert any(question.background.get("last_plans") for question in models[1].questions[:2])  # type: ignore[union-attr]
    assert again.journal.head_hash == first.journal.head_hash
