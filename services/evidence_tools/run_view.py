"""A run as of one moment: its rows up to there, and what several tools make of them, each made once."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from schemas.canonical import ns_to_datetime
from schemas.claims import FactRow
from schemas.episode import Episode
from schemas.errors import ToolRefused
from schemas.settings import Settings
from schemas.vocabulary import REGIMES
from services.evidence.selection import KnownEpisode
from services.journal.chain import JournalRow
from services.journal.index import Event, JournalIndex, JournalIndexPart, RecentRows, StoredEvent
from services.journal.lineage import TIME_FACTS
from services.slow_loop.past_runs import PastRun, PastRuns

if TYPE_CHECKING:
    from services.evidence_tools.playbook_history import PlaybookHistory

TIMES = TIME_FACTS | {
    "at",
    "slot",
    "end",
    "frozen_at",
    "amended_at",
    "first_label",
    "last_label",
    "next_eligible",
}


class RunView:
    """What a run knew at a moment. Holds no later row.

    Attributes:
        run_id: of the run.
        index: its rows.
        known_at: the moment, ns.
        settings: of the run; None where this version does not know them.
        regimes: that any market has, in order of name.
    """

    regimes = tuple(sorted(REGIMES))

    def __init__(self, run_id: str, index: JournalIndex, known_at: int, settings: Settings | None) -> None:
        self.run_id, self.index, self.known_at, self.settings = run_id, index, known_at, settings

    def grow(self, events: Iterable[Event], known_at: int) -> None:
        """Rows that came since, and the moment; what was made of those before is made further."""
        new = list(events)
        for event in new:
            self.index.add(event)
        self.known_at = known_at
        made = self.__dict__
        if "episodes" in made:
            self.episodes.extend(
                episode_of(event, self.index.made) for event in new if event.row.kind == "episode"
            )
        if "history" in made:
            self.history.take(new)
        for name in ("playbook_ids", "_exits", "newest_snapshots", "open_entries", "past_runs", "_proposed"):
            made.pop(name, None)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """Of its bars, in the order of the run."""
        return tuple(self.index.of_kind("genesis")[0].payload["symbols"])

    @cached_property
    def playbook_ids(self) -> tuple[str, ...]:
        """Of every version that it has had, in order of name."""
        found = {event.payload["definition"]["id"] for event in self.index.of_kind("playbook_version")}
        return tuple(sorted(found))

    @cached_property
    def episodes(self) -> list[KnownEpisode]:
        """Resolved trades of the account, oldest first."""
        return [episode_of(event, self.index.made) for event in self.index.of_kind("episode")]

    @cached_property
    def _exits(self) -> dict[tuple[str | None, str], list[Event]]:
        found: dict[tuple[str | None, str], list[Event]] = {}
        for event in self.index.of_kind("exit_filled"):
            found.setdefault((event.row.symbol, event.payload["policy_id"]), []).append(event)
        return found

    def exit_of(self, known: KnownEpisode) -> str | None:
        """Id of the fill that closed a trade: the last exit of its policy before its row."""
        exits = self._exits.get((known.episode.symbol, known.episode.policy_id), [])
        ids = [event.payload["fill_id"] for event in exits if event.row.seq < (known.row.seq or 0)]
        return ids[-1] if ids else None

    @cached_property
    def open_entries(self) -> dict[str | None, Event]:
        """The fills that opened the positions which are open, by symbol."""
        newest = {event.row.symbol: event for event in self.index.of_kind("entry_filled")}
        closed = {event.row.symbol: event.row.seq for event in self.index.of_kind("exit_filled")}
        return {symbol: event for symbol, event in newest.items() if event.row.seq > closed.get(symbol, -1)}

    @cached_property
    def newest_snapshots(self) -> dict[str | None, Event]:
        """The newest evaluation of each symbol."""
        found: dict[str | None, Event] = {}
        for event in reversed(self.index.of_kind("policy_snapshot")):
            found.setdefault(event.row.symbol, event)
            if len(found) == len(self.symbols):
                break
        return found

    @cached_property
    def _proposed(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for event in self.index.of_kind("policy_proposal"):
            payload = event.glance()
            plan = payload["proposal"]
            if plan is not None:
                found.setdefault(payload["snapshot_hash"], set()).add(plan["playbook_id"])
        return found

    def playbooks_of(self, event: Event) -> Collection[str]:
        """Those that a row names, or that were proposed at its snapshot."""
        payload = event.glance()
        fields = payload.get("policy", payload)
        if "playbook_id" in fields:
            return (fields["playbook_id"],)
        return self._proposed.get(fields.get("snapshot_hash", ""), ())

    @cached_property
    def past_runs(self) -> dict[str, PastRun]:
        """Runs of the slow loop that wrote a report, by its id."""
        past = PastRuns()
        events = [event for kind in past.takers for event in self.index.of_kind(kind)]
        for event in sorted(events, key=lambda event: event.row.seq):
            past.takers[event.row.kind](event.row, event.payload)
        return {run.report_id: run for run in past.all()}

    @cached_property
    def history(self) -> "PlaybookHistory":
        """Every version of every playbook, with what its trades have shown."""
        from services.evidence_tools.playbook_history import KINDS, PlaybookHistory

        found = PlaybookHistory(self.settings)
        events = [event for kind in KINDS for event in self.index.of_kind(kind)]
        found.take(sorted(events, key=lambda event: event.row.seq))
        return found

    @property
    def moment(self) -> str:
        """The moment as an ISO time."""
        return iso(self.known_at)

    def cite(self, rows: Iterable[FactRow | None], cursor: str | None = None) -> dict[str, Any]:
        """The fields that every answer has: the run, the moment as an ISO time, the rows that there are."""
        there = tuple(row for row in rows if row is not None)
        return {"run_id": self.run_id, "known_at": self.moment, "rows": there, "next_cursor": cursor}


class RunRows:
    """All rows of a run that were read so far, and views of them; more rows may be added behind."""

    def __init__(self) -> None:
        self.index = JournalIndex()
        self._parsed = RecentRows()
        self._known: list[int] = []  # the latest moment of all rows up to each

    def add(self, event: Event) -> None:
        """Take the next row."""
        self.index.add(event)
        last = self._known[-1] if self._known else event.row.known_at
        self._known.append(max(last, event.row.known_at))

    def add_stored(self, row: JournalRow) -> None:
        """Take the next row as the store has it: its payload is parsed when it is looked at."""
        self.add(StoredEvent(row, self._parsed))

    @property
    def known_at(self) -> int:
        """When the last of them was known, ns."""
        return self._known[-1] if self._known else 0

    def until(self, at: int | None) -> JournalIndex:
        """The rows before the first that was known later than `at`, ns.

        Raises:
            ToolRefused: there is none.
        """
        count = len(self._known) if at is None else bisect_right(self._known, at)
        if count == 0:
            first = f": give a time from {iso(self._known[0])} on" if self._known else " yet: ask again later"
            raise ToolRefused(f"the run had begun at no bar by that time{first}")
        return JournalIndexPart(self.index, count)


def episode_of(event: Event, made: dict[tuple[str, int], Any]) -> KnownEpisode:
    """The resolved trade of a row; made once, as `JournalIndex.made` keeps it."""
    key = ("episode", event.row.seq)
    if key not in made:
        made[key] = KnownEpisode(Episode.model_validate(event.payload["episode"]), row_of(event))
    return made[key]  # type: ignore[no-any-return]


def row_of(event: Event) -> FactRow:
    """Where an event stands."""
    return FactRow(seq=event.row.seq, kind=event.row.kind)


def iso(at: int) -> str:
    """A moment in ns as an ISO time in UTC."""
    return ns_to_datetime(at).isoformat()


def with_times(value: Any, name: str = "") -> Any:
    """Plain data with every moment as an ISO time; other numbers stay what they are."""
    if isinstance(value, Mapping):
        return {key: with_times(item, key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_times(item, name) for item in value]
    return iso(value) if name in TIMES and isinstance(value, int) and not isinstance(value, bool) else value
