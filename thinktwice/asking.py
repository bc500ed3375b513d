"""The evidence tools in a script: `tt.ask.trades(symbol="IBM")`, with the names that the commands have."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from schemas.errors import ToolRefused, nearest
from services.evidence.tools import TOOLS
from thinktwice.boundary import trims_errors
from thinktwice.loops import in_own_loop
from thinktwice.stores import store_address


@dataclass(frozen=True)
class ToolAnswer:
    """What a tool answers.

    Attributes:
        document: what `thinktwice ask TOOL --json` prints.
    """

    document: dict[str, Any]

    @property
    def text(self) -> str:
        """Its claims in words, one a line."""
        return str(self.document["answer"])

    @property
    def claims(self) -> list[dict[str, Any]]:
        """Each claim with its `text` and the `rows` of the journal that it stands on."""
        return [claim for part in self.document["sections"] for claim in part["statements"]]

    @property
    def result(self) -> dict[str, Any]:
        """What the tool brought beside them: lists of trades, positions, reports and the like."""
        found: dict[str, Any] = self.document["results"]["c1"]
        return found

    def __repr__(self) -> str:
        return self.text or repr(self.result)


class Tools:
    """One method for each tool of `thinktwice ask`.

    Each takes the arguments of the tool's schema by name, `run` (default `latest`) among them, and `db`, the
    URL of a store; None: that of the environment, or `sqlite:///thinktwice.db`. It returns a `ToolAnswer`.

    Raises:
        ConfigError: there is no such store.
        ToolRefused: an argument does not fit, or the run has no such thing.
    """

    def __getattr__(self, name: str) -> Callable[..., ToolAnswer]:
        if name not in TOOLS:
            raise AttributeError(
                f"ask has no tool {name!r}: there are {', '.join(TOOLS)}.{nearest(name, TOOLS)}"
            )

        @trims_errors
        def call(*unnamed: Any, db: str | None = None, **arguments: Any) -> ToolAnswer:
            if unnamed:
                raise ToolRefused(f"ask.{name} takes its arguments by name, such as run='r0001'")
            return ToolAnswer(in_own_loop(_ask(name, arguments, store_address(db))))

        call.__name__, call.__doc__ = name, _describe(name)
        return call

    def __dir__(self) -> list[str]:
        return list(TOOLS)


def _describe(name: str) -> str:
    """What a tool does, and its arguments."""
    fields = TOOLS[name].definition.payload()["input_schema"]["properties"]
    lines = [
        f"    {field}: {payload.get('description', '')}".rstrip(": ") for field, payload in fields.items()
    ]
    return "\n".join([TOOLS[name].description, "", *lines])


async def _ask(tool: str, arguments: dict[str, Any], address: str) -> dict[str, Any]:
    from services.store import open_store
    from worker.review.asking import ask_tool
    from worker.review.rule_trial import trial_noting

    note = None if TOOLS[tool].reads_only else trial_noting(address)
    async with await open_store(address, create=False, read_only=True) as store:
        return await ask_tool(store, tool, arguments, note=note)


ask = Tools()
