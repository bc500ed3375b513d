"""The model judge: it may drop actions that the rules accepted, and nothing else.

Its reply is a closed wire model: typed reasons, and ids of the accepted actions that stay. It cannot add an
action, change one or bring a refused one back; such a reply counts for nothing, as does none, and the verdict
of the rules stands with the reason in `fallback`.
"""

from collections.abc import Sequence
from typing import Any

from agents.judge_replanning import decision_of
from agents.judge_reply import (
    DROP_WORDS,
    PROMPT,
    DropClaim,
    Fallback,
    KeepReply,
    ReplyFault,
    names_of,
    read_kept,
)
from prompts import load_prompt
from schemas.claims import Section
from schemas.evidence_plan import RecommendationEvidence
from schemas.judge import JudgeAction, RefusedAction, ReplanVerdict
from schemas.slow_reflection import HighLevelReflectionReport
from services.claims.sections import WrittenText
from services.deliberation.claim_critics import ClaimText
from services.evidence.run_facts import RunFacts
from services.model_calls.asking import NoReply, ask
from services.model_calls.language_model import LanguageModel, ModelReply
from services.model_calls.quoting import visible
from services.model_calls.wording import PLAIN, Wording

MAX_TOKENS = 1_500
DEADLINE_MS = 60_000.0
DROPPED = "dropped_by_model"
EVIDENCE = "What tools read of the run behind the recommendations, as part of the report (JSON):"
NOTHING_HOLDS = "no reason that it gave holds against the report"
REASONS = "reasons"


def by_rules(verdict: ReplanVerdict, why: str) -> ReplanVerdict:
    """The verdict of the rules, with the reason why no model took part in it."""
    return verdict.model_copy(update={"fallback": why})


async def weigh(
    verdict: ReplanVerdict,
    report: HighLevelReflectionReport,
    model: LanguageModel,
    deadline_ms: float = DEADLINE_MS,
    wording: Wording = PLAIN,
    facts: RunFacts | None = None,
    evidence: Sequence[RecommendationEvidence] = (),
) -> ReplanVerdict:
    """The verdict of the rules less the actions that the model dropped.

    It is shown the report and the `evidence` that was read beside it.

    Where the model did not answer, or not in the way it was asked, the verdict of the rules with `fallback`.
    Its reasons are claims that code holds against `facts`, those of the report, and writes; what is not so is
    left out.
    """
    if not verdict.actions:
        return by_rules(verdict, Fallback.NOTHING_TO_DROP)
    reply = await _ask(verdict, report, model, deadline_ms, wording, evidence)
    if isinstance(reply, NoReply):
        return by_rules(verdict, reply.kind)
    try:
        kept = read_kept(reply.text, len(verdict.actions), len(verdict.refused))
    except ReplyFault as fault:
        return by_rules(verdict, str(fault))
    text = ClaimText(
        facts or RunFacts.of_report(report, (), ()),
        {called: name for name, called in wording.symbols.items()},
        (REASONS,),
    )
    claims = tuple(claim for claim in kept.reasons if not isinstance(claim, DropClaim))
    named = text.name([Section(topic=REASONS, claims=claims, comment=kept.comment)])
    written = text.write(named)
    decided = _without_the_others(verdict, kept, _word_reasons(written, kept, verdict), reply.model)
    return decided.model_copy(
        update={
            "fact_check": text.check(named),
            "comment": next((part.comment for part in written.sections), None),
        }
    )


def _word_reasons(written: WrittenText, reply: KeepReply, verdict: ReplanVerdict) -> str:
    """The reasons in words: claims that hold, then why each action that was offered is dropped."""
    lines = [statement.text for section in written.sections for statement in section.statements]
    dropped = set(names_of("a", len(verdict.actions))) - set(reply.keep)
    lines += [
        f"The model drops {reason.action}, giving as its reason: {DROP_WORDS[reason.because]}."
        for reason in reply.reasons
        if isinstance(reason, DropClaim) and reason.action in dropped
    ]
    return " ".join(lines) or NOTHING_HOLDS


async def _ask(
    verdict: ReplanVerdict,
    report: HighLevelReflectionReport,
    model: LanguageModel,
    deadline_ms: float,
    wording: Wording,
    evidence: Sequence[RecommendationEvidence],
) -> ModelReply | NoReply:
    prompt = load_prompt(PROMPT)
    actions = zip(names_of("a", len(verdict.actions)), verdict.actions, strict=True)
    refused = zip(names_of("r", len(verdict.refused)), verdict.refused, strict=True)
    request = prompt.render(
        actions=wording.json([{"id": name, **action.payload()} for name, action in actions]),
        refused=wording.json([{"id": name, **refusal.payload()} for name, refusal in refused]),
        report=wording.json(report.payload()),
    ) + _describe_evidence(evidence, wording)
    return await ask(
        model, system=prompt.system, prompt=request, max_tokens=MAX_TOKENS, deadline_ms=deadline_ms
    )


def _describe_evidence(evidence: Sequence[RecommendationEvidence], wording: Wording) -> str:
    """The calls that were made with their results, quoted; nothing where nothing was read."""
    calls = [
        {
            "about": {
                "playbook_id": recommendation.playbook_id,
                "regime": recommendation.regime,
                "kind": recommendation.kind,
            },
            "tool": call.method,
            "params": dict(call.params),
            "result": call.reply.text if call.reply.is_error else call.reply.content,
        }
        for recommendation in evidence
        for call in recommendation.gathered.calls
    ]
    return f"\n\n{EVIDENCE}\n{wording.json(calls)}" if calls else ""


def _without_the_others(verdict: ReplanVerdict, reply: KeepReply, text: str, model: str) -> ReplanVerdict:
    named = dict(zip(names_of("a", len(verdict.actions)), verdict.actions, strict=True))
    kept = tuple(action for name, action in named.items() if name in reply.keep)
    reason = visible(text)
    dropped = [_drop(action, reason) for name, action in named.items() if name not in reply.keep]
    update: dict[str, Any] = {
        "decision": decision_of(kept),
        "actions": kept,
        "refused": (*verdict.refused, *dropped),
        "reason": f"{verdict.reason}; the model kept {len(kept)} of {len(named)}: {reason}",
        "model": model,
        "prompt_hash": load_prompt(PROMPT).hash,
    }
    return verdict.model_copy(update=update)


def _drop(action: JudgeAction, reason: str) -> RefusedAction:
    return RefusedAction(action=action, code=DROPPED, reason=reason)
