"""The library as a script uses it: DataFrames in, figures, DataFrames and reasons out."""

import asyncio
import copy
import errno
import os
import pickle
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import thinktwice as tt
from schemas.judge import BoundaryVerdict
from schemas.vocabulary import FindingClass, JudgeDecision
from services.journal.index import RecentRows
from services.playbooks.loader import EMBEDDED
from tests.worker.shared_runs import embedded_bars
from thinktwice import public
from tools.docs_pages import DOCS, ROOT
from worker.cli.app import COMMANDS

PAGE = DOCS / "how-to" / "use-it-from-python.md"
COLUMNS = DOCS / "reference" / "frames.md"
START, END = "2003-01-01", "2003-12-31"
DONCHIAN = {
    "setup": "close > highest_20 - atr_14",
    "activation": "close > highest_20",
    "stop": "close - 2 * atr_14",
    "target": "close + 3 * atr_14",
    "invalidation": "close < ema_20 - atr_14",
}


@pytest.fixture(scope="module")
def result():
    return tt.backtest(start=START, end=END)


def frame_of(bars, symbol):
    s = bars.symbols.index(symbol)
    there = bars.present[:, s]
    index = pd.to_datetime(bars.times[there], unit="ns", utc=True)
    names = ("open", "high", "low", "close", "volume")
    return pd.DataFrame({name: getattr(bars, name)[there, s] for name in names}, index=index)


@pytest.fixture(scope="module")
def frame():
    return frame_of(embedded_bars(START, END), "AAPL")


def test_every_public_name_is_there_and_documented():
    assert tt.__all__ == public.__all__ == sorted(tt.__all__) == dir(tt)
    assert all(getattr(tt, name).__doc__ for name in tt.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'backtests'"):
        _ = tt.backtests


def blocks_of(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


def test_block_of_the_readme_runs(capsys):
    block, _ = blocks_of(ROOT / "README.md")  # tests/test_guard.py runs the other
    exec(compile(block, "README.md", "exec"), {})
    text = capsys.readouterr().out
    assert text.startswith("29 trades, 1.6 %")
    assert "exit_filled" in text


@pytest.mark.filterwarnings("ignore:0 of .* calls of a model failed:UserWarning")
def test_blocks_of_the_how_to_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of(PAGE)
    for number, block in enumerate(blocks):
        script = tmp_path / f"block_{number}.py"  # a file: the source of a function in it is read
        script.write_text(block, "utf-8")
        exec(compile(block, str(script), "exec"), {})
    shown = capsys.readouterr().out.splitlines()
    assert len(blocks) == 15
    assert re.fullmatch(r"[1-9]\d* trades of \{'own_breakout'\} True", shown.pop(12))
    assert shown[0].split()[0] == "29"
    assert re.fullmatch(r"[3-9] charts; run\.html is the page", shown[5])
    assert shown[6] == "r0001 is the same: True"
    assert re.fullmatch(r"The number of losing trades of IBM was [1-9]\d*\.", shown[7])
    assert re.fullmatch(r"([1-9]\d*) trades; \1 rows of the journal behind that line", shown[8])
    assert int(shown[9].split()[0]) > 0
    assert shown[10:12] == ["rsi_2 50000.0", "True"]
    assert re.fullmatch(r"[1-9]\d* plans were ended", shown[12])
    assert re.fullmatch(r"[1-9]\d* trades", shown[13])
    assert re.fullmatch(r"[1-9]\d* calls, [1-9]\d* not read", shown[14])
    assert re.fullmatch(r"[1-9]\d* trades", shown[15])
    assert re.fullmatch(r"\{'high': [1-9]\d*, 'low': [1-9]\d*\}", shown[16])
    assert re.fullmatch(r"\{'stop': [1-9]\d*, 'exit_rule': [1-9]\d*\}", shown[17])
    assert re.fullmatch(r"[1-9]\d* clusters, none proven", shown[18])
    assert shown[19:21] == ["unknown", "1.0 0"]
    assert shown.pop(21) == "revise for memory_estimate, over_confident"
    assert [line.split()[:2] for line in shown[21:24]] == [
        ["True", "DataError"],
        ["True", "ConfigError"],
        ["True", "RuleError"],
    ]
    assert shown[24] == f"thinktwice {tt.__version__}"


def test_every_public_name_has_an_example():
    names = ("use-it-from-python.md", "guard-your-agent.md", "compare-parameter-sets.md")
    texts = [(DOCS / "how-to" / name).read_text("utf-8") for name in names]
    shown = [block for text in texts for block in re.findall(r"^```python.*?^```", text, re.M | re.S)]
    used = set(re.findall(r"\btt\.(\w+)", "\n".join(shown)))
    assert set(tt.__all__) - used == set()


def test_limits_of_the_library_speak_of_what_it_has():
    shown = (DOCS / "explanation" / "limits.md").read_text("utf-8").partition("## The library\n")[2]
    section = shown.partition("\n## ")[0]
    names = set(re.findall(r"`(\w+)`", section))
    assert {"save", "load"} <= names <= {*tt.__all__, *dir(tt.BacktestResult), *COMMANDS}
    assert "not there yet" not in section


def test_backtest_writes_the_journal_that_the_command_writes(result, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from worker.cli import app

    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["backtest", "--from", START, "--to", END, "--json"])
    assert done.exit_code == 0
    assert f'"head_hash": "{result.head_hash}"' in done.stdout


def test_result_has_figures_frames_and_reasons(result):
    assert result.summary["trades"] == len(result.trades) > 0
    assert result.equity["equity"].iloc[-1] / 100_000 - 1 == pytest.approx(result.summary["total_return"])
    assert result.drawdown.max() == pytest.approx(result.summary["max_drawdown"])
    assert result.trades["exit_label"].is_monotonic_increasing
    assert str(result.trades["known_at"].dt.tz) == "UTC"
    assert set(result.findings["status"]) <= {"pass", "revise", "block"}
    assert result.skips["reason"].notna().all()
    assert len(result.policies) > len(result.trades)
    fill = result.trades["fill_id"].iloc[-1]
    text = str(result.why(fill[:12]))
    assert text.startswith(f"exit_filled {fill}")
    assert "playbook" in text
    assert "\n  return " in repr(result)
    assert "<table" in result._repr_html_()


def test_units_of_the_page_of_columns_name_every_column(result):
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| ([^|]+) \| [^|]+ \|$", COLUMNS.read_text("utf-8"), re.M)
    names = ("trades", "equity", "findings", "skips", "reports", "policies")
    found = [(name, column) for name in names for column in getattr(result, name).columns]
    assert [row[:2] for row in rows] == found
    assert list(result.episodes.columns) == list(result.trades.columns)
    assert result.drawdown.name == "drawdown"
    times = {(name, column) for name, column, unit in rows if unit == "time"}
    for name, column in found:
        zoned = isinstance(getattr(result, name)[column].dtype, pd.DatetimeTZDtype)
        assert zoned == ((name, column) in times), column


def test_result_parses_no_row_that_nobody_looks_at(frame, monkeypatch):
    parsed, glance = set(), RecentRows.glance

    def shown(self, row):
        parsed.add(row.kind)
        return glance(self, row)

    monkeypatch.setattr(RecentRows, "glance", shown)
    done = tt.backtest(frame, symbols="AAPL")
    frozen = done.index.of_kind("policy_frozen")
    assert "policy_frozen" not in parsed
    assert len(done.policies) == len(frozen) > 0
    assert "policy_frozen" in parsed
    assert "policy_snapshot" not in parsed


def test_notebook_shows_the_course_of_equity(result):
    shown = result._repr_html_()
    [points] = re.findall(r'polyline points="([^"]+)"', shown)
    assert 100 < len(points.split()) <= 201
    low, high = result.equity["equity"].min(), result.equity["equity"].max()
    assert f"lowest {low:,.0f}, highest {high:,.0f}" in shown
    assert len(shown) < 10_000


def test_summary_is_the_performance_of_the_document_with_the_short_name_of_its_return(result):
    assert result.summary == result.document["performance"] | {"return": result.summary["total_return"]}
    assert {"sharpe", "max_drawdown", "trades", "cagr", "alpha_t", "by_playbook"} <= set(result.summary)


def test_result_is_drawn_and_written_as_a_page(result, tmp_path):
    from bokeh.models import Plot

    drawn = list(result.plot("AAPL").select({"type": Plot}))
    assert len(drawn) == len(result.plot().children) > 2
    page = result.to_html(tmp_path / "run.html").read_text("utf-8")
    assert result.head_hash[:12] in page
    with pytest.raises(tt.ConfigError, match="symbol 'APL': the run had .* Did you mean 'AAPL'"):
        result.plot("APL")
    with pytest.raises(tt.ConfigError, match="cannot be written: No such file"):
        result.to_html(tmp_path / "nowhere" / "run.html")


def test_same_run_again_is_verified_and_another_one_is_not(frame):
    made = tt.backtest(frame, symbols="AAPL")
    assert made.verify()
    made.rows[-1] = made.rows[0]
    assert not made.verify()


def test_frame_of_any_shape_trades_as_its_file_does(frame, tmp_path):
    frame.rename_axis("time").to_csv(tmp_path / "bars.csv")
    of_file = tt.backtest(tmp_path / "bars.csv", symbols="AAPL").head_hash
    shapes = {
        "index": frame,
        "time column": frame.rename_axis("Date").reset_index(),
        "capitals": frame.rename(columns=str.capitalize).assign(**{"Adj Close": frame["close"]}),
        "other zone": frame.tz_convert("America/New_York"),
        "no zone": (frame.tz_localize(None), {"tz": "UTC"}),
    }
    for name, given in shapes.items():
        bars, more = given if isinstance(given, tuple) else (given, {})
        assert tt.backtest(bars, symbols="AAPL", **more).head_hash == of_file, name


def test_several_symbols_come_long_or_in_columns_of_two_levels(frame):
    other = frame_of(embedded_bars(START, END), "IBM")
    long = pd.concat([frame.assign(symbol="AAPL"), other.assign(symbol="IBM")])
    wide = (
        pd.concat({"AAPL": frame, "IBM": other}, axis=1)
        .swaplevel(axis=1)
        .rename(columns=str.capitalize, level=0)
    )
    first, second = tt.backtest(long), tt.backtest(wide)
    assert first.document["data"]["symbols"] == ["AAPL", "IBM"]
    assert first.head_hash == second.head_hash


def test_backtest_runs_inside_an_event_loop_as_in_a_notebook(frame):
    async def cell():
        return tt.backtest(frame, symbols="AAPL").head_hash

    assert asyncio.run(cell()) == tt.backtest(frame, symbols="AAPL").head_hash


def test_playbook_in_python_trades_or_says_why_not(frame):
    traded = tt.backtest(frame, playbooks=tt.Playbook("donchian", long=DONCHIAN), symbols="AAPL")
    silent = tt.backtest(frame.iloc[:30], playbooks=tt.Playbook("donchian", long=DONCHIAN), symbols="AAPL")
    assert set(traded.policies["playbook_id"]) == {"donchian"}
    assert silent.summary["trades"] == 0
    assert "no trade, and what would change it:" in repr(silent)
    assert "no trade: " in silent._repr_html_()


def test_settings_come_as_keywords_or_as_an_object(frame):
    shown = tt.settings(account__cash=50_000)
    first = tt.backtest(frame, symbols="AAPL", settings=shown)
    second = tt.backtest(frame, symbols="AAPL", account__cash=50_000.0)
    assert first.head_hash == second.head_hash
    assert first.equity["equity"].iloc[0] == pytest.approx(50_000, rel=0.05)
    assert tt.settings(shown, envelope__kill_switch=True).account.cash == 50_000


def test_own_strategist_is_asked_and_may_ask_ours(frame):
    seen = SimpleNamespace(requested=0)

    class Counting:
        def __init__(self, ours):
            self.ours = ours

        async def answer(self, snapshot, revision):
            seen.requested += 1
            return await self.ours.answer(snapshot, revision)

    ours = tt.backtest(frame, symbols="AAPL")
    assert tt.backtest(frame, symbols="AAPL", strategist=Counting).head_hash == ours.head_hash
    assert seen.requested > 0


def test_own_part_that_fails_is_told_and_one_that_is_none_is_refused(frame):
    class Broken:
        async def answer(self, snapshot, revision):
            raise ValueError("not today")

    with pytest.warns(
        UserWarning, match=r"error\(s\) were contained in this run, first .*ValueError: not today"
    ) as shown:
        tt.backtest(frame, symbols="AAPL", strategist=Broken())
    assert shown[0].filename == __file__, "the line of the script, not one of ours"
    with pytest.raises(tt.ConfigError, match="has no method 'answer' and is no function"):
        tt.backtest(frame, symbols="AAPL", strategist=3)  # type: ignore[arg-type]  # what a script may hand over
    with pytest.raises(tt.ConfigError, match="gave None, which has no method 'validate_boundary'"):
        tt.backtest(frame, symbols="AAPL", judge=lambda ours: None)  # type: ignore[arg-type, return-value]


def test_own_judge_without_one_of_its_methods_is_refused_before_the_run(frame):
    class OnlyReplans:
        async def replan(self, report, definitions, open_experiments, evidence=()):
            return None

    with pytest.raises(tt.ConfigError, match="has no method 'validate_boundary': write it, or hand"):
        tt.backtest(frame, symbols="AAPL", judge=OnlyReplans())  # type: ignore[arg-type]


@pytest.mark.parametrize("carry", [copy.copy, copy.deepcopy, pickle.dumps])
def test_result_that_is_copied_or_pickled_says_what_to_take_instead(result, carry):
    with pytest.raises(TypeError, match="take its summary or its DataFrames"):
        carry(result)


def test_own_judge_has_the_last_word(frame):
    class Never:
        def __init__(self, ours):
            self.ours = ours

        def __getattr__(self, name):
            return getattr(self.ours, name)

        async def validate_boundary(self, snapshot, proposal, reflection, playbook):
            verdict = await self.ours.validate_boundary(snapshot, proposal, reflection, playbook)
            return BoundaryVerdict(
                **verdict.payload()
                | {"decision": JudgeDecision.REJECT, "finding_class": FindingClass.NONE, "reason": "never"}
            )

    assert tt.backtest(frame, symbols="AAPL").summary["trades"] > 0
    assert tt.backtest(frame, symbols="AAPL", judge=Never).summary["trades"] == 0


class NoPlace:
    async def answer(self, snapshot, revision):
        return None


@pytest.mark.parametrize(
    ("call", "quoted"),
    [
        (
            lambda bars: tt.backtest(bars.tz_localize(None).shift(freq="9h")),
            'row 0: .* has no time zone: .*tz="UTC"',
        ),
        (lambda bars: tt.backtest(bars.iloc[:0]), "DataFrame has no rows: it needs at least two bars"),
        (lambda bars: tt.backtest(bars.drop(columns="close")), "DataFrame: no close column"),
        (lambda bars: tt.backtest(bars.assign(high=np.nan)), "DataFrame row 0: 'high'"),
        (lambda bars: tt.backtest(bars, timeframe="1x"), "'1x' is not one of"),
        (lambda bars: tt.backtest(bars, account__cahs=3), "argument account__cahs: no setting.*'cash'"),
        (lambda bars: tt.backtest(bars, account__cash="much"), "argument account__cash: account.cash = 'mu"),
        (lambda bars: tt.backtest(bars, acount__cash=3), "no section 'acount'. Did you mean 'account'"),
        (lambda bars: tt.backtest([1]), "bars are of type 'list': give a pandas DataFrame"),  # type: ignore[arg-type]
        (lambda bars: tt.backtest(bars["close"]), "bars are of type 'Series': give a pandas DataFrame"),
        (lambda bars: tt.backtest(bars, playbooks=[]), "playbooks: give at least one"),
        (
            lambda bars: tt.backtest(bars, playbooks=["donchian"]),  # type: ignore[list-item]
            "playbooks: 'donchian' is no playbook: give",
        ),
        (lambda bars: tt.backtest(bars, playbooks=5), "playbooks: 5 is no playbook: give"),  # type: ignore[arg-type]
        (lambda bars: tt.backtest(bars, strategist=NoPlace), "called with one argument, ours: give its __in"),  # type: ignore[arg-type]
        (lambda bars: tt.backtest(bars, judge=lambda: None), "one argument, ours: let it take exactly that"),  # type: ignore[arg-type, misc]
        (lambda bars: tt.gate([1, 2]), "trades are of type 'list': give a pandas DataFrame"),  # type: ignore[arg-type]
        (lambda bars: tt.gate(bars.iloc[:0]), "DataFrame has no rows: it needs at least one trade"),
        (lambda bars: tt.backtest(bars, cash=5), "argument cash: write account__cash"),
        (lambda bars: tt.backtest(data=bars), "argument data: write bars$"),
        (
            lambda bars: tt.backtest(start="2005-01-01", end="2004-01-01"),
            '^start="2005-01-01" lies after end="2',
        ),
        (lambda bars: tt.backtest(start="foo"), "^start 'foo' is no time"),
        (lambda bars: tt.backtest("nowhere.csv"), "no such file: 'nowhere.csv'"),
        (lambda bars: tt.Playbook("x"), "playbook 'x' has rules of neither direction"),
        (lambda bars: tt.Playbook("x", long=DONCHIAN | {"setup": "clos > 1"}), "'clos'.*'close'"),
        (lambda bars: tt.Playbook("x", long=DONCHIAN, horizons=3), "'x', horizons: unknown.*horizon_bars"),
    ],
)
def test_input_that_cannot_be_used_is_named_with_the_next_step(call, quoted, frame):
    with pytest.raises(tt.ThinktwiceError, match=quoted):
        call(frame)


@pytest.mark.parametrize(
    ("call", "quoted"),
    [
        (lambda: tt.backtest(reflection="non"), "^argument reflection: reflection.mode = 'non': .*'off'"),  # type: ignore[arg-type]
        (lambda: tt.backtest(label="middle"), "^argument label: data.label = 'middle': .*'close'"),  # type: ignore[arg-type]
        (lambda: tt.backtest(label="close"), "^label 'close': the embedded bars .*; name a file with bars$"),
        (
            lambda: tt.backtest(timeframe="1h"),
            "^timeframe '1h': the embedded bars are 1d; name a file with b",
        ),
        (lambda: tt.backtest(end=5), "^argument end: runtime.end = 5"),  # type: ignore[arg-type]
        (lambda: tt.check({}, reflection="none"), "^argument reflection: "),  # type: ignore[arg-type]
        (lambda: tt.gate("trades.csv", mode="or"), "^argument mode: gate.mode = 'or'"),  # type: ignore[arg-type]
        (lambda: tt.simulate(None, "close > 1", tz=3), "^argument tz: runtime.tz = 3"),
        (lambda: tt.backtest(reflection__mode="non"), "^argument reflection__mode: reflection.mode"),
    ],
)
def test_setting_of_an_argument_is_refused_under_the_name_that_the_caller_wrote(call, quoted):
    with pytest.raises(tt.ConfigError, match=quoted):
        call()


def test_rule_alone_is_traded_on_the_same_bars(frame):
    done = tt.simulate(frame, "close > highest_20", symbols="AAPL", target_pct=0.06)
    assert set(done.trades["symbol"]) == {"AAPL"}
    assert len(done.equity) == len(frame)
    named = tt.simulate(start=START, end=END, symbols="AAPL", entry="close > highest_20", target_pct=0.06)
    pd.testing.assert_frame_equal(done.trades, named.trades)
    with pytest.raises(tt.RuleError, match="unknown feature 'clos'.*'close'"):
        tt.simulate(frame, "clos > 1")


def test_fill_that_is_not_there_is_named_with_the_nearest(result):
    with pytest.raises(tt.ConfigError, match=r"no fill 'nope': take one of `trades\['fill_id'\]`"):
        result.why("nope")
    with pytest.raises(tt.ConfigError, match="no fill 3: take one of"):
        result.why(3)


def test_page_that_cannot_be_written_leaves_the_old_one_and_home_is_known(result, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert result.to_html("~/run.html") == tmp_path / "run.html"
    before = (tmp_path / "run.html").read_text("utf-8")

    def full(descriptor, *arguments, **more):
        os.close(descriptor)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(tt.ConfigError, match=r"run\.html' cannot be written: No space left on device"):
        result.to_html("~/run.html")
    assert [file.name for file in tmp_path.iterdir()] == ["run.html"]
    assert (tmp_path / "run.html").read_text("utf-8") == before


def test_reasons_are_told_in_dates_and_words(result):
    text = str(result.why(result.trades["fill_id"].iloc[-1]))
    assert re.search(r"bar_label 2003-\d\d-\d\d", text)
    assert not re.search(r"\d{19}|\d\.\d{8}|[{}\[\]]", text)


def test_playbook_goes_to_another_process_whole_and_shows_itself_in_a_line():
    made = tt.Playbook("donchian", long=DONCHIAN)
    for carried in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert carried == made
        assert carried.content_hash == made.content_hash
        with pytest.raises(TypeError, match="does not support item assignment"):
            carried.rules["long"] = None  # type: ignore[index]
    assert repr(made) == "PlaybookDefinition('donchian', version 1, long)"


def test_silent_run_in_memory_names_what_a_script_has(frame):
    assert "an earlier start)" in repr(tt.backtest(frame.iloc[:30], symbols="AAPL"))
    text = repr(tt.backtest(frame, symbols="AAPL", judge=lambda ours: Refusing(ours)))
    assert "`result.index.of_kind('boundary_verdict')` has its reasons" in text


class Refusing:
    def __init__(self, ours):
        self.ours = ours

    def __getattr__(self, name):
        return getattr(self.ours, name)

    async def validate_boundary(self, snapshot, proposal, reflection, playbook):
        verdict = await self.ours.validate_boundary(snapshot, proposal, reflection, playbook)
        refused = {"decision": JudgeDecision.REJECT, "finding_class": FindingClass.NONE, "reason": "never"}
        return BoundaryVerdict(**verdict.payload() | refused)


def test_several_rules_are_traded_by_name(frame):
    rules = {"high": "close > highest_20", "low": "close < lowest_20"}
    found = tt.simulate(frame, rules, symbols="AAPL")
    assert list(found) == ["high", "low"]
    for name, rule in rules.items():
        pd.testing.assert_frame_equal(found[name].trades, tt.simulate(frame, rule, symbols="AAPL").trades)
    assert list(tt.simulate(frame, list(rules.values()), symbols="AAPL")) == list(rules.values())


@pytest.mark.parametrize("first", [None, "2003-06-01"])
def test_series_of_booleans_is_traded_as_the_rule_that_says_the_same(frame, first):
    above = frame["close"] > frame["high"].rolling(20).max().shift(1)
    series = tt.simulate(frame, above, symbols="AAPL", start=first)
    rule = tt.simulate(frame, "close > highest_20", symbols="AAPL")
    expected = rule.trades if first is None else series.trades
    pd.testing.assert_frame_equal(series.trades, expected)
    assert len(series.trades) > 3
    naive = tt.simulate(frame, above.tz_localize(None), symbols="AAPL", start=first)
    pd.testing.assert_frame_equal(naive.trades, series.trades)
    known = set(above.index[above])
    assert {above.index[above.index.get_loc(time) - 1] for time in series.trades["entry_time"]} <= known


@pytest.mark.parametrize(
    ("change", "quoted"),
    [
        (lambda s: s.astype(float), r"^entry: a Series of float64, not of booleans: add \.fillna"),
        (lambda s: s.reset_index(drop=True), r"^entry: its index is a RangeIndex: give it the times"),
        (lambda s: s.drop(s.index[7]), r"^entry: no value at 2003-01-13T00:00:00Z: give one for each bar"),
        (lambda s: pd.concat([s, s[:1]]), r"^entry: 2003-01-02 00:00:00\+00:00 is there twice"),
    ],
)
def test_series_that_does_not_fit_the_bars_is_refused_with_the_way(frame, change, quoted):
    with pytest.raises(tt.DataError, match=quoted):
        tt.simulate(frame, change(frame["close"] > 1.0), symbols="AAPL")


@pytest.mark.parametrize("name", ["exit", "stop", "target", "trail", "invalidation"])
def test_series_where_a_rule_is_asked_for_is_refused_in_one_line(frame, name):
    with pytest.raises(
        tt.ConfigError, match=rf"^{name} is of type Series, not the text .* x\.NAME reads a column of"
    ):
        tt.simulate(frame, "close > 1", symbols="AAPL", **{name: frame["close"] > 1.0})


@pytest.mark.parametrize("several", [False, True])
def test_entry_that_is_an_array_is_refused_without_its_values(frame, several):
    truths = (frame["close"] > 1.0).to_numpy()
    with pytest.raises(tt.ConfigError, match=r"^entry is of type ndarray, .* pd\.Series\(entry, index=df"):
        tt.simulate(frame, [truths] if several else truths, symbols="AAPL")


def test_series_of_one_symbol_is_not_traded_on_several(frame):
    with pytest.raises(tt.DataError, match="a Series is of one symbol: name one of AAPL, "):
        tt.simulate(None, frame["close"] > 1.0, start=START, end=END)


def test_rule_that_is_there_twice_asks_for_names(frame):
    with pytest.raises(tt.ConfigError, match="'close > 1' is there twice: give a dict of rules by name"):
        tt.simulate(frame, ["close > 1", "close > 1"], symbols="AAPL")


@pytest.mark.parametrize("form", ["name", "file", "folder"])
def test_playbooks_are_taken_by_name_from_a_file_or_a_folder(form, tmp_path):
    text = (EMBEDDED / "channel_breakout.toml").read_text()
    (tmp_path / "mine.toml").write_text(text)
    given = {"name": "channel_breakout", "file": str(tmp_path / "mine.toml"), "folder": tmp_path}[form]
    done = tt.backtest(start=START, end="2003-03-31", playbooks=given)
    [version] = done.index.of_kind("playbook_version")
    assert "channel_breakout" in str(version.payload)


def test_playbook_name_that_nobody_has_names_the_nearest():
    with pytest.raises(tt.ConfigError, match="'chanel_breakout' is no folder.*Did you mean 'channel_bre"):
        tt.backtest(playbooks="chanel_breakout")


def test_section_given_as_one_argument_is_refused_with_the_way_to_write_it():
    with pytest.raises(tt.ConfigError, match="argument execution is a section: .* as execution__"):
        tt.settings(execution={"slippage_bps": 1.0})
