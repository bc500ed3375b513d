"""The judge asked about a report of a run: by the process that trades it, or on a rebuilt session."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError
from schemas.judge import ReplanVerdict
from schemas.playbook import PlaybookVersion
from schemas.settings import Settings
from worker.review.playbook_files import in_force
from worker.review.rebuilt import rebuilt_run
from worker.review.replan_outcome import KINDS, outcome, outcome_in_run, write_approved
from worker.review.replanning import Effect, JudgeName, apply_verdict, ask_judge, demand_model, report_now
from worker.review.report_finder import FoundReport, evidence_on, find_report
from worker.review.run_requests import queue_request, takes_requests
from worker.runs.stored_settings import stored_settings
from worker.session import Session

if TYPE_CHECKING:
    from services.store import RunRecord, Store


@dataclass(frozen=True)
class JudgedRun:
    """A run whose report is judged.

    Attributes:
        store: that holds it, with every table.
        judge: who judges; None: as the run's settings.
        write: where files go; absolute.
        data: the run's bar file, if it lies elsewhere now.
        by: who asks.
    """

    store: "Store"
    record: "RunRecord"
    judge: JudgeName | None
    write: Path | None
    data: Path | None
    by: str

    async def answer(self, found: FoundReport | None, at: int | None) -> dict[str, Any]:
        """What comes of a report; without one of a new one as of a time, ns, or the end of the run."""
        if found is not None and found.source == "run":
            return await self._find_own_verdict(found)
        if (found is None or found.verdict is None) and takes_requests(self.record):
            if at is not None:
                raise ConfigError(
                    f"run {self.record.run_id} trades: it reflects on the present; leave out --at"
                )
            return await self._queue(None if found is None else found.report_id)
        if found is None or found.verdict is None:
            self._require_judge()
        else:
            self._refuse_judge(found, found.verdict)
        return await self._judge(found, at)

    async def _queue(self, report_id: str | None) -> dict[str, Any]:
        if self.judge is not None or self.write is not None:
            raise ConfigError(
                f"run {self.record.run_id} trades: its own judge answers, and its playbooks change in it; "
                "leave out --judge and --write"
            )
        return await queue_request(self.store, self.record, "replan", {"report_id": report_id})

    async def _judge(self, found: FoundReport | None, at: int | None) -> dict[str, Any]:
        """The verdict on a report, made now or before, and its effect on the playbooks as they stood then."""
        store, run_id = self.store, self.record.run_id
        moment = at if found is None else found.known_at
        session = (rebuilt := await rebuilt_run(store, self.record, self.data, moment)).session
        if found is None:
            request, report = await report_now(rebuilt)
            await store.on_demand.put(run_id, request, report)
            found = await find_report(store, report.content_hash[:16], self.record)
        verdict, judged = await self._verdict(session, found)
        effects = apply_verdict(session, verdict, session.bars.timeframe)
        versions = session.books.registry.latest()
        document = outcome(
            verdict, effects, versions, lambda key: session.books.reader.by_hash(key).definition
        )
        return await self._document(found, judged, document, session.settings, effects, versions)

    async def _verdict(self, session: Session, found: FoundReport) -> tuple[ReplanVerdict, str]:
        """A report is judged once: the verdict that is there, or a new one, which is kept."""
        if found.verdict is not None:
            return found.verdict, "before"
        if found.source == "worker":
            raise ConfigError(
                f"report {found.report_id} waits for the judge of its worker: `thinktwice worker --once "
                f"--run {found.run_id}` lets it judge"
            )
        by = self._judge_of(session.settings)
        verdict, calls = await ask_judge(session, found.report, by, os.environ)
        on_demand = self.store.on_demand
        if await on_demand.decide(found.run_id, found.report_id, verdict, calls):
            return verdict, "now"
        kept = [
            report for report in await on_demand.of_run(found.run_id) if report.report_id == found.report_id
        ]
        return kept[0].verdict or verdict, "before"

    def _judge_of(self, settings: Settings) -> JudgeName:
        return self.judge or ("rules" if settings.judge.replan == "rules" else "model")

    def _require_judge(self) -> None:
        settings = stored_settings(self.record)
        if self._judge_of(settings) == "model":
            demand_model(settings, os.environ)

    def _refuse_judge(self, found: FoundReport, verdict: ReplanVerdict) -> None:
        by_rules = verdict.model == "rules" and verdict.fallback is None
        if self.judge is not None and (self.judge == "rules") != by_rules:
            raise ConfigError(
                f"report {found.report_id} was judged already (by {verdict.model}, verdict "
                f"{verdict.content_hash[:16]}): a report is judged once; leave out --judge to see it"
            )

    async def _find_own_verdict(self, found: FoundReport) -> dict[str, Any]:
        """What the run itself decided on its report; it is not judged, and nothing of it applied, again."""
        if found.verdict is None:
            raise ConfigError(
                f"report {found.report_id} of {found.run_id} was not judged before the run broke off"
            )
        self._refuse_judge(found, found.verdict)
        rows = self.store.journal.rows(found.run_id, kinds=KINDS, until=found.verdict.known_at)
        shown = await outcome_in_run(rows, found.verdict)
        by_hash = {version.definition.content_hash: version.definition for version in shown.history}
        versions = in_force(shown.history)
        document = outcome(found.verdict, shown.effects, versions, by_hash.__getitem__)
        settings = stored_settings(self.record)
        return await self._document(found, "in the run", document, settings, shown.effects, versions)

    async def _document(
        self,
        found: FoundReport,
        judged: str,
        outcome: dict[str, Any],
        settings: Settings,
        effects: Sequence[Effect],
        versions: tuple[PlaybookVersion, ...],
    ) -> dict[str, Any]:
        written = None
        evidence = await evidence_on(self.store, found)
        if self.write is not None:
            plan_id, files = await write_approved(
                self.store, settings, self.write, effects, versions, found, self.by
            )
            written = {"folder": str(self.write), "files": list(files), "plan_id": plan_id}
        return {
            "run_id": found.run_id,
            "report_id": found.report_id,
            "source": found.source,
            "known_at": found.known_at,
            "recommended_action": str(found.report.recommended_action),
            "insufficient_sample": found.report.insufficient_sample,
            "judged": judged,
            **outcome,
            "evidence": evidence,
            "written": written,
        }
