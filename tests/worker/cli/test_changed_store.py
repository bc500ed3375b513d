"""What people read beside the journal, changed by hand: `verify` and `db check --full` find each change."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

import thinktwice as tt
from schemas.settings import Settings
from services.store.failures import StoreDamaged
from tests.golden.stored import released
from tests.services.store.stores import seal_again
from tests.worker.cli.paper_stores import feed, read_text
from tests.worker.live.paper_runs import address, killed, traded
from worker.cli import app
from worker.runs.replay import differences

LAST_BAR = "(SELECT max(number) FROM paper_bars)"
A_BAR = "UPDATE paper_bars SET bars = json_set(bars, '$.bars.AAPL[{place}]', 77.5) WHERE number = {number}"
AN_ORDER = "(SELECT order_id FROM venue_orders ORDER BY order_id LIMIT 1)"
DOCUMENT = "UPDATE runs SET document = "
BOTH = {
    "return_of_999_percent": f"{DOCUMENT}json_set(document, '$.performance.total_return', 9.99)",
    "trades_in_the_document": f"{DOCUMENT}json_set(document, '$.performance.trades', 1)",
    "headline": f"{DOCUMENT}json_set(document, '$.headline.max_drawdown', 0)",
    "measured_time_in_the_document": f"{DOCUMENT}json_set(document, '$.timing.total_s', 0)",
    "figure_added_to_the_document": f"{DOCUMENT}json_set(document, '$.award', 'best')",
    "figure_taken_from_the_document": f"{DOCUMENT}json_remove(document, '$.performance.max_drawdown')",
    "document_removed": f"{DOCUMENT}NULL",
    "name": "UPDATE runs SET name = 'the good one'",
    "end": "UPDATE runs SET status = 'interrupted'",
    "no_end": "UPDATE runs SET status = 'running'",
    "data_path": "UPDATE runs SET data = json_set(data, '$.feed', 'other')",
    "order_deleted_at_the_venue": f"DELETE FROM venue_orders WHERE order_id = {AN_ORDER}",
    "all_orders_deleted_at_the_venue": "DELETE FROM venue_orders",
    "order_added_at_the_venue": "INSERT INTO venue_orders SELECT account, 'f00d', instruction, 1, hash "
    f"FROM venue_orders WHERE order_id = {AN_ORDER}",
    "instruction_changed_at_the_venue": "UPDATE venue_orders SET instruction = "
    f"json_set(instruction, '$.quantity', 1) WHERE order_id = {AN_ORDER}",
    "sends_changed_at_the_venue": f"UPDATE venue_orders SET sends = 7 WHERE order_id = {AN_ORDER}",
    "order_set_back": "UPDATE paper_orders SET state = 'intended' "
    "WHERE seq = (SELECT min(seq) FROM paper_orders)",
    "all_orders_set_back": "UPDATE paper_orders SET state = 'intended'",
    "order_of_another_row": "UPDATE paper_orders SET seq = seq + 1 "
    "WHERE seq = (SELECT max(seq) FROM paper_orders)",
    "order_deleted": "DELETE FROM paper_orders WHERE seq = (SELECT max(seq) FROM paper_orders)",
    "order_added": "INSERT INTO paper_orders SELECT run_id, 'f00d', seq, state, hash "
    "FROM paper_orders LIMIT 1",
    "volume_in_the_middle": A_BAR.format(place=4, number=40),
    "volume_of_the_last_bar": A_BAR.format(place=4, number=LAST_BAR),
    "last_close": A_BAR.format(place=3, number=LAST_BAR),
    "last_bar_deleted": f"DELETE FROM paper_bars WHERE number = {LAST_BAR}",
    "bar_deleted": "DELETE FROM paper_bars WHERE number = 40",
    "bar_added": "INSERT INTO paper_bars SELECT run_id, number + 1, label + 86400000000000, bars, hash "
    f"FROM paper_bars WHERE number = {LAST_BAR}",
}
# Of a run that was killed: no document, and the orders of its last transaction may be on their way.
RESUMABLE = [
    name for name in BOTH if "document" not in name and name not in {"return_of_999_percent", "headline"}
]
RESUMABLE = [name for name in RESUMABLE if name != "no_end"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    assert killed(folder, Settings(), feed(), "committed", 100)
    assert traded(folder, Settings(), feed()).record.status == "finished"
    return folder / "paper.db"


def changed(made: Path, folder: Path, *statements: str) -> None:
    shutil.copy(made, folder / "paper.db")
    with closing(sqlite3.connect(folder / "paper.db")) as store, store:
        for statement in statements:
            assert store.execute(statement).rowcount > 0


@pytest.mark.parametrize("statement", BOTH.values(), ids=BOTH)
def test_change_of_what_people_read_is_found_by_verify_and_by_the_full_check(finished, tmp_path, statement):
    changed(finished, tmp_path, statement)
    verified = read_text(tmp_path, "verify", "r0001", code=1)
    assert "CHANGED" in verified or "DIFFERS" in verified
    checked = read_text(tmp_path, "db", "check", "--full", code=1)
    assert "BROKEN     r0001: " in checked
    assert "thinktwice db restore" in verified
    assert "thinktwice db restore" in checked


UNSEALED = "DELETE FROM seals WHERE part LIKE 'trials %'"
RUNNING = "UPDATE runs SET status = 'running', end_hash = NULL"
WITHOUT_SEALS = {
    "trial_deleted": ((UNSEALED, "DELETE FROM trials"), "it is missing in the ledger of trials"),
    "trial_changed": ((UNSEALED, "UPDATE trials SET candidates = candidates + 7"), "its seal is gone"),
    "set_back": ((RUNNING,), "its status was set back to 'running'"),
    "set_back_without_document": ((RUNNING, f"{DOCUMENT}NULL"), "its status was set back to 'running'"),
}


@pytest.mark.parametrize(("statements", "shown"), WITHOUT_SEALS.values(), ids=WITHOUT_SEALS)
def test_row_that_was_changed_with_its_seal_is_told_alike_by_verify_and_by_the_full_check(
    finished, tmp_path, statements, shown
):
    changed(finished, tmp_path, *statements)
    (stored,) = [
        line.partition("CHANGED: ")[2]
        for line in read_text(tmp_path, "verify", "r0001", code=1).splitlines()
        if line.startswith("stored ")
    ]
    assert shown in stored
    assert f"BROKEN     r0001: {stored}" in read_text(tmp_path, "db", "check", "--full", code=1)


def test_killed_run_that_was_taken_out_of_the_ledger_of_trials_is_told(left, tmp_path):
    changed(left, tmp_path, *WITHOUT_SEALS["trial_deleted"][0])
    assert "is missing in the ledger of trials" in read_text(tmp_path, "verify", "r0001", code=1)


UNREADABLE = {
    "signs": ("UPDATE trading_processes SET signs = '{'", ("status", "r0001")),
    "signs_that_are_none": ("UPDATE trading_processes SET signs = '[]'", ("status", "r0001")),
    "events": ("UPDATE runs SET events = 'abc'", ("verify", "r0001")),
    "bars": ("UPDATE runs SET bars = 'abc'", ("verify", "r0001")),
}


@pytest.mark.parametrize(("statement", "words"), UNREADABLE.values(), ids=UNREADABLE)
def test_value_that_cannot_be_read_is_told_as_damage_in_one_line(finished, tmp_path, statement, words):
    changed(finished, tmp_path, statement)
    text = read_text(tmp_path, *words, code=2)
    assert "r0001" in text
    assert "damaged" in text
    assert "thinktwice db restore" in text
    assert len(text.splitlines()) == 1


def test_count_of_a_run_that_is_no_number_is_told_by_the_full_check(finished, tmp_path):
    changed(finished, tmp_path, UNREADABLE["bars"][0])
    text = read_text(tmp_path, "db", "check", "--full", code=1)
    assert "BROKEN     r0001: its bars 'abc' is no number" in text


@pytest.mark.parametrize("name", ["paper_orders", "runs"])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("runs",), 2),
        (("status", "r0001"), 2),
        (("verify", "r0001"), 2),
        (("db", "check"), 1),
        (("db", "check", "--full"), 1),
    ],
)
def test_table_that_is_missing_is_named_with_the_next_step(finished, tmp_path, words, code, name):
    shutil.copy(finished, tmp_path / "paper.db")
    with closing(sqlite3.connect(tmp_path / "paper.db")) as store, store:
        store.execute(f"DROP TABLE {name}")
    text = read_text(tmp_path, *words, code=code)
    assert f"table '{name}' is missing" in text
    assert "thinktwice db restore" in text


def test_index_that_is_missing_is_found_by_the_full_check(finished, tmp_path):
    shutil.copy(finished, tmp_path / "paper.db")
    with closing(sqlite3.connect(tmp_path / "paper.db")) as store, store:
        store.execute("DROP INDEX journal_kinds")
    text = read_text(tmp_path, "db", "check", "--full", code=1)
    assert "index 'journal_kinds' of table 'journal' is missing" in text


def command_in(text: str) -> list[str]:
    """The words of the command that a message names."""
    (named,) = re.findall(r"`thinktwice (verify [^`]*)`", text)
    return str(named).split()


@pytest.mark.parametrize(
    "name", ["return_of_999_percent", "document_removed", "headline", "name", "data_path", "end"]
)
def test_run_whose_row_was_changed_is_shown_by_no_command_before_its_seal_holds(finished, tmp_path, name):
    changed(finished, tmp_path, BOTH[name])
    reading = (
        ("runs",),
        ("status",),
        ("report", "r0001"),
        ("journal", "r0001"),
        ("page", "r0001", "--html", "p.html"),
    )
    for words in reading:
        text = read_text(tmp_path, *words, code=2)
        assert "999" not in text
        assert "the good one" not in text
        assert "run r0001 is damaged: " in text
        assert "was changed" in text or "was not written by the program" in text
        assert "thinktwice db restore" in text
    assert '"damage": "run r0001 is damaged' in read_text(tmp_path, "runs", "--json", code=2)
    with pytest.raises(StoreDamaged, match="run r0001 is damaged") as refused:
        tt.load(db=address(tmp_path))
    done = CliRunner().invoke(app, command_in(str(refused.value)))
    assert (done.exit_code, "CHANGED" in done.stdout) == (1, True), done.output


def test_run_beside_one_whose_document_was_changed_is_shown_with_its_figures(tmp_path):
    words = ("backtest", "--symbols", "AAPL", "--from", "2003-01-01", "--to", "2003-03-31")
    for _ in range(2):
        read_text(tmp_path, *words, code=0)
    with closing(sqlite3.connect(tmp_path / "paper.db")) as store, store:
        store.execute(f"{BOTH['return_of_999_percent']} WHERE run_id = 'r0001'")
    first, second = read_text(tmp_path, "runs", code=2).splitlines()[1:3]
    assert first.split()[:3] == ["r0001", "damaged", "-"]
    assert "finished" in second
    assert "%" in second
    assert tt.load(db=address(tmp_path)).run_id == "r0002"
    read_text(tmp_path, "status", "r0002", code=0)


@pytest.mark.parametrize("seals", ["kept", "anew"])
def test_verify_of_a_paper_run_called_a_backtest_says_so_and_plays_nothing(finished, tmp_path, seals):
    changed(finished, tmp_path, "UPDATE runs SET mode = 'backtest'")
    if seals == "anew":
        seal_again(tmp_path / "paper.db")
    verified = read_text(tmp_path, "verify", "r0001", code=1)
    assert "replay     DIFFERS: not replayed: " in verified
    text = "its description (name, data, configuration, environment) was changed"
    assert (f"stored     CHANGED: {text}" in verified) is (seals == "kept")
    assert ("names no hash of its bars" in verified) is (seals == "anew")


@pytest.mark.parametrize("name", RESUMABLE)
def test_change_beside_a_run_that_was_killed_is_found_as_well(left, tmp_path, name):
    changed(left, tmp_path, BOTH[name])
    read_text(tmp_path, "verify", "r0001", code=1)
    assert "BROKEN     r0001: " in read_text(tmp_path, "db", "check", "--full", code=1)


@pytest.mark.parametrize(
    "name", [name for name in BOTH if "bar" in name or "volume" in name or "close" in name]
)
def test_paper_run_does_not_go_on_over_bars_that_were_changed(left, tmp_path, name):
    changed(left, tmp_path, BOTH[name])
    with pytest.raises(StoreDamaged, match="of its bars"):
        traded(tmp_path, Settings(), feed())


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("return_of_999_percent", "performance.total_return is 9.99 and comes out as"),
        ("headline", "headline.max_drawdown is 0 and comes out as"),
        ("document_removed", "there is no document"),
        ("volume_in_the_middle", "DIFFERS"),
        ("last_close", "DIFFERS"),
        ("all_orders_deleted_at_the_venue", "is missing at the venue"),
        ("instruction_changed_at_the_venue", "differs at the venue"),
        ("all_orders_set_back", "was set back to 'intended'"),
        ("order_deleted", "is not among those that were intended"),
    ],
)
def test_verify_finds_a_change_by_the_replay_when_the_run_was_sealed_anew(finished, tmp_path, name, shown):
    changed(finished, tmp_path, BOTH[name])
    seal_again(tmp_path / "paper.db")
    assert shown in read_text(tmp_path, "verify", "r0001", code=1)


REWRITTEN = {
    "figure_removed": ("json_remove(document, '$.performance.max_drawdown')", "max_drawdown is missing and"),
    "part_removed": ("json_remove(document, '$.judge')", "judge is missing and comes out as"),
    "measured_part_removed": ("json_remove(document, '$.timing')", "timing is missing and comes out as"),
    "emptied": ("'{}'", "config_hash is missing and comes out as"),
    "figure_added": ("json_set(document, '$.performance.award', 9.99)", "performance.award is 9.99 and does"),
    "part_added": ("json_set(document, '$.award', json('[1]'))", "award is [1] and does not come out"),
    "measured_name_elsewhere": (
        "json_set(document, '$.headline.timing', 'fast')",
        'headline.timing is "fast" and does not come out',
    ),
    "text_for_a_number": ("json_set(document, '$.errors', '0')", 'errors is "0" and comes out as 0'),
    "truth_for_a_number": ("json_set(document, '$.errors', json('false'))", "errors is false and comes out"),
    "float_for_a_count": ("json_set(document, '$.errors', 0.0)", "errors is 0.0 and comes out as 0"),
    "not_a_number": (
        "replace(document, '\"errors\": 0', '\"errors\": NaN')",
        "errors is NaN and comes out as 0",
    ),
    "longer_list": ("json_insert(document, '$.data.symbols[#]', 'MSFT')", "data.symbols is"),
    "shorter_list": ("json_remove(document, '$.data.symbols[0]')", "data.symbols is"),
    "nested_change": ("json_set(document, '$.data.symbols[1]', 'MSFT')", "data.symbols.1 is"),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_figures_added_removed_or_of_another_type_are_found_when_the_run_was_sealed_anew(
    finished, tmp_path, name
):
    document, shown = REWRITTEN[name]
    changed(finished, tmp_path, f"{DOCUMENT}{document}")
    seal_again(tmp_path / "paper.db")
    found = json.loads(read_text(tmp_path, "verify", "r0001", "--json", code=1))
    assert [line for line in found["replay"]["document"] if shown in line]
    assert found["stored"]["problems"] == []


@pytest.mark.parametrize(
    ("gone", "shown"),
    [
        ("runs SET description_hash = '', end_hash = NULL", "its description"),
        ("paper_bars SET hash = ''", "row 0 of its bars is damaged"),
        ("runs SET bars = 0", "row 0 of its bars was not taken by the run"),
        ("paper_orders SET hash = ''", "was changed after it was written"),
        ("venue_orders SET hash = ''", "was changed at the venue after it was sent"),
    ],
)
def test_run_whose_seals_are_gone_is_damaged(finished, left, tmp_path, gone, shown):
    changed(finished, tmp_path, f"UPDATE {gone}")
    for words in (("verify", "r0001"), ("db", "check", "--full")):
        text = read_text(tmp_path, *words, code=1)
        assert shown in text
        assert "thinktwice db restore" in text
    changed(left, tmp_path, f"UPDATE {gone}")
    with pytest.raises(StoreDamaged, match=f"{shown}.*thinktwice db restore"):
        traded(tmp_path, Settings(), feed())


def test_end_of_a_finished_run_that_is_gone_is_told(finished, tmp_path):
    changed(finished, tmp_path, "UPDATE runs SET end_hash = NULL")
    text = "it is 'finished', and its end was not written by the program"
    assert text in read_text(tmp_path, "verify", "r0001", code=1)


@pytest.mark.parametrize("document", ["[]", "5", '"good"', "[" * 100_000])
def test_document_that_is_no_object_is_told_as_damaged(finished, tmp_path, document):
    changed(finished, tmp_path, f"{DOCUMENT}'{document}'")
    assert "the document of run r0001 is damaged" in read_text(tmp_path, "verify", "r0001", code=2)


def test_document_of_another_version_may_have_other_figures():
    stored, replayed = {"trades": 3, "award": 1}, {"trades": 3, "errors": 0}
    assert differences(stored, replayed, same_version=False) == ()
    assert differences(stored, replayed) == (
        "award is 1 and does not come out",
        "errors is missing and comes out as 0",
    )
    assert differences({"trades": 4}, replayed, same_version=False) == ("trades is 4 and comes out as 3",)


def test_untouched_store_holds_and_says_so(finished, left, tmp_path):
    for made in (finished, left):
        shutil.copy(made, tmp_path / "paper.db")
        found = json.loads(read_text(tmp_path, "verify", "r0001", "--json", code=0))
        assert found["stored"] == {"ok": True, "problems": []}
        checked = json.loads(read_text(tmp_path, "db", "check", "--full", "--json", code=0))
        assert checked["problems"] == []
    read_text(tmp_path, "db", "backup", str(tmp_path / "kept.db"), code=0)
    shutil.copy(tmp_path / "kept.db", tmp_path / "paper.db")
    read_text(tmp_path, "db", "check", "--full", code=0)
    assert traded(tmp_path, Settings(), feed()).record.status == "finished"
    read_text(tmp_path, "verify", "r0001", code=0)
    read_text(tmp_path, "db", "check", "--full", code=0)


@pytest.fixture
def of_another_version(tmp_path):
    """A store whose newest run was recorded with settings that this version does not know."""
    shutil.copy(released()[-1].unpacked(tmp_path), tmp_path / "paper.db")
    with closing(sqlite3.connect(tmp_path / "paper.db")) as store, store:
        store.execute("UPDATE runs SET config = json_set(config, '$.gate.bet_unit', 'week')")
    seal_again(tmp_path / "paper.db")
    return tmp_path


REASON = "does not fit this version (gate.bet_unit: Extra inputs are not permitted)"


def test_verify_of_a_run_of_another_version_says_that_it_cannot_be_replayed(of_another_version):
    text = read_text(of_another_version, "verify", "r0002", code=1)
    line = next(line for line in text.splitlines() if line.startswith("replay"))
    assert line.startswith("replay     cannot be replayed: the stored configuration of r0002 ")
    assert REASON in line
    assert line.endswith(": use the version that made it; the lines around this one say what was checked")
    assert "DIFFERS" not in text
    assert "chain      holds: 398 rows" in text
    found = json.loads(read_text(of_another_version, "verify", "r0002", "--json", code=1))
    assert (found["chain"]["ok"], found["references"]["ok"], found["stored"]["ok"]) == (True, True, True)
    assert (found["replay"]["playable"], found["replay"]["compared"]) == (False, 0)


def test_playbooks_of_a_run_of_another_version_are_listed_without_what_trades_have_shown(of_another_version):
    words = ("playbooks", "list", "r0001", "--json", "--db", address(of_another_version))
    done = CliRunner().invoke(app, [*words])
    assert done.exit_code == 0, done.output
    assert REASON in done.stderr
    assert "what trades have shown is left out" in done.stderr
    versions = json.loads(done.stdout)["versions"]
    first = next(item for item in versions if item["state"] == "active")
    assert first["playbook_id"] == "mean_reversion"
    counted = {item["playbook_id"]: item["account"] for item in versions if item["account"] is not None}
    assert counted["trend_pullback"] == {"n": 2, "mean_all_r": pytest.approx(0.279624103)}
    assert "mean_reversion" in read_text(of_another_version, "playbooks", "list", code=0)
    history = read_text(
        of_another_version, "playbooks", "history", "trend_pullback", "--run", "r0001", code=0
    )
    assert re.search(r"account\.n +2\n", history)


@pytest.mark.parametrize("words", [("verify", "latest"), ("status",), ("why", "aa"), ("journal", "latest")])
def test_run_whose_document_was_cut_off_is_named_by_whoever_reads_it(words, tmp_path):
    read_text(tmp_path, "backtest", "--symbols", "AAPL", "--from", "2003-01-01", "--to", "2003-03-31", code=0)
    with closing(sqlite3.connect(tmp_path / "paper.db")) as store, store:
        store.execute("UPDATE runs SET document = substr(document, 1, 400)")
    text = read_text(tmp_path, *words, code=2)
    assert "the document of run r0001 is damaged" in text
    assert "thinktwice db restore" in text


def test_backtest_whose_document_was_changed_is_found(tmp_path):
    words = ("--symbols", "AAPL", "--from", "2003-01-01", "--to", "2003-12-31")
    read_text(tmp_path, "backtest", *words, code=0)
    assert "stored     holds" in read_text(tmp_path, "verify", "r0001", code=0)
    with closing(sqlite3.connect(tmp_path / "paper.db")) as store, store:
        store.execute(BOTH["return_of_999_percent"])
    text = read_text(tmp_path, "verify", "r0001", code=1)
    assert "performance.total_return is 9.99 and comes out as" in text
    assert "BROKEN     r0001: its document" in read_text(tmp_path, "db", "check", "--full", code=1)
