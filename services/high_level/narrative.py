"""The readable part of a report: written by rules from computed numbers, optionally retold by a model.

Numbers never come from a model. Every claim of a model's text is held against the report and its trades; the
model is told what does not hold and asked again, and what is left after the last round is struck. Where
nothing is left, or an id is cited that was not offered, the rule text stands and the reason is kept.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from schemas.canonical import canonical_json
from schemas.fact_check import FactCheck
from schemas.reflection import ClusterFinding, HighLevelReflectionReport
from schemas.settings.reflection import QualitySettings
from schemas.vocabulary import EvidenceGrade
from services.deliberation.fact_check import check_facts
from services.evidence.run_facts import RunFacts
from services.high_level.interval_text import interval_text
from services.high_level.report_lines import excluded_line, ledger_line, recommendation_line, trial_line
from services.model_calls.asking import NoReply, ask
from services.model_calls.quoting import quoted_json
from services.model_calls.reply_format import ReplyFormat
from services.model_calls.reply_text import MalformedReply, is_read, read_reply
from services.model_calls.wording import PLAIN, Wording
from services.ports import LanguageModel

NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
ID = re.compile(r"\b[0-9a-f]{12,64}\b")
MAX_TOKENS = 1_500
MAX_CHARACTERS = 4_000
DEADLINE_MS = 60_000.0
SHOWN = 12
QUOTED = "deferred_seen"
CORRECTION = (
    "\n\nYour last answer was not kept: these claims of it do not stand in the report (JSON). `would_pass` "
    "lists values that do.\n{claims}\nAnswer again without them."
)


class Prompt(Protocol):
    """A prompt template: fixed instructions, and a request to fill."""

    @property
    def hash(self) -> str:
        """Content hash of the template."""
        ...

    @property
    def system(self) -> str:
        """The instructions."""
        ...

    def render(self, **values: str) -> str:
        """The request with its placeholders filled."""
        ...


class NarrativeReply(BaseModel):
    """The closed wire model of the reply."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    narrative: str = Field(min_length=1, max_length=MAX_CHARACTERS)
    cited_evidence: tuple[str, ...]


_REPLY = TypeAdapter(NarrativeReply)


@dataclass(frozen=True)
class Narrative:
    """The text that stands; `refused` says why a model's text, or a part of it, does not."""

    text: str
    by_model: bool
    refused: str | None = None
    checked: FactCheck | None = None


def _line(finding: ClusterFinding) -> str:
    where = f" in {finding.regime}" if finding.regime else ""
    mean = "no mean" if finding.mean_r is None else f"mean {finding.mean_r:+.2f}R"
    edges = (
        ""
        if finding.mean_r is None
        else f" {interval_text(finding.lower_r, finding.upper_r, finding.interval_kind)}"
    )
    evidence = "no e-value" if finding.e_value is None else f"E {finding.e_value:.4g}"
    effect = finding.smallest_detectable_r
    detectable = "nothing detectable yet" if effect is None else f"detectable {effect:.2f}R"
    return (
        f"{finding.playbook_id}{where}: {finding.grade}, n {finding.n}, blocks {finding.blocks}, "
        f"{mean}{edges}, {evidence}, {detectable}"
    )


def _order(finding: ClusterFinding) -> tuple[int, float, str, str]:
    grades = list(EvidenceGrade)
    return (
        -grades.index(finding.grade),
        -(finding.e_value or 0.0),
        finding.playbook_id,
        finding.regime or "",
    )


def write_narrative(report: HighLevelReflectionReport) -> str:
    """Plain text of a report: what was seen, how much it shows, what drifted, what is recommended."""
    window = f"{report.window_start:%Y-%m-%d} to {report.window_end:%Y-%m-%d}"
    lines = [f"{report.n_episodes} resolved trades, {window}."]
    if report.insufficient_sample:
        lines.append("insufficient_sample: no cluster has enough trades; what follows is monitoring only.")
    lines += [line for line in (ledger_line(report), excluded_line(report)) if line is not None]
    shown = [finding for finding in report.clusters if finding.timeframe is None]
    lines += _section("Clusters", [_line(finding) for finding in sorted(shown, key=_order)[:SHOWN]])
    lines += _section("Failure modes", _failures(report.failure_modes))
    lines += _section("Expectation misses", report.expectation_misses)
    lines += _section("Drift", report.drift_findings)
    lines += _section("Grid trials", [trial_line(trial) for trial in report.grid_trials])
    lines += _section("Recommendations", [recommendation_line(item) for item in report.recommendations])
    return "\n".join(lines)


def _failures(modes: Mapping[str, int]) -> list[str]:
    losers = sum(modes.values())
    return [f"{mode}: {count} of {losers} losers" for mode, count in sorted(modes.items())]


def _section(title: str, rows: Sequence[str]) -> list[str]:
    return [f"{title}:", *(f"- {row}" for row in rows)] if rows else []


def _as_number(token: str) -> float:
    return abs(float(token.replace(",", "")))


def unknown_numbers(text: str, source: str) -> tuple[str, ...]:
    """Ids and numbers of `text` that do not occur in `source`, ids first, each in order of appearance.

    Numbers are compared by absolute value. Digits inside an id are no numbers.
    """
    ids = [token for token in ID.findall(text) if token not in source]
    known = {_as_number(token) for token in NUMBER.findall(ID.sub(" ", source))}
    numbers = [token for token in NUMBER.findall(ID.sub(" ", text)) if _as_number(token) not in known]
    return (*ids, *numbers)


def read_narrative(reply: str, offered: Sequence[str]) -> Narrative:
    """A model's reply as a narrative, or the reason why it is none (`text` is then empty)."""
    try:
        answer = read_reply(reply, _REPLY)
    except MalformedReply as error:
        return Narrative("", False, str(error))
    if not answer.narrative.strip():
        return Narrative("", False, "the narrative has no words")
    if not set(answer.cited_evidence) <= set(offered):
        return Narrative("", False, "the reply cites evidence that was not offered")
    return Narrative(answer.narrative.strip(), True)


def with_known_numbers(told: Narrative, source: str) -> Narrative:
    """The narrative if each of its numbers is some number of `source`; else why it is none."""
    invented = unknown_numbers(told.text, source) if told.by_model else ()
    if not invented:
        return told
    return Narrative("", False, f"numbers that no computation gave: {', '.join(invented[:5])}")


def with_facts_that_hold(told: Narrative, facts: RunFacts) -> Narrative:
    """The narrative without the sentences that do not hold; `refused` counts their claims."""
    if not told.by_model:
        return told
    checked = check_facts(told.text, facts)
    if checked.holds:
        return Narrative(told.text, True, None, checked)
    counted = ", ".join(f"{count} {verdict}" for verdict, count in checked.counts.items() if count)
    why = f"claims that do not hold: {counted}"
    return Narrative(checked.struck_text, bool(checked.struck_text), why, checked)


FORM = ReplyFormat("high_level_reflection", NarrativeReply, lambda text: is_read(text, _REPLY))


async def tell(
    report: HighLevelReflectionReport,
    prompt: Prompt,
    model: LanguageModel | None,
    facts: RunFacts,
    settings: QualitySettings,
    wording: Wording = PLAIN,
) -> Narrative:
    """The narrative of a report whose `narrative` already holds the rule text.

    Without a model, or when the model fails or nothing of its text holds, the rule text stands. What the
    model may say is what it was shown, in the same words; `facts` calls the symbols what the model does.
    """
    if model is None:
        return Narrative(report.narrative, False)
    body = wording.worded(report.payload())
    offered = sorted({ref for finding in report.clusters for ref in finding.evidence})
    request = prompt.render(report=quoted_json(body), evidence=quoted_json(offered))
    # A deferred need is a model's own text: a number in it was computed by nobody.
    shown = {key: body[key] for key in body if key != QUOTED}
    source = canonical_json({"report": shown, "symbols": list(wording.symbols.values())})
    told, asked = Narrative("", False), request
    for _ in range(settings.rounds):
        reply = await ask(
            model, system=prompt.system, prompt=asked, max_tokens=MAX_TOKENS, deadline_ms=DEADLINE_MS
        )
        if isinstance(reply, NoReply):
            failed = Narrative(report.narrative, False, f"model failed: {reply.detail}")
            told = told if told.by_model else failed
            break
        read = read_narrative(reply.text, offered)
        if settings.fact_check == "numbers":
            told = with_known_numbers(read, source)
            break
        latest = with_facts_that_hold(read, facts)
        told = told if told.by_model and not latest.by_model else latest
        if latest.checked is None or latest.refused is None:
            break
        asked = request + CORRECTION.format(claims=quoted_json(_claims_to_mend(latest.checked)))
    return told if told.by_model else Narrative(report.narrative, False, told.refused, told.checked)


def _claims_to_mend(checked: FactCheck) -> list[dict[str, Any]]:
    """What a model is told of each claim that does not hold."""
    return [
        {"said": claim.said, "in": claim.text, "verdict": claim.verdict, "would_pass": claim.would_pass}
        for claim in checked.failures
    ]


def fact_check_row(report: HighLevelReflectionReport, report_id: str) -> dict[str, Any]:
    """The journal row of a check: whether the model's text stands, and every claim that did not hold."""
    checked = report.fact_check or FactCheck(known_at=report.known_at)
    return {
        "report_id": report_id,
        "text": "narrative",
        "kept": report.meta.tier == "consolidated",
        "counts": checked.counts,
        "claims": [claim.payload() for claim in checked.failures],
    }
