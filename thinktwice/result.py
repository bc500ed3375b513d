"""What a backtest gives a script: figures as a dict, everything that happened as DataFrames, and why."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.language_models.cassette import KIND, Cassette, recorded_call
from schemas.episode import Episode
from schemas.errors import ConfigError, nearest
from schemas.settings import Settings
from services.evidence_tools.report_rows import sections_with_rows
from services.journal.chain import JournalRow
from services.journal.index import FILL_KINDS, Event, JournalIndex, RecentRows, StoredEvent
from services.journal.lineage import LineageNode, trace_named
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.quoting import visible
from services.model_calls.record import REPLY
from thinktwice.boundary import trims_errors
from thinktwice.inputs import Inputs, argument_words
from thinktwice.loops import cancellable, in_own_loop
from thinktwice.stores import store_address, store_run
from trading_core.accounting import drawdowns
from trading_core.features.own import list_changed
from worker.models import Models, Overrides
from worker.pages.figures import fact_text
from worker.pages.run_picture import RunPicture
from worker.pages.text_parts import text_of
from worker.review.pictured import picture_of
from worker.runs.backtest import run_backtest
from worker.runs.model_silence import is_silent, model_silence
from worker.runs.run_result import RunResult
from worker.runs.run_text import IN_MEMORY, summary_parts
from worker.runs.signal_lines import account_lines

if TYPE_CHECKING:
    import pandas as pd

PRINTED_WIDTH = 110
TIMES = ("entry_label", "exit_label", "known_at", "bar_label", "frozen_at", "slot", "next_eligible")
FLAT = ("fingerprint",)


class BacktestResult:
    """A finished backtest.

    Times are in UTC; R multiples and returns are fractions after costs; money is in quote currency.
    """

    run_id, status = IN_MEMORY, "finished"

    def __init__(self, inputs: Inputs, own: Overrides, done: RunResult, rows: list[JournalRow]) -> None:
        self._inputs, self.rows = inputs, rows
        self._own, self._done = own, done
        self._features = inputs.own_features()

    def __reduce__(self) -> str:
        """No copy is made of it, and none goes to another process.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            "a BacktestResult holds the parts of its run, so it cannot be copied or sent to another process: "
            "take its summary or its DataFrames"
        )

    @cached_property
    def document(self) -> dict[str, Any]:
        """What `thinktwice backtest --json` prints; a run in memory has no id of a store."""
        return self._done.document(IN_MEMORY, "memory")

    @property
    def summary(self) -> dict[str, Any]:
        """The figures of `performance` in `backtest --json`; `return` is another name of `total_return`."""
        found: dict[str, Any] = self.document["performance"]
        return {"return": found["total_return"]} | found

    @cached_property
    def picture(self) -> RunPicture:
        """What a page of the run shows."""
        return picture_of(self.run_id, self.status, self._done, self.index)

    @trims_errors
    def plot(self, symbol: str | None = None) -> Any:
        """A Bokeh layout: equity and drawdown, and candles with fills, levels and findings.

        Args:
            symbol: whose candles; None: the one that was traded most.

        Raises:
            ConfigError: the run had no such symbol.
        """
        symbols = self.picture.bars.symbols
        if symbol is not None and symbol not in symbols:
            raise ConfigError(
                f"symbol {symbol!r}: the run had {', '.join(symbols)}.{nearest(str(symbol), symbols)}"
            )
        from bokeh.layouts import column

        from worker.pages.run_figures import run_figures

        return column(*run_figures(self.picture, symbol), sizing_mode="stretch_width")

    @trims_errors
    def to_html(self, path: str | Path) -> Path:
        """Write the page of the run, one file that a browser opens without a network; see `thinktwice page`.

        A file that is there stays as it was where the new one cannot be written. `~` is the home folder.

        Raises:
            ConfigError: the file cannot be written, or `path` names none.
        """
        if not isinstance(path, str | PathLike):
            raise ConfigError(f"path {path!r}: name the file to write, such as 'run.html'")
        from worker.pages.run_page import run_html
        from worker.runs.out_folder import replace_file

        file = Path(path).expanduser()
        try:
            replace_file(file, run_html(self.picture))
        except OSError as error:
            raise ConfigError(f"{str(file)!r} cannot be written: {error.strerror}") from error
        return file

    @property
    def head_hash(self) -> str:
        """Of the journal: two runs with the same one are the same row by row."""
        head: str = self.document["journal"]["head_hash"]
        return head

    @property
    def settings(self) -> Settings:
        """Of the run."""
        return self._inputs.settings

    @cached_property
    def index(self) -> JournalIndex:
        """The journal by kind and id; a row is parsed when it is looked at."""
        index, parsed = JournalIndex(), RecentRows()
        for row in self.rows:
            index.add(StoredEvent(row, parsed))
        return index

    @cached_property
    def equity(self) -> "pd.DataFrame":
        """By the close of each bar: `equity`, `gross` exposure and `drawdown`, a fraction of the peak."""
        import pandas as pd

        times, values = self._done.equity
        frame = pd.DataFrame({"equity": values, "gross": self._done.gross}, index=_utc(times))
        frame["drawdown"] = drawdowns(frame["equity"].to_numpy())
        return frame.rename_axis("time")

    @property
    def drawdown(self) -> "pd.Series[float]":
        """By the close of each bar, as a fraction of the peak so far."""
        return self.equity["drawdown"]

    @cached_property
    def trades(self) -> "pd.DataFrame":
        """Closed positions in order of exit; `fill_id` is the fill that closed each, for `why`."""
        frame = _frame(self._episodes(), columns=_names())
        frame["fill_id"] = [self._exit_of(event) for event in self.index.of_kind("episode")]
        return frame

    @property
    def episodes(self) -> "pd.DataFrame":
        """Resolved trades as lessons see them, with the cells of their regimes; see `trades`."""
        return self.trades

    @cached_property
    def findings(self) -> "pd.DataFrame":
        """What the fast reflection found, a finding a row; `status` is its word on the plan."""
        found = []
        for event in self.index.of_kind("policy_reflection"):
            result = event.payload["result"]
            for finding in result.get("findings", ()):
                payload = {name: finding[name] for name in ("check", "code", "severity", "message")}
                found.append(self._of(event) | {"status": result["status"]} | payload)
        return _frame(found, columns=("known_at", "symbol", "status", "check", "code", "severity", "message"))

    @cached_property
    def skips(self) -> "pd.DataFrame":
        """Slots at which the slow reflection did not run, with the reason."""
        return _frame(
            [self._of(event) | _simple(event.payload) for event in self.index.of_kind("slow_skip")],
            columns=("known_at", "slot", "reason", "next_eligible"),
        )

    @cached_property
    def reports(self) -> "pd.DataFrame":
        """Reports of the slow reflection with the judge's decision; `sections` are claims with rows."""
        decisions = {
            event.payload["report_id"]: event.payload["verdict"]["decision"]
            for event in self.index.of_kind("replan_verdict")
        }
        found = []
        for event in self.index.of_kind("high_level_report"):
            report, name = event.payload["report"], event.payload["report_id"]
            payload = {key: report[key] for key in ("n_episodes", "insufficient_sample", "narrative")}
            payload["sections"] = sections_with_rows(report, self.index)
            found.append(self._of(event) | {"report_id": name, "decision": decisions.get(name)} | payload)
        names = (
            "known_at", "report_id", "decision", "n_episodes", "insufficient_sample", "narrative", "sections",
        )  # fmt: skip
        return _frame(found, columns=names)

    @cached_property
    def policies(self) -> "pd.DataFrame":
        """Policies that were frozen, with the playbook that each follows."""
        found = []
        for event in self.index.of_kind("policy_frozen"):
            proposal = event.payload["policy"]["proposal"]
            payload = {name: proposal[name] for name in ("playbook_id", "direction", "conviction")}
            found.append(self._of(event) | {"policy_id": event.payload["policy_id"]} | payload)
        return _frame(
            found, columns=("known_at", "symbol", "policy_id", "playbook_id", "direction", "conviction")
        )

    @trims_errors
    def why(self, fill: str) -> "Why":
        """Everything that led to a fill, or to a stop that was moved.

        Args:
            fill: an id of `trades`, or the start of one; also of an entry or of an amendment.

        Raises:
            ConfigError: there is none, or several start so.
        """
        found = trace_named(self.index, fill) if isinstance(fill, str) else []
        if isinstance(found, list):
            known = [event.payload["fill_id"] for kind in FILL_KINDS for event in self.index.of_kind(kind)]
            what = f"no fill {fill!r}" if not found else f"{len(found)} fills start with {fill!r}"
            raise ConfigError(f"{what}: take one of `trades['fill_id']`.{nearest(str(fill), known)}")
        return Why(found)

    @trims_errors
    def verify(self) -> bool:
        """Whether the same run again, with the same parts, writes the same journal byte by byte.

        No model is asked: what was answered is played back from the journal.

        Raises:
            ConfigError: a feature of your own that it reads was defined otherwise since.
        """
        if others := list_changed(self._features):
            raise ConfigError(
                f"the run reads features that were defined otherwise since ({', '.join(others)}): "
                "define them again as they were, or run the backtest again"
            )
        again = in_own_loop(run_in_memory(self._inputs, self._own, cassette=self._answers()))
        return [row.hash for row in again.rows] == [row.hash for row in self.rows]

    @trims_errors
    def save(self, db: str | None = None) -> str:
        """Keep it in a store as a run that every command reads, with the same head hash.

        Playbooks and the bars of a DataFrame are kept with it. A strategist, a judge or critics of your own
        are not: such a run is read and its chain checked, but nothing plays it again but its script. A result
        that the store holds already is not stored again.

        Args:
            db: URL of the store, made where there is none; None: that of the settings, as the commands do.

        Returns:
            The id of the run, for `load` and for the commands.

        Raises:
            ConfigError: the URL is none.
            StoreError: the store cannot be written; then it holds nothing of the run.
        """
        address = store_address(db, self._inputs.settings)
        return in_own_loop(store_run(self._inputs, self._own.names, self.rows, self._done.document, address))

    def contained(self) -> list[str]:
        """What went wrong in the run and did not end it, in a line each."""
        shown = []
        if failures := [event.payload for event in self.index.of_kind("error")]:
            first = failures[0]
            text = f"{first['where']}: {first['type']}: {first['message']}"
            shown.append(f"{len(failures)} error(s) were contained in this run, first {text}")
        model = self.document["model"]
        failed, unread = model["calls"] - model["outcomes"].get(REPLY, 0), model["unusable"]
        if failed or unread:
            calls = (event.payload["call"] for event in self.index.of_kind(KIND))
            lost = [f", first {call['message']}" for call in calls if call["outcome"] != REPLY]
            unread_told = f"{unread} replies could not be read; rules decided there"
            question = f"{failed} of {model['calls']} calls of a model failed"
            shown.append(f"{question}{''.join(lost[:1])}; {unread_told}")
        elif is_silent(self.document):
            shown.append(f"{model_silence(self.document)}; the rules decided alone")
        return shown

    def _answers(self) -> Cassette | None:
        if not self._inputs.settings.uses_models:
            return None
        rows = (row for row in self.rows if row.kind == KIND)
        calls = [recorded_call(json.loads(row.payload), json.loads(row.telemetry or "null")) for row in rows]
        return Cassette("this run", calls)

    def _repr_html_(self) -> str:
        account, silence = (
            "".join(f"<p>{escape(line)}</p>" for line in lines)
            for lines in (
                filter(None, [model_silence(self.document), *account_lines(self.document)]),
                self._silence(),
            )
        )
        return account + self._sketch() + self._figures().to_frame("value").to_html() + silence

    def _sketch(self) -> str:
        import numpy as np

        from worker.pages.equity_sketch import equity_sketch

        return equity_sketch(np.asarray(self._done.equity[1]), self._inputs.settings.account.cash)

    def _silence(self) -> list[str]:
        """What would change that nothing was traded, the most frequent reason first, or why the run ended."""
        reasons = self.document["why_no_trade"]
        shown = [
            f"no trade: {reason['reason']} {reason['count']:,}: {argument_words(reason['remedy'])}"
            for reason in reasons
        ]
        early = (self.document.get("ended_early") or {}).get("message")
        return shown or ([] if early is None else [early])

    def __repr__(self) -> str:
        return argument_words(text_of(summary_parts(self.document), PRINTED_WIDTH))

    def _figures(self) -> "pd.Series[Any]":
        import pandas as pd

        payload = {
            name: value for name, value in self.summary.items() if not isinstance(value, Mapping | list)
        }
        return pd.Series(payload, dtype=object)

    def _episodes(self) -> Iterable[dict[str, Any]]:
        shown = (event.payload["episode"] for event in self.index.of_kind("episode"))
        return ({name: episode[name] for name in _names()} for episode in shown)

    def _exit_of(self, event: Event) -> str | None:
        policy = event.payload["episode"]["policy_id"]
        exits = self._exits.get((event.row.symbol, policy), ())
        before = [name for seq, name in exits if seq < event.row.seq]
        return before[-1] if before else None

    @cached_property
    def _exits(self) -> dict[tuple[str | None, str], list[tuple[int, str]]]:
        found: dict[tuple[str | None, str], list[tuple[int, str]]] = {}
        for event in self.index.of_kind("exit_filled"):
            key = event.row.symbol, event.payload["policy_id"]
            found.setdefault(key, []).append((event.row.seq, event.payload["fill_id"]))
        return found

    @staticmethod
    def _of(event: Event) -> dict[str, Any]:
        return {"known_at": event.row.known_at, "symbol": event.row.symbol}


@dataclass(frozen=True)
class Why:
    """The tree of reasons behind a fill; printed as an indented list."""

    root: LineageNode

    def __str__(self) -> str:
        return "\n".join(_lines(self.root, 0))

    __repr__ = __str__


def _lines(node: LineageNode, depth: int) -> Iterable[str]:
    shown = ((name, value) for name, value in node.facts.items() if value not in (None, [], {}, ""))
    facts = ", ".join(f"{name} {visible(fact_text(name, value))}" for name, value in shown)
    yield f"{'  ' * depth}{visible(node.title)}{f': {facts}' if facts else ''}"
    for child in node.children:
        yield from _lines(child, depth + 1)


def _names() -> tuple[str, ...]:
    return tuple(name for name in Episode.model_fields if name not in FLAT)


def _simple(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if not isinstance(value, Mapping | list)}


def frame_of(
    rows: Iterable[Mapping[str, Any]], *, columns: Sequence[str] | None = None, index: str | None = None
) -> "pd.DataFrame":
    """Rows of a document as a DataFrame."""
    import pandas as pd

    frame = pd.DataFrame(list(rows), columns=None if columns is None else list(columns))
    return frame if index is None else frame.set_index(index)


def _frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> "pd.DataFrame":
    """Rows as a DataFrame with these columns, moments as times in UTC."""
    import pandas as pd

    frame = pd.DataFrame(list(rows), columns=list(columns))
    for name in set(TIMES) & set(columns):
        frame[name] = _utc(frame[name])
    return frame


def _utc(times: Any) -> Any:
    import pandas as pd

    return pd.to_datetime(times, unit="ns", utc=True)


async def run_in_memory(
    inputs: Inputs,
    own: Overrides,
    progress: Callable[[int, int | None], None] | None = None,
    models: Models | None = None,
    cassette: Cassette | None = None,
) -> BacktestResult:
    """The result of a run over these inputs, its journal in memory; a cassette answers for the models."""
    sink = MemorySink()
    writer = JournalWriter(sink, inputs.settings.runtime.flush_rows)
    done = await run_backtest(
        inputs.settings, inputs.bars, writer, definitions=inputs.playbooks,
        progress=cancellable(progress), own=replace(own, models=models, cassette=cassette),
    )  # fmt: skip
    return BacktestResult(inputs, own, done, sink.rows)
