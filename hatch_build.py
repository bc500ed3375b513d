"""How the wheel is built: the rooms lie below `thinktwice`, so that it brings one top-level name alone.

In the repository each room is a package of its own, and an import names it: `from worker.session import
Session`. Installed beside somebody's `worker.py` such a name would clash, so the wheel holds the same files
one level down, and every import of a room in them begins with `thinktwice.`. Lines keep their numbers.
"""

import io
import shutil
import tokenize
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOMS = ("agents", "prompts", "schemas", "services", "trading_core", "worker")
PACKAGE = "thinktwice"
LEFT_OUT = {"__pycache__"}
BEGINNINGS = {
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.NL,
    tokenize.COMMENT,
    tokenize.ENCODING,
}


def below_package(text: str, name: str) -> str:
    """A source with its imports of rooms as they are below the package.

    Raises:
        ValueError: it imports a room in a way that has no such form; names the file and the line.
    """
    lines = text.splitlines(keepends=True)
    for line, column, word, following in _imports(text):
        before, after = lines[line][:column], lines[line][column:]
        if word == "from":
            told = after.replace(f"from {following}", f"from {PACKAGE}.{following}", 1)
        else:
            told = after.replace("import ", f"from {PACKAGE} import ", 1)
            if after.strip() != f"import {following}":
                raise ValueError(f"{name}:{line + 1}: import rooms by `from ROOM import`: {after.strip()}")
        lines[line] = before + told
    return "".join(lines)


def _imports(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Line, column and first two words of each statement that imports a room; lines from 0."""
    begins, first = True, None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if first is not None:
            if token.type == tokenize.NAME and token.string in ROOMS:
                yield first.start[0] - 1, first.start[1], first.string, token.string
            first = None
        elif begins and token.type == tokenize.NAME and token.string in ("from", "import"):
            first = token
        begins = token.type in BEGINNINGS or token.string in (";", ":")


class RoomsBelowPackage(BuildHookInterface[Any]):
    """Puts package and rooms into a wheel; what is installed for editing stays as it lies."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Lay out what the wheel holds."""
        if version == "editable":
            return
        self._laid_out = Path(mkdtemp(prefix="thinktwice-wheel-"))
        root = Path(self.root)
        for name in (PACKAGE, *ROOMS):
            home = PACKAGE if name == PACKAGE else f"{PACKAGE}/{name}"
            for path in sorted((root / name).rglob("*")):
                if path.is_file() and not LEFT_OUT & set(path.parts):
                    target = self._laid_out / home / path.relative_to(root / name)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    if path.suffix == ".py":
                        told = below_package(path.read_text("utf-8"), str(path.relative_to(root)))
                        target.write_text(told, "utf-8")
                    else:
                        shutil.copyfile(path, target)
        build_data["force_include"][str(self._laid_out / PACKAGE)] = PACKAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Clear away what was laid out."""
        if version != "editable":
            shutil.rmtree(self._laid_out)
