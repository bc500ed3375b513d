"""Where a run stands between two bars: positions, policies, what blocks entries; a fold of its journal."""

from collections.abc import Mapping
from typing import Any, ClassVar

from schemas.plan import PositionHeld
from schemas.state import Stateful
from services.journal.chain import JournalRow

SAFE_MODE = "safe mode"  # how the reason of a symbol that it blocks begins


class RunState(Stateful):
    """Positions and latest policies by symbol, the operator's switch and safe mode, after the last row taken.

    Attributes:
        held: open positions by symbol.
        policies: playbook of the latest frozen policy of each symbol.
        kill_switch: whether the operator's switch is on.
        safe_mode: whether the process blocks the entries of every symbol.
    """

    STATE: ClassVar = {
        "held": dict[str, PositionHeld],
        "policies": dict[str, str],
        "kill_switch": bool,
        "safe_mode": bool,
    }
    REBUILT = frozenset({"takers"})

    def __init__(self, *, kill_switch: bool) -> None:
        self.held: dict[str, PositionHeld] = {}
        self.policies: dict[str, str] = {}
        self.kill_switch = kill_switch
        self.safe_mode = False
        self.takers = {
            "entry_filled": self._entry,
            "episode": self._episode,
            "policy_frozen": self._frozen,
            "operator_command": self._command,
            "entries_blocked": self._note_block,
        }

    def symbols_of(self, playbook_id: str) -> tuple[str, ...]:
        """Symbols in which a playbook holds a position or the latest policy, in name order."""
        traded = {held.symbol for held in self.held.values() if held.playbook_id == playbook_id}
        traded |= {symbol for symbol, name in self.policies.items() if name == playbook_id}
        return tuple(sorted(traded))

    def _entry(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        symbol = str(row.symbol)
        self.held[symbol] = PositionHeld(
            symbol=symbol, side=payload["direction"], playbook_id=payload["playbook_id"]
        )

    def _episode(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        self.held.pop(payload["episode"]["symbol"], None)

    def _frozen(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        self.policies[str(row.symbol)] = payload["policy"]["playbook_id"]

    def _command(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        if payload["kind"] == "kill_switch":
            self.kill_switch = payload["payload"]["on"]

    def _note_block(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        self.safe_mode = any(why.startswith(SAFE_MODE) for why in payload["blocked"].values())
