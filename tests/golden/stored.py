"""Golden stores: files that some version of this program wrote, with what was known of them that day.

`released/NAME.db.xz` is a SQLite store, `released/NAME.json` names its revision, the heads of its journals,
its rows by table and the machine. A name is a revision, `0001`, or a later store of one, `0001-2`. None is
ever changed: what this program cannot read any more, users cannot read either.
"""

import json
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RELEASED = Path(__file__).parent / "released"
HOW = (
    "if this change was meant, release another golden store beside the old ones: `python -m tests.golden` "
    "writes two new files into tests/golden/released; commit them, and change or remove none of the others"
)


@dataclass(frozen=True)
class Golden:
    """One golden store."""

    name: str
    facts: dict[str, Any]

    @property
    def revision(self) -> str:
        """Of its tables."""
        return str(self.facts["revision"])

    def unpacked(self, folder: Path) -> Path:
        """The store as a file of its own."""
        file = folder / f"{self.name}.db"
        file.write_bytes(lzma.decompress((RELEASED / f"{self.name}.db.xz").read_bytes()))
        return file


def released() -> list[Golden]:
    """All of them, oldest first."""
    found = [Golden(path.stem, json.loads(path.read_text("utf-8"))) for path in RELEASED.glob("*.json")]
    return sorted(found, key=lambda golden: _order(golden.name))


def next_name(revision: str) -> str:
    """A name that no golden store has."""
    taken = {golden.name for golden in released()}
    numbered = [revision, *(f"{revision}-{number}" for number in range(2, len(taken) + 3))]
    return next(name for name in numbered if name not in taken)


def release(name: str, file: Path, facts: dict[str, Any]) -> None:
    """Write a golden store.

    Raises:
        FileExistsError: there is one of this name.
    """
    with (RELEASED / f"{name}.db.xz").open("xb") as packed:
        packed.write(lzma.compress(file.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
    with (RELEASED / f"{name}.json").open("x", encoding="utf-8") as shown:
        shown.write(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


def _order(name: str) -> tuple[str, int]:
    revision, _, number = name.partition("-")
    return revision, int(number or 1)
