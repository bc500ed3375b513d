"""The summary a trader reads, from the JSON document of a run and notes beside it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from schemas.trials import TrialLedger
from services.model_calls.quoting import count_noun, visible
from worker.pages.figures import DASH, counts, number, percent, plain_fields, r_multiple
from worker.pages.text_parts import Part, rows_table
from worker.runs.model_silence import model_silence
from worker.runs.signal_lines import account_lines

Document = dict[str, Any]
Rows = Iterable[tuple[str, str]]
GROUPS = {"by_playbook": "By playbook", "by_symbol": "By symbol", "by_exit": "By reason of exit"}
MORE_GROUPS = GROUPS | {"by_direction": "By direction", "by_regime": "By regime"}
COLUMNS = {
    "trades": "trades",
    "won %": lambda group: number(100 * group["win_rate"], 1),
    "mean R": lambda group: _sign(group["expectancy_r"]),
    "total R": lambda group: _sign(group["total_r"], 1),
    "profit factor": lambda group: number(group["profit_factor"]),
    "hold bars": lambda group: number(group["average_hold_bars"], 1),
}
COUNTED = (
    *("performance", "tick_validation", "strategist", "policy_loop", "model", "memory", "high_level"),
    *("judge", "plans", "deliberation", "playbooks", "journal", "timing"),
)
MOST_CAUSES, MOST_NAMED = 8, 3
OFF = "reflection is off: no proposal was reflected and no report was written"
IN_MEMORY = "in_memory"  # run id of a result that no store holds


def summary_parts(
    document: Document, failures: Sequence[str] = (), notes: Sequence[str] = (), *, full: bool = False
) -> Iterator[Part]:
    """The summary; with reflection off, the first line says so.

    `failures` are what the journalled errors said, one line each, `notes` what a reader has to know beside
    the document; in `full` every counter is printed.
    """
    early = document.get("ended_early")
    warnings = (
        OFF if document["reflection"] == "off" else None,
        model_silence(document),
        None if early is None else early["message"],
        refused_strategist(document),
        judge_silence(document),
    )
    yield from filter(None, warnings)
    yield from account_lines(document)
    yield from _no_trade(document)
    yield from _head(document)
    yield from notes
    for title, rows in performance_parts(document):
        yield from _section(title, rows)
    for title, groups in groupings(document, full=full):
        yield ""
        yield rows_table(groups, {title: "name", **COLUMNS})
    yield from _section("What the agent thought", thoughts(document))
    for title, rows in counters(document) if full else ():
        yield from _section(title, rows)
    yield from _section("Run", _run(document))
    yield ""
    yield f"errors: {document['errors']}"
    yield from (f"  {failure}" for failure in failures)


def _section(title: str, rows: Rows) -> Iterator[Part]:
    yield ""
    yield rows_table(rows, {title: lambda row: f"  {row[0]}", "": lambda row: row[1]})


def _head(document: Document) -> Iterator[str]:
    """Which run it is, and what a reader has to know beside its figures."""
    data = document["data"]
    window = f"{data['start'][:10]} to {data['end'][:10]}"
    symbols = ", ".join(data["symbols"])
    bars = count_noun(data["bars"], "bar")
    yield f"run {document['run_id']}   {symbols}   {data['timeframe']}   {window}   {bars}"
    if data["left_out"]:
        yield _tell_left_out(document["run_id"], data["left_out"])
    yield from (f"doubtful: {doubt['text']}" for doubt in data.get("doubts", ())[:MOST_CAUSES])
    if (shown := TrialLedger.of_document(document["ledger"]).line()) is not None:
        yield shown


def _tell_left_out(run_id: str, found: dict[str, int]) -> str:
    see = [f"thinktwice journal {run_id} --kind feed_anomaly"] if set(found) - {"absent"} else []
    see += ["thinktwice data check FILE"] if "absent" in found else []
    return f"bars left out: {counts(found)}   {'   '.join(see)}"


def _no_trade(document: Document) -> Iterator[str]:
    """What would change that there was no trade; nothing for a run that has opened a position."""
    if causes := document["why_no_trade"]:
        yield "no trade, and what would change it:"
        for cause in causes[:MOST_CAUSES]:
            yield f"  {cause['reason']} {cause['count']:,}: {cause['remedy']}"
        if len(causes) > MOST_CAUSES:
            yield f"  and {len(causes) - MOST_CAUSES} more reasons, see --json"
        yield ""


def thoughts(document: Document) -> Rows:
    """What the loops came to, from the counters of the document; `counters` has every one."""
    policy, slow = document["policy_loop"], document["high_level"]
    bars, met = document["tick_validation"]["bars_validated"], policy["reflections"]
    share = percent(policy["evaluations"] / bars if bars else None)
    yield "evaluations", f"{policy['evaluations']:,}   {share} of bars"
    yield from strategist_rows(document["strategist"])
    sent_back = met["revise"] + met["block"]
    own = f", {policy['sent_back_own']:,} of playbooks as they are" if policy["sent_back_own"] else ""
    yield "fast reflection", f"sent back {sent_back:,} of {sent_back + met['pass']:,} proposals{own}"
    if policy["sent_back_for"]:
        yield "most often for", _most(policy["sent_back_for"])
    if policy["passed_over"]:
        yield "bases refused for", _most(policy["passed_over"])
    if reader := describe_reader(policy["reader"]):
        yield "second reader", reader
    yield "policies", f"{policy['frozen']:,} frozen   {policy['stand_downs']:,} stand-downs"
    seen = max((report["n_episodes"] for report in slow["reports"]), default=0)
    text = f"{count_noun(len(slow['reports']), 'report')} on {seen:,} of"
    yield "slow reflection", f"{text} {count_noun(document['episodes'], 'episode')}"
    yield "proven", _proven(slow["findings"])
    last = slow["reports"][-1] if slow["reports"] else {}
    yield "nearest claim", last.get("nearest_claim") or "none: too few trades to tell how many it takes"
    if last.get("second_opinions"):
        shown = (f"{name} {claim}" for name, claim in sorted(last["second_opinions"].items()))
        yield "second opinion", f"{', '.join(shown)}: not proven, and no reason for more risk"
    yield "recommended", _most(slow["recommendations"])
    yield "judge", _most(document["judge"]["boundary"])
    request = describe_opinions(document)
    yield "judge on reports", f"{_most(document['judge']['replans'])}{f'   {request}' if request else ''}"
    if asks_models(document):
        model, net = document["model"], percent(document["performance"]["net_return"])
        cost = number(document["performance"]["model_cost"])
        yield "model", f"{count_noun(model['calls'], 'call')}   cost {cost}   return after it {net}"
        yield from refused_rows(document)
    if policy["degraded_share"]:
        yield "degraded", f"{percent(policy['degraded_share'])} of reflections"
    if document["memory"]["degraded"]:
        yield "memory degraded", f"{count_noun(document['memory']['degraded'], 'read')} without cases"


def describe_reader(reader: dict[str, int]) -> str:
    """About how many plans it was asked; nothing where no plan reached it."""
    request, others = reader["asked"], reader["nothing_to_decide"]
    if not request and not others:
        return ""
    return f"asked about {count_noun(request, 'plan')}; {others:,} others left it nothing to decide"


def refused_rows(document: Document) -> Rows:
    """Models without a known price, guesses, calls that a limit did not admit, by purse, and failed texts."""
    refused, texts = document["model"]["refused"], document["deliberation"]
    if names := document["model"]["unpriced"]:
        yield "no price known", f"{visible(', '.join(names))}: as llm.unknown_price has it; set llm.prices"
    if guessed := document["model"]["estimated_calls"]:
        yield "no tokens told", f"{count_noun(guessed, 'call')}: charged by an estimate from above"
    if total := sum(refused.values()):
        yield "refused by a limit", f"{count_noun(total, 'call')}: {counts(refused)}"
    if failed := texts["statuses"]["failed"]:
        yield "texts failed", f"{failed:,} of {texts['total_requests']:,}: the rules' text stands"


def describe_opinions(document: Document) -> str | None:
    """On how many reports the judge's model was asked; None where it had nothing to weigh."""
    judge = document["judge"]
    if not judge["to_ask"]:
        return None
    return f"model asked on {judge['asked']:,} of {count_noun(judge['to_ask'], 'report')}"


def refused_strategist(document: Document) -> str | None:
    """That every plan of a strategist that is not the rules was sent back, and there was no trade."""
    policy, name = document["policy_loop"], document["strategist"]["name"]
    met, found = policy["reflections"], policy["sent_back_for"]
    sent_back = met["revise"] + met["block"]
    if name == "rules" or met["pass"] or not found or document["performance"]["trades"]:
        return None
    most = max(sorted(found), key=found.__getitem__)
    share = f"{sent_back:,} of {sent_back:,}"
    why = f"most often for {most} ({found[most]:,})"
    return f"every plan of the strategist was sent back, {share}, and there was no trade: {why}"


def judge_silence(document: Document) -> str | None:
    """That the judge's model was never asked although a report had something to weigh, and why."""
    judge = document["judge"]
    if judge["asked"] or not judge["to_ask"]:
        return None
    reports, why = count_noun(judge["to_ask"], "report"), counts(judge["not_asked"])
    return f"the judge's model was never asked: 0 of {reports}, {why}; the rules judged alone"


def _proven(findings: dict[str, int]) -> str:
    shown, hinted = findings.get("significant", 0), findings.get("suggestive", 0)
    few, counted_only = findings.get("insufficient_sample", 0), findings.get("count_only", 0)
    parts = [count_noun(shown, "significant finding") if shown else "nothing yet"]
    parts += [f"{hinted:,} suggestive"] if hinted else []
    parts += [f"{few:,} with too few trades"] if few else []
    parts += [f"{counted_only:,} counted only"] if counted_only else []
    return "   ".join(parts)


def _most(by_name: dict[str, int]) -> str:
    most = sorted(by_name.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMED]
    others = sum(by_name.values()) - sum(count for _, count in most)
    shown = [f"{name.replace('_', ' ')} {count:,}" for name, count in most if count]
    return ", ".join([*shown, *([f"others {others:,}"] if others else [])]) or "none"


def _run(document: Document) -> Rows:
    run_id, journal = document["run_id"], document["journal"]
    yield "run", f"{run_id}   head {journal['head_hash'][:16]}"
    if run_id == IN_MEMORY:
        yield "next", "result.to_html('run.html'), result.save(), result.verify()"
        return
    yield "store", journal["url"]
    yield "next", f"thinktwice verify {run_id}"
    yield "", f"thinktwice journal {run_id} --jsonl"
    yield "", f"thinktwice page {run_id} --html run.html --open"


def counters(document: Document) -> Iterable[tuple[str, Rows]]:
    """Titles with every value of a section of the document, by its path."""
    for name in COUNTED:
        yield name.replace("_", " ").capitalize(), plain_fields(document.get(name, {}))


def asks_models(document: Document) -> bool:
    """Whether any part of the run may ask a language model."""
    model, rules = document["model"], document["strategist"]["name"] == "rules"
    return bool(document["reflection"] == "full" or not rules or model["calls"] or model["cut_overs"])


def strategist_rows(strategist: Document) -> Rows:
    """Who answered where a model is the strategist, and how often the rules did instead."""
    if strategist["name"] != "rules":
        yield "strategist", f"{strategist['name']}   answers by {counts(strategist['answers'])}"
        yield "rules instead of it", counts(strategist["fallbacks"])


def performance_parts(document: Document) -> Iterable[tuple[str, Rows]]:
    """The headline first; what models may have read about stands below it and says so."""
    found, whole = document["contamination"], document["performance"]
    rows = _whole(whole, document["open_positions"])
    if found["label"] in ("clean", "anonymised"):
        shown = [] if found["reason"] is None else [("questions", found["reason"])]
        yield "Performance", [*rows, *shown]
        return
    if document["headline"] is None:
        yield "Performance: no headline", [("why", found["reason"])]
    else:
        cutoff = found["cutoff"]
        yield f"Performance after {cutoff}", _part(found["after"], found["bars_after"])
        shown = [("why apart", found["reason"]), *_part(found["before"], found["bars_before"])]
        yield f"To {cutoff}, contaminated: never a headline", shown
    yield "Whole run, contaminated: never a headline", rows


def groupings(document: Document, *, full: bool = False) -> Iterator[tuple[str, Sequence[Document]]]:
    """Titles with the groups of each way in which the trades are told apart; none without trades."""
    whole = document["contamination"]["label"] in ("clean", "anonymised")
    for key, title in (MORE_GROUPS if full else GROUPS).items():
        if groups := document["performance"][key]:
            yield title if whole else f"{title}, whole run, contaminated", groups


def _sign(value: float | None, digits: int = 2) -> str:
    return DASH if value is None else f"{value:+,.{digits}f}"


def _part(figures: Document, bars: int) -> Rows:
    yield "return", f"{percent(figures['total_return'])}   over {count_noun(bars, 'bar')}"
    fall = percent(figures["max_drawdown"])
    yield "Sharpe", f"{number(figures['sharpe'])}   largest drawdown {fall}"
    yield "expectancy", f"{r_multiple(figures['expectancy_r'])} a trade after costs"
    yield "trades", f"{figures['trades']:,}   won {percent(figures['win_rate'])}"


def _whole(document: Document, open_positions: Sequence[Document]) -> Rows:
    yield "return", f"{percent(document['total_return'])}   CAGR {percent(document['cagr'])}"
    interval = document["sharpe_interval"]
    sure = "" if interval is None else f" (95 %: {number(interval[0])} to {number(interval[1])})"
    yield "Sharpe", f"{number(document['sharpe'])}{sure}   Sortino {number(document['sortino'])}"
    fall, days = percent(document["max_drawdown"]), number(document["drawdown_days"], 0)
    yield "drawdown", f"largest {fall}   longest {days} days"
    expectancy, factor = r_multiple(document["expectancy_r"]), number(document["profit_factor"])
    yield "expectancy", f"{expectancy} a trade after costs   profit factor {factor}"
    won = percent(document["win_rate"])
    yield "trades", f"{document['trades']:,}   won {won}   still open {len(open_positions)}"
    held = number(document["average_hold_bars"], 1)
    yield "risk", f"at most {percent(document['risk_per_trade'])} of equity a trade"
    market, invested = percent(document["exposure"]), percent(document["mean_exposure"])
    yield "exposure", f"in the market {market} of bars   mean exposure {invested}   mean hold {held} bars"
    hold, fell = percent(document["buy_and_hold_return"]), percent(document["buy_and_hold_drawdown"])
    yield (
        "buy and hold",
        f"{hold}   largest drawdown {fell}   Sharpe {number(document['buy_and_hold_sharpe'])}",
    )
    same, lost = percent(document["exposed_hold_return"]), percent(document["exposed_hold_drawdown"])
    yield "at mean exposure", f"buy and hold {same}   largest drawdown {lost}"
    alpha, t = percent(document["alpha"]), number(document["alpha_t"])
    yield "to buy and hold", f"beta {number(document['beta'])}   alpha {alpha} a year (t {t})"
    even = number(document["break_even_cost_bps"], 1)
    yield "costs", f"{number(float(document['fees']))} in fees and carry   break-even at {even} bps a side"
