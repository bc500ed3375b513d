"""High-level reflection: from a batch of resolved trades to one typed report.

It reads what was known at the request's clock and nothing else, tests only what the playbook files declared,
and recommends no more than the gate allows. It writes nothing: the report goes to the judge as evidence.
Started by the cadence, never from a tick.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from prompts import load_prompt
from schemas.canonical import datetime_to_ns
from schemas.episode import Episode
from schemas.errors import InvariantViolation
from schemas.invocation import ReflectionInvocationMeta
from schemas.playbook import PlaybookDefinition
from schemas.settings import GateSettings, Settings
from schemas.slow_reflection import (
    ClusterFinding,
    GridTrial,
    HighLevelReflectionReport,
    HighLevelReflectionRequest,
    UntradedSignal,
)
from schemas.trials import count_ledger
from schemas.vocabulary import EvidenceGrade, InvocationOutcome
from services.evidence.run_facts import RunFacts
from services.high_level.cluster_figures import (
    Population,
    check_expectations,
    count_failures,
    miss_texts,
    regime_marginals,
    split_population,
    unclassified_share,
)
from services.high_level.clusters import Measure, measure
from services.high_level.drift import (
    DriftInputs,
    decay_alarms,
    decay_levels,
    regime_shift,
    regime_text,
)
from services.high_level.fire_quality import fire_quality, fire_texts
from services.high_level.grading import grade_clusters, shrunken_by_symbol
from services.high_level.grid import GridEvaluator, Winner, best_candidate, run_grid
from services.high_level.hypotheses import declared_hypotheses
from services.high_level.narrative_reply import PROMPT_NAME, Narrative
from services.high_level.recommendations import (
    Context,
    playbooks_to_adjust,
    recommend,
    strongest,
)
from services.high_level.report_sections import rule_narrative
from services.high_level.trade_bounds import reference_of
from services.model_calls.wording import Wording, Wordings
from services.statistics.multiplicity import Family, register_family


@dataclass(frozen=True)
class _Search:
    """Grid trials of this report and the best candidate of each playbook that was searched."""

    trials: tuple[GridTrial, ...]
    winners: dict[str, Winner | None]


class ReportNarrator(Protocol):
    """Who writes the narrative of a report with a model."""

    async def tell(self, report: HighLevelReflectionReport, facts: RunFacts, wording: Wording) -> Narrative:
        """The narrative; `facts` call the symbols by their names, `wording` by those that the model sees."""
        ...


class HighLevelReflectionService:
    """One slow reflection per call; holds settings and collaborators, and no state between calls."""

    def __init__(
        self,
        settings: Settings,
        grid: GridEvaluator | None = None,
        narrator: ReportNarrator | None = None,
        timer: Callable[[], float] = time.perf_counter,
        wordings: Wordings | None = None,
    ) -> None:
        self._settings = settings
        self._grid = grid
        self._narrator = narrator
        self._timer = timer
        self._wordings = wordings or Wordings()

    @property
    def _gate(self) -> GateSettings:
        return self._settings.gate

    def by_rules(self) -> "HighLevelReflectionService":
        """The same reflection without a model: the rule text is the narrative."""
        return HighLevelReflectionService(self._settings, self._grid, timer=self._timer)

    async def reflect(
        self,
        request: HighLevelReflectionRequest,
        episodes: Sequence[Episode],
        definitions: Sequence[PlaybookDefinition],
    ) -> HighLevelReflectionReport:
        """The report on a request; `definitions` are the versions now in force.

        Raises:
            InvariantViolation: something in the batch was not known at `request.known_at`, or the episodes
            are not the
                ones that the request names.
        """
        started = self._timer()
        _check_point_in_time(request, episodes, definitions)
        population = split_population(episodes, definitions, request.epoch_starts, request.same_rules)
        report = self._report(request, population, {item.id: item for item in definitions})
        shown = await self._narrate(report, episodes, definitions)
        latency = (self._timer() - started) * 1_000.0
        meta = ReflectionInvocationMeta(
            cadence="high_level",
            source=f"slot {request.slot}",
            outcome=InvocationOutcome.RAN if shown.refused is None else InvocationOutcome.DEGRADED,
            skip_reason=shown.refused,
            batch_size=len(episodes),
            tier="consolidated" if shown.by_model else "deterministic",
            latency_ms=latency,
        )
        return report.model_copy(
            update={
                "sections": shown.sections,
                "narrative": shown.text,
                "meta": meta,
                "latency_ms": int(latency),
                "fact_check": shown.checked,
                "deliberation": shown.deliberation,
            }
        )

    async def _narrate(
        self,
        report: HighLevelReflectionReport,
        episodes: Sequence[Episode],
        definitions: Sequence[PlaybookDefinition],
    ) -> Narrative:
        """The narrative of a report, of the rules or of a model."""
        facts = RunFacts.of_report(report, episodes, definitions)
        if self._narrator is None:
            return rule_narrative(report, facts)
        return await self._narrator.tell(report, facts, self._wordings.at(report.known_at))

    def _report(
        self,
        request: HighLevelReflectionRequest,
        population: Population,
        definitions: Mapping[str, PlaybookDefinition],
    ) -> HighLevelReflectionReport:
        declared = declared_hypotheses(
            definitions.values(),
            [request.timeframe, *(item.timeframe for item in population.tested)],
            {item.playbook_id for item in population.tested},
        )
        measures = measure(
            population.tested,
            self._gate,
            definitions,
            request.known_at,
            starts=request.epoch_starts,
            open_entries=request.open_entries,
            most_trades=self._settings.envelope.max_entries_per_block,
            declared={*declared, *request.tested_before},
        )
        findings = self._grade(measures, declared, (), definitions, request)
        search = self._search(request, findings, definitions)
        if search.trials:
            findings = self._grade(measures, declared, search.trials, definitions, request)
        alarms = decay_alarms(measures)
        inputs = DriftInputs.model_validate(request.drift_inputs)
        fires, checks = fire_quality(inputs.fires), check_expectations(measures, definitions)
        failures, shift = count_failures(population.live), regime_shift(inputs, population.live)
        recommendations = recommend(
            Context(
                findings,
                definitions,
                search.winners,
                frozenset(alarm.playbook_id for alarm in alarms),
                request.structural_allowed,
                request.shadow_trials,
                self._settings.envelope.risk_fraction,
                self._settings.judge.promotion_minimum_trades,
                self._gate.regime_minimum,
            )
        )
        return HighLevelReflectionReport(
            window_start=request.window_start,
            window_end=request.window_end,
            n_episodes=len(population.live),
            regime_cluster_summary=regime_marginals(population.live, self._gate),
            playbook_findings=tuple(
                item.payload() for item in findings if item.regime is None and item.timeframe is None
            ),
            drift_findings=(
                *(alarm.text() for alarm in alarms),
                regime_text(shift),
                *fire_texts(fires),
            ),
            recommendations=recommendations,
            evidence_refs=tuple(sorted({ref for item in recommendations for ref in item.evidence_refs})),
            clusters=findings,
            shrunken_means=shrunken_by_symbol(measures),
            expectation_misses=miss_texts(checks),
            failure_modes=failures,
            unclassified_share=unclassified_share(failures),
            grid_trials=search.trials,
            untraded=summarise_untraded(request.untraded_signals),
            judge_actions_seen=request.judge_actions,
            judge_history=request.judge_history,
            decay=decay_levels(measures),
            expectations=checks,
            fire_quality=fires,
            regime_shift=shift,
            shadow_trials=request.shadow_trials,
            deferred_seen=tuple(item.text for item in request.deferred_items),
            recommended_action=strongest(recommendations),
            insufficient_sample=all(item.grade is EvidenceGrade.INSUFFICIENT_SAMPLE for item in findings),
            epochs=request.epochs,
            ledger=request.ledger,
            excluded=population.excluded,
            narrative="",
            prompt_hash=load_prompt(PROMPT_NAME).hash if self._narrator else None,
            request_hash=request.content_hash,
            known_at=request.known_at,
            meta=ReflectionInvocationMeta(
                cadence="high_level", source=f"slot {request.slot}", outcome=InvocationOutcome.RAN
            ),
        )

    def _grade(
        self,
        measures: Sequence[Measure],
        declared: Sequence[str],
        trials: Sequence[GridTrial],
        definitions: Mapping[str, PlaybookDefinition],
        request: HighLevelReflectionRequest,
    ) -> tuple[ClusterFinding, ...]:
        tried = (trial.hypothesis for trial in trials)
        members = sorted({*declared, *request.tested_before, *tried})
        family: Family | None = None
        if members:
            before = count_ledger(request.ledger)
            family = register_family(
                members,
                self._gate.q,
                epochs=request.epochs,
                tried_before=before.configurations,
                hypotheses_before=before.hypotheses,
            )
        return grade_clusters(measures, family, self._gate, definitions, trials, request.known_at)

    def _search(
        self,
        request: HighLevelReflectionRequest,
        findings: tuple[ClusterFinding, ...],
        definitions: Mapping[str, PlaybookDefinition],
    ) -> _Search:
        trials: list[GridTrial] = []
        winners: dict[str, Winner | None] = {}
        if self._grid is None or not request.structural_allowed:
            return _Search((), {})
        start_ns = datetime_to_ns(request.window_start)
        for finding in playbooks_to_adjust(findings, definitions):
            definition = definitions[finding.playbook_id]
            reference = reference_of(definition, self._gate)
            tried = run_grid(
                definition, self._grid, self._gate, reference, request.timeframe, start_ns, request.known_at
            )
            trials += tried
            winners[definition.id] = best_candidate(definition, tried, self._gate.minimum_trades)
        return _Search(tuple(trials), winners)


def summarise_untraded(signals: Sequence[UntradedSignal]) -> dict[str, Any]:
    """Signals that never became a position, by reason, with their counterfactual mean; never tested."""
    groups: dict[str, list[UntradedSignal]] = {}
    for signal in signals:
        groups.setdefault(signal.reason, []).append(signal)
    summary = {}
    for reason, members in sorted(groups.items()):
        known = sorted(item.counterfactual_r for item in members if item.counterfactual_r is not None)
        mean = round(sum(known) / len(known), 9) if known else None
        summary[reason] = {"n": len(members), "resolved": len(known), "mean_counterfactual_r": mean}
    return summary


def _check_point_in_time(
    request: HighLevelReflectionRequest,
    episodes: Sequence[Episode],
    definitions: Sequence[PlaybookDefinition],
) -> None:
    known_at = request.known_at
    late = [item.episode_id for item in episodes if item.known_at > known_at]
    late += [f"untraded {item.symbol}" for item in request.untraded_signals if item.known_at > known_at]
    late += [f"deferred {item.symbol}" for item in request.deferred_items if item.raised_at > known_at]
    late += [item.id for item in definitions if item.known_at is not None and item.known_at > known_at]
    if datetime_to_ns(request.window_end) > known_at:
        late.append(f"window_end {request.window_end.isoformat()}")
    if late:
        raise InvariantViolation(f"a reflection as of {known_at} was given the future: {late[:3]}")
    given, named = [item.episode_id for item in episodes], list(request.episode_ids)
    if sorted(given) != sorted(named) or len(set(given)) != len(given):
        odd = sorted(set(given) ^ set(named))[:3]
        raise InvariantViolation(
            f"the batch is not the one the request names: {odd or 'an episode is given twice'}"
        )
