"""`thinktwice gate`: anybody's trades through the slow loop's own gate."""

import csv
import json
import re
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from schemas.canonical import ns_to_datetime
from schemas.episode import Episode
from services import playbooks
from services.high_level.measured_rates import proven_text, rates_for
from tests.each_case import check_each
from tests.worker.shared_runs import embedded_run
from tools.docs_pages import DOCS
from worker.cli import app
from worker.runs.out_folder import trades_csv
from worker.studies.trade_file import OPTIONAL, REQUIRED

HEADER = ("playbook", "regime", "timeframe", "entry_time", "exit_time", "r")
START = datetime(2024, 1, 1, 9, tzinfo=UTC)
KEYS = (
    "playbook", "regime", "timeframe", "grade", "n", "blocks", "block", "counted", "claim", "leaning", "mean",
    "mean_raw", "mean_otherwise", "reference", "e_value", "e_losing", "e_gaining", "lower", "upper",
    "interval_kind", "fixed_time", "smallest_detectable", "shrunken_mean", "shrunken_lower", "shrunken_upper",
    "blocks_needed", "blocks_needed_declared", "years_needed", "to_prove", "second_opinion", "alpha", "decay",
    "strongest_action", "reason", "first_significant_at",
)  # fmt: skip
EMBEDDED_PLAYBOOKS = Path(str(playbooks.__file__)).parent / "definitions"


def row(number, r, playbook="pullback", regime="up/mid", timeframe="1h"):
    """The numbered trade of a cell: five a week, two hours each."""
    entry = START + timedelta(weeks=number // 5, days=number % 5)
    return [playbook, regime, timeframe, entry.isoformat(), (entry + timedelta(hours=2)).isoformat(), r]


def cell(seed, n, mean, **keys):
    draw = np.random.default_rng(seed).standard_t(3, n) / np.sqrt(3)
    return [row(k, round(float(r) + mean, 6), **keys) for k, r in enumerate(draw)]


def planted():
    return [*cell(1, 260, -0.5), *cell(2, 260, 0.0, regime="up/low"), *cell(3, 260, 0.0, playbook="breakout")]


def written(folder, rows, header=HEADER, name="trades.csv"):
    path = folder / name
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    return str(path)


def run(*words):
    return CliRunner().invoke(app, ["gate", *words])


def graded(*words):
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def cluster(document, playbook="pullback", regime=None, timeframe=None):
    return next(
        item
        for item in document["clusters"]
        if (item["playbook"], item["regime"], item["timeframe"]) == (playbook, regime, timeframe)
    )


def complaint(*words):
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_gate_of_a_backtests_episodes_equals_the_findings_of_its_report(tmp_path):
    made = embedded_run()
    pairs = zip(made.of("high_level_request"), made.of("high_level_report"), strict=True)
    # A table of resolved trades knows of no position that is still open.
    request, report = [
        (query["request"], payload["report"])
        for query, payload in pairs
        if not query["request"]["open_entries"]
    ][-1]
    assert not any(request["epochs"].values())
    named = set(request["episode_ids"])
    episodes = [
        episode["episode"] for episode in made.of("episode") if episode["episode"]["episode_id"] in named
    ]
    path = tmp_path / "trades.csv"
    lines = trades_csv([Episode(**episode) for episode in episodes]).splitlines()
    look = ns_to_datetime(request["known_at"]).isoformat()
    path.write_text("\n".join([f"{lines[0]},looks", *(f"{line},{look}" for line in lines[1:])]), "utf-8")
    document = graded(str(path), "--playbooks", str(EMBEDDED_PLAYBOOKS))
    assert len(document["clusters"]) == len(report["clusters"]) > 10
    names = {
        "playbook": "playbook_id", "mean": "mean_r", "reference": "reference_r", "lower": "lower_r",
        "upper": "upper_r", "smallest_detectable": "smallest_detectable_r", "mean_raw": "mean_raw_r",
        "block": "unit",
    }  # fmt: skip
    for found, finding in zip(document["clusters"], report["clusters"], strict=True):
        other = {"first_significant_at", "alpha", "fixed_time", "decay", "mean_otherwise", "reason"}
        for name in set(KEYS) - other:
            assert found[name] == finding[names.get(name, name)], name
        assert finding["reason"].partition("; PSR")[0] == found["reason"]  # a table has no PSR
        fixed = [finding["fixed_lower_r"], finding["fixed_upper_r"]]
        assert found["fixed_time"] == (None if fixed[0] is None else fixed)
        assert found["alpha"] == pytest.approx(finding["alpha"], rel=1e-8)
        assert document["family"]["id"] == finding["family_id"]
    assert document["family"]["size"] == report["clusters"][0]["family_size"]
    levels = {
        episode["playbook_id"]: (episode["level"], episode["highest"], episode["limit"])
        for episode in report["decay"]
    }
    assert levels == {
        item["playbook"]: pytest.approx(
            (item["decay"]["level"], item["decay"]["highest"], item["decay"]["limit"])
        )
        for item in document["clusters"]
        if item["decay"] is not None
    }


def test_table_whose_mean_has_turned_claims_nothing_and_tells_the_decay(tmp_path):
    """500 trades around 1R, then as many around -1R: at present a loser, whatever the mean of all says.

    The other playbook shows no change: in an account of one alone, a turn may as well be a long shock.
    """
    rows = [*cell(1, 500, 1.0), *(row(500 + k, -item[-1]) for k, item in enumerate(cell(2, 499, 1.0)))]
    rows += cell(3, 999, 0.0, playbook="breakout")
    path = written(tmp_path, rows)
    found = cluster(graded(path))
    assert found["mean"] > 0.0
    assert found["e_losing"] >= 40.0
    assert (found["claim"], found["leaning"], found["grade"]) == (None, None, "count_only")
    assert found["strongest_action"] == "research_experiment"
    assert found["decay"]["highest"] >= found["decay"]["limit"] == 5_000.0
    assert cluster(graded(path), regime="up/mid")["decay"] is None
    text = run(path).stdout
    assert "but a stretch of blocks proves losing (E " in text
    assert "decay pullback: e-detector reached " in text
    assert f"; since {found['decay']['alarmed_at'][:10]}" in text
    assert "outliers carry the mean" not in text


def test_gate_document_has_exactly_these_keys_and_three_levels(tmp_path):
    document = graded(written(tmp_path, planted()))
    assert list(document) == ["family", "measured", "clusters", "positions", "unit", "trials", "limits"]
    assert all(tuple(item) == KEYS for item in document["clusters"])
    assert [(item["playbook"], item["regime"], item["timeframe"]) for item in document["clusters"]] == [
        ("breakout", None, None), ("breakout", "up/mid", None), ("breakout", "up/mid", "1h"),
        ("pullback", None, None), ("pullback", "up/low", None), ("pullback", "up/low", "1h"),
        ("pullback", "up/mid", None), ("pullback", "up/mid", "1h"),
    ]  # fmt: skip
    assert document["family"]["size"] == 5
    assert document["measured"] == rates_for(5)
    assert document["family"]["spent"] == pytest.approx(0.05)


def test_gate_selects_the_planted_loss_and_its_parent_and_names_the_strongest_action(tmp_path):
    document = graded(written(tmp_path, planted()))
    assert document["family"]["selected"] == ["pullback", "pullback|up/mid"]
    worst = cluster(document, regime="up/mid")
    assert (worst["grade"], worst["strongest_action"], worst["n"]) == ("significant", "policy_adjust", 260)
    assert worst["upper"] < 0 < cluster(document, "breakout")["upper"]
    assert worst["e_value"] * worst["alpha"] >= 1
    assert cluster(document, "breakout")["grade"] in ("count_only", "suggestive")


def test_gate_is_selected_by_e_bh_and_not_cluster_by_cluster(tmp_path):
    # Six equal losers: each alone misses its own price by far, together e-BH selects them.
    rows = [item for k in range(6) for item in cell(40, 160, -0.42, playbook=f"p{k}")]
    document = graded(written(tmp_path, rows))
    found = cluster(document, "p0")
    single = found["alpha"] / len(document["family"]["selected"])
    assert found["grade"] == "significant"
    assert found["e_value"] * single < 1 <= found["e_value"] * found["alpha"]


def looked_at(folder, rows, at):
    """The gate's document on the rows known at a time, looked at then."""
    known = [[*item, at.isoformat()] for item in rows if datetime.fromisoformat(item[4]) <= at]
    return graded(written(folder, known, (*HEADER, "looks"), "known.csv"))


def test_gate_look_by_look_says_when_a_cluster_was_first_selected(tmp_path):
    weekly = graded(written(tmp_path, planted()), "--looks", "weekly")
    assert weekly["family"]["looks"] > 20
    first = cluster(weekly, regime="up/mid")["first_significant_at"]
    assert first is not None
    at = datetime.fromisoformat(first)
    grades = [
        cluster(looked_at(tmp_path, planted(), when), regime="up/mid")["grade"]
        for when in (at - timedelta(weeks=2), at)  # fifteen trades a week: a look has its twenty after two
    ]
    assert grades[0] != "significant"
    assert grades[1] == "significant"
    once = looked_at(tmp_path, planted(), datetime.fromisoformat(weekly["family"]["last_look"]))
    assert once["family"]["looks"] == 1
    for a, b in zip(once["clusters"], weekly["clusters"], strict=True):
        assert {**a, "first_significant_at": None} == {**b, "first_significant_at": None}
    assert cluster(weekly, "breakout")["first_significant_at"] is None


def test_gate_shares_the_level_of_the_second_opinion_with_the_variants_tried(tmp_path):
    draw = np.random.default_rng(2).standard_normal(80) * 0.9 - 0.6
    path = written(tmp_path, [row(20 * k, round(float(r), 6)) for k, r in enumerate(draw)])
    alone, best_of_many = (cluster(graded(path, *more)) for more in ((), ("--trials", "100000")))
    assert alone["second_opinion"]["claim"] == "losing"
    assert best_of_many["second_opinion"] is None


@pytest.mark.parametrize(("looks", "count"), [("daily", 13), ("monthly", 3), ("20", 3), ("1000", 1)])
def test_gate_schedules_keep_the_batch_of_twenty_and_end_with_everything(tmp_path, looks, count):
    # Sixty trades in twelve weeks.
    document = graded(written(tmp_path, cell(1, 60, 0.0)), "--looks", looks)
    assert document["family"]["looks"] <= count
    assert cluster(document)["n"] == 60


def test_gate_says_that_dependent_blocks_are_held_together(tmp_path):
    draw = np.random.default_rng(3).standard_normal(100) * 0.5
    for t in range(1, 100):
        draw[t] += 0.9 * draw[t - 1]
    rows = [row(5 * k, round(float(r), 6)) for k, r in enumerate(draw)]
    found = cluster(graded(written(tmp_path, rows)))
    assert "weeks resemble each other, or trades outlast them: what up to " in found["reason"]
    assert (found["block"], found["blocks"]) == ("week", 99)


def test_gate_mode_and_reference_reach_the_decision(tmp_path):
    path = written(tmp_path, cell(5, 260, -0.1))
    actions = [
        cluster(graded(path, "--mode", mode))["strongest_action"]
        for mode in ("graded", "runbook_or", "significance_only")
    ]
    assert actions == ["research_experiment", "policy_adjust", "hold"]
    moved = cluster(graded(path, "--reference", "1.0"))
    assert (moved["reference"], moved["grade"]) == (1.0, "significant")


def test_gate_reads_parquet_reference_and_looks_columns(tmp_path):
    rows = cell(6, 40, 0.2)
    looks = [(START + timedelta(weeks=4)).isoformat()] * 20 + [(START + timedelta(weeks=9)).isoformat()] * 20
    frame = pd.DataFrame(rows, columns=list(HEADER)).assign(reference=0.25, looks=looks)
    for name in ("entry_time", "exit_time", "looks"):
        frame[name] = pd.to_datetime(frame[name])
    path = tmp_path / "trades.parquet"
    frame.to_parquet(path)
    document = graded(str(path))
    assert document["family"]["looks"] == 2
    assert cluster(document)["reference"] == 0.25
    assert "leave --looks out" in complaint(str(path), "--looks", "weekly")
    assert "leave --reference out" in complaint(str(path), "--reference", "0")


def test_gate_takes_the_month_for_daily_bars_and_the_week_below(tmp_path):
    rows = [*cell(1, 60, 0.0), *cell(1, 60, 0.0, playbook="daily", timeframe="1d")]
    document = graded(written(tmp_path, rows))
    # The last exit lies within the twelfth week and the third month: neither counts before it is over.
    hourly, daily = cluster(document), cluster(document, "daily")
    assert (hourly["block"], hourly["blocks"]) == ("week", 11)
    assert (daily["block"], daily["blocks"]) == ("month", 2)
    assert "5 of 60 trades in a week that is not complete" in cluster(document)["reason"]


def test_gate_with_two_timeframes_tests_each_of_them(tmp_path):
    rows = [*cell(1, 60, 0.0), *cell(2, 60, 0.0, timeframe="4h")]
    document = graded(written(tmp_path, rows))
    assert document["family"]["size"] == 4
    assert cluster(document, regime="up/mid", timeframe="4h")["n"] == 60


def test_gate_keeps_rows_that_are_equal_in_every_column_and_says_how_many_and_both_means(tmp_path):
    path = written(tmp_path, [row(0, 1.0)] * 3 + [row(1, -0.5)])
    document = graded(path)
    assert cluster(document)["n"] == 4
    assert document["positions"] == {
        "by": "row", "rows": 4, "positions": 4, "merged": 0, "equal": 2, "mean": 0.625,
        "mean_otherwise": 0.25,
    }  # fmt: skip
    text = "2 of 4 rows are equal in every column to one before, and count: mean +0.62R with such rows, "
    assert f"{text}+0.25R without" in run(path).stdout
    assert run(path, "--keep-copies").exit_code == 2


def test_gate_compares_rows_by_what_they_say_and_not_by_how_it_is_written(tmp_path):
    """One instant in two zones, `2` and `2.0`, `60m` and `1h`; another account's trade is another one."""
    first = [*row(0, "2"), "mine", "1"]
    other = [*first[:2], "60m", "2024-01-01T10:00:00+01:00", "2024-01-01T12:00+01:00", "2.0", "mine", "1.0"]
    theirs = [*first[:6], "theirs", "1"]
    document = graded(written(tmp_path, [first, other, theirs], (*HEADER, "account", "quantity")))
    assert (document["positions"]["rows"], document["positions"]["equal"]) == (3, 1)


def test_gate_takes_bars_of_one_length_for_one_timeframe_whatever_its_name(tmp_path):
    rows = [row(k, 0.1, timeframe="60m" if k % 2 else "1h") for k in range(40)]
    found = graded(written(tmp_path, rows))["clusters"]
    assert [(item["timeframe"], item["n"]) for item in found] == [(None, 40), (None, 40), ("1h", 40)]


@check_each("word", ["0", "-1", "", "nan"])
def test_gate_refuses_a_quantity_that_is_none_also_where_nothing_is_held_together(tmp_path, word):
    rows = [[*row(0, 0.5), "a", "1"], [*row(1, 0.5), "b", word]]
    reply = complaint(written(tmp_path, rows, (*HEADER, "position_id", "quantity")))
    assert all(part in reply for part in ("trades.csv line 3", "column 'quantity'", "leave the column out"))


def test_gate_says_that_the_raw_mean_is_why_a_cluster_leans_to_nothing(tmp_path):
    # Small winners and one loss of 40R: the winsorised mean is above zero, the raw one below it.
    rows = [row(k, -40.0 if k == 30 else 0.3 + 0.001 * k) for k in range(60)]
    document = graded(written(tmp_path, rows))
    found = cluster(document)
    assert found["mean_raw"] < 0 < found["mean"]
    assert (found["leaning"], found["e_value"]) == (None, 1.0)
    lines = run(written(tmp_path, rows)).stdout.splitlines()
    text = next(line for line in lines if line.startswith("pullback: "))
    assert text.endswith(f"; leans to nothing, raw mean {found['mean_raw']:+.3g}: outliers carry the mean")
    assert "outliers" not in run(written(tmp_path, planted())).stdout


def test_gate_names_one_of_a_thing_in_the_singular(tmp_path):
    text = run(written(tmp_path, [row(0, 1.0)] * 2)).stdout
    assert "1 of 2 rows is equal in every column to one before, and counts: mean" in text
    fills = [[*row(0, 1.0), "a"]] * 3
    text = run(written(tmp_path, fills, (*HEADER, "position_id"), "fills.csv")).stdout
    assert "3 rows are 1 position, held together by position_id: mean +1.00R, +1.00R by row\n" in text
    marked = [[*row(0, 0.1), "true"], [*row(1, 0.1), "false"]]
    assert (
        "1 trade of no-learn zones is left out"
        in run(written(tmp_path, marked, (*HEADER, "no_learn"), "marked.csv")).stdout
    )


def documented(head):
    """What the first cells name of the page's table with this head, and its whole text."""
    lines = (DOCS / "reference" / "gate-document.md").read_text("utf-8").splitlines()
    table = list(takewhile(lambda line: line.startswith("|"), lines[lines.index(head) + 2 :]))
    return [name for line in table for name in re.findall(r"`([^`]+)`", line.split(" | ")[0])], table


def test_page_of_gate_names_each_column_that_the_loader_knows_once():
    columns, _ = documented("| column | holds |")
    assert sorted(columns) == sorted([*REQUIRED, *OPTIONAL])


def test_page_of_gate_names_each_key_of_the_document_once(tmp_path):
    rows = [[*row(k, 0.1), "false"] for k in range(30)]
    config = configured(tmp_path, "[envelope]\nmax_entries_per_block = 5\n")
    document = graded(written(tmp_path, rows, (*HEADER, "no_learn")), config)
    keys, table = documented("| key | holds |")
    assert sorted(keys) == sorted([*{*document} - {"clusters"}, "clusters[]", *KEYS])
    for name in ("family", "left_out", "positions", "entries_per_block"):
        line = next(line for line in table if line.startswith(f"| `{name}`"))
        assert set(document[name]) <= set(re.findall(r"`([a-z_]+)`", line)), name


def configured(folder, text):
    path = folder / "settings.toml"
    path.write_text(text, "utf-8")
    return str(path)


@pytest.mark.parametrize("strict", ["", "[gate]\nstrict = true\n"])
def test_gate_takes_the_entry_limit_of_the_settings_without_playbook_files(tmp_path, strict):
    table = written(tmp_path, cell(1, 260, -0.5))
    unlimited = cluster(graded(table, configured(tmp_path, strict)))
    limit = "[envelope]\nmax_entries_per_block = 40\n"
    limited = cluster(graded(table, configured(tmp_path, strict + limit)))
    assert 1 < limited["e_losing"] < unlimited["e_losing"]  # a block may bring more than it was seen to


def test_gate_says_where_a_table_holds_more_entries_than_the_limit(tmp_path):
    rows = [*cell(1, 60, 0.0), *[[*row(0, 0.5, playbook="fade")[:5], 0.1 * k] for k in range(3)]]
    config = configured(tmp_path, "[envelope]\nmax_entries_per_block = 5\n")
    table = written(tmp_path, rows)
    assert graded(table, config)["entries_per_block"] == {
        "limit": 5, "most": 8, "block": "week", "begins": "2024-01-01T00:00:00+00:00", "beyond": 1,
    }  # fmt: skip
    text = (
        "envelope.max_entries_per_block is 5, but 1 block of this table holds more (8 entries in the week of "
        "2024-01-01): the limit does not bound the stakes; raise it, or leave it out"
    )
    assert text in run(table, config).stdout
    kept = configured(tmp_path, "[envelope]\nmax_entries_per_block = 8\n")
    assert graded(table, kept)["entries_per_block"]["beyond"] == 0
    assert "bound the stakes" not in run(table, kept).stdout
    assert "entries_per_block" not in graded(table)


def test_gate_counts_entries_by_the_blocks_of_each_playbook(tmp_path):
    # Two quarter-hour trades on each of five days keep a limit of two a day; with hourly ones beside them
    # in one playbook the block is a week.
    fast = [row(k, 0.1, playbook="fast", timeframe="15m") for k in range(5)]
    fast += [[*item[:5], 0.2] for item in fast]
    config = configured(tmp_path, "[envelope]\nmax_entries_per_block = 2\n")
    assert graded(written(tmp_path, fast), config)["entries_per_block"]["beyond"] == 0
    mixed = [*fast, row(0, 0.3, playbook="fast")]
    found = graded(written(tmp_path, mixed), config)["entries_per_block"]
    assert (found["most"], found["block"], found["beyond"]) == (11, "week", 1)


def numbers(document):
    return document["family"], document["clusters"]


def fills(rows, draw, header):
    """Each row as one to four fills of it in any order, with the quantities that weigh their R."""
    made = []
    for number, item in enumerate(rows):
        sizes = draw.integers(1, 5, int(draw.integers(1, 5))).astype(float)
        apart = draw.normal(0.0, 0.3, len(sizes))
        apart -= (apart * sizes).sum() / sizes.sum()
        for size, by in zip(sizes, apart, strict=True):
            named = {"position_id": f"order {number}", "symbol": f"S{number % 3}", "direction": "long"}
            values = dict(zip(HEADER, item, strict=True)) | named | {"r": item[5] + by, "quantity": size}
            made.append([values[name] for name in header])
    draw.shuffle(made)
    return made


@pytest.mark.parametrize("names", [("position_id",), ("symbol", "direction")])
def test_gate_of_fills_is_the_gate_of_their_positions(tmp_path, names):
    rows = planted()
    rows = [item for k, item in enumerate(rows) if item[1] != "up/low"]
    header = (*HEADER, *names, "quantity")
    split = graded(written(tmp_path, fills(rows, np.random.default_rng(7), header), header, "fills.csv"))
    whole = graded(written(tmp_path, rows))
    assert split["positions"]["rows"] > split["positions"]["positions"] == len(rows)
    assert split["family"]["selected"] == whole["family"]["selected"]
    for found, wanted in zip(split["clusters"], whole["clusters"], strict=True):
        assert found["n"] == wanted["n"]
        for name in ("mean", "mean_raw", "e_losing", "e_gaining", "lower", "upper"):
            assert found[name] == pytest.approx(wanted[name], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("symbol", ("EURUSD", " eurusd", "GBPUSD"), ["column 'symbol'", "'GBPUSD' differs from 'EURUSD'"]),
        ("direction", ("long", "LONG ", "short"), ["column 'direction'", "'short' differs from 'long'"]),
        ("playbook", ("pullback", "pullback", "fade"), ["column 'playbook'", "'fade' differs from"]),
    ],
)
def test_gate_refuses_one_position_id_over_rows_of_what_is_not_one_position(tmp_path, name, values, words):
    header = tuple(dict.fromkeys((*HEADER, name, "position_id")))
    rows = [
        [
            (dict(zip(HEADER, row(0, 0.5), strict=True)) | {name: value, "position_id": 0})[key]
            for key in header
        ]
        for value in values
    ]
    reply = complaint(written(tmp_path, rows, header))
    shown = ["trades.csv line 4", "in trades.csv line 2", "same position_id '0'", "an id of its own"]
    assert all(part in reply for part in (*words, *shown))
    assert graded(written(tmp_path, rows[:2], header))["positions"]["positions"] == 1


def of_one_id(tmp_path, spans, positions=1):
    """A table of rows over spans of hours of one day, (entry, exit), which have one id in turns."""
    hour = "2024-01-02T{:02}:00:00Z".format
    rows = [
        ["pullback", "up/mid", "1h", hour(entry), hour(exit_), 1.0 if entry else -0.5, index % positions]
        for index, (entry, exit_) in enumerate(spans)
    ]
    return written(tmp_path, rows, (*HEADER, "position_id"))


@pytest.mark.parametrize(
    ("spans", "line", "before"),
    [
        ([(0, 1), (2, 3)], 3, 2),
        ([(2, 3), (0, 1)], 2, 3),  # in any order
        ([(0, 5), (1, 2), (6, 7)], 4, 2),  # the last exit before it, not the one of the row before
        ([(0, 5), (1, 2), (5, 6), (8, 9), (7, 9)], 6, 4),
    ],
)
def test_gate_refuses_one_position_id_over_rows_that_do_not_touch_in_time(tmp_path, spans, line, before):
    reply = complaint(of_one_id(tmp_path, spans))
    assert f"trades.csv line {line}, column 'entry_time': position_id '0' enters at" in reply
    assert f"(trades.csv line {before}): give every position an id of its own, or leave the column" in reply


def test_gate_takes_fills_of_one_position_id_that_overlap_one_another_or_touch(tmp_path):
    # In at 0, half out at 1, in again at 2, all out at 3: its first and its last lot do not overlap.
    path = of_one_id(tmp_path, [(2, 3), (0, 1), (0, 3), (3, 4)])
    held = graded(path)["positions"]
    assert (held["positions"], held["mean"], held["mean_otherwise"]) == (1, 0.25, 0.25)
    assert (
        "4 rows are 1 position, held together by position_id: mean +0.25R, +0.25R by row\n"
        in run(path).stdout
    )
    apart = graded(of_one_id(tmp_path, [(0, 1), (2, 3), (0, 3), (3, 4)], 2))["positions"]
    assert (apart["positions"], apart["mean_otherwise"]) == (2, 0.25)


def test_gate_of_fills_whose_quantities_overflow_weighs_them_by_their_shares(tmp_path):
    header = (*HEADER, "position_id", "quantity")
    sized = [(-0.5, 1.0), (1.0, 1.5), (40.0, 0.0)]
    fills = [
        [*row(number, r), number, quantity * 1e308 or 5e-324] for number in range(60) for r, quantity in sized
    ]
    found = cluster(graded(written(tmp_path, fills, header)))
    assert (found["n"], found["mean"]) == (60, pytest.approx(0.4))


def test_gate_holds_fills_together_whose_symbol_and_direction_differ_in_case_and_space(tmp_path):
    named = [("AAPL", "long"), (" aapl", "LONG "), ("Aapl", "Long"), ("IBM", "long"), ("aapl", "short")]
    rows = [[*row(0, 0.5), symbol, direction] for symbol, direction in named]
    document = graded(written(tmp_path, rows, (*HEADER, "symbol", "direction")))
    assert (document["positions"]["rows"], document["positions"]["positions"]) == (5, 3)
    assert cluster(document)["n"] == 3


def test_gate_of_equal_rows_is_the_same_in_any_order(tmp_path):
    copied = [item for item in planted() for _ in range(8)]
    ordered = graded(written(tmp_path, copied, name="ordered.csv"))
    np.random.default_rng(8).shuffle(copied)
    assert graded(written(tmp_path, copied)) == ordered
    assert ordered["positions"]["equal"] == 7 * len(planted())


def test_gate_table_says_what_is_known_and_what_is_selected(tmp_path):
    text = run(written(tmp_path, planted()), "--looks", "weekly").stdout
    assert "family" in text.splitlines()[0]
    assert "e-BH selects pullback, pullback|up/mid" in text
    assert "pullback up/mid: selected_in_family: E " in text
    assert "; first at 2024-" in text
    assert "first at" not in run(written(tmp_path, planted())).stdout  # one look is the first and the last
    assert "breakout: reference_not_excluded" in text
    assert text.splitlines()[-1] == proven_text(5)
    nothing = run(written(tmp_path, [row(20 * k, 0.3 * (-1) ** k) for k in range(40)])).stdout
    assert "e-BH selects nothing" in nothing
    assert "measured, a claim is false" not in nothing


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"r": "nan"}, ["trades.csv line 3", "column 'r'", "NaN", "remove the row"]),
        ({"r": "high"}, ["trades.csv line 3", "'r' is 'high'"]),
        ({"r": "inf"}, ["column 'r'", "inf"]),
        ({"r": "-1e308"}, ["trades.csv line 3", "column 'r'", "-1e+308", "profit / risk at entry"]),
        ({"exit_time": "yesterday"}, ["trades.csv line 3", "column 'exit_time'", "'yesterday'", "ISO 8601"]),
        ({"exit_time": "2023-12-31T00:00:00+00:00"}, ["trades.csv line 3", "exit_time", "before the entry"]),
        ({"playbook": " "}, ["trades.csv line 3", "column 'playbook'", "empty"]),
        ({"regime": "a|b"}, ["column 'regime'", "'a|b'", "another character"]),
        ({"timeframe": "hourly"}, ["column 'timeframe'", "'hourly'", "like 15m"]),
    ],
)
def test_gate_refuses_a_bad_value_with_its_place_and_the_next_step(tmp_path, change, words):
    bad = dict(zip(HEADER, row(1, 0.5), strict=True)) | change
    message = complaint(written(tmp_path, [row(0, 0.1), list(bad.values())]))
    assert all(word in message for word in words), message


@pytest.mark.parametrize("word", ["", "nan", "inf"])
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("quantity", "write how much was traded, or leave the column out"),
        ("reference", "write what the playbook's trades are held against, in R, or leave the column out"),
    ],
)
def test_gate_says_what_to_do_about_an_optional_number_that_is_none(tmp_path, word, name, advice):
    rows = [[*row(0, 0.5), "a", "1.5"], [*row(0, 0.5), "a", word]]
    message = complaint(written(tmp_path, rows, (*HEADER, "position_id", name)))
    assert f"trades.csv line 3, column '{name}'" in message
    assert advice in message
    assert "outcome" not in message


def test_gate_refuses_a_missing_column_an_empty_table_and_naive_times(tmp_path):
    short = [item[:-1] for item in planted()]
    assert "column 'r' is missing" in complaint(written(tmp_path, short, HEADER[:-1]))
    assert "at least one trade" in complaint(written(tmp_path, []))
    assert "no such file" in complaint(str(tmp_path / "none.csv"))
    naive = [["p", "up/mid", "1h", "2024-01-01T00:00:00", "2024-01-01T02:00:00", 1.0]]
    path = written(tmp_path, naive)
    assert "--tz" in complaint(path)
    assert cluster(graded(path, "--tz", "America/New_York"), "p")["n"] == 1


def test_gate_refuses_options_that_mean_nothing(tmp_path):
    path = written(tmp_path, planted())
    assert "--looks 'hourly'" in complaint(path, "--looks", "hourly")
    assert "--looks '0'" in complaint(path, "--looks", "0")
    assert "mode" in complaint(path, "--mode", "strict")
    assert "strictly between" in complaint(path, "--reference", "9")


def test_gate_leaves_out_and_counts_trades_of_no_learn_zones(tmp_path):
    rows = planted()
    marked = [[*item, "True" if k % 5 == 0 else "False"] for k, item in enumerate(rows)]
    kept = [item for k, item in enumerate(rows) if k % 5]
    whole = graded(written(tmp_path, marked, header=(*HEADER, "no_learn")))
    alone = graded(written(tmp_path, kept, name="kept.csv"))
    assert whole.pop("left_out") == {"no_learn": len(rows) - len(kept)}
    assert whole == alone
    shown = run(written(tmp_path, marked, header=(*HEADER, "no_learn"))).stdout
    assert f"{len(rows) - len(kept):,} trades of no-learn zones are left out" in shown


@check_each(
    ("marked", "shown"),
    [
        ([(0.1, "true")] * 6 + [(0.1, "false"), ("x", "false")], ("line 9", "'x'")),
        ([(0.1, "true"), (0.2, "false"), ("inf", "false")], ("trades.csv line 4, column 'r'",)),
        *(([(0.1, "true"), (0.1, w)], ("line 3", "neither true nor false")) for w in ("perhaps", "", "yes")),
        ([(0.1, "TRUE")] * 3, ("nothing to grade",)),
    ],
)
def test_gate_names_the_line_of_the_file_also_behind_trades_of_no_learn_zones(tmp_path, marked, shown):
    rows = [[*row(k, r), word] for k, (r, word) in enumerate(marked)]
    message = complaint(written(tmp_path, rows, (*HEADER, "no_learn")))
    assert all(part in message for part in shown), message


def test_gate_takes_no_learn_from_parquet_as_booleans(tmp_path):
    frame = pd.DataFrame([row(k, 0.1) for k in range(30)], columns=list(HEADER))
    frame["no_learn"] = [k < 4 for k in range(30)]
    frame.to_parquet(tmp_path / "trades.parquet")
    document = graded(str(tmp_path / "trades.parquet"))
    assert document["left_out"] == {"no_learn": 4}
    assert cluster(document)["n"] == 26


def test_gate_names_the_claim_that_comes_first_and_not_that_of_the_fewest_blocks(tmp_path):
    """One playbook trades each day and needs many weeks, the other one a week in thirty and needs fewer."""
    daily = [row(k, r, playbook="busy") for k, r in enumerate([0.9, -1.0, 0.4, -1.0, 0.5] * 60)]
    rare = [row(210 * k, r, playbook="rare") for k, r in enumerate([-1.0, -1.0, 0.5, -1.0] * 3)]
    path = written(tmp_path, [*daily, *rare])
    needs = {item["playbook"]: item for item in graded(path)["clusters"] if item["regime"] is None}
    assert needs["rare"]["blocks_needed"] < needs["busy"]["blocks_needed"]
    first = min(needs.values(), key=lambda item: item["years_needed"])["playbook"]
    assert first == "busy"
    assert "nearest claim: busy" in run(path).stdout
