"""Reads the Dockerfile and what of the repository reaches the build of the image; it runs nothing."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from schemas.errors import ConfigError

KNOWN = ("FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD")


@dataclass(frozen=True)
class Step:
    """One instruction with its continued lines joined, and the line where it begins."""

    name: str
    text: str
    line: int


def steps(dockerfile: str) -> list[Step]:
    """The instructions from top to bottom.

    Raises:
        ConfigError: an instruction that nothing here understands, with its line.
    """
    found, begun, number = [], "", 0
    for line, text in enumerate(dockerfile.splitlines(), 1):
        if text.lstrip().startswith("#") or not (begun or text.strip()):
            continue
        number = number if begun else line
        begun += text.removesuffix("\\")
        if not text.endswith("\\"):
            name, _, rest = begun.strip().partition(" ")
            found.append(Step(name, re.sub(r"\s+", " ", rest.strip()), number))
            begun = ""
    for step in found:
        if step.name not in KNOWN:
            raise ConfigError(f"Dockerfile:{step.line}: {step.name!r} is none of {', '.join(KNOWN)}")
    return found


def copy_context(root: Path, target: Path) -> None:
    """Copy what `.dockerignore` lets into a build.

    Raises:
        ConfigError: a pattern that takes back a file of a folder that stays out.
    """
    patterns = (root / ".dockerignore").read_text("utf-8").split()
    for pattern in patterns:
        if pattern.startswith("!") and "/" in pattern:
            raise ConfigError(f".dockerignore: {pattern!r} takes back a part of a folder; name the folder")

    def leave_out(folder: str, names: list[str]) -> set[str]:
        relative = Path(folder).relative_to(root)
        return {name for name in names if not _is_kept((relative / name).as_posix(), patterns)}

    shutil.copytree(root, target, ignore=leave_out)


def _is_kept(path: str, patterns: Sequence[str]) -> bool:
    kept = True
    for pattern in patterns:
        if _matches(path, pattern.removeprefix("!")):
            kept = pattern.startswith("!")
    return kept


def _matches(path: str, pattern: str) -> bool:
    """Whether a pattern names a path or a folder above it; `**/` stands for any folders."""
    parts = path.split("/")
    if pattern.startswith("**/"):
        return any(fnmatch(part, pattern.removeprefix("**/")) for part in parts)
    above = parts[: pattern.count("/") + 1]
    return len(above) > pattern.count("/") and fnmatch("/".join(above), pattern)
