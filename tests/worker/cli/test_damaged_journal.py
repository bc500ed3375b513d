"""A journal row that is damaged, gone or there twice: every command that reads it names it and what to do."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from schemas.settings import Settings
from services.store.failures import StoreDamaged
from tests.worker.cli.paper_stores import feed, read_text
from tests.worker.live.paper_runs import traded

# Without the constraints of the table, as the pages of a damaged file may lie.
FREE = "CREATE TABLE free AS SELECT * FROM journal; DROP TABLE journal; ALTER TABLE free RENAME TO journal;"
AT = "WHERE seq = {seq}"
LIKE_LAST = "FROM journal WHERE seq = (SELECT max(seq) FROM journal)"
DAMAGES = {
    "bytes_that_are_no_text": f"UPDATE journal SET payload = CAST(x'7bff7d' AS TEXT) {AT}",
    "bytes_as_such": f"UPDATE journal SET payload = x'7bff7d' {AT}",
    "kind_that_is_no_text": f"UPDATE journal SET kind = CAST(x'ff' AS TEXT) {AT}",
    "truncated": f"UPDATE journal SET payload = substr(payload, 1, 20) {AT}",
    "empty": f"UPDATE journal SET payload = '' {AT}",
    "digit": f"UPDATE journal SET payload = replace(payload, '\"bar_label\":1', '\"bar_label\":2') {AT}",
    "time": f"UPDATE journal SET known_at = known_at + 1 {AT}",
    "hash": f"UPDATE journal SET hash = 'ab' || substr(hash, 3) {AT}",
    "null": f"{FREE} UPDATE journal SET payload = NULL {AT}",
    "deleted": f"DELETE FROM journal {AT}",
    "twice": f"{FREE} INSERT INTO journal SELECT * FROM journal {AT}",
}
APPENDED = (
    "INSERT INTO journal SELECT run_id, seq + 1, ts_event, known_at, kind, symbol, payload, telemetry, "
    f"hash {LIKE_LAST}"
)


def order_of(path: Path) -> tuple[int, str, str]:
    """Row, kind and id of an order in the middle of the run."""
    with closing(sqlite3.connect(path)) as store:
        query = "SELECT seq, kind, payload FROM journal WHERE kind = 'entry_filled' ORDER BY seq LIMIT 1"
        seq, kind, payload = store.execute(query).fetchone()
    return seq, kind, json.loads(payload)["fill_id"]


def commands(fill: str) -> dict[str, tuple[tuple[str, ...], int]]:
    return {
        "verify": (("verify", "r0001"), 1),
        "journal": (("journal", "r0001"), 2),
        "why": (("why", fill, "--run", "r0001"), 2),
        "db check": (("db", "check", "--full"), 1),
    }


def damaged(left: Path, folder: Path, statement: str) -> None:
    shutil.copy(left, folder / "paper.db")
    with closing(sqlite3.connect(folder / "paper.db")) as store:
        store.execute("PRAGMA foreign_keys = OFF")
        store.executescript(statement)


@pytest.mark.parametrize("statement", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("command", ["verify", "journal", "why", "db check"])
def test_damaged_row_is_named_with_the_next_step_by_whoever_reads_it(left, tmp_path, command, statement):
    seq, _, fill = order_of(left)
    damaged(left, tmp_path, statement.format(seq=seq))
    words, code = commands(fill)[command]
    text = read_text(tmp_path, *words, code=code)
    assert all(part in text for part in (f"row {seq}", "r0001", "damaged", "thinktwice db restore")), text


@pytest.mark.parametrize("statement", DAMAGES.values(), ids=DAMAGES)
def test_paper_run_does_not_go_on_over_a_damaged_row(left, tmp_path, statement):
    seq, _, _ = order_of(left)
    damaged(left, tmp_path, statement.format(seq=seq))
    before = (tmp_path / "paper.db").read_bytes()
    with pytest.raises(StoreDamaged, match=rf"r0001 is damaged: row {seq}\b.*`thinktwice db restore"):
        traded(tmp_path, Settings(), feed())
    assert len((tmp_path / "paper.db").read_bytes()) >= len(before)


@pytest.mark.parametrize("command", ["verify", "journal", "why", "db check", "paper"])
def test_row_behind_the_last_one_is_one_too_many(left, tmp_path, command):
    damaged(left, tmp_path, APPENDED)
    if command == "paper":
        with pytest.raises(StoreDamaged, match="one too many"):
            traded(tmp_path, Settings(), feed())
        return
    words, code = commands(order_of(left)[2])[command]
    text = read_text(tmp_path, *words, code=code)
    assert "damaged" in text
    assert "thinktwice db restore" in text


def test_untouched_run_is_read_verified_and_gone_on_with(left, tmp_path):
    damaged(left, tmp_path, "SELECT 1")
    _, _, fill = order_of(left)
    for words, _ in commands(fill).values():
        assert "damaged" not in read_text(tmp_path, *words, code=0)
    assert traded(tmp_path, Settings(), feed()).record.status == "finished"
