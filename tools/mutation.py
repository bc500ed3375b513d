"""Change the kernel in small ways, one at a time, and see whether the tests notice.

`python -m tools.mutation` runs the kernel's tests against every mutant of `trading_core/kernel`, each in a
process of its own and without the compiler, and writes what survived to `docs/reference/mutation.md`. A
survivor is a test that is missing, or a change that changes nothing; the second kind carries its reason in
`tools/mutation_survivors.toml`. A run that was stopped goes on where it stopped, as long as the kernel is the
same; survivors run again when the tests have changed. Delete `out/mutation.json` to begin anew.
"""

import argparse
import hashlib
import importlib
import itertools
import json
import multiprocessing
import os
import random
import signal
import tomllib
from collections import Counter
from pathlib import Path
from types import FunctionType
from typing import Any, Final

import pytest

from tools.docs_pages import ROOT
from tools.mutants import KERNEL, MODULES, Mutant, every_mutant

_KERNEL_TESTS: Final = (
    "exits", "entries", "orders", "envelope", "envelope_thresholds", "limits", "differential", "books",
    "costs", "numbers", "state_machine", "boundaries",
)  # fmt: skip
TESTS: Final = (
    *(f"tests/trading_core/test_kernel_{name}.py" for name in _KERNEL_TESTS),
    "tests/trading_core/test_trigger_engine_tick_validation.py",
    "tests/trading_core/test_trigger_engine_tick_validation_worlds.py",
)
SLOW: Final = ("never_reacts", "any_block", "conserved", "balance")  # properties that draw many worlds
HELPERS: Final = tuple(
    f"tests/trading_core/{name}.py"
    for name in ("engine_bench", "envelope_scenarios", "market", "bracket_oracle")
)
PAGE: Final = ROOT / "docs" / "reference" / "mutation.md"
REASONS: Final = ROOT / "tools" / "mutation_survivors.toml"
RESULTS: Final = ROOT / "out" / "mutation.json"
SECONDS: Final = 60.0  # of the processor, for one mutant: some loops never end
MISSING: Final = "a test is missing"
BAR: Final = "\\|"  # in a cell of a table
NOTICED, ENDLESS, SURVIVED = "noticed", "never ended", "survived"
_EXITS: Final = {0: SURVIVED, -signal.SIGVTALRM: ENDLESS}


def load_plain_kernel() -> None:
    """Import the engine without the compiler, and let it read records by name as compiled code does."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    import numpy as np
    import pandas as pd

    import trading_core.kernel as package
    from trading_core import trigger_engine
    from trading_core.kernel import loop
    from trading_core.research import simulation

    pd.Series(dtype="float64")  # imported once here, and not in every child
    np.seterr(all="ignore")  # the compiled kernel divides as IEEE says, without a warning
    plain = loop.advance
    places = (11, 12, 13, 14, 16)  # state, portfolio, parameters, events, trades

    def advance(*arguments: Any) -> Any:
        given = list(arguments)
        for place in places:
            given[place] = given[place].view(np.recarray)
        return plain(*given)

    for module in (package, simulation, trigger_engine):
        module.advance = advance  # type: ignore[attr-defined]


class Check:
    """Plugin that runs the collected tests once for each mutant, in a child, instead of once for all."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Called by pytest after the collection."""
        every = every_mutant()
        chosen = list(every)
        random.Random(self.options.seed).shuffle(chosen)  # a larger sample holds the smaller one
        chosen = chosen[: self.options.sample or None]
        outcome = run(session, chosen, known_results(session), self.options.at_once)
        order = {mutant.key: at for at, mutant in enumerate(every)}
        chosen.sort(key=lambda mutant: order[mutant.key])
        total = Counter(mutant.module for mutant in every)
        PAGE.write_text(page(chosen, total, outcome, self.options.seed), "utf-8")
        return True


def survives(session: pytest.Session, mutant: Mutant | None) -> None:
    """Body of a child: exits with 0 when the tests pass although the kernel is changed."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    if mutant is not None:
        module = importlib.import_module(f"trading_core.kernel.{mutant.module}")
        function: FunctionType = getattr(module, mutant.function)
        function.__code__ = mutant.code
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)  # whose signal ends the process
    for item, following in itertools.pairwise([*session.items, None]):
        if item is not None:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            os._exit(1)
    os._exit(0)


def run(session: pytest.Session, sample: list[Mutant], known: dict[str, str], at_once: int) -> dict[str, str]:
    """Who noticed, by key; each outcome is saved as it comes."""
    outcome, of_what = dict(known), digests()
    waiting = [mutant for mutant in sample if mutant.key not in outcome]
    running: list[tuple[Mutant, Any]] = []
    while waiting or running:
        while waiting and len(running) < at_once:
            mutant = waiting.pop(0)
            running.append((mutant, _child(session, mutant)))
        for mutant, process in list(running):
            process.join(0.02)
            if process.is_alive():
                continue
            running.remove((mutant, process))
            outcome[mutant.key] = _EXITS.get(process.exitcode, NOTICED)
            RESULTS.write_text(json.dumps({**of_what, "outcome": outcome}), "utf-8")
            print(f"{len(outcome):4} {outcome[mutant.key]:11} {mutant.key}", flush=True)
    return outcome


def _child(session: pytest.Session, mutant: Mutant | None) -> Any:
    process = multiprocessing.get_context("fork").Process(target=survives, args=(session, mutant))
    process.start()
    return process


def known_results(session: pytest.Session) -> dict[str, str]:
    """Results of an earlier run on the same kernel; when the tests have changed, survivors run again.

    Raises:
        UsageError: the tests fail on the kernel as it is, so that nothing could be learned from mutants.
    """
    RESULTS.parent.mkdir(exist_ok=True)
    unchanged = _child(session, None)
    unchanged.join()
    if unchanged.exitcode != 0:
        raise pytest.UsageError("the tests fail on the kernel as it is: run pytest first")
    saved: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {"kernel": ""}
    now = digests()
    if saved["kernel"] != now["kernel"]:
        return {}
    again = saved["tests"] != now["tests"]
    return {key: how for key, how in saved["outcome"].items() if not (again and how == SURVIVED)}


def digests() -> dict[str, str]:
    """Of the kernel, and of the tests with what they import."""
    kernel = [KERNEL / f"{name}.py" for name in MODULES]
    tests = [ROOT / name for name in (*TESTS, *HELPERS)]
    return {name: _digest(files) for name, files in (("kernel", kernel), ("tests", tests))}


def _digest(files: list[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def reasons() -> dict[str, str]:
    """Why a survivor stays, by key."""
    found: dict[str, str] = tomllib.loads(REASONS.read_text("utf-8"))
    return found


def page(sample: list[Mutant], total: Counter[str], outcome: dict[str, str], seed: int) -> str:
    """The page, from the results alone."""
    why = reasons()
    done = [mutant for mutant in sample if mutant.key in outcome]
    left = [mutant for mutant in done if outcome[mutant.key] == SURVIVED]
    noticed, every = len(done) - len(left), sum(total.values())
    ran = "each was run" if len(done) == every else f"a sample of {len(done):,} (seed {seed}) was run"
    lines = [
        "# Mutation check", "",
        "Written by `make mutation`, which changes the kernel in small ways, one at a time, and runs the",
        "kernel's tests against each change: a comparison made strict, loose or turned around, another",
        "arithmetic or logical operator, the next constant, a sign or a `not` dropped, an assignment or a",
        "call left out. The tests are those on bars made by hand, and a fixed selection of settings held",
        "against a plain reading of the rules; the properties that draw many random worlds and the",
        "comparisons with other engines are left out. A survivor is a change that no test noticed.", "",
        f"{every:,} mutants exist; {ran}: {noticed:,} were noticed ({_share(noticed, len(done))}), "
        f"{sum(outcome[m.key] == ENDLESS for m in done)} of them because the tests never ended, and "
        f"{len(left):,} survived, of which {sum(m.key in why for m in left):,} change nothing that "
        "could be seen.", "",
        "| module | mutants | run | noticed | survived |", "| --- | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for module in MODULES:
        ours = Counter(outcome[mutant.key] == SURVIVED for mutant in done if mutant.module == module)
        lines.append(f"| {module} | {total[module]} | {ours.total()} | {ours[False]} | {ours[True]} |")
    lines += ["", "## Survivors", "", "| change | why it stays |", "| --- | --- |"]
    lines += [f"| {mutant.key.replace('|', BAR)} | {why.get(mutant.key, MISSING)} |" for mutant in left]
    return "\n".join(lines) + "\n"


def _share(part: int, whole: int) -> str:
    return "-" if whole == 0 else f"{part / whole:.1%}"


def main() -> None:
    """Run the mutants and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=0, help="mutants to run; 0: every one")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--at-once", type=int, default=2, help="processes that run tests")
    options = parser.parse_args()
    load_plain_kernel()
    quick = " and ".join(f"not {name}" for name in SLOW)
    arguments = ("-s", "-k", quick, "-p", "no:terminal", "-p", "no:cacheprovider", "-W", "ignore")
    raise SystemExit(pytest.main([*TESTS, *arguments], plugins=[Check(options)]))


if __name__ == "__main__":
    main()
