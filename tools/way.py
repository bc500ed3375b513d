"""A bar's way from file to fill: the modules that somebody opens who follows a bar by reading.

The embedded bars are read as an operator's file and traded by rules until the first entry is filled. Whenever
a function takes or returns what a bar has become, see `BECOMES`, each module of ours on the stack lies on the
way, in the order in which the first function of it stands there:

- entered: distinct modules on the way;
- packages: those of them that another package calls;
- back: those among these whose package stands on the stack already: a step to a caller's package.

Functions decide, not the machine: the same code has the same way.
"""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from schemas.settings import Settings
from schemas.tick_validation import TickValidationEvent
from schemas.vocabulary import TickEventKind
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from tools.docs_pages import ROOT
from worker.feeds.sample_data import DATA_FILE
from worker.feeds.selected_bars import load_bars
from worker.runs.backtest import run_backtest
from worker.runs.warm_up import compile_engine

ROOMS = ("schemas", "trading_core", "services", "agents", "prompts", "worker")
BECOMES = frozenset(
    {"BarTable", "SymbolRows", "BarSeries", "Advance", "PolicySnapshot", "StrategistAnswer"}
    | {"PolicyLevelReflectionResult", "BoundaryVerdict", "FrozenPolicy", "PolicyOrders"}
    | {"TickValidationEvent"}
)


@dataclass(frozen=True)
class Step:
    """A module that the way enters: its name, what called it, and whether its package called before."""

    module: str
    caller: str | None
    is_back: bool

    @property
    def enters_package(self) -> bool:
        """Whether another package calls it."""
        return self.caller is not None and package_of(self.caller) != package_of(self.module)


@dataclass
class Way:
    """The steps so far; `is_filled` once an entry is."""

    steps: list[Step] = field(default_factory=list)
    is_filled: bool = False
    _entered: set[str] = field(default_factory=set)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Modules entered, packages entered, steps to a caller's package."""
        packages = sum(step.enters_package for step in self.steps)
        return len(self.steps), packages, sum(step.is_back for step in self.steps)

    def profile(self, frame: FrameType, event: str, value: Any) -> None:
        """Follow a function that takes or returns what a bar has become, as `sys.setprofile` calls it."""
        if self.is_filled or event not in ("call", "return") or not module_of(frame.f_code):
            return
        passed = (value,) if event == "return" else _arguments(frame)
        if any(type(item).__name__ in BECOMES for item in passed):
            self.follow(list(_stack(frame))[::-1])
        self.is_filled = isinstance(value, TickValidationEvent) and value.kind is TickEventKind.ENTRY_FILLED

    def follow(self, stack: list[str]) -> None:
        """Enter each module of a stack, outermost first, that was not entered yet."""
        for depth, module in enumerate(stack):
            if module in self._entered:
                continue
            self._entered.add(module)
            before = [package_of(caller) for caller in stack[:depth]]
            package = package_of(module)
            is_back = package in before and before[-1] != package
            self.steps.append(Step(module, stack[depth - 1] if depth else None, is_back))


def _arguments(frame: FrameType) -> list[Any]:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [frame.f_locals.get(name) for name in names]


def _stack(frame: FrameType | None) -> Iterator[str]:
    """Modules of ours, innermost first; one that calls itself stands there once."""
    last = ""
    while frame is not None:
        module = module_of(frame.f_code)
        if module and module != last:
            yield module
            last = module
        frame = frame.f_back


def module_of(code: CodeType) -> str:
    """The module of the rooms that a function stands in; empty where it stands elsewhere, or imports."""
    path = Path(code.co_filename)
    if code.co_name == "<module>" or not path.is_relative_to(ROOT):
        return ""
    place = path.relative_to(ROOT)
    return ".".join(place.with_suffix("").parts) if place.parts[0] in ROOMS else ""


def package_of(module: str) -> str:
    """The package that a module lies in."""
    return module.removesuffix(".__init__").rpartition(".")[0]


def measure_way() -> Way:
    """The way of the first bar of the embedded file that becomes a fill; the engine is compiled before it.

    Raises:
        RuntimeError: no entry was filled.
    """
    compile_engine()
    ranked = {"explore": 0.0}  # the first fill is of the plan that ranks first, not of one whose turn it is
    runtime = {"data": str(DATA_FILE), "end": "2000-12-31"}
    settings = Settings.model_validate({"runtime": runtime, "policy_loop": ranked})
    way = Way()

    journal = JournalWriter(MemorySink())
    sys.setprofile(way.profile)
    try:
        asyncio.run(run_backtest(settings, load_bars(settings), journal))
    finally:
        sys.setprofile(None)
    if not way.is_filled:
        raise RuntimeError(f"no entry of {DATA_FILE.name} was filled: nothing leads from file to fill")
    return way


def main() -> None:
    """Print each step with its caller; `>` enters a package, `<` one that called before."""
    for step in measure_way().steps:
        mark = "<" if step.is_back else ">" if step.enters_package else " "
        sys.stdout.write(f"{mark} {step.module}  ({step.caller or 'first'})\n")


if __name__ == "__main__":
    main()
