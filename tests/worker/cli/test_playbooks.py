"""`playbooks list|history|rollback`: where versions came from, what speaks for them, and the way back."""

import asyncio
import json
import re

import pytest

from schemas.playbook import PlaybookVersion
from schemas.settings import Settings
from schemas.vocabulary import VersionState
from services.evidence_tools.playbook_history import KINDS, PlaybookHistory
from services.journal.kinds import JOURNAL_KINDS
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.loader import load_playbooks
from services.playbooks.renewals import Renewal
from services.slow_loop.loop_rows import journal_renewal, journal_version
from services.store import open_store
from tests.services.high_level.builders import episode, playbook
from tests.services.store.stores import new_run
from tests.worker.planted_store import definitions
from worker.cli.playbooks import _figure_of, version_history
from worker.pages.text_parts import TextTable

NAME = "buys_strength"


def answered(shell, *words):
    result = shell.run("playbooks", *words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_history_tells_every_transition_of_the_journal_with_its_evidence(planted):
    shown = answered(planted, "history", NAME)["versions"]
    rows = planted.run("journal", "latest", "--jsonl", "--kind", "playbook_version").stdout.splitlines()
    moved = [row["payload"] for row in map(json.loads, rows) if row["payload"]["playbook_id"] == NAME]
    assert sum(len(version["transitions"]) for version in shown) == len(moved)
    first, tried, lowered, candidate = shown[:4]
    assert (first["version"], first["parent"], first["changes"]) == (1, None, [])
    assert [step["state"] for step in first["transitions"]] == ["active", "retired"]
    assert (tried["trial"], tried["parent"]) == ("experiment", 1)
    assert lowered["changes"] == [{"field": "risk_fraction", "from": 0.005, "to": 0.0025}]
    assert candidate["trial"] == "candidate"
    assert {"field": "parameters.side.value", "from": 1.0, "to": -1.0} in candidate["changes"]
    for item in (tried, lowered, candidate):
        assert all(item[name] for name in ("report_id", "verdict_id", "action_id"))
    account, paper = first["account"], tried["paper"]
    assert account["n"] > 20
    assert account["mean_r"] < 0
    assert account["lower_r"] < account["mean_r"] < account["upper_r"]
    assert account["e_value_below"] > account["e_value"]
    assert paper["n"] > 20
    assert paper["mean_r"] > 0


def test_number_and_mean_that_stand_side_by_side_are_of_the_same_trades(planted):
    rows = planted.run("journal", "latest", "--jsonl", "--kind", "episode").stdout.splitlines()
    trades = [row["payload"]["episode"] for row in map(json.loads, rows)]
    listed = [line.split() for line in planted.run("playbooks", "list").stdout.splitlines()[1:]]
    versions = answered(planted, "list")["versions"]
    shown = {
        version["version_hash"]: (version["account"], line)
        for version, line in zip(versions, listed, strict=True)
    }
    traded = 0
    for version_hash, (account, line) in shown.items():
        own = [trade["r"] for trade in trades if trade["playbook_hash"] == version_hash]
        if not own:
            assert account is None
            continue
        traded += 1
        mean = sum(own) / len(own)
        assert (account["n"], account["mean_all_r"]) == (len(own), pytest.approx(mean))
        assert f" {len(own)} {mean:+.2f} R" in " ".join(line)
    assert traded > 1
    first = shown[versions[0]["version_hash"]][0]
    text = planted.run("playbooks", "history", NAME).stdout
    assert re.search(rf"^account.n +{first['n']:,}$", text, re.M)
    assert re.search(rf"^account.mean_r +{first['mean_r']:g}$", text, re.M)


def begun():
    sink = MemorySink()
    return JournalWriter(sink), sink


def told_by(journal, sink, kinds=JOURNAL_KINDS):
    """The history that rows of these kinds tell."""
    history = PlaybookHistory(Settings())

    async def rows():
        await journal.flush()
        for row in sink.rows:
            if row.kind in kinds:
                yield row

    asyncio.run(history.read(rows()))
    return history


def test_mean_beside_the_number_counts_the_trades_of_a_block_that_is_not_complete():
    book, (journal, sink) = playbook(), begun()
    first = PlaybookVersion(definition=book, state=VersionState.ACTIVE, since=1, reason="file")
    journal_version(journal, first, 1)
    for number in range(12):  # five a week, the third week is not over
        trade = episode(book, number=number, r=1.0 if number < 10 else -1.0)
        payload = {"episode": trade.model_dump(mode="json")}
        journal.append("episode", ts_event=number, known_at=trade.known_at, payload=payload)
    history = told_by(journal, sink)
    (fields,) = [history.document_with_means(version) for version in history.of()]
    account = fields["account"]
    assert (account["n"], account["blocks"], account["mean_r"]) == (12, 2, 1.0)
    assert account["mean_all_r"] == pytest.approx(8 / 12)
    assert [_figure_of(account, name) for name in ("n", "mean_all_r")] == [12, "+0.67 R"]


def test_history_is_readable(planted):
    text = planted.run("playbooks", "history", NAME).stdout
    assert "buys_strength version 3" in text
    assert "risk_fraction 0.005 -> 0.0025" in text
    assert re.search(r"Z  retired .* replaced by version 3", text)
    assert re.search(r"Z  shadow +\d{4}-", text)
    assert re.search(r"^paper\.n +\d", text, re.M)
    listed = planted.run("playbooks", "list").stdout
    assert [line.split()[:3] for line in listed.splitlines()[1:5]] == [
        [NAME, "1", "retired"],
        ["channel_breakout", "1", "active"],
        ["mean_reversion", "1", "active"],
        [NAME, "2", "expired"],
    ]


def test_history_shows_the_counter_evidence_of_what_was_rolled_back_or_ended(planted):
    journal, sink = begun()
    known = PlaybookVersion(definition=definitions()[0], state=VersionState.ACTIVE, since=1, reason="file")
    ended = known.model_copy(
        update={
            "state": VersionState.RETIRED,
            "evidence": {"n": 30, "counter_n": 40, "counter_e_value": 21.0},
        }
    )
    journal_version(journal, known, 1)
    journal_version(journal, ended, 2)
    history = told_by(journal, sink)
    (payload,) = [history.document(entry) for entry in history.of(NAME)]
    assert (payload["evidence"], payload["counter_evidence"]) == ({"n": 30}, {"n": 40, "e_value": 21.0})


def test_history_shows_when_a_measure_was_renewed_and_what_its_trades_had_shown():
    day, first, (journal, sink) = 86_400 * 10**9, 12_000 * 86_400 * 10**9, begun()
    cut = PlaybookVersion(
        definition=definitions()[0],
        state=VersionState.ACTIVE,
        since=1,
        reason="it loses",
        expires_at=first + 30 * day,
    )
    journal_version(journal, cut, 1)
    for number, shown in ((1, {}), (2, {"n": 12, "blocks": 5, "mean_r": -0.25, "reference_r": 0.0})):
        until = first + (number + 1) * 30 * day
        renewed = cut.model_copy(update={"expires_at": until})
        journal_renewal(journal, Renewal(renewed, "risk 0.0025", 1, until, shown), first + number * 30 * day)
    history = told_by(journal, sink, KINDS)
    (payload,) = [history.document(entry) for entry in history.of(NAME)]
    assert payload["expires_at"] == first + 90 * day
    assert [(item["known_at"], item["measure"], item["until"]) for item in payload["renewals"]] == [
        (first + 30 * day, "risk 0.0025", first + 60 * day),
        (first + 60 * day, "risk 0.0025", first + 90 * day),
    ]
    assert payload["renewals"][1]["shown"]["n"] == 12
    table = next(part for part in version_history(payload) if isinstance(part, TextTable))
    assert [[line[1], line[2], line[4]] for line in table.rows] == [
        ["active", "2002-12-09", "it loses"],
        ["renewed", "2003-01-08", "risk 0.0025"],
        ["renewed", "2003-02-07", "risk 0.0025"],
    ]
    assert table.rows[2][3].startswith("blocks 5, mean_r -0.25, n 12")


def test_rollback_returns_to_the_version_that_traded_differently_and_writes_it(planted):
    payload = answered(planted, "rollback", NAME, "--write", "books")
    states = {(step["version"], step["state"]) for step in payload["transitions"]}
    assert (3, "retired") in states
    (active,) = [step for step in payload["transitions"] if step["state"] == "active"]
    assert active["from_version"] == 3
    assert {"field": "risk_fraction", "from": 0.0025, "to": 0.005} in active["changes"]
    books = {playbook.id: playbook for playbook in load_playbooks(planted.folder / "books")}
    assert books[NAME].risk_fraction == 0.005
    assert books[NAME] == definitions()[0]
    assert payload["written"]["folder"] == "books"
    manifest = json.loads((planted.folder / "books" / "lifecycle.json").read_text())
    assert (manifest["run_id"], manifest["reason"]) == ("r0001", f"rollback of {NAME}")


def test_rollback_of_what_cannot_be_rolled_back_says_why_and_writes_nothing(planted):
    complaint = planted.complaint("playbooks", "rollback", "channel_breakout", "--write", "books")
    assert "version 1 has nothing different to roll back to" in complaint
    assert not (planted.folder / "books").exists()
    assert "Did you mean 'buys_strength'?" in planted.complaint("playbooks", "rollback", "buy_strength")
    assert "no playbook 'x'" in planted.complaint("playbooks", "history", "x")


@pytest.mark.parametrize("write", [False, True])
def test_rollback_of_a_run_that_trades_is_a_request(planted, write):
    async def made():
        async with await open_store("sqlite:///thinktwice.db", create=True) as store:
            rows = [row async for row in store.journal.rows("r0001", kinds={"genesis", "playbook_version"})]
            record = await store.runs.find("r0001")
            new = new_run(mode="paper", config=record.config, config_hash=record.config_hash)
            run_id = (await store.runs.create(new)).run_id
            await store.journal.append(run_id, rows[:4])
            return run_id

    run_id = asyncio.run(made())
    if write:
        assert "leave out --write" in planted.complaint(
            "playbooks", "rollback", NAME, "--run", run_id, "--write", "b"
        )
        return
    payload = answered(planted, "rollback", NAME, "--run", run_id)
    assert (payload["request"], payload["kind"], payload["payload"]) == (1, "rollback", {"playbook_id": NAME})
    assert "request 1 (rollback) waits" in planted.run("playbooks", "rollback", NAME, "--run", run_id).stdout
