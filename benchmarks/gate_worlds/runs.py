"""Many runs of many worlds on every core, in parts that do not depend on how they are shared out.

A part is up to 25 runs of one row, or one of whole sessions. The draw of a run is made by the seed, the world
and the run's number, so that more runs begin with the fewer and any number of processes gives the same
figures. Finished parts can be kept in a file of JSON lines, from which a later call goes on; a file of
another gate is refused, and so is a line that does not have its digest.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gate_worlds.measures import MEASURES, Outcome
from benchmarks.gate_worlds.table import Row
from schemas.canonical import content_id
from schemas.errors import ConfigError
from schemas.settings import GateSettings
from services import statistics
from worker.studies.executors.choosing import opened_executor

# What is run and shown, not what a run comes to.
LISTS = frozenset({"__main__.py", "figures.py", "runs.py", "section.py", "table.py"})
ENGINE = "engine"
HERE = Path(__file__).parent
PACKAGES = ("agents", "benchmarks/gate_worlds", "prompts", "schemas", "services", "trading_core", "worker")
OF = {False: "drawn worlds", True: "whole sessions"}
MIXED = {
    "of": "their parts are kept in files of their own",
    "gate": "figures of two gates do not mix",
    "seed": "figures of two seeds do not mix",
}
SUFFIXES = frozenset({".py", ".toml", ".txt"})
Columns = dict[str, list[float | None]]


@dataclass(frozen=True)
class Part:
    """Runs `first` to `first + count` of a row."""

    row: Row
    first: int
    count: int
    seed: int
    gate: GateSettings

    @property
    def key(self) -> str:
        """What it is called in a file of kept parts."""
        return f"{name_of(self.row)}/{self.first}"

    def run(self) -> Columns:
        """The numbers of each run by name."""
        measure, draw = measure_of(self.row.measure), int(content_id(repr(self.row.world))[:8], 16)
        found = [
            measure(self.row.world, self.gate, [self.seed, draw, number])
            for number in range(self.first, self.first + self.count)
        ]
        return join_columns(found)


def name_of(row: Row) -> str:
    """A row by what is asked and of which world."""
    return content_id({"measure": row.measure, "world": repr(row.world)})[:16]


def join_columns(found: Sequence[Outcome]) -> Columns:
    """Numbers by name, run after run."""
    return {name: [outcome[name] for outcome in found] for name in found[0]}


def measure_of(name: str) -> Callable[[Any, GateSettings, list[int]], Outcome]:
    """The question by its name; whole sessions are loaded only where one is asked for."""
    if name == ENGINE:
        from benchmarks.gate_worlds.engine.measure import on_and_off

        return on_and_off
    return MEASURES[name]


def gate_hash(gate: GateSettings, *, engine: bool = False) -> str:
    """What figures depend on besides parameters: the gate's settings, its source, the worlds'.

    Those of whole sessions depend on all of the source.
    """
    digest = hashlib.sha256(json.dumps(gate.payload(), sort_keys=True).encode())
    for path in _sessions_source() if engine else _gate_source():
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _gate_source() -> Iterator[Path]:
    for folder in (Path(str(statistics.__file__)).parent, HERE):
        for path in sorted(folder.glob("*.py")):
            if path.name not in LISTS:
                yield path


def _sessions_source() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((HERE.parents[1] / package).rglob("*")):
            if path.suffix in SUFFIXES and path.name not in LISTS and "cli" not in path.parts:
                yield path


class KeptParts:
    """Finished parts in a file of JSON lines; the first line says what made them."""

    def __init__(self, path: Path | None, seed: int, gate: GateSettings, *, engine: bool = False) -> None:
        """Read what the file holds, or begin it; without a path nothing is kept.

        Raises:
            ConfigError: another gate, version or seed made it, or one of its lines was changed.
        """
        self._path = path
        self._head = {"worlds": 3, "of": OF[engine], "gate": gate_hash(gate, engine=engine), "seed": seed}
        self.parts: dict[str, Columns] = {}
        if path is None:
            return
        text = path.read_bytes() if path.exists() else b""
        whole, _, torn = text.rpartition(b"\n")
        if torn:  # a line that was being written when the process ended
            with path.open("r+b") as file:
                file.truncate(len(text) - len(torn))
        lines = [(number, line) for number, line in enumerate(whole.split(b"\n"), start=1) if line]
        if not lines:
            self._begin(path)
            return
        try:
            self._compare(json.loads(lines[0][1]))
        except ConfigError:
            raise
        except (ValueError, TypeError, AttributeError) as error:
            raise ConfigError(f"{str(path)!r} does not hold parts of worlds") from error
        for number, line in lines[1:]:
            self._take(f"{str(path)!r} line {number}", line)

    def _take(self, place: str, line: bytes) -> None:
        again = "remove the line, and its runs are drawn again"
        try:
            payload = json.loads(line)
            key, runs, digest = payload["part"], payload["runs"], payload["digest"]
            found = self._digest(key, runs)
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{place} does not hold a part of worlds: {again}") from error
        if digest != found:
            raise ConfigError(
                f"{place} was changed after it was written: its digest is {digest!r}, what it holds has "
                f"{found!r}; {again}"
            )
        self.parts[key] = runs

    def _begin(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(self._head) + "\n", "utf-8")

    def _digest(self, key: str, runs: Columns) -> str:
        """Of a part and what made it: a line of another file is none of this one."""
        return content_id({**self._head, "part": key, "runs": runs})

    def _compare(self, head: dict[str, Any]) -> None:
        for name, mine in self._head.items():
            if head.get(name) != mine:
                raise ConfigError(
                    f"{str(self._path)!r} was written with {name} {head.get(name)!r}, this is "
                    f"{mine!r}: {MIXED.get(name, 'figures of two versions do not mix')}; move it away"
                )

    def keep(self, key: str, runs: Columns) -> None:
        """Add a finished part."""
        self.parts[key] = runs
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                payload = {"part": key, "runs": runs, "digest": self._digest(key, runs)}
                file.write(json.dumps(payload) + "\n")


def measure_rows(
    rows: Sequence[Row],
    runs: int,
    seed: int,
    gate: GateSettings,
    processes: int,
    kept: KeptParts,
    tell: Callable[[int, int], None],
) -> list[Columns]:
    """The numbers of every run of each row; `tell` hears of runs done and runs in all.

    Args:
        rows: what to measure.
        runs: of each row.
        seed: of the draws.
        gate: settings.
        processes: 1 stays in this one.
        kept: parts that are done already; new ones are added as they end.
        tell: may raise to stop; what is done is kept.
    """
    parts = [
        Part(row, first, min(row.part, runs - first), seed, gate)
        for row in rows
        for first in range(0, runs, row.part)
    ]
    done = 0
    todo = []
    for part in parts:
        if len(next(iter(kept.parts.get(part.key, {"": []}).values()))) >= part.count:
            done += part.count
        else:
            todo.append(part)
    tell(done, runs * len(rows))
    tasks = {part.key: part for part in todo}
    with opened_executor(processes=processes, tasks=len(tasks)) as executor:
        for key, columns in executor.run(Part.run, tasks, lambda: None):
            kept.keep(key, columns)
            done += tasks[key].count
            tell(done, runs * len(rows))
    return [_row(kept, [part for part in parts if part.row is row]) for row in rows]


def _row(kept: KeptParts, parts: Sequence[Part]) -> Columns:
    found: Columns = {}
    for part in parts:
        for name, column in kept.parts[part.key].items():
            found.setdefault(name, []).extend(column[: part.count])
    return found
