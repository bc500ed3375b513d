"""Every counter of a run by part: ticks, policy loop, models, slow loop, judge, journal."""

from collections.abc import Iterable

from worker.cli.summary_figures import Document, Rows
from worker.pages.figures import counts, milliseconds, number, percent


def full_parts(document: Document) -> Iterable[tuple[str, Rows]]:
    """Titles with their rows, from the JSON document of the run."""
    yield "Tick validation", _ticks(document["tick_validation"], document["timing"])
    yield "Policy loop", _policy(document)
    if asks_models(document):
        yield "Model", _model(document)
    yield "High-level reflection", _slow(document)
    yield "Judge", _judge(document)
    yield "Journal", _journal(document)


def asks_models(document: Document) -> bool:
    """Whether any part of the run may ask a language model."""
    return bool(document["reflection"] == "full" or document["strategist"]["name"] != "rules")


def _ticks(ticks: Document, timing: Document) -> Rows:
    speed = "" if timing["bars_per_s"] is None else f"   {timing['bars_per_s']:,.0f} bars/s"
    yield "bars validated", f"{ticks['bars_validated']:,}{speed}"
    yield "events", counts(ticks["events"])
    forbidden = (ticks["llm_calls"], ticks["memory_reads"], ticks["policy_writes"])
    yield "inside the tick path", "model calls {}, memory reads {}, policy writes {}".format(*forbidden)


def _policy(document: Document) -> Rows:
    policy, bars = document["policy_loop"], document["tick_validation"]["bars_validated"]
    share = percent(policy["evaluations"] / bars) if bars else "-"
    yield from strategist_rows(document["strategist"])
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


def strategist_rows(strategist: Document) -> Rows:
    """Who answered where a model is the strategist, and how often the rules did instead."""
    if strategist["name"] != "rules":
        yield "strategist", f"{strategist['name']}   answers by {counts(strategist['answers'])}"
        yield "rules instead of it", counts(strategist["fallbacks"])


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
