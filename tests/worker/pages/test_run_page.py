"""The page of a run: sections read the run, foreign text stays text, the same run gives the same bytes."""

import json
import re
import zlib
from base64 import b64decode
from dataclasses import replace
from functools import cache
from html import unescape

import numpy as np
import pytest

from schemas.settings import ReflectionSettings, Settings
from services.journal.index import Event, JournalIndex
from tests.worker.shared_runs import embedded_bars, run_on
from worker.pages import run_figures as run_figures_module
from worker.pages.run_data import packed_numbers, packed_steps
from worker.pages.run_figures import run_figures
from worker.pages.run_page import run_html
from worker.review.pictured import picture_of

HOSTILE = "</script><img src=x onerror=alert(1)>$$x$$\u202e"
SCRIPTS = re.compile(r'<script type="application/json" id="(\w+)">(.*?)</script>', re.DOTALL)


def index_of(rows):
    index = JournalIndex()
    for row in rows:
        index.add(Event(row, json.loads(row.payload)))
    return index


def picture_after(run, status="finished"):
    return picture_of("r0001", status, run.result, index_of(run.rows))


@cache
def picture():
    return picture_after(run_on(embedded_bars("2003-01-01", "2005-12-31").select(("AAPL", "IBM"))))


@cache
def page():
    return run_html(picture())


def records(text):
    return json.loads(zlib.decompress(b64decode(text), -zlib.MAX_WBITS))


def numbers(packed):
    found = np.frombuffer(zlib.decompress(b64decode(packed["data"]), -zlib.MAX_WBITS), f"<{packed['type']}")
    return np.cumsum(found) if packed.get("steps") else found


def data_of(html):
    return json.loads(dict(SCRIPTS.findall(html))["data"])


def section(html, name):
    return unescape(re.findall(rf'<section id="{name}">(.*?)</section>', html, re.DOTALL)[0])


def altered(**parts):
    return replace(picture(), **parts)


def with_document(**parts):
    return altered(document={**picture().document, **parts})


def test_summary_shows_the_figures_of_the_run():
    figures = picture().document["performance"]
    assert f"{100 * figures['total_return']:.1f} %" in section(page(), "summary")
    other = with_document(performance={**figures, "total_return": 0.777, "sharpe_interval": [-9.5, 9.5]})
    shown = section(run_html(other), "summary")
    assert "77.7 %" in shown
    assert "-9.50 to 9.50" in shown


def test_curves_are_equity_hold_drawdown_and_rolling_sharpe_at_the_closes():
    data, shown = data_of(page()), picture()
    assert sorted(data["curves"]) == ["drawdown", "equity", "exposed", "hold", "rolling"]
    for name, values in shown.curves.items():
        np.testing.assert_allclose(numbers(data["curves"][name]), values, rtol=1e-6)
    np.testing.assert_array_equal(shown.curves["hold"], shown.hold[1:])
    np.testing.assert_array_equal(numbers(data["closes"]), shown.bars.close_times / 1e6)
    deepest = -shown.document["performance"]["max_drawdown"]
    assert shown.curves["drawdown"].min() == pytest.approx(deepest, abs=1e-6)
    assert np.isfinite(numbers(data["curves"]["rolling"])).any()


def test_run_whose_equity_never_moved_has_no_axes_for_drawdown_and_sharpe():
    still = altered(curve=np.full_like(picture().curve, 100_000.0), episodes=())
    assert "drawdown" not in section(run_html(still), "course")
    assert "Sharpe" not in section(run_html(still), "course")
    drawn = [
        json.loads(dict(SCRIPTS.findall(html))["figures"])["curves"] for html in (page(), run_html(still))
    ]
    assert ['"drawdown_y"' in json.dumps(each) for each in drawn] == [True, False]
    assert len(run_figures(still)) == len(run_figures(picture())) - 2


@pytest.mark.parametrize(
    ("prices", "kind"),
    [([0.0, 1e-4, 1e6, np.nan], "f4"), ([1e-300, 2e-300], "f8"), ([1.0, 1e-40], "f8"), ([1e300, 1.0], "f8")],
)
def test_prices_as_small_or_as_large_as_can_be_are_packed_without_loss(prices, kind):
    packed = packed_numbers(np.array(prices))
    assert packed["type"] == kind
    np.testing.assert_allclose(numbers(packed), prices, rtol=1e-7)


def test_labels_of_a_regular_grid_take_no_room_and_keep_their_holes():
    labels = 1_704_067_200_000 + 60_000.0 * np.delete(np.arange(50_000), slice(600, 900))
    packed = packed_steps(labels)
    assert len(packed["data"]) < 1_000
    np.testing.assert_array_equal(numbers(packed), labels)


def test_months_multiply_to_the_return_of_the_run():
    whole = np.prod([1 + gain for _, gain, _ in picture().years])
    assert whole - 1 == pytest.approx(picture().document["performance"]["total_return"])
    year, gain, months = picture().years[1]
    shown = section(page(), "months")
    assert f'<th scope="row">{year}</th>' in shown
    assert f"{100 * gain:.1f} %" in shown
    assert all(f"{100 * month:z.1f} %" in shown for month in months)


def test_candles_are_the_bars_of_each_symbol():
    bars = picture().bars
    for s, symbol in enumerate(data_of(page())["symbols"]):
        rows = numbers(symbol["rows"]).astype(int)
        assert symbol["name"] == bars.symbols[s]
        np.testing.assert_array_equal(rows, np.flatnonzero(bars.present[:, s]))
        prices = numbers(symbol["prices"]).reshape(4, -1)
        for name, found in zip(("open", "high", "low", "close"), prices, strict=True):
            np.testing.assert_allclose(found, getattr(bars, name)[rows, s], rtol=1e-6)


def test_marks_are_the_fills_of_the_journal_with_their_chains():
    data, index = data_of(page()), picture().index
    nodes, seen = records(data["chains"]), 0
    for symbol in data["symbols"]:
        for _, price, what, _, _, _, chain in records(symbol["marks"])["fills"]:
            kind, name = nodes[chain][0].split()
            fill = index.get(kind, name)
            assert (fill.payload["price"], fill.row.symbol) == (price, symbol["name"])
            assert kind == f"{what.replace(' ', '_')}_filled"
            titles = [nodes[child][0] for child in nodes[chain][5]]
            assert "frozen policy" in titles
            seen += 1
    assert seen == sum(len(index.of_kind(f"{kind}_filled")) for kind in ("entry", "scale_out", "exit")) > 0


def test_lines_of_stop_and_target_begin_at_the_entry_and_follow_the_stop():
    index = picture().index
    for name, marks in picture().marks.items():
        stops = [line for line in marks.levels if line.kind == "stop"]
        entries = [event for event in index.of_kind("entry_filled") if event.row.symbol == name]
        moves = [event for event in index.of_kind("stop_tightened") if event.row.symbol == name]
        assert len(stops) == len(entries) + len(moves)
        assert {event.payload["stop"] for event in [*entries, *moves]} == {line.price for line in stops}
        assert len([line for line in marks.levels if line.kind == "target"]) == len(entries)


def test_reflections_stand_at_their_bars_with_verdict_findings_and_chain():
    data, shown = data_of(page()), picture()
    nodes, statuses = records(data["chains"]), set()
    for symbol in data["symbols"]:
        message = records(symbol["marks"])["reflections"]
        marks = shown.marks[symbol["name"]].reflections
        assert len(message) == len(marks) > 0
        for (row, status, decision, codes, _, chain), mark in zip(message, marks, strict=True):
            assert shown.bars.close_times[row] == mark.known_at
            assert (status, decision) == (mark.status, mark.decision or "not asked")
            assert all(finding["code"] in codes for finding in mark.findings)
            titles = [nodes[child][0] for child in nodes[chain][5]]
            assert {"snapshot", "policy event"} <= set(titles)
            assert ("judge at the boundary" in titles) == (mark.decision is not None)
            statuses.add(status)
    assert statuses >= {"pass", "block"}


def test_reflections_beyond_the_limit_keep_no_chain_and_what_was_found_comes_first(monkeypatch):
    monkeypatch.setattr("worker.pages.run_data.MOST_CHAINS", 10)
    data = data_of(run_html(picture()))
    shown = [mark for symbol in data["symbols"] for mark in records(symbol["marks"])["reflections"]]
    kept = [mark for mark in shown if mark[5] is not None]
    assert len(kept) == 10 < len(shown)
    assert all(mark[4] for mark in kept)


def test_trades_are_the_episodes_and_lead_to_their_exits():
    data, episodes = data_of(page()), picture().episodes
    rows, nodes = records(data["trades"]), records(data["chains"])
    assert len(rows) == len(episodes) > 5
    for row, episode in zip(rows, episodes, strict=True):
        payload = dict(zip(data["trade_fields"], row, strict=False))
        assert (payload["symbol"], payload["r"], payload["mae_r"]) == (
            episode.symbol,
            episode.r,
            episode.mae_r,
        )
        assert nodes[row[-1]][0].startswith("exit_filled")


def test_groups_outcomes_holds_versions_and_gate_read_the_run():
    html, shown = page(), picture()
    performance = shown.document["performance"]
    for key in ("by_direction", "by_playbook", "by_symbol", "by_regime", "by_exit"):
        assert all(row["name"] in section(html, "groups") for row in performance[key])
    assert sum(map(sum, shown.outcomes["counts"].values())) == len(shown.index.of_kind("policy_reflection"))
    assert all(version.reason in section(html, "versions") for version in shown.versions)
    assert all(trade.playbook_id in section(html, "hold") for trade in shown.episodes)
    report = shown.reports[-1]
    assert report["report_id"] in section(html, "gate")
    assert all(reason["reason"] in section(html, "gate") for reason in report["report"]["clusters"][:5])


def test_models_and_their_cost_are_shown_where_one_was_asked():
    assert "No model was asked" in section(page(), "models")
    model = {**picture().document["model"], "calls": 7, "cost": 12.5}
    assert "12.50" in section(run_html(with_document(model=model)), "models")


def test_whole_run_that_a_model_may_have_read_about_is_never_the_headline():
    found = picture().document["contamination"]
    part = {**found["after"], "total_return": 0.3333}
    payload = {**found, "label": "mixed", "reason": "read it", "cutoff": "2004-06-01", "bars_before": 5}
    payload |= {"after": part, "before": {**part, "total_return": 0.4444}}
    html = run_html(with_document(contamination=payload, headline={"window": "after_cutoff"}))
    assert html.index('id="contamination"') < html.index("<h1>")
    summary = section(html, "summary")
    whole = summary.index("never a headline")
    assert summary.index("33.3 %") < summary.index("44.4 %") < whole
    assert f"{100 * picture().document['performance']['total_return']:.1f} %" not in summary[:whole]


def test_run_without_a_trade_says_why():
    run = run_on(embedded_bars("2004-01-01", "2004-03-01").select(("IBM",)))
    html = run_html(picture_after(run))
    assert run.result.trades == []
    causes = run.document["why_no_trade"]
    assert causes
    assert all(cause["remedy"] in section(html, "summary") for cause in causes)
    assert "No position was closed" in section(html, "ledger")


def test_run_that_held_nothing_has_no_empty_tiles():
    html = run_html(picture_after(run_on(embedded_bars("2004-01-01", "2004-03-01").select(("IBM",)))))
    tiles = re.findall(r"<dt>(?:<[^>]*>)?(.*?)<.*?<dd>(.*?)</dd>", section(html, "summary"))
    assert [name for name, _ in tiles] == [
        "risked a trade, at most",
        "buy and hold",
        "its drawdown",
        "its Sharpe",
    ]
    assert all(re.search("[1-9]", value) for _, value in tiles)
    assert re.findall(r"<h3>(.*?)</h3>", section(html, "summary")) == [
        "What the account risked",
        "Beside buy and hold",
    ]


def test_run_with_reflection_off_says_so_and_has_no_report():
    settings = Settings(reflection=ReflectionSettings(mode="off"))
    html = run_html(
        picture_after(run_on(embedded_bars("2004-01-01", "2004-12-31").select(("IBM",)), settings))
    )
    assert "Reflection is off" in html
    assert "No report" in section(html, "gate")


def test_foreign_text_ends_no_script_and_stays_text():
    bars = embedded_bars("2004-01-01", "2004-12-31").select(("IBM",))
    html = run_html(picture_after(run_on(replace(bars, symbols=(HOSTILE,)))))
    assert html.count("</script>") == page().count("</script>")
    assert "<img src=x" not in html
    assert "\u202e" not in html
    assert data_of(html)["symbols"][0]["name"].startswith("</script><img src=x onerror=alert(1)>$$x$$")
    version = picture().versions[0]
    titled = version.model_copy(
        update={"reason": HOSTILE, "definition": version.definition.model_copy(update={"title": HOSTILE})}
    )
    html = run_html(altered(versions=(titled, *picture().versions[1:])))
    assert "<img src=x" not in html
    assert "&lt;img src=x" in html
    assert html.count("</script>") == page().count("</script>")


def test_comment_of_a_model_on_a_plan_is_shown_marked_and_as_text():
    run = run_on(embedded_bars("2004-01-01", "2004-12-31").select(("IBM",)))
    rows = [
        replace(row, payload=json.dumps(json.loads(row.payload) | {"comment": HOSTILE}))
        if row.kind == "policy_proposal"
        else row
        for row in run.rows
    ]
    html = run_html(picture_of("r0001", "finished", run.result, index_of(rows)))
    plans = [facts for title, _, _, _, facts, _ in records(data_of(html)["chains"]) if title == "proposal"]
    assert plans
    escaped = HOSTILE.replace("\u202e", r"\u202e")
    assert [facts[-2:] for facts in plans] == [["model's comment, not checked", escaped]] * len(plans)
    assert html.count("</script>") == page().count("</script>")


def test_policy_of_the_page_names_its_scripts_and_allows_nothing_from_elsewhere():
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', page())[0]
    assert unescape(policy).startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert policy.count("sha256-") == 2
    assert "http" not in policy


def test_page_of_the_same_run_is_the_same_bytes_and_of_another_picture_of_it_too():
    again = picture_after(run_on(embedded_bars("2003-01-01", "2005-12-31").select(("AAPL", "IBM"))))
    run_figures(picture())  # counts Bokeh's ids up
    assert run_html(again) == page()


def test_page_of_the_run_is_small():
    assert len(page().encode()) < 3_000_000


def test_figures_for_a_notebook_hold_the_data_of_the_run():
    figures = run_figures(picture(), "IBM")
    assert [figure.name for figure in figures][-3:] == ["candle_plot", "excursion_plot", "outcomes"]
    columns = figures[0].select_one({"name": "curve"}).data  # type: ignore[union-attr]
    assert columns["equity"][-1] == picture().equity[-1]
    fills = figures[3].select_one({"name": "fills"}).data  # type: ignore[union-attr]
    assert len(fills["x"]) == len(picture().marks["IBM"].fills) > 0
    with pytest.raises(KeyError):
        run_figures(picture(), "nobody")


def test_thinned_figures_keep_the_peak_and_the_fall_of_every_curve_and_not_of_the_first_alone(monkeypatch):
    monkeypatch.setattr(run_figures_module, "MOST_POINTS", 4)
    columns = run_figures(picture())[0].select_one({"name": "curve"}).data  # type: ignore[union-attr]
    assert len(columns["x"]) < len(picture().bars.close_times)
    for name, whole in picture().curves.items():
        drawn = columns[name]
        assert (np.nanmin(drawn), np.nanmax(drawn)) == (np.nanmin(whole), np.nanmax(whole)), name
