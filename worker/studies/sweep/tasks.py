"""A sweep as tasks of an executor: chunks of parameter sets, or whole runs of the agent, one each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schemas.errors import ConfigError, RuleError
from trading_core.bars import BarSeries
from trading_core.research.sweep import SetRow, hold_returns, period_starts, run_sets
from trading_core.rules.grammar import parse
from worker.runs.progress import Progress
from worker.studies.executors.agent_runs import TaskParts, agent_answers
from worker.studies.executors.choosing import opened_executor
from worker.studies.executors.kept_answers import KeptAnswers, run_tasks, writing_into
from worker.studies.executors.named_features import (
    NamedFeature,
    load_features,
    named_features,
    require_importable,
)
from worker.studies.executors.shared_bars import shared_bars
from worker.studies.executors.task_keys import task_key
from worker.studies.sweep.result import Chunk, SetRows, run_serially
from worker.studies.sweep.sets import RULES

NUMBERS: dict[str, type[int] | type[float]] = {
    "trades": int, "total_r": float, "gain": float, "sharpe": float, "exposure": float
}  # fmt: skip
ARRAYS = ("entry_rows", "exit_rows", "r", "excess")


def unseen(done: int, total: int | None) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class SweepTasks:
    """How the tasks of a sweep are run.

    Attributes:
        executor: see `opened_executor`.
        processes: likewise.
        resume: a folder of answers, in which a sweep that was ended finds what it had; None: none is kept.
        keep: a folder that takes the store of each run of the agent; None: none is kept.
        level: `rule` trades rules by themselves, `agent` makes each set a whole run.
        shown: called with tasks ended, and tasks in all; may raise to stop.
        parts: own parts of whole runs.
    """

    executor: Any = None
    processes: int | None = None
    resume: Path | None = None
    keep: Path | None = None
    level: str = "rule"
    shown: Progress = unseen
    parts: TaskParts | None = None

    def __post_init__(self) -> None:
        if self.level not in ("rule", "agent"):
            raise ConfigError(f"level {self.level!r} is neither 'rule' nor 'agent'")
        if self.keep is not None and self.level == "rule":
            raise ConfigError(
                "keep: sets at level 'rule' have no store: take level 'agent', or leave keep out"
            )

    def run(self, bars: BarSeries, chunks: Sequence[Chunk]) -> SetRows:
        """See `RunChunks`."""
        return (self.of_runs if self.level == "agent" else self.of_rules)(bars, chunks)

    def of_rules(self, bars: BarSeries, chunks: Sequence[Chunk]) -> SetRows:
        """See `RunChunks`: each chunk is a task."""
        if len(chunks) < 2 and self.executor is None and self.resume is None:
            yield from run_serially(bars, chunks)
            return
        with opened_executor(self.executor, processes=self.processes, tasks=len(chunks)) as executor:
            key = executor.share(bars)
            own = _features_of([point for chunk in chunks for point in chunk])
            require_importable(executor, {f"feature {each.name!r}": each.module for each in own})
            tasks = {
                task_key(f"sets {number}", run_chunk, {"bars": key, "sets": chunk, "own": own}): _ChunkTask(
                    key, tuple(chunk), own
                )
                for number, chunk in enumerate(chunks)
            }
            found = run_tasks(executor, run_chunk, tasks, self._open_kept(), self.shown)
        yield from map(rows_of_chunk, found.values())

    def of_runs(self, bars: BarSeries, chunks: Sequence[Chunk]) -> SetRows:
        """See `RunChunks`: each set, of an `AgentFamily`, is a task."""
        if self.keep is not None:
            KeptAnswers(self.keep)  # a folder that cannot be written is refused before the first run
        sets = [(point["settings"], point["playbooks"]) for chunk in chunks for point in chunk]
        with opened_executor(self.executor, processes=self.processes, tasks=len(sets)) as executor:
            found = agent_answers(
                executor, bars, sets, kept=self._open_kept(), keep=self.keep is not None, shown=self.shown,
                parts=self.parts,
            )  # fmt: skip
        for number, answer in enumerate(found):
            if self.keep is not None and "store" in answer:
                with writing_into(self.keep):
                    path = self.keep / f"{number:05d}-{answer['head'][:16]}.sqlite"
                    path.write_bytes(answer["store"])
        yield [row_of_run(answer, bars) for answer in found]

    def _open_kept(self) -> KeptAnswers | None:
        return None if self.resume is None else KeptAnswers(self.resume)


@dataclass(frozen=True)
class _ChunkTask:
    bars: str
    sets: tuple[Mapping[str, Any], ...]
    features: tuple[NamedFeature, ...]


def run_chunk(task: _ChunkTask) -> dict[str, Any]:
    """The rows of a chunk as columns: numbers, arrays one after the other with their lengths, `problem`."""
    load_features(task.features)
    rows = run_sets(shared_bars(task.bars), task.sets)
    found: dict[str, Any] = {name: np.array([getattr(row, name) for row in rows]) for name in NUMBERS}
    for name in ARRAYS:
        parts = [getattr(row, name) for row in rows]
        found |= {name: np.concatenate(parts), f"{name}_count": np.array([len(part) for part in parts])}
    return found | {"problem": [row.problem for row in rows]}


def rows_of_chunk(answer: Mapping[str, Any]) -> list[SetRow]:
    """The rows that `run_chunk` packed."""
    numbers = [[kind(value) for value in answer[name]] for name, kind in NUMBERS.items()]
    ends = {name: np.cumsum(answer[f"{name}_count"])[:-1] for name in ARRAYS}
    arrays = [np.split(answer[name], ends[name]) for name in ARRAYS]
    return [SetRow(*values) for values in zip(*numbers, *arrays, answer["problem"], strict=True)]


def row_of_run(answer: Mapping[str, Any], bars: BarSeries) -> SetRow:
    """What a run of the agent traded, as a row of a sweep; see `SetRow`.

    Returns are those of its equity. Exposure is that of positions at their entry price, over the cash.
    """
    if "error" in answer:
        return SetRow(problem=answer["error"])
    performance, cash = answer["document"]["performance"], answer["cash"]
    places = np.searchsorted(answer["times"], bars.close_times, side="right")
    curve = np.maximum(np.concatenate(([cash], answer["equity"]))[places], 0.0)
    returns = np.divide(np.diff(curve), curve[:-1], out=np.zeros(len(curve) - 1), where=curve[:-1] > 0.0)
    entries, exits = (np.searchsorted(bars.times, answer[name]) for name in ("entry_labels", "exit_labels"))
    exposure = float((answer["held"] * (exits - entries)).sum() / (cash * bars.shape[0]))
    return SetRow(
        trades=performance["trades"],
        total_r=float(answer["r"].sum()),
        gain=performance["total_return"],
        sharpe=np.nan if performance["sharpe"] is None else performance["sharpe"],
        exposure=exposure,
        entry_rows=entries,
        exit_rows=exits,
        r=answer["r"],
        excess=np.add.reduceat(returns - exposure * hold_returns(bars), period_starts(bars.shape[0])),
    )


def _features_of(chunk: Chunk) -> tuple[NamedFeature, ...]:
    """Own features that the rules of a chunk read; a rule that cannot be parsed is told of by its row."""
    names: set[str] = set()
    for text in {point[name] for point in chunk for name in RULES if isinstance(point.get(name), str)}:
        try:
            names |= parse(text).features
        except RuleError:
            continue
    return named_features(names)
