"""A rule that is tried on the bars of a run: noted in the ledger of trials, then traded in its own process.

The process has its own standard input, so that a server on standard streams is not hung up, and bounds on
bars and seconds. It is killed when whoever asked goes away. One rule is tried at a time.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio

from schemas.canonical import content_hash
from schemas.errors import StoreError, ToolRefused
from services.evidence import tool_arguments, tool_results
from services.evidence.tools import demand_known
from services.evidence_tools.run_view import RunView, iso, row_of
from services.ports import ToolProgress
from services.store.trials import TriedOn
from worker.feeds.selected_bars import settings_of_bars

if TYPE_CHECKING:
    from services.store import RunRecord

NoteTrial = Callable[[TriedOn], Awaitable[int]]
MOST_BARS = 250_000
MOST_SECONDS = 120.0
LONGEST_LINE = 1_000_000
STEPS = 3.0
# -P: a folder `worker` where the server was started is not this one.
PROCESS = (sys.executable, "-P", "-m", f"{__package__}.rule_process")
BY_RULE = "rule"  # in place of a set of playbooks
TRADED = ("symbol", "entry", "direction", "stop_pct", "target_pct", "time_stop_bars")


def trial_noting(address: str) -> NoteTrial:
    """Enters a rule in a ledger of trials: the one thing that a server writes, on a connection of its own."""
    from services.store import open_store

    async def note(on: TriedOn) -> int:
        async with await open_store(address, create=False) as store:
            return await store.trials.note_rule(on)

    return note


class RuleTrials:
    """Tries rules, one after another.

    Args:
        note: enters a rule in the ledger of trials before it is tried.
        seconds: bound on one trial.
    """

    def __init__(self, note: NoteTrial, *, seconds: float = MOST_SECONDS) -> None:
        self._note, self._seconds = note, seconds
        self._alone = asyncio.Lock()

    async def try_rule(
        self,
        view: RunView,
        record: "RunRecord",
        arguments: tool_arguments.RuleArguments,
        progress: ToolProgress,
    ) -> tool_results.RuleResult:
        """What the rule would have traded up to the moment of the view.

        Raises:
            ToolRefused: the rule is none, the run keeps no bars, or it takes too long.
            StoreError: the rule cannot be noted.
        """
        demand_known("symbol", arguments.symbol, view.symbols)
        if view.settings is None or record.data.get("source") not in ("embedded", "file"):
            raise ToolRefused("the bars of this run cannot be read again: name a backtest")
        settings = settings_of_bars(record, view.settings, None)
        rule = {name: getattr(arguments, name) for name in TRADED}
        request = {"settings": settings.payload(), "sha256": record.data["sha256"], "until": view.known_at}
        async with self._alone:
            try:
                async with asyncio.timeout(self._seconds):
                    done = await self._trade({**request, "rule": rule, "most": MOST_BARS}, progress)
            except TimeoutError as error:
                wanted = "take fewer symbols or an earlier at"
                raise ToolRefused(f"the rule took more than {self._seconds:g} s: {wanted}") from error
        rows = tuple(row_of(event) for event in view.index.of_kind("genesis"))
        return tool_results.RuleResult(run_id=view.run_id, known_at=view.moment, rows=rows, **done)

    async def _trade(self, request: dict[str, Any], progress: ToolProgress) -> dict[str, Any]:
        process = await asyncio.create_subprocess_exec(
            *PROCESS,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=LONGEST_LINE,
        )
        try:
            await progress(0.0, STEPS, "reading the bars")
            bars = await _answer(process, request)
            trial = await self._note(_on(bars, request["rule"]))
            await progress(1.0, STEPS, "trading the rule")
            figures = await _answer(process, {})
            await progress(STEPS, STEPS, "done")
        finally:
            await _end(process)
        labels = {name: iso(bars[name]) for name in ("first_bar", "last_bar")}
        return {"trial": trial, "bars": bars["bars"], **labels, **figures}


async def _end(process: asyncio.subprocess.Process) -> None:
    with anyio.CancelScope(shield=True):
        if process.stdin is not None:
            process.stdin.close()
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _answer(process: asyncio.subprocess.Process, question: dict[str, Any]) -> dict[str, Any]:
    if process.stdin is None or process.stdout is None:
        raise StoreError("the process of a rule has no streams")
    process.stdin.write(json.dumps(question).encode() + b"\n")
    await process.stdin.drain()
    answer: dict[str, Any] = json.loads(await process.stdout.readline() or b'{"broke": true}')
    if "refusal" in answer:
        raise ToolRefused(str(answer["refusal"]))
    if "broke" in answer:
        raise ToolRefused("the bars of this run cannot be read again: name another run")
    return answer


def _on(bars: dict[str, Any], rule: dict[str, Any]) -> TriedOn:
    return TriedOn(
        config_hash=content_hash(rule),
        playbooks=BY_RULE,
        data=bars["data"],
        timeframe=bars["timeframe"],
        symbols=tuple(bars["symbols"]),
        first_label=bars["first_bar"],
        last_label=bars["last_bar"],
    )
