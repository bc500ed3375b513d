"""Playbook definitions into files that the loader reads back: what it reads trades as what was written.

A file holds a version as it stands, bans and a lower risk included; when these end is a fact of a run and
stands beside the files, in `lifecycle.json`. A folder is written whole or not at all, and only into a place
that is free or that holds what was written here before, unchanged.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from schemas.errors import ConfigError, DataError, InvariantViolation
from schemas.playbook import PlaybookDefinition
from services.playbooks.loader import parse_playbook
from services.playbooks.measures import alter
from services.text.given_files import read_given

MANIFEST = "lifecycle.json"
CANDIDATES = "candidates"
MARK = "thinktwice playbooks"


def playbook_toml(definition: PlaybookDefinition) -> str:
    """The text of a playbook file.

    Raises:
        InvariantViolation: the loader would read something else.
    """
    as_file = alter(definition, known_at=None)
    lines = [*_table("", _without_nothing(as_file.payload()))]
    text = "\n".join(lines).strip("\n") + "\n"
    path = Path(f"{definition.id}.toml")
    if parse_playbook(text.encode(), path).content_hash != as_file.content_hash:
        raise InvariantViolation(f"playbook {definition.id!r} is read back otherwise than it was written")
    return text


def write_playbooks(
    folder: Path,
    active: Sequence[PlaybookDefinition],
    candidates: Sequence[PlaybookDefinition],
    manifest: Mapping[str, Any],
) -> tuple[str, ...]:
    """Names of the files written: `ID.toml`, `candidates/ID_vN.toml` and `lifecycle.json`.

    The loader reads the active ones when `runtime.playbooks` names the folder, and no candidate.

    Raises:
        ConfigError: the folder holds something else or an edited file, or cannot be written; then nothing
            has changed.
    """
    files = {name: playbook_toml(written) for name, written in named_files(active, candidates).items()}
    hashes = {name: hashlib.sha256(files[name].encode()).hexdigest() for name in sorted(files)}
    document = {"made_by": MARK, "files": list(hashes), "sha256": hashes, **manifest}
    files[MANIFEST] = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        _replace_folder(folder, files)
    except OSError as error:
        raise ConfigError(
            f"{str(folder)!r} cannot be written ({error.strerror}): name another folder"
        ) from error
    return tuple(files)


def named_files(
    active: Sequence[PlaybookDefinition], candidates: Sequence[PlaybookDefinition]
) -> dict[str, PlaybookDefinition]:
    """Each definition by the name of its file."""
    found = {f"{version.id}.toml": version for version in active}
    return found | {f"{CANDIDATES}/{item.id}_v{item.version}.toml": item for item in candidates}


def written_manifest(folder: Path) -> Mapping[str, Any]:
    """What the last writer said of a folder; empty where nothing was written there, or more lies there."""
    return json.loads(read_given(folder / MANIFEST)) if folder.is_dir() and _ours(folder) else {}


def manifest_time(folder: Path) -> int:
    """When a folder was written last, wall time in ns."""
    return (folder / MANIFEST).stat().st_mtime_ns


def demand_writable(folder: Path, option: str = "--write") -> None:
    """Refuse a place that `write_playbooks` would refuse, before any work is done for it.

    Raises:
        ConfigError: it is no folder, it holds something else or an edited file, or nothing can be put
            beside it.
    """
    _demand_place(folder, option)
    try:
        with _work_folder(folder):
            return
    except OSError as error:
        raise ConfigError(
            f"{option} {str(folder)!r} cannot be written ({error.strerror}): name another folder"
        ) from error


def _work_folder(folder: Path) -> "tempfile.TemporaryDirectory[str]":
    """A folder beside it in which it is made before it takes its place."""
    place = _resolve(folder)
    return tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.")


def _resolve(folder: Path) -> Path:
    """Where a folder lies: a link stays a link, and what it names is written."""
    return Path(os.path.realpath(folder))  # of links in a circle too, where `resolve` raises


def _demand_place(folder: Path, option: str) -> None:
    if not folder.exists():
        parent = _resolve(folder).parent
        if not parent.is_dir():
            raise ConfigError(f"{option} {str(folder)!r}: there is no folder {str(parent)!r} to put it in")
        return
    if not folder.is_dir():
        raise ConfigError(f"{option} {str(folder)!r} is a file: name a folder")
    if any(folder.iterdir()) and not _ours(folder):
        raise ConfigError(
            f"{option} {str(folder)!r} holds other files: name an empty folder, or one that is not there yet"
        )
    edited = _find_edited(folder)
    if edited:
        more = f" and {len(edited) - 1:,} more" if edited[1:] else ""
        raise ConfigError(
            f"{option} {str(folder)!r}: {edited[0]!r}{more} there is not as {MANIFEST} says it was written, "
            "and would be lost: name another folder, or remove what you do not keep"
        )


def _find_edited(folder: Path) -> list[str]:
    """Files there that are not known to be as they were written."""
    hashes = written_manifest(folder).get("sha256", {})
    there = sorted(path for path in folder.rglob("*.toml") if path.is_file())
    names = {path.relative_to(folder).as_posix(): read_given(path, error=ConfigError) for path in there}
    return [name for name, held in names.items() if hashes.get(name) != hashlib.sha256(held).hexdigest()]


def _ours(folder: Path) -> bool:
    """Whether every file there was written here before; a file that was added is not ours to remove."""
    try:
        manifest = json.loads(read_given(folder / MANIFEST))
        named = {*manifest["files"], MANIFEST} if manifest["made_by"] == MARK else set()
    except (OSError, ValueError, TypeError, KeyError, DataError):
        return False
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    return bool(named) and there <= named


def _replace_folder(folder: Path, files: Mapping[str, str]) -> None:
    _demand_place(folder, "--write")
    place = _resolve(folder)
    with _work_folder(folder) as work:
        made, old = Path(work) / "new", Path(work) / "old"
        made.mkdir()
        for name, text in files.items():
            target = made / name
            target.parent.mkdir(exist_ok=True)
            target.write_text(text, "utf-8", newline="\n")
        if place.exists():
            os.replace(place, old)
        try:
            os.replace(made, place)
        except BaseException:  # also Ctrl-C: what was there goes back before the work folder is removed
            if old.exists():
                shutil.move(old, place)
            raise


def _without_nothing(value: Mapping[str, Any]) -> dict[str, Any]:
    """The same without fields that are null: TOML has no null, and the reader fills these in."""
    return {
        name: _without_nothing(item) if isinstance(item, Mapping) else item
        for name, item in value.items()
        if item is not None
    }


def _table(place: str, table: Mapping[str, Any]) -> Iterator[str]:
    """Plain values first, then the tables below: TOML has no way back up."""
    plain = {name: item for name, item in table.items() if not isinstance(item, Mapping)}
    below = {name: item for name, item in table.items() if isinstance(item, Mapping)}
    if place and (plain or not below):
        yield from ("", f"[{place}]")
    for name, item in plain.items():
        yield f"{name} = {_value(item)}"
    for name, item in below.items():
        yield from _table(f"{place}.{name}" if place else name, item)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    return repr(value)


def _text(text: str) -> str:
    """A basic string; JSON escapes all that TOML wants escaped but DEL."""
    return json.dumps(str(text), ensure_ascii=False).replace("\x7f", "\\u007f")
