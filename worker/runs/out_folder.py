"""`--out DIR`: summary.json, trades.csv, equity.csv and reports/, each file replaced whole or not at all."""

import csv
import io
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.canonical import canonical_json, ns_to_datetime
from schemas.episode import Episode
from schemas.errors import ConfigError, InvariantViolation
from services.evidence_tools.report_rows import KINDS, sections_with_rows
from services.journal.index import Event, JournalIndex
from services.model_calls.quoting import spreadsheet_text, visible
from services.slow_loop.evidence_rows import told_evidence
from worker.pages.run_marks import ENTRY_KINDS, document_of_entry, report_entries
from worker.runs.store_run import RecordedRun

if TYPE_CHECKING:
    from services.store import Store
    from services.store.reports import OnDemandReport, StoredReport

REPORT_FILE = re.compile(r"[0-9a-f]{16}\.(json|md|html)|index\.html")
ANOTHER = "name another folder"
TRADE_TIMES = ("entry_label", "exit_label", "known_at")


async def stored_reports(store: "Store", run_id: str) -> list[dict[str, Any]]:
    """Every high-level report of a run, as `report_entries` gives them."""
    rows = store.journal.rows(run_id, kinds=ENTRY_KINDS)
    entries = report_entries([(row, json.loads(row.payload)) async for row in rows])
    await look_up_rows(store, run_id, entries)
    return entries


async def look_up_rows(store: "Store", run_id: str, entries: Iterable[dict[str, Any]]) -> None:
    """Give each statement of the reports the rows that it stands on."""
    index = JournalIndex()
    async for row in store.journal.rows(run_id, kinds=KINDS):
        index.add(Event(row, json.loads(row.payload)))
    for entry in entries:
        entry["report"]["sections"] = sections_with_rows(entry["report"], index)


def attached_entry(one: "OnDemandReport | StoredReport") -> dict[str, Any]:
    """A report beside the journal, on demand or of a worker, as `stored_reports` gives the others."""
    calls = getattr(one, "calls", ())  # of a worker's, nothing says what was read for it
    return {
        "report_id": one.report_id,
        "request_hash": one.report.request_hash,
        "report": json.loads(canonical_json(one.report.payload())),
        "verdict": None if one.verdict is None else json.loads(canonical_json(one.verdict.payload())),
        "evidence": told_evidence((call["kind"], call["payload"]) for call in calls).get(one.report_id, []),
    }


@dataclass(frozen=True)
class OutFolder:
    """The folder a run is written to."""

    path: Path

    def check(self) -> None:
        """Make sure that the folder can be written, without leaving a trace.

        Raises:
            ConfigError: it is no folder, or it cannot be written.
        """
        nearest = next(parent for parent in (self.path, *self.path.absolute().parents) if parent.exists())
        try:
            with tempfile.TemporaryFile(dir=nearest):
                pass
        except OSError as error:
            raise self._unwritable(error) from error

    def write(self, run: RecordedRun, reports: Iterable[dict[str, Any]]) -> None:
        """Write everything; reports of an earlier run in the same folder are removed.

        Raises:
            ConfigError: the folder cannot be written; the run itself is in the store.
        """
        files = {
            "summary.json": json_text(run.document),
            "trades.csv": trades_csv(run.outcome.trades),
            "equity.csv": equity_csv(*run.outcome.equity),
        }
        files |= report_files(list(reports), run.document)
        self.write_files(files)
        try:
            for stale in (self.path / "reports").iterdir():
                if REPORT_FILE.fullmatch(stale.name) and f"reports/{stale.name}" not in files:
                    stale.unlink()
        except OSError as error:
            raise self._unwritable(error) from error

    def write_files(self, files: Mapping[str, str], advice: str = ANOTHER) -> None:
        """Write texts below the folder by their names, each whole or not at all.

        Raises:
            ConfigError: the folder cannot be written; it ends with `advice`.
        """
        try:
            for name, text in files.items():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                replace_file(self.path / name, text)
        except OSError as error:
            raise self._unwritable(error, advice) from error

    def _unwritable(self, error: OSError, advice: str = ANOTHER) -> ConfigError:
        return ConfigError(f"--out {str(self.path)!r} cannot be written ({error.strerror}): {advice}")


def replace_file(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def report_files(entries: Sequence[dict[str, Any]], run: dict[str, Any] | None = None) -> dict[str, str]:
    """Name and text of every file below `reports/`: each report three times, and a page that lists them.

    The document of the run, where there is one, heads that page.

    Raises:
        InvariantViolation: a report's id is none, and would name a file elsewhere.
    """
    from worker.pages.report_html import Links, index_html, report_html
    from worker.pages.report_markdown import report_markdown

    names = [entry["report_id"] for entry in entries]
    odd = [name for name in names if not REPORT_FILE.fullmatch(f"{name}.json")]
    if odd:
        raise InvariantViolation(f"{odd[0]!r} is no report id: the journal was changed, see `verify`")
    files = {"reports/index.html": index_html(entries, run)}
    for k, (name, entry) in enumerate(zip(names, entries, strict=True)):
        links = Links(before=names[k - 1] if k else None, after=names[k + 1] if k + 1 < len(names) else None)
        files[f"reports/{name}.json"] = json_text(document_of_entry(entry))
        files[f"reports/{name}.md"] = report_markdown(entry)
        files[f"reports/{name}.html"] = report_html(entry, entries[:k], links)
    return files


def trades_csv(trades: Sequence[Episode]) -> str:
    """One closed position a line; times as ISO UTC, text visible and never a formula of a spreadsheet."""
    names = [name for name in Episode.model_fields if name != "fingerprint"]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(names)
    for trade in trades:
        values = trade.payload()
        values |= {name: _iso(values[name]) for name in TRADE_TIMES}
        cells = (values[name] for name in names)
        writer.writerow(
            [spreadsheet_text(visible(cell)) if isinstance(cell, str) else cell for cell in cells]
        )
    return table.getvalue()


def equity_csv(times: Sequence[int], values: Sequence[float]) -> str:
    """Equity at every bar close; times as ISO UTC."""
    lines = (f"{_iso(int(ns))},{float(value)!r}\n" for ns, value in zip(times, values, strict=True))
    return "time,equity\n" + "".join(lines)


def _iso(ns: int) -> str:
    return ns_to_datetime(ns).isoformat()


def json_text(value: Any) -> str:
    """JSON as a file has it."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
