"""Sentences on trades: what they made, how they failed, and what of it is proven."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from agents.answering.statements import Part, Reply, Statement, day_of, join_words, quote_line, r_of, share_of
from agents.planning.row_questions import BOUGHT, FIGURES, LENGTH, MANY
from schemas.vocabulary import EvidenceGrade
from services.model_calls.quoting import count_noun

PROVEN = frozenset({EvidenceGrade.SUGGESTIVE, EvidenceGrade.SIGNIFICANT})
MOST_CLUSTERS = 5
MOST_LINES = 3
MOST_LISTED = 10
ADVICE = "Recommendations:\n"
SIDES = {"lost": "losing ", "won": "winning "}
FIRST = {"best": "best", "worst": "worst", "longest": "longest", "shortest": "shortest"}
MOST_TRADES = 5
MOST_GROUPS = 8
# How figures that are told where they are asked for are called and written.
FIGURE_TEXTS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "profit_factor": ("profit factor in R", "{:.2f}".format),
    "win_rate": ("win rate", share_of),
    "fees": ("sum of fees and carry", "{:,.2f} in money".format),
    "median_r": ("median", r_of),
    "mean_mae": ("mean excursion against them", r_of),
    "mean_mfe": ("mean excursion for them", r_of),
    "pnl": ("profit and loss", "{:,.2f} in money".format),
}


def whom(params: Mapping[str, Any]) -> str:
    """Whom a question is about."""
    names = [params.get("playbook_id"), params.get("symbol")]
    within = f" in {params['regime']}" if params.get("regime") else ""
    return (" on ".join(str(name) for name in names if name is not None) or "the run") + within


def of_episodes(reply: Reply) -> Iterator[Statement]:
    """How many trades, what they made, how they failed, and the newest of them."""
    figures, name, when = reply.content["figures"], whom(reply.params), _when(reply.params)
    outcome = reply.params.get("outcome")
    trades = int(figures["trades"])
    side = f"{reply.params['direction']} " if reply.params.get("direction") else ""
    of_kind = f"{SIDES.get(str(outcome), '')}{side}trade"
    still_open = int(figures.get("open", 0))
    if still_open:
        yield reply.tell(_count_open(still_open, f"{side}position", name, reply.params["day"]), Part.WHAT)
    if not trades:
        if still_open:
            return
        yield reply.absent(f"a {of_kind} of {name}{when}")
        if side and BOUGHT.search(reply.question.casefold()):
            told = f"The question supposes a {side}trade of {name}{when}: there is none."
            yield reply.tell(told, Part.WHAT)
        return
    limit, order = reply.params.get("limit"), reply.params.get("order")
    if reply.content["groups"]:
        yield from _list_groups(reply, name + when)
        return
    if limit == 1 or order is not None:  # these alone were asked for
        for number, seen in enumerate(reply.content["episodes"][: limit or MOST_TRADES], 1):
            rank = "newest" if order is None else FIRST[order] if number == 1 else f"next {FIRST[order]}"
            yield _tell_seen(reply, f"{rank} {of_kind} of {name}{when}", seen, Part.WHAT)
        return
    if limit is not None and limit <= MOST_LISTED:
        yield from _list_trades(reply, f"{of_kind} of {name}{when}")
    if LENGTH.search(reply.question.casefold()):
        yield _length(reply, f"{of_kind}s of {name}{when}", figures, Part.WHAT)
    yield from _asked_figures(reply, f"{of_kind}s of {name}{when}", figures)
    if side or reply.params.get("since") or reply.params.get("day"):
        yield reply.tell(f"{_count_outcomes(name, outcome, figures, side)}{when}.", Part.WHAT)
        mean, total = r_of(figures["mean_r"]), r_of(figures["total_r"])
        yield reply.tell(f"On average they made {mean}, {total} in all.", Part.AMOUNT)
        if limit is None and trades <= MOST_TRADES and when:
            yield from _list_trades(reply, f"{of_kind} of {name}")
        return
    yield reply.tell_known(f"{_count_outcomes(name, outcome, figures)}.", Part.WHAT)
    yield from _amounts(reply, name, of_kind)
    if limit is None:
        for seen in reply.content["episodes"][:1]:
            yield _tell_seen(reply, f"newest {of_kind} of {name}", seen)


def _count_open(count: int, noun: str, name: str, day: str) -> str:
    """How many positions of a day are open."""
    are = "is" if count == 1 else "are"
    return f"{count_noun(count, noun)} of {name} opened on {day_of(day)} {are} open still."


def _list_trades(reply: Reply, of_kind: str) -> Iterator[Statement]:
    """Each trade, the newest first."""
    for number, seen in enumerate(reply.content["episodes"], 1):
        rank = "newest" if number == 1 else "next newest"
        yield _tell_seen(reply, f"{rank} {of_kind}", seen, Part.WHAT)


def _when(params: Mapping[str, Any]) -> str:
    """The time that trades are of, with a space before it; nothing where it is all of the run's."""
    since, at, day = (params.get(name) for name in ("since", "at", "day"))
    if day:
        return f" entered or left on {day_of(day)}"
    if since:
        return f" from {day_of(since)} to {day_of(at)}" if at else f" since {day_of(since)}"
    return f" up to {day_of(at)}" if at else ""


def _asked_figures(reply: Reply, whose: str, figures: Mapping[str, float]) -> Iterator[Statement]:
    """Figures beyond those of every answer, where they are asked for."""
    question = reply.question.casefold()
    for field, form in FIGURES.items():
        if form.search(question):
            name, told = FIGURE_TEXTS[field]
            if field not in figures:
                yield reply.tell(f"The {whose} have no {name}: none of them lost.", Part.WHAT)
                continue
            yield reply.tell(f"The {name} of the {whose} is {told(figures[field])}.", Part.WHAT)


def _amounts(reply: Reply, name: str, of_kind: str) -> Iterator[Statement]:
    """What trades made, one by one and in all, and how those that lost failed."""
    figures = reply.content["figures"]
    mean, total = r_of(figures["mean_r"]), r_of(figures["total_r"])
    yield reply.tell_known(f"On average a {of_kind} of {name} made {mean}.", Part.AMOUNT)
    if int(figures["trades"]) > 1:
        yield reply.tell_known(f"The {of_kind}s of {name} made {total} in all.", Part.AMOUNT)
    modes = sorted(reply.content["failure_modes"].items(), key=lambda item: (-item[1], item[0]))
    if modes:
        told = ", ".join(f"{mode} {count}" for mode, count in modes)
        yield reply.tell_known(f"Failure modes of losing trades of {name}: {told}.", Part.REASON)
        if sum(count for _, count in modes) < figures["losers"]:
            yield reply.tell(f"Not each of the {figures['losers']:g} losing trades has one.", Part.REASON)


def _length(reply: Reply, whose: str, figures: Mapping[str, float], part: Part) -> Statement:
    median, mean = f"{figures['hold_p50']:g}", f"{figures['hold_mean']:.1f}"
    return reply.tell(f"The {whose} are held for {median} bars at the median, {mean} on average.", part)


def _list_groups(reply: Reply, name: str) -> Iterator[Statement]:
    """Each group, the most R first; of holds the longest first, where a hold is asked for."""
    groups, by = reply.content["groups"], reply.params["by"].replace("_", " ")
    length = LENGTH.search(reply.question.casefold()) is not None
    if length:
        groups = sorted(groups, key=lambda group: -group["figures"]["hold_p50"])
    elif len(groups) > 1:
        first, last = groups[0], groups[-1]
        yield reply.tell(
            f"Of {name} by {by}, {first['name']} made the most, {r_of(first['figures']['total_r'])} in all, "
            f"and {last['name']} the least, {r_of(last['figures']['total_r'])}.",
            Part.WHAT,
            first["row"],
            last["row"],
        )
    for group in groups[:MOST_GROUPS]:
        figures = group["figures"]
        if length:
            yield _length(
                replace(reply, content={"rows": [group["row"]]}),
                f"trades of {group['name']}",
                figures,
                Part.WHAT,
            )
        else:
            trades, mean = count_noun(int(figures["trades"]), "trade"), r_of(figures["mean_r"])
            told = f"{group['name']}: {trades}, {mean} on average, {r_of(figures['total_r'])} in all."
            yield reply.tell(told, Part.AMOUNT, group["row"])


def _count_outcomes(name: str, outcome: str | None, figures: Mapping[str, float], side: str = "") -> str:
    """How many trades were won and lost, without the end mark."""
    trades = count_noun(int(figures["trades"]), f"{side}trade")
    if outcome is not None:
        return f"{_opening(name)} {outcome} {trades}"
    return f"{_opening(name)} won {int(figures['winners'])} and lost {int(figures['losers'])} of {trades}"


def _opening(name: str) -> str:
    return f"T{name[1:]}" if name.startswith("the run") else name


def _tell_seen(reply: Reply, of_kind: str, seen: Mapping[str, Any], part: Part = Part.REASON) -> Statement:
    mode = "" if seen["failure_mode"] is None else f", failure mode {seen['failure_mode']}"
    span = f"{day_of(seen['entered'])} to {day_of(seen['exited'])}"
    return reply.tell(
        f"The {of_kind} is {seen['symbol']} {seen['direction']}, {span}, {r_of(seen['r'])}, "
        f"exit by {seen['exit_reason']}{mode}.",
        part,
        seen["row"],
    )


def of_gate(reply: Reply) -> Iterator[Statement]:
    """What is proven, what it rests on, and the strongest action that this allows."""
    name = whom(reply.params)
    clusters = [
        cluster
        for cluster in reply.content["clusters"]
        if cluster["timeframe"] is None and cluster["regime"] == reply.params.get("regime")
    ]
    if reply.content["report_id"] is None:
        yield reply.absent("a report, so nothing is graded")
    elif not clusters:
        yield reply.absent(f"a grade of {name}")
    detailed = len(clusters) <= 1
    for cluster in clusters[:MOST_CLUSTERS]:
        yield from _tell_cluster(reply, cluster) if detailed else [_brief(reply, cluster)]
    if not detailed and not any(cluster["grade"] in PROVEN for cluster in clusters):
        yield reply.tell("None of these is proven, so what they made so far may be noise.", Part.PROOF)


def _brief(reply: Reply, cluster: Mapping[str, Any]) -> Statement:
    name = whom(cluster)
    mean = "" if cluster["mean_r"] is None else f", mean {r_of(cluster['mean_r'])}"
    counted_n = count_noun(cluster["n"], "trade")
    return reply.tell_known(f"{name}: {counted_n}{mean}, grade {cluster['grade']}.", Part.PROOF)


def _tell_cluster(reply: Reply, cluster: Mapping[str, Any]) -> Iterator[Statement]:
    name = whom(cluster)
    mean = "" if cluster["mean_r"] is None else f", a mean of {r_of(cluster['mean_r'])}"
    rate = "" if cluster["win_rate"] is None else f" and a win rate of {share_of(cluster['win_rate'])}"
    n, blocks = count_noun(cluster["n"], "trade"), count_noun(cluster["blocks"], "block")
    # "10 trades in 10 blocks" reads as "all of 10" to the fact check.
    say = reply.tell if cluster["n"] == cluster["blocks"] else reply.tell_known
    yield say(f"{name} has {n} in {blocks}{mean}{rate}.", Part.PROOF)
    proven = cluster["grade"] in PROVEN
    if proven:
        yield reply.tell_known(f"The grade of {name} is {cluster['grade']}.", Part.PROOF)
    else:
        text = f"Nothing is proven about {name}: its grade is {cluster['grade']}."
        yield reply.tell_known(text, Part.PROOF)
    if cluster["lower_r"] is not None and cluster["upper_r"] is not None:
        edges = f"{r_of(cluster['lower_r'])} and {r_of(cluster['upper_r'])}"
        yield reply.tell_known(f"The mean of {name} lies between {edges}.", Part.PROOF)
    if cluster["e_value"] is not None:
        yield reply.tell_known(f"The E-value of {name} is {cluster['e_value']:.2f}.", Part.PROOF)
    if not proven:
        yield reply.tell("So what it made so far may be noise.", Part.PROOF)
    action = cluster["strongest_action"]
    yield reply.tell(f"The strongest action that the gate allows on {name} is {action}.", Part.NEXT)


def of_reports(reply: Reply) -> Iterator[Statement]:
    """The newest report, what it recommends, and what the judge made of it."""
    if not reply.content["reports"]:
        yield reply.absent("a report")
    if MANY.search(reply.question.casefold()):
        reports = count_noun(reply.content["total"], "report")
        yield reply.tell(f"As of {reply.day} there are {reports}.", Part.WHAT)
    for seen in reply.content["reports"][:1]:
        if reply.named_day is not None and not _is_of_day(seen["known_at"], reply.named_day):
            yield reply.tell(f"No report is of {reply.named_day}; this is the newest before.", Part.WHAT)
        counted_n = count_noun(seen["n_episodes"], "resolved trade")
        told = f"Report {seen['report_id']} of {day_of(seen['known_at'])} looks at {counted_n}."
        yield reply.tell(told, Part.WHAT, seen["row"])
        _, found, advice = seen["narrative"].partition(ADVICE)
        lines = [line.removeprefix("- ") for line in advice.splitlines() if found and line.startswith("- ")]
        asked = reply.question.casefold().replace("_", " ")
        named = [line for line in lines if _playbook_of(line) in asked]
        for line in (named or lines)[:MOST_LINES]:
            yield reply.tell(f"It says {quote_line(line)}.", Part.REASON, seen["row"])
        yield from _verdict(reply, seen["verdict"], seen["verdict_row"])


def _is_of_day(moment: str, day: str) -> bool:
    """Whether an ISO moment is of a day, also as the end of it."""
    end = date.fromisoformat(day) + timedelta(days=1)
    return moment[:10] == day or moment[:19] == f"{end}T00:00:00"


def _playbook_of(line: str) -> str:
    """What an advice such as `hold (count_only): NAME shows ...` is about, in words."""
    return line.partition("): ")[2].partition(" ")[0].rstrip(":").casefold().replace("_", " ") or line


def _verdict(
    reply: Reply, verdict: Mapping[str, Any] | None, row: Mapping[str, Any] | None
) -> Iterator[Statement]:
    if verdict is None:
        yield reply.tell("The judge has not decided on it.", Part.NEXT)
        return
    decided = f"The judge decided {verdict['decision']} on {day_of(verdict['known_at'])}"
    yield reply.tell(f"{decided}: {quote_line(verdict['reason'])}.", Part.NEXT, row)
    refused = [
        quote_line(f"{episode['kind']} {episode['playbook_id'] or ''}".strip())
        for episode in verdict["refused"]
    ]
    if refused:
        told = join_words(refused[:MOST_LINES])
        yield reply.tell(f"What the run's state did not allow of it: {told}.", Part.NEXT, row)
