"""The page of a report: its numbers are the report's, its text is text, its bytes are always the same."""

import copy
import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from services.high_level.measured_rates import OPINION_TEXT, proven_text
from tests.worker.pages.reading import Node, entries, numbers, read
from worker.pages import rendering
from worker.pages.expectation_plot import expectation_plot
from worker.pages.report_html import Links, index_html, report_html
from worker.pages.report_markdown import report_markdown
from worker.pages.report_tables import clusters_of_run

NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
HOSTILE = (
    "<script>alert(1)</script>",
    "</style></title></text></svg></p><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "<!-- a comment --> <![CDATA[ x ]]> &lt;b&gt;",
    "javascript:alert(1) http://127.0.0.1/x",
    "\x1b[2J\u202eass\u0000\u2028</body>",
)


def page(position: int = -1, **changes: Any) -> str:
    known = entries()
    entry = copy.deepcopy(known[position])
    entry["report"] |= changes
    return report_html(entry, known[: position % len(known)])


def figures(tree: Node) -> list[tuple[float, str]]:
    """Every number of the page as (what it holds, what is shown)."""
    shown = [(float(str(node.attributes["value"])), node.text) for node in tree.all("data")]
    return shown + [
        (float(str(node.attributes["data-value"])), node.text) for node in tree.all("text", "figure")
    ]


def test_report_page_every_number_is_one_of_the_report_rounded_for_the_reader():
    shown = figures(read(page()))
    assert len(shown) > 150
    known = numbers(entries()[-1]["report"])
    assert {held for held, _ in shown} <= known
    for held, text in shown:
        (word,) = NUMBER.findall(text)
        digits = len(word.partition(".")[2]) if "e" not in word else 0
        scale = 100.0 if "%" in text else 1.0
        tolerance = 0.005 * abs(held) if "e" in word else 0.5000001 * 10.0**-digits
        assert abs(float(word.replace(",", "")) - scale * held) <= tolerance, (held, text)


def test_report_says_how_often_such_a_claim_is_false_and_nothing_without_a_claim():
    entry = copy.deepcopy(entries()[-1])
    for cluster in entry["report"]["clusters"]:
        cluster |= {"claim": None, "second_opinion": None}
    opinion = {"claim": "losing", "looks": 5, "look": 2, "t": -4.0, "bound": -3.5}
    for fields, words in (
        ({"claim": "losing"}, proven_text(15)),
        ({"second_opinion": opinion}, OPINION_TEXT),
    ):
        made = copy.deepcopy(entry)
        assert words not in read(report_html(made, [])).text
        assert words not in report_markdown(made)
        made["report"]["clusters"][0] |= {**fields, "family_size": 15}
        assert words in read(report_html(made, [])).text
        assert words in report_markdown(made)
        assert words in clusters_of_run(made["report"]["clusters"]).caption


def test_report_page_table_cells_hold_no_number_that_is_not_the_reports():
    for cell in read(page()).all("td", "number"):
        shown = [word for node in cell.all("data") for word in NUMBER.findall(node.text)]
        assert NUMBER.findall(cell.text) == shown


def test_report_page_shows_every_cluster_in_the_picture_and_in_the_table_beside_it():
    tree = read(page())
    report = entries()[-1]["report"]
    svg = tree.all("svg")[0]
    drawn = {float(str(entry.attributes["data-value"])) for entry in svg.all("text", "figure")}
    tables = {float(str(entry.attributes["value"])) for entry in tree.all("data")}
    clusters = [item for item in report["clusters"] if item["timeframe"] is None]
    assert {cluster["grade"] for cluster in clusters} >= {"insufficient_sample", "count_only", "significant"}
    for cluster in clusters:
        for name in ("n", "mean_r", "lower_r", "upper_r", "e_value"):
            if cluster[name] is None:
                assert name in ("lower_r", "upper_r"), name
                assert cluster["interval_kind"].startswith("open")
                continue
            assert cluster[name] in drawn, (cluster["playbook_id"], cluster["regime"], name)
            assert cluster[name] in tables, (cluster["playbook_id"], cluster["regime"], name)
    assert any(cluster["lower_r"] is not None for cluster in clusters)
    assert "open" in {node.text for node in tree.all("td")}


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("decay", ("level", "highest", "limit", "mean_r", "n")),
        (
            "expectations",
            ("hold_p50_bars", "hold_p90_bars", "expected_hold_p50_bars", "expected_hold_p90_bars"),
        ),
        (
            "expectations",
            ("winner_mae_p80_r", "expected_winner_mae_p80_r", "mfe_p50_r", "expected_mfe_p50_r"),
        ),
        ("grid_trials", ("value", "n", "mean_r", "e_value")),
        ("judge_history", ("value",)),
        ("shadow_trials", ("n", "blocks", "mean_r", "e_value", "e_value_below")),
        ("regime_cluster_summary", ("n", "mean_r", "win_rate")),
    ],
)
def test_report_page_shows_every_number_of_an_analysis(field, words):
    shown = {held for held, _ in figures(read(page()))}
    rows = entries()[1 if field == "grid_trials" else -1]["report"][field]
    if field == "grid_trials":
        shown = {held for held, _ in figures(read(page(grid_trials=GRID)))}
        rows = GRID
    assert rows
    assert {row[word] for row in rows for word in words if row[word] is not None} <= shown


GRID = [{"playbook_id": "a", "parameter": "b", "value": 1.5, "n": 31, "mean_r": -0.4, "e_value": 2.5}]


def test_report_shows_the_claim_of_each_grid_value_on_both_pages():
    rows = [*({**GRID[0], "leaning": side} for side in ("losing", "gaining")), *GRID]
    entry = copy.deepcopy(entries()[-1])
    entry["report"]["grid_trials"] = rows
    message = report_markdown(entry).partition("Grid values tried")[2]
    lines = [line for line in message.splitlines() if line.startswith("| a ")]
    assert [line.split(" | ")[5] for line in lines] == ["losing", "gaining", "-"]
    text = read(page(grid_trials=rows)).text.partition("Every value tried")[2]
    places = [text.index(word) for word in ("leans to", "losing", "gaining")]
    assert places == sorted(places)


def test_report_page_shows_fire_quality_untraded_signals_failures_and_the_unclassified_share():
    shown = {held for held, _ in figures(read(page()))}
    report = entries()[-1]["report"]
    assert numbers(report["fire_quality"]) <= shown
    assert numbers(report["untraded"]) <= shown
    assert report["regime_shift"]["p_value"] is not None
    assert numbers({k: v for k, v in report["regime_shift"].items() if k not in ("block", "blocks")}) <= shown
    assert numbers(report["failure_modes"]) | {report["unclassified_share"]} <= shown
    text = read(page()).text
    assert all(word in text for word in ("expired", "unfilled", "blocked", "look at gaps", "pullback"))


def test_report_page_of_a_report_without_the_later_fields_still_shows_its_clusters():
    entry = copy.deepcopy(entries()[-1])
    for name in (
        "decay",
        "expectations",
        "fire_quality",
        "judge_history",
        "unclassified_share",
        "regime_shift",
    ):
        del entry["report"][name]
    assert len(read(report_html(entry)).all("svg")) == 1


def free_text(text: str) -> dict[str, Any]:
    """Changes that put a text wherever a report has words of somebody's own."""
    report = entries()[-1]["report"]
    rows = lambda name, **new: [row | new for row in report[name]]  # noqa: E731
    return {
        "sections": [{"topic": text, "statements": [{"text": text, "rows": []}], "comment": text}],
        "deferred_seen": [text],
        "drift_findings": [text],
        "expectation_misses": [text],
        "failure_modes": {text: 3},
        "untraded": {text: report["untraded"]["expired"]},
        "excluded": {text: 2},
        "recommended_action": "hold",
        "recommendations": rows(
            "recommendations", reason=text, playbook_id=text, regime=text, change={text: text}
        ),
        "clusters": rows("clusters", reason=text, playbook_id=text, family_id=text),
        "decay": rows("decay", playbook_id=text),
        "expectations": rows("expectations", playbook_id=text),
        "fire_quality": rows("fire_quality", playbook_id=text, direction=text),
        "judge_history": rows("judge_history", kind=text, regime=text, parameter=text, verdict_id=text),
        "shadow_trials": rows("shadow_trials", kind=text, playbook_id=text),
        "prompt_hash": text,
    }


@pytest.mark.parametrize("text", HOSTILE)
def test_report_page_hostile_text_is_shown_and_changes_nothing_else(text):
    harmless, hostile = read(page(**free_text("words"))), read(page(**free_text(text)))
    assert hostile.outline() == harmless.outline()
    assert not hostile.all("script")
    assert hostile.text.replace("\n", "").replace("→", "").isprintable()
    seen = text.encode("unicode_escape").decode() if not text.isprintable() else text
    assert hostile.text.count(seen) > 10


@pytest.mark.parametrize("text", HOSTILE)
def test_report_page_hostile_verdict_is_shown_and_changes_nothing_else(text):
    def judged(words: str) -> Node:
        entry = copy.deepcopy(entries()[-1])
        verdict = entry["verdict"]
        verdict["reason"] = words
        verdict["actions"] = [item | {"reason": words, "playbook_id": words} for item in verdict["actions"]]
        verdict["refused"] = [{"code": words, "reason": words}]
        return read(report_html(entry))

    assert judged(text).outline() == judged("words").outline()


def test_report_page_may_load_and_run_nothing_but_its_own_style():
    for text in (
        page(),
        page(0),
        index_html(entries()),
        report_html(entries()[1], (), Links("a" * 16, "b" * 16)),
    ):
        tree = read(text)
        (policy,) = [
            entry.attributes["content"] for entry in tree.all("meta") if "http-equiv" in entry.attributes
        ]
        (style,) = tree.all("style")
        digest = b64encode(sha256(style.text.encode()).digest()).decode()
        assert policy == (
            f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-{digest}'"
        )
        names = {name for node in everything(tree) for name in node.attributes}
        assert not names & {"src", "srcset", "style", "data", "action", "xlink:href", "background"}
        assert not [name for name in names if name.startswith("on")]
        links = [str(entry.attributes["href"]) for entry in everything(tree) if "href" in entry.attributes]
        assert all(re.fullmatch(r"(index|[0-9a-f]{16})\.(html|md|json)", link) for link in links)
        assert "url(" not in style.text
        assert "@import" not in style.text


def test_templates_write_nothing_unescaped_but_the_style_and_our_pictures():
    texts = [path.read_text("utf-8") for path in Path(rendering.__file__).parent.glob("templates/*.html")]
    unescaped = {word for text in texts for word in re.findall(r"(\w+)\|safe", text)}
    of_a_run = {"run_style", "script", "data", "figures"}  # our files, and JSON that cannot end a script
    assert unescaped == {"style", "plot", "forest", "drift", "expectation"} | of_a_run
    assert not re.findall(r"autoescape|\|\s*safe|safe\s*\(", re.sub(r"\w+\|safe", "", "".join(texts)))


def everything(node: Node) -> list[Node]:
    inner = [child for child in node.children if isinstance(child, Node)]
    return inner + [below for entry in inner for below in everything(entry)]


def test_report_page_is_the_same_bytes_whatever_the_order_of_the_stored_keys():
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(item) for item in value] if isinstance(value, list) else value

    known = entries()
    assert report_html(turned(known[-1]), turned(list(known[:-1]))) == report_html(known[-1], known[:-1])
    again = json.loads(json.dumps(known[-1]))
    assert report_html(again, known[:-1]) == report_html(known[-1], known[:-1])


def test_report_page_every_picture_has_words_for_those_who_do_not_see_it():
    pictures = read(page()).all("svg")
    assert len(pictures) == 3
    for picture in pictures:
        assert picture.attributes["role"] == "img"
        assert picture.all("title")[0].text in str(picture.attributes["aria-label"])
        assert "table" in picture.all("desc")[0].text


def test_report_page_before_any_trade_says_so():
    entry = copy.deepcopy(entries()[0])
    entry["report"] |= {"clusters": [], "decay": [], "expectations": [], "failure_modes": {}, "untraded": {}}
    text = read(report_html(entry | {"verdict": None})).text
    assert "No trade of a playbook version in force yet." in text
    assert "No verdict yet." in text


def test_index_page_leads_to_every_report_and_back():
    tree = read(index_html(entries()))
    names = [entry["report_id"] for entry in entries()]
    links = {str(node.attributes["href"]) for node in tree.all("a")}
    assert links == {f"{name}.{kind}" for name in names for kind in ("html", "md", "json")}
    assert "significant" in tree.text
    middle = read(report_html(entries()[1], entries()[:1], Links(names[0], names[2])))
    assert [node.attributes["href"] for node in middle.all("a")] == [
        "index.html",
        f"{names[0]}.html",
        f"{names[2]}.html",
    ]
    assert read(report_html(entries()[1])).all("a") == []
    assert "No report" in read(index_html([])).text


def test_index_page_names_the_run_its_symbols_its_period_and_its_return():
    data = {"symbols": ["<b>", "BBB"], "timeframe": "1d", "start": "2024-01-02T00", "end": "2025-03-04T00"}
    performance = {"total_return": 0.125, "buy_and_hold_return": None}
    tree = read(index_html(entries(), {"run_id": "r0007", "data": data, "performance": performance}))
    assert tree.all("title")[0].text == "Reports of run r0007"
    assert tree.all("h1")[0].text == "High-level reflections of run r0007"
    text = " ".join(tree.all("p", "soft")[0].text.split())
    assert text == "<b>, BBB, 1d bars from 2024-01-02 to 2025-03-04: return 12.5 %, buy and hold -."


def test_index_page_tells_a_verdict_that_is_the_recommendation_once():
    entry = copy.deepcopy(entries()[-1])
    entry["report"]["recommended_action"] = entry["verdict"]["decision"] = "replan"
    row = read(index_html([entry])).all("tr")[1]
    assert [cell.text for cell in row.all("td")][3:5] == ["replan", "as recommended"]
    entry["verdict"]["decision"] = "hold"
    assert read(index_html([entry])).all("td")[4].text == "hold"


def test_report_pages_say_a_change_in_words():
    changed = copy.deepcopy(entries()[-1]["report"]["recommendations"])
    changed[0]["change"] = {"kind": "open_experiment", "parameter": "stop_atr", "value": 1.5}
    entry = {**entries()[-1], "report": {**entries()[-1]["report"], "recommendations": changed}}
    assert "try stop_atr 1.5 on paper" in [cell.text for cell in read(report_html(entry)).all("td")]
    assert "| try stop_atr 1.5 on paper |" in report_markdown(entry)


def test_expectation_picture_draws_equal_holds_once_and_near_ones_side_by_side():
    def labels(p50: float, p90: float) -> list[tuple[str, str | None]]:
        rows = copy.deepcopy(entries()[-1]["report"]["expectations"][:1])
        rows[0] |= {"hold_p50_bars": p50, "hold_p90_bars": p90}
        texts = expectation_plot(rows).iter("text")
        return [(str(text.text), text.get("text-anchor")) for text in texts if text.get("class") == "figure"][
            :2
        ]

    assert labels(8.0, 8.0)[0] == ("8", "middle")
    assert labels(8.0, 8.0)[1][0] != "8"
    assert labels(8.0, 8.5) == [("8", "end"), ("8.50", "start")]
    assert labels(8.0, 30.0) == [("8", "middle"), ("30", "middle")]


def test_markdown_page_tells_the_same_analyses():
    text = report_markdown(entries()[-1])
    for title in ("Clusters", "Recommendations", "Drift", "Entry rules", "Expectations", "Failure modes"):
        assert f"## {title}" in text
    for title in ("Regimes", "Signals that were not traded", "Judge", "Actions of the judge"):
        assert f"## {title}" in text


def test_report_pages_say_that_the_losers_of_failure_modes_are_those_that_have_one():
    entry = entries()[-1]
    assert entry["report"]["failure_modes"]
    assert "Losers that are scratches have no mode and are not counted here." in read(page()).text
    assert "## Failure modes of the losers that have one\n" in report_markdown(entry)


def test_report_pages_show_the_probabilistic_sharpe_figures_of_every_cluster():
    entry = entries()[-1]
    shown = [item for item in entry["report"]["clusters"] if item["psr"] is not None]
    assert shown
    tree, text = read(report_html(entry)), report_markdown(entry)
    held = {float(str(node.attributes["value"])) for node in tree.all("data")}
    assert "no grade reads them" in tree.text
    for each in shown:
        assert {each["psr"], each["dsr"]} <= held
        assert f"| {each['psr']:,.2f} | {each['dsr']:,.2f} |" in text
    assert any(each["minimum_track_record"] in held for each in shown)
    assert "blocks for PSR 0.95" in tree.text
    assert "blocks for PSR 0.95" in text


def test_report_pages_show_the_word_beside_a_psr_that_the_gate_does_not_share():
    entry = copy.deepcopy(entries()[-1])
    word = "reference_not_excluded: 141 trades; PSR 0.988 of one look is no proof"
    entry["report"]["clusters"][0] |= {"psr": 0.988, "reason": word}
    name = entry["report"]["clusters"][0]["playbook_id"]
    assert word in read(report_html(entry)).text
    rows = report_markdown(entry).splitlines()
    assert any(row.startswith(f"| {name} | all") and row.endswith(f"{word} |") for row in rows)


def test_separator_of_columns_in_a_name_stays_text_in_the_markdown():
    entry = copy.deepcopy(entries()[-1])
    entry["report"]["clusters"][0]["playbook_id"] = "pull|back"
    rows = [line for line in report_markdown(entry).splitlines() if line.startswith("| pull")]
    assert any(line.startswith("| pull\\|back |") for line in rows)
