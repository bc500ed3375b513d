"""Bad input of commands is one line on stderr and exit code 2; it names what would work, changing nothing."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.each_case import check_each
from tests.worker.cli.test_replan import answered, in_store

RISK = "plans make set-risk-fraction buys_strength --value 0.002"
# Words of a command, and parts of what it says.
EMPTY: list[tuple[str, ...]] = [
    ("backtest --data missing.csv", "missing.csv"),
    ("backtest --symbols APPL", "Did you mean 'AAPL'?"),
    ("backtest --reflection of", "Did you mean 'off'?"),
    ("backtest --reflection full", "needs a model"),
    ("backtest --timeframe 1h", "the embedded bars are 1d"),
    ("backtest --label close", "labelled by their open"),
    ("backtest --from yesterday", "yesterday"),
    ("backtest --from 2030-01-01", "no bars left"),
    ("backtest --seed -1", "flag --seed: seed = -1"),
    ("backtest --seed x", "--seed"),
    ("backtest --sed 1", "--seed"),
    ("backtest missing.toml", "'missing.toml' does not exist"),
    ("backtest --db mysql://u:s3cret@h/d", "scheme 'mysql'"),
    ("backtest --db sqlite:///nowhere/x.db", "does not exist: create it"),
    ("backtest --cash -5", "flag --cash: account.cash = -5.0"),
    ("backtest --fee 2000", "flag --fee: execution.fee_bps = 2000.0"),
    ("backtest --slippage -1", "flag --slippage: execution.slippage_bps = -1.0"),
    ("backtest --resample 2w", "flag --resample: data.resample = '2w'"),
    ("backtest --resample 1h", "--resample 1h: no '1h' bars can be made of '1d' bars: use one of 1w, 1M"),
    ("paper --feed reply", "Did you mean 'replay'?"),
    ("paper --feed csv", "name it with --data FILE"),
    ("paper --feed ccxt", "names no exchange"),
    ("paper --feed replay --speed fast", "neither max nor a number above zero"),
    ("paper --feed csv --speed 3", "is for --feed replay"),
    ("paper --data /nowhere/bars.csv", "bars.csv"),
    ("worker --feed replay --once", "goes without --once and --run"),
    ("worker --symbols AAPL", "goes with --feed"),
    ("worker --at 2024-01-04", "--at names a past moment: it goes with --once"),
    ("worker --once --at soon", "--at 'soon' is not a time"),
    ("worker --period 31", "--period"),
    ("db check", "there is no store"),
    ("db backup kept.db", "there is no store"),
    ("db prune latest --before 2020-01-01", "there is no store"),
    ("db prune latest --before soon", "--before"),
    ("db restore kept.db", "there is no store at sqlite:///kept.db"),
    ("db backup", "FILE"),
    ("db upgrade --db sqlite:///no/where.db", "directory of store"),
    ("db check --db mysql://me:s3cret@host/db", "scheme 'mysql'"),
    ("db upgrade --db postgresql://me:s3cret@127.0.0.1:1/db", "cannot be reached"),
    ("db restore kept.db --db postgresql://me:s3cret@host", "names no database"),
]
STORED: list[tuple[str, ...]] = [
    ("journal r0001 --kind entry_fill", "Did you mean 'entry_filled'?"),
    ("journal r0001 --until noon", "--until 'noon' is not a time"),
    ("why ab --run r0001", "thinktwice journal r0001 --kind entry_filled"),
    ("journl r0001", "Did you mean 'journal'?"),
    ("journal r0001 r0002", "Usage: thinktwice journal [OPTIONS] [RUN]"),
    ("runs --db thinktwice.db", "has no scheme"),
    ("report latest zz", "no report 'zz' in run r0001", "`thinktwice reports r0001`"),
    ("report latest ''", "no report ''"),
    ("report r9 abababababababab", "'r9'"),
    ("report latest --html missing/page.html", "--html 'missing/page.html'", "another file"),
]
PLANTED: list[tuple[str, ...]] = [
    ("playbooks export", "Missing argument 'DIR'"),
    (
        "playbooks export latest",
        "'latest' is a run, not where to: `thinktwice playbooks export DIR --run latest`",
    ),
    ("playbooks export out none.toml", "none.toml"),
    ("playbooks export out --run r9", "r9"),
    ("playbooks export out none.toml --run latest", "CONFIG and --run both say whose playbooks"),
    ("playbooks export no/such", "the folder 'no/such': there is no folder"),
    ("playbooks export full", "'full' holds other files"),
    ("playbooks export out --at 2004-01-01", "--at '2004-01-01' goes with a run"),
    ("playbooks export out --run latest --at soon", "--at 'soon' is not a time"),
    ("playbooks export out --run latest --at 1970-01-01", "had no playbook in force at 1970-01-01"),
    ("replan ffffffffffffffff", "no report 'ffffffffffffffff' in this store"),
    ("replan latest --run latest", "--run goes with a report"),
    ("replan ab --at 2020-02-01", "--at goes with a run"),
    ("replan latest --write thinktwice.db", "is a file: name a folder"),
    ("replan latest --write .", "holds other files"),
    ("reflect --at 1970-01-01", "had not closed a bar by then"),
    ("reflect --at soon", "--at 'soon' is not a time"),
    ("plans make report", "--into DIR says where"),
    ("plans make latest", "plans make 'latest': there is no such change."),
    (
        "plans make 'do something\x1b'",
        "'do something\\x1b': there is no such change. Words go to `thinktwice plans",
    ),
    ("plans make set-risk buys_strength --value 0.002", "Did you mean 'set-risk-fraction'?"),
    (f"{RISK} --run latest", "--into DIR says where"),
    (f"{RISK} --run latest --into .", "--into '.' holds other files"),
    (f"{RISK} --run latest --into 'a\x1bb'", "cannot be seen"),
    (f"{RISK} --reason 'so\u202e' --into b", "cannot be seen"),
    ("plans make text 'halve the risk of it' --into b", "give --config FILE with one"),
    ("plans make text 'ban\u202e x' --run latest --into b", "cannot be seen"),
    ("plans show 0123", "no plan '0123' in this store"),
    ("plans show '\x1b[2J'", "no plan '\\x1b[2J'"),
    ("plans approve PLAN --hash 123", "at least 12 digits"),
    (f"plans approve PLAN --hash {'0' * 64}", "newest revision 1"),
    ("plans approve PLAN --hash HASH --by 'a\nb'", "give a name"),
    ("plans approve PLAN --hash HASH --by ' '", "give a name"),
    ("plans edit PLAN", "give --set"),
    ("plans edit PLAN --drop 9", "its steps are 1, 2"),
    ("plans edit PLAN --drop 1", "no step would be left"),
    ("plans edit PLAN --drop 2", "cannot be edited or dropped"),
    ("plans edit PLAN --set value=1", "write it like steps.1.value"),
    ("plans edit PLAN --set 'steps.1.value=\x1b'", "write it like steps.1.value"),
    ("plans edit PLAN --set steps.1.value=much", "a number is wanted"),
    ("plans edit PLAN --set steps.1.value=0.5", "risk_out_of_bounds"),
    ("plans edit PLAN --set steps.1.playbook_id=mean_reversion", "cannot be edited"),
    ("plans edit PLAN --file nowhere.json", "cannot be read"),
    ("plans edit PLAN --file thinktwice.db", "holds more than the 1,000,000 bytes"),
]


def demand_refused(shell: Any, words: str, *parts: str, **names: str) -> None:
    complaint = shell.complaint(*(names.get(word, word) for word in shlex.split(words)))
    assert [part for part in parts if part not in complaint] == [], complaint
    assert "s3cret" not in complaint


def there(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@check_each("row", EMPTY)
def test_bad_input_in_an_empty_folder_is_one_line_and_makes_nothing(shell, row):
    demand_refused(shell, *row)
    assert there(shell.folder) == []


@check_each("row", ["backtest --data {}.csv", "playbooks export {}", "backtest --db sqlite:///{}.db"])
def test_name_that_no_file_can_have_is_named_in_one_line(shell, row):
    name = "x" * 300
    demand_refused(shell, row.format(name), name, "File name too long; give a shorter one\n")


@pytest.fixture
def stored(shell):
    shell.backtest()
    return shell


@check_each("row", STORED)
def test_bad_input_about_a_stored_run_is_one_line(stored, row):
    demand_refused(stored, *row)


@pytest.fixture
def planned(planted):
    """The planted run with a plan, and a folder of somebody's files."""
    (planted.folder / "full").mkdir()
    (planted.folder / "full" / "mine.txt").write_text("x")
    return planted, answered(planted, *shlex.split(f"{RISK} --run latest --into books"))


@check_each("row", PLANTED)
def test_bad_input_about_plans_and_reports_is_one_line_and_writes_nothing(planned, row):
    shell, plan = planned
    before = there(shell.folder)
    demand_refused(shell, *row, PLAN=plan["plan_id"], HASH=plan["hash"])
    assert there(shell.folder) == before
    assert answered(shell, "plans", "show", plan["plan_id"]) == plan
    assert in_store(lambda store: store.on_demand.of_run("r0001")) == []
