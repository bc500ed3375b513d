"""The summary of a run: a trader's figures first, what the agent thought, and every counter with --full."""

import re

import pytest

from tests.worker.cli.fake_runner import FakeOutcome
from tests.worker.shared_runs import embedded_run
from worker.pages.figures import plain_fields
from worker.pages.text_parts import text_of
from worker.runs.run_text import COUNTED, summary_parts
from worker.runs.signal_lines import account_lines


def shown(document, *, full=False, width=200):
    return text_of(summary_parts(document, full=full), width) + "\n"


def row(text, label):
    """What stands beside a label, folded lines joined."""
    found = re.search(rf"^ *{re.escape(label)} {{2,}}(.*)$", text, re.M)
    assert found is not None, label
    return re.sub(r" {2,}", "   ", found[1].strip())


@pytest.fixture(scope="module")
def document():
    return embedded_run().document


def test_summary_says_the_figures_of_the_document(document):
    text, payload = shown(document), document["performance"]
    low, high = payload["sharpe_interval"]
    assert row(text, "return").endswith(f"CAGR {100 * payload['cagr']:.1f} %")
    assert row(text, "Sharpe") == (
        f"{payload['sharpe']:.2f} (95 %: {low:.2f} to {high:.2f})   Sortino {payload['sortino']:.2f}"
    )
    assert row(text, "drawdown").endswith(f"longest {payload['drawdown_days']:,.0f} days")
    assert f"profit factor {payload['profit_factor']:.2f}" in row(text, "expectancy")
    assert row(text, "trades").startswith(f"{payload['trades']:,}   won {100 * payload['win_rate']:.1f} %")
    assert f"in the market {100 * payload['exposure']:.1f} % of bars" in row(text, "exposure")
    assert row(text, "to buy and hold") == (
        f"beta {payload['beta']:.2f}   alpha {100 * payload['alpha']:.1f} % a year "
        f"(t {payload['alpha_t']:.2f})"
    )
    assert f"break-even at {payload['break_even_cost_bps']:.1f} bps a side" in row(text, "costs")


def cells_of(group):
    """What a row shows of a group, unrounded figures as a reader rounds them."""
    factor = group["profit_factor"]
    return [
        f"{group['trades']:,}", f"{100 * group['win_rate']:,.1f}", f"{group['expectancy_r']:+,.2f}",
        f"{group['total_r']:+,.1f}", "-" if factor is None else f"{factor:,.2f}",
        f"{group['average_hold_bars']:,.1f}",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [60, 200])
def test_summary_has_a_row_for_every_playbook_symbol_and_reason_of_exit(document, width):
    text = shown(document, width=width)
    account = account_lines(document)
    assert text.splitlines()[: len(account)] == account, "they go on beyond the width, as does the next one"
    assert max(map(len, account)) <= 360
    assert max(map(len, text.splitlines()[len(account) + 1 :])) <= width
    ends = set()
    for key in ("by_playbook", "by_symbol", "by_exit"):
        assert document["performance"][key]
        for group in document["performance"][key]:
            lines = re.findall(rf"^{group['name']} +[-+\d].*$", text, re.M)
            assert [cell for line in lines for cell in line.split()[1:]] == cells_of(group)
            assert width == 60 or len(lines) == 1, "what does not fit goes on below"
            ends.add((key, len(lines[-1])))
    assert len(ends) == 3, "the numbers of a table end in one column"


def test_summary_says_what_the_agent_thought(document):
    text, policy = shown(document), document["policy_loop"]
    assert row(text, "evaluations").startswith(f"{policy['evaluations']:,} ")
    most = max(policy["passed_over"].items(), key=lambda item: item[1])
    assert row(text, "bases refused for").startswith(f"{most[0].replace('_', ' ')} {most[1]:,}")
    assert f"sent back {policy['reflections']['revise'] + policy['reflections']['block']:,} of" in text
    assert row(text, "policies").startswith(f"{policy['frozen']:,} frozen")
    seen = document["high_level"]["reports"][-1]["n_episodes"]
    told_of = f"{len(document['high_level']['reports'])} reports on {seen} of {document['episodes']} episodes"
    assert row(text, "slow reflection").rstrip() == told_of
    assert seen < document["episodes"], "nothing but the last report has seen what was resolved since"
    assert row(text, "proven").startswith("nothing yet")
    assert f"approve {document['judge']['boundary']['approve']:,}" in row(text, "judge")
    assert "degraded" not in text


@pytest.mark.parametrize(
    ("name", "passed", "trades", "is_first"),
    [("model", 0, 0, True), ("rules", 0, 0, False), ("model", 1, 0, False), ("model", 0, 2, False)],
)
def test_summary_names_a_strategist_whose_every_plan_was_sent_back_first(
    name, passed, trades, is_first, document
):
    met = document["policy_loop"]["reflections"] | {"pass": passed, "revise": 7, "block": 2}
    found = {"over_confident": 3, "reward_to_risk_too_low": 6}
    text = shown(
        document
        | {"strategist": document["strategist"] | {"name": name}}
        | {"policy_loop": document["policy_loop"] | {"reflections": met, "sent_back_for": found}}
        | {"performance": document["performance"] | {"trades": trades}}
    )
    message = (
        "every plan of the strategist was sent back, 9 of 9, and there was no trade: most often for "
        "reward_to_risk_too_low (6)"
    )
    assert (text.splitlines()[0] == message) is is_first


def test_summary_says_what_was_proven_and_degraded(document):
    slow = document["high_level"] | {"findings": {"significant": 2, "suggestive": 1}}
    policy = document["policy_loop"] | {"degraded_share": 0.25}
    memory = document["memory"] | {"degraded": 3}
    text = shown(document | {"high_level": slow, "policy_loop": policy, "memory": memory})
    assert row(text, "proven") == "2 significant findings   1 suggestive"
    assert row(text, "degraded") == "25.0 % of reflections"
    assert row(text, "memory degraded") == "3 reads without cases"


def test_summary_ends_with_the_run_its_head_and_the_next_commands(document):
    text = shown(document)
    head = document["journal"]["head_hash"][:16]
    assert row(text, "run") == f"{document['run_id']}   head {head}"
    assert row(text, "next") == f"thinktwice verify {document['run_id']}"
    assert f"thinktwice journal {document['run_id']} --jsonl\n" in re.sub(r" +\n", "\n", text)
    assert f"thinktwice page {document['run_id']} --html run.html --open\n" in re.sub(r" +\n", "\n", text)
    assert text.rstrip().endswith("errors: 0")


def test_full_summary_has_every_counter_of_the_document_and_the_default_has_not(document):
    short, full = shown(document), shown(document, full=True)
    for name in COUNTED:
        for path, value in plain_fields(document[name]):
            assert row(full, path).startswith(value[:20]) or full.count(f" {path} ") > 1, path
            assert f" {path} " not in short or "_" not in path, path
    assert "By regime" in full


def test_summary_of_a_contaminated_run_has_no_headline_and_says_so_of_its_tables(document):
    found = document["contamination"] | {"label": "contaminated", "reason": "m may know"}
    text = shown(document | {"contamination": found, "headline": None})
    assert text.index("Performance: no headline") < text.index("Whole run, contaminated: never a headline")
    assert text.count("whole run, contaminated") == 3
    assert "CAGR" not in text[: text.index("Whole run, contaminated")]


def test_full_is_an_option_of_backtest(shell):
    short, full = shell.backtest(), shell.backtest("--full")
    assert (short.exit_code, full.exit_code) == (0, 0)
    assert "hold_lock 2" in full.stdout
    assert "hold_lock 2" not in short.stdout
    assert "What the agent thought" in short.stdout
    heads = r"^By symbol +trades +won % +mean R +total R +profit factor +hold bars$"
    assert re.search(heads, short.stdout, re.M)
    assert "\\n" not in short.stdout


def test_backtest_tells_of_open_positions_whose_symbols_stopped_trading(shell, monkeypatch):
    monkeypatch.setattr(FakeOutcome, "stale_positions", ("x: its long A is open since then",))
    assert "x: its long A is open since then" in shell.backtest().stdout.splitlines()
    assert "open since then" not in shell.backtest("--json").stdout
