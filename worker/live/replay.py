"""The script of a stored paper run: everything that it took in, from the store alone.

Its bars, the anomalies of its feed, the bars at which answers arrived, what was late and what the operator
asked all stand there: nothing is measured, no model is asked, no file is read.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from schemas.timeframes import close_in_run
from services.feeds.port import BarRow
from services.journal.writer import JournalWriter
from worker.live.recovery import Player, read_script
from worker.live.stepper import BarAxes, LiveStepper
from worker.models import Models, Overrides, RecordedPast
from worker.runs.progress import Progress
from worker.runs.replay import stored_cassette
from worker.runs.run_result import RunResult
from worker.runs.trials import GivenTrial, ledger_of_run

if TYPE_CHECKING:
    from services.store import RunRecord, Store


@dataclass(frozen=True)
class PaperScript:
    """The script of a paper run; `definitions` None loads the configured playbooks."""

    settings: Settings
    store: "Store"
    record: "RunRecord"
    definitions: Sequence[PlaybookDefinition] | None = None

    async def find_end(self) -> int | None:
        """Its bars are stored with its rows: they end together."""
        return None

    async def play(
        self, journal: JournalWriter, until: int | None, progress: Progress | None
    ) -> RunResult | None:
        """Play what the store holds of the run."""
        stepper, player = await self._stepper(journal)
        async for rows in player.play(stepper, self._rows(until)):
            if progress is not None:
                progress(rows, None)
        if not stepper.begun:
            return None
        if until is None and self.record.status == "finished":
            stepper.session.finish()
        return RunResult(stepper.session, stepper.timing)

    async def _rows(self, until: int | None) -> AsyncIterator[BarRow]:
        data = self.record.data
        async for row in self.store.trading.rows(self.record.run_id):
            if until is not None and close_in_run(row.label, data) > until:
                return
            yield row

    async def _stepper(self, journal: JournalWriter) -> tuple[LiveStepper, Player]:
        """A stepper for the run, and the player of its script.

        Its own journal answers for its models: no file of replies is played, and none is written.
        """
        silent = self.settings.runtime.model_copy(update={"llm": "live", "cassette": None})
        settings = self.settings.model_copy(update={"runtime": silent})
        past = None
        if settings.uses_models:
            past = RecordedPast(await stored_cassette(self.store, self.record), lambda: True)
        player, data = Player(await read_script(self.store, self.record.run_id)), self.record.data
        stepper = LiveStepper(
            settings,
            BarAxes(tuple(data["symbols"]), data["timeframe"], data["label"], data.get("zone", "UTC")),
            journal,
            lock_step=data["lock_step"],
            ask=player.ask,
            definitions=self.definitions,
            own=Overrides(Models(), past=past),
            trial=GivenTrial(await ledger_of_run(self.store, self.record)),
        )
        return stepper, player
