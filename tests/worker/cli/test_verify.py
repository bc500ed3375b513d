import json
import sqlite3

import pytest

from tests.services.store.stores import seal_again
from tests.worker.cli.fake_runner import FakeRunner

BARS = """time,open,high,low,close,volume
2024-01-01T00:00Z,10,11,9,10,5
2024-01-02T00:00Z,10,12,9,11,5
2024-01-03T00:00Z,11,12,10,{close},5
"""


def changed(statement, *values):
    with sqlite3.connect("thinktwice.db") as connection:
        connection.execute(statement, values)
    connection.close()


def verified(shell, *words, code):
    result = shell.run("verify", "latest", "--json", *words)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_verify_untouched_run_holds_and_prints_both_environments(shell):
    shell.backtest()
    result = shell.run("verify", "r0001")
    assert result.exit_code == 0
    assert "chain      holds: " in result.stdout
    assert "replay     same: " in result.stdout
    assert "recorded" in result.stdout
    assert "present" in result.stdout
    found = verified(shell, code=0)
    assert found["chain"]["rows"] == found["replay"]["compared"] == found["replay"]["stored"]
    assert found["chain"]["head_hash"] == found["replay"]["head_hash"]
    assert found["environment"]["recorded"] == found["environment"]["present"]


def test_verify_changed_payload_breaks_the_chain_and_not_the_replay(shell):
    shell.backtest()
    changed("UPDATE journal SET payload = replace(payload, '\"drift\":0', '\"drift\":1') WHERE seq = 9")
    found = verified(shell, code=1)
    assert (found["chain"]["ok"], found["chain"]["seq"], found["replay"]["ok"]) == (False, 9, True)
    assert found["references"]["problem"] == "not checked: the chain is broken"
    assert "BROKEN: row 9" in shell.run("verify", "r0001").stdout


@pytest.mark.parametrize(
    "statement", ["DELETE FROM journal WHERE seq = 7", "DELETE FROM journal WHERE seq > 40"]
)
def test_verify_dropped_rows_are_found_by_both(shell, statement):
    shell.backtest()
    changed(statement)
    found = verified(shell, code=1)
    assert (found["chain"]["ok"], found["replay"]["ok"]) == (False, False)


def test_verify_other_program_breaks_the_replay_and_not_the_chain(shell):
    shell.backtest()
    shell.engine = FakeRunner(drift=1)
    found = verified(shell, code=1)
    assert found["chain"]["ok"]
    assert found["replay"]["problem"] == "row 1 (state_transition) differs from the stored one"
    assert found["replay"]["compared"] == 1


def test_verify_changed_configuration_is_found(shell):
    shell.backtest()
    changed("UPDATE runs SET config = replace(config, '\"seed\": 0', '\"seed\": 5')")
    found = verified(shell, code=1)
    assert (found["chain"]["ok"], found["references"]["ok"]) == (True, True)
    assert found["replay"]["problem"].endswith(": it was changed")
    assert found["replay"]["playable"]


def test_verify_configuration_that_another_version_hashed_otherwise_is_told_from_a_changed_one(shell):
    """A later version has settings that an earlier one did not hash."""
    shell.backtest()
    changed("UPDATE runs SET config_hash = 'aa', environment = json_set(environment, '$.thinktwice', '9.9')")
    seal_again(shell.folder / "thinktwice.db")
    found = verified(shell, code=1)
    assert found["replay"]["problem"].endswith(" recorded was aa: use the version that made it, 9.9")
    assert (found["replay"]["playable"], found["chain"]["ok"], found["stored"]["ok"]) == (False, True, True)


def test_verify_needs_the_same_bars_and_finds_them_elsewhere_with_data(shell):
    (shell.folder / "bars.csv").write_text(BARS.format(close=11))
    assert shell.run("backtest", "--data", "bars.csv").exit_code == 0
    assert verified(shell, code=0)["replay"]["ok"]
    (shell.folder / "bars.csv").rename("moved.csv")
    assert verified(shell, "--data", "moved.csv", code=0)["replay"]["ok"]
    (shell.folder / "bars.csv").write_text(BARS.format(close=12))
    found = verified(shell, code=1)
    assert "the bars hash to" in found["replay"]["problem"]
    assert found["chain"]["ok"]


@pytest.mark.parametrize("command", [("verify", "r0001"), ("page", "r0001", "--html", "run.html")])
def test_bars_file_of_a_stored_run_that_is_gone_is_told_with_data_as_the_next_step(shell, command):
    (shell.folder / "bars.csv").write_text(BARS.format(close=11))
    assert shell.run("backtest", "--data", "bars.csv").exit_code == 0
    (shell.folder / "bars.csv").rename("moved.csv")
    text = shell.complaint(*command)
    assert (
        f"run r0001 was made of the bars in {str(shell.folder / 'bars.csv')!r}, which is not there now"
        in text
    )
    assert "`--data FILE`" in text
    assert "no such file: 'nowhere.csv'" in shell.complaint(*command, "--data", "nowhere.csv")


def test_verify_finished_run_whose_end_was_cut_off_with_its_counters_is_found_by_the_replay(shell):
    shell.backtest()
    changed("DELETE FROM journal WHERE seq > 20")
    changed("UPDATE runs SET events = 21, head_hash = (SELECT hash FROM journal WHERE seq = 20)")
    found = verified(shell, code=1)
    assert found["chain"]["ok"]
    assert "went on after the 21 rows" in found["replay"]["problem"]


def test_verify_failed_run_replays_to_its_failure(shell):
    shell.engine = FakeRunner(fail_at=5)
    shell.backtest()
    assert verified(shell, code=0)["replay"]["compared"] == 11


def test_verify_run_with_an_id_that_leads_nowhere_is_named(shell):
    shell.engine = FakeRunner(dangling=True)
    shell.backtest()
    found = verified(shell, code=1)
    assert (found["chain"]["ok"], found["replay"]["ok"]) == (True, True)
    assert found["references"]["dangling"][0].endswith("names no high_level_report")
    assert "DANGLING: 1 of " in shell.run("verify", "r0001").stdout
