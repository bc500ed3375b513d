"""The rows of a run that goes on, of the kinds that its judge's tools read, and the run as of one of them.

Of a report only the clusters are kept. Rows are read when a tool is asked, each once.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

from schemas.canonical import canonical_json
from schemas.settings import Settings
from services.evidence.tool_arguments import LATEST
from services.evidence_tools.playbook_history import KINDS as OF_VERSIONS
from services.evidence_tools.run_view import RunView
from services.journal.chain import JournalRow
from services.journal.index import Event, JournalIndex

REPORT = "high_level_report"
KINDS = OF_VERSIONS | {"genesis", "exit_filled", REPORT}


class EvidenceBuffer:
    """Rows of one run, in order of sequence; they only grow.

    Attributes:
        rows: of the kinds that are kept.
    """

    def __init__(self, settings: Settings) -> None:
        self.rows: list[JournalRow] = []
        self._settings = settings
        self._view: RunView | None = None
        self._taken = 0
        self._latest: list[int] = []  # the latest moment of all rows up to each

    def add(self, row: JournalRow, payload: Mapping[str, Any] | None = None) -> None:
        """Take the next row; `payload` is what its text was written from, None reads the text."""
        if row.kind in KINDS:
            text = _clusters(row, payload) if row.kind == REPORT else row.payload
            self.rows.append(
                JournalRow(row.seq, row.ts_event, row.known_at, row.kind, row.symbol, text, None, "", "")
            )

    def remember(self, rows: Iterable[JournalRow]) -> None:
        """Rows of before, as they were kept."""
        self.rows.extend(rows)

    def as_of(self, seen: int, known_at: int) -> RunView:
        """The run as of its first `seen` rows, without what was known later than `known_at`, ns."""
        for row in self.rows[len(self._latest) :]:
            self._latest.append(max(row.known_at, self._latest[-1] if self._latest else row.known_at))
        count = bisect_left(self.rows, seen, key=lambda row: row.seq)
        count = bisect_right(self._latest, known_at, hi=count)
        if count < len(self.rows):
            return self._build_view(self.rows[:count], known_at)
        new = [_event(row) for row in self.rows[self._taken :]]
        self._taken = len(self.rows)
        if self._view is None:
            self._view = self._build_view((), known_at)
        self._view.grow(new, known_at)
        return self._view

    def _build_view(self, rows: Iterable[JournalRow], known_at: int) -> RunView:
        index = JournalIndex()
        for row in rows:
            index.add(_event(row))
        return RunView(LATEST, index, known_at, self._settings)


def _event(row: JournalRow) -> Event:
    return Event(row, json.loads(row.payload))


def _clusters(row: JournalRow, payload: Mapping[str, Any] | None) -> str:
    if payload is None:
        fields = json.loads(row.payload)
        clusters = fields["report"]["clusters"]
    else:
        fields, clusters = payload, payload["report"].payload()["clusters"]
    return canonical_json({"report_id": fields["report_id"], "report": {"clusters": clusters}})
