"""The summary a trader reads, from the JSON document of a run and nothing else."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from schemas.trials import TrialLedger
from services.model_calls.quoting import counted
from worker.cli.model_answers import model_silence
from worker.pages.figures import counts, milliseconds, number, percent, r_multiple
from worker.runs.why_no_trade import headline, sent_back_headline

if TYPE_CHECKING:
    from rich.console import Console

Document = dict[str, Any]
Rows = Iterable[tuple[str, str]]
MOST_CAUSES = 8
OFF = "reflection is off: no proposal was reflected and no report was written"


def render(document: Document, console: "Console", failures: Sequence[str] = ()) -> None:
    """Print the summary; with reflection off, the first line says so.

    Args:
        document: the JSON document of the run.
        console: where to.
        failures: what the journalled errors said, one line each.
    """
    if document["reflection"] == "off":
        console.print(OFF, style="bold yellow", soft_wrap=True)
    if (silence := model_silence(document)) is not None:
        console.print(silence, style="bold yellow", soft_wrap=True)
    _no_trade(document, console)
    data = document["data"]
    window = f"{data['start'][:10]} to {data['end'][:10]}"
    symbols = ", ".join(data["symbols"])
    bars = counted(data["bars"], "bar")
    head = f"run {document['run_id']}   {symbols}   {data['timeframe']}   {window}   {bars}"
    console.print(head, soft_wrap=True)
    if (sent_back := sent_back_headline(document)) is not None:
        console.print(sent_back, style="yellow", soft_wrap=True)
    if data["left_out"]:
        console.print(_left_out(document["run_id"], data["left_out"]), style="yellow", soft_wrap=True)
    if (told := TrialLedger.of_document(document.get("ledger", {})).line()) is not None:
        console.print(told, style="yellow", soft_wrap=True)
    for title, rows in (
        *_performance_parts(document),
        ("Tick validation", _ticks(document["tick_validation"], document["timing"])),
        ("Policy loop", _policy(document)),
        *((("Model", _model(document)),) if _asks_models(document) else ()),
        ("High-level reflection", _slow(document)),
        ("Judge", _judge(document)),
        ("Journal", _journal(document)),
    ):
        console.print()
        console.print(_table(title, rows))
    console.print()
    style = "bold red" if document["errors"] else "green"
    console.print(f"errors: {document['errors']}", style=style)
    for failure in failures:
        console.print(f"  {failure}", soft_wrap=True)


def _left_out(run_id: str, found: dict[str, int]) -> str:
    """Bars that were not traded, with counts, and where to see which."""
    see = [f"thinktwice journal {run_id} --kind feed_anomaly"] if set(found) - {"absent"} else []
    see += ["thinktwice data check FILE"] if "absent" in found else []
    return f"bars left out: {counts(found)}   {'   '.join(see)}"


def _no_trade(document: Document, console: "Console") -> None:
    """Why there was no trade, and what would change it; nothing for a run that has opened a position."""
    causes = document["why_no_trade"]
    if not causes:
        return
    console.print(headline(document), style="bold yellow", soft_wrap=True)
    for cause in causes[:MOST_CAUSES]:
        console.print(f"  {cause['reason']}: {cause['remedy']}", soft_wrap=True)
    if len(causes) > MOST_CAUSES:
        console.print(f"  and {len(causes) - MOST_CAUSES} more reasons, see --json")
    console.print()


def _table(title: str, rows: Rows) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", show_header=False, box=None, padding=(0, 2)
    )
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return table


def _performance_parts(document: Document) -> Iterable[tuple[str, Rows]]:
    """The headline first; what models may have read about stands below it and says so."""
    found, whole = document["contamination"], document["performance"]
    if found["label"] in ("clean", "anonymised"):
        told = [] if found["reason"] is None else [("questions", found["reason"])]
        yield "Performance", [*_performance(whole, document["open_positions"]), *told]
        return
    if document["headline"] is None:
        yield "Performance: no headline", [("why", found["reason"])]
    else:
        cutoff = found["cutoff"]
        yield f"Performance after {cutoff}", _part(found["after"], found["bars_after"])
        told = [("why apart", found["reason"]), *_part(found["before"], found["bars_before"])]
        yield f"To {cutoff}, contaminated: never a headline", told
    yield "Whole run, contaminated: never a headline", _performance(whole, document["open_positions"])


def _part(figures: Document, bars: int) -> Rows:
    yield "return", f"{percent(figures['total_return'])}   over {counted(bars, 'bar')}"
    fall = percent(figures["max_drawdown"])
    yield "Sharpe", f"{number(figures['sharpe'])}   largest drawdown {fall}"
    yield "expectancy", f"{r_multiple(figures['expectancy_r'])} a trade after costs"
    yield "trades", f"{figures['trades']:,}   won {percent(figures['win_rate'])}"


def _performance(performance: Document, open_positions: Sequence[Document]) -> Rows:
    total, hold = percent(performance["total_return"]), percent(performance["buy_and_hold_return"])
    yield "return", f"{total}   buy and hold {hold}"
    yield (
        "Sharpe",
        f"{number(performance['sharpe'])}   largest drawdown {percent(performance['max_drawdown'])}",
    )
    yield "expectancy", f"{r_multiple(performance['expectancy_r'])} a trade after costs"
    won = percent(performance["win_rate"])
    yield "trades", f"{performance['trades']:,}   won {won}   still open {len(open_positions)}"
    exposure = percent(performance["exposure"])
    yield "costs", f"{number(float(performance['fees']))} in fees   in the market {exposure} of bars"


def _ticks(ticks: Document, timing: Document) -> Rows:
    speed = "" if timing["bars_per_s"] is None else f"   {timing['bars_per_s']:,.0f} bars/s"
    yield "bars validated", f"{ticks['bars_validated']:,}{speed}"
    yield "events", counts(ticks["events"])
    forbidden = (ticks["llm_calls"], ticks["memory_reads"], ticks["policy_writes"])
    yield "inside the tick path", "model calls {}, memory reads {}, policy writes {}".format(*forbidden)


def _asks_models(document: Document) -> bool:
    return bool(document["reflection"] == "full" or document["strategist"]["name"] != "rules")


def _policy(document: Document) -> Rows:
    policy, bars = document["policy_loop"], document["tick_validation"]["bars_validated"]
    share = percent(policy["evaluations"] / bars) if bars else "-"
    strategist = document["strategist"]
    if strategist["name"] != "rules":
        yield "strategist", f"{strategist['name']}   answers by {counts(strategist['answers'])}"
        yield "rules instead of it", counts(strategist["fallbacks"])
    yield "events", counts(policy["events"])
    yield "skips", counts(policy["skips"])
    yield "overrides", counts(policy["overrides"])
    yield "evaluations", f"{policy['evaluations']:,} ({share} of bars)"
    yield (
        "frozen",
        f"{policy['frozen']:,}   stand-downs {policy['stand_downs']:,}   revisions {policy['revisions']:,}",
    )
    yield "reflections", _verdicts(policy["reflections"])
    yield "amendments", _verdicts(policy["amendments"])
    degraded = percent(policy["degraded_share"])
    yield "invocations", f"{_verdicts(policy['invocations'])}   degraded share {degraded}"
    yield "findings", counts(policy["finding_codes"])
    yield "evaluation took", _latency(policy["latency_ms"])
    held = percent(policy["budget_held_share"])
    yield "reflection took", f"{_latency(policy['reflection_latency_ms'])}   within its budget {held}"


def _model(document: Document) -> Rows:
    model, performance = document["model"], document["performance"]
    tokens = sum(model["tokens"].values())
    yield "calls", f"{model['calls']:,}   requests {model['requests']:,}   tokens {tokens:,}"
    yield "ended", counts(model["outcomes"])
    yield "not asked", counts(model["cut_overs"])
    net = percent(performance["net_return"])
    yield "cost", f"{number(performance['model_cost'])}   return after it {net}"
    yield "call took", _latency(model["latency_ms"])


def _verdicts(reflections: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in reflections.items()) or "none"


def _latency(latency: Document) -> str:
    return "   ".join(f"{name} {milliseconds(latency[name])}" for name in ("p50", "p95", "p99"))


def _slow(document: Document) -> Rows:
    slow, memory = document["high_level"], document["memory"]
    reads = f"memory reads {memory['reads']:,}   reused {memory['reused']:,}"
    yield "episodes", f"{document['episodes']:,}   {reads}"
    yield "memory took", _latency(memory["latency_ms"])
    if memory["over_budget"] or memory["degraded"]:
        late = f"{memory['over_budget']:,} reads over budget   {memory['degraded']:,} without cases"
        yield "memory degraded", late
    yield "runs", f"{slow['runs']:,}   reports {len(slow['reports']):,}"
    yield "skips", counts(slow["skips"])
    yield "findings by grade", counts(slow["findings"])
    yield "recommendations", counts(slow["recommendations"])
    yield "run took", _latency(slow["latency_ms"])
    yield "playbook versions", counts(document["playbooks"]["versions"])


def _judge(document: Document) -> Rows:
    yield "at the boundary", counts(document["judge"]["boundary"])
    yield "replans", counts(document["judge"]["replans"])
    plans = document.get("plans", {"made": 0})
    if plans["made"]:
        yield "change plans", f"{plans['made']:,}   waiting {plans['waiting']:,}   {counts(plans['ended'])}"


def _journal(document: Document) -> Rows:
    journal, timing = document["journal"], document["timing"]
    yield "store", journal["url"]
    yield "events", f"{journal['events']:,}   head {journal['head_hash'][:16]}"
    seconds = ((name, timing[f"{name}_s"]) for name in ("compile", "engine", "policy", "slow", "total"))
    yield (
        "time",
        "   ".join(f"{name} {number(float(value))} s" for name, value in seconds if value is not None),
    )
    yield "next", f"thinktwice verify {document['run_id']}   thinktwice journal {document['run_id']} --jsonl"
