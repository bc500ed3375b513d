"""Rewrites every pin of the project: constraints in `pyproject.toml` and the hashed exports beside it.

`uv.lock` stays out of the repository because it names index hosts, so the pins live in the project file as
constraints (`uv run` obeys them) and, with hashes, in `requirements.lock.txt` (Docker, CI) and, for what
builds the package, in `requirements.build.txt`. `make lock` runs this file; with `--check` it only compares
an existing `uv.lock` with the pins.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "pyproject.toml"
EXPORT = ROOT / "requirements.lock.txt"
BUILD = ROOT / "requirements.build.txt"
BUILD_HEADER = "# Hash-pinned build back end; written by tools/lock.py, refreshed by `make lock`.\n"
BEGIN = "# begin pins: written by tools/lock.py, refreshed by `make lock`\n"
END = "# end pins\n"
# What inspect-ai brings for logs in a bucket allows no present version of these; pandas and dask use them.
# For the same reason pip cannot install that extra beside the others, so no export holds it. Frameworks of
# agents are installed where the agent runs; the image, which is what the export is for, runs none.
NOT_EXPORTED = ("inspect", "langchain", "openai-agents")
OVERRIDES = ["fsspec", "python-dateutil"]
HEADER = "# Hash-pinned core and extras; written by tools/lock.py, refreshed by `make lock`.\n"

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)\s*(?:;\s*(?P<marker>[^\\]+?))?\s*\\?$")


def versions_by_name(lines: list[str]) -> dict[str, set[str]]:
    """Versions pinned for each package in requirement lines; hashes and comments are passed over."""
    versions: dict[str, set[str]] = {}
    for match in filter(None, map(_PIN.match, lines)):
        versions.setdefault(_normal(match["name"]), set()).add(match["version"])
    return versions


def pinned_versions(project_text: str) -> dict[str, set[str]]:
    """Versions pinned by the constraints of a project file."""
    return versions_by_name(tomllib.loads(project_text)["tool"]["uv"]["constraint-dependencies"])


def locked_versions(lock_text: str) -> dict[str, set[str]]:
    """Versions of every registry package in a `uv.lock`; the project itself has no registry source."""
    versions: dict[str, set[str]] = {}
    for package in tomllib.loads(lock_text)["package"]:
        if "registry" in package["source"]:
            versions.setdefault(_normal(package["name"]), set()).add(package["version"])
    return versions


def strip_pins(project_text: str) -> str:
    """The project file without its block of pins."""
    return re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), "", project_text, flags=re.DOTALL)


def constraint_lines(requirements: list[str]) -> list[str]:
    """Exact pins, with the marker kept only where a package has more than one version."""
    counts = versions_by_name(requirements)
    lines = []
    for match in filter(None, map(_PIN.match, requirements)):
        several = len(counts[_normal(match["name"])]) > 1
        marker = f" ; {match['marker']}" if several else ""
        lines.append(f"{match['name']}=={match['version']}{marker}")
    return lines


def pins_block(constraints: list[str], build_constraints: list[str]) -> str:
    """The block of the project file that holds all pins."""
    sections = [
        ("override-dependencies", OVERRIDES),
        ("constraint-dependencies", constraints),
        ("build-constraint-dependencies", build_constraints),
    ]
    body = "".join(
        f"{key} = [\n" + "".join(f'    "{line}",\n' for line in lines) + "]\n" for key, lines in sections
    )
    return f"{BEGIN}[tool.uv]\n{body}{END}"


def refresh() -> None:
    """Resolve everything anew in a scratch folder, then write pins and export together."""
    bare = strip_pins(PROJECT.read_text("utf-8")).rstrip("\n") + "\n"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shutil.copy(ROOT / "README.md", folder)
        (folder / "pyproject.toml").write_text(f"{bare}\n{pins_block([], [])}", "utf-8")
        _uv(folder, "lock", "--upgrade")
        resolved = _export(folder, "--all-groups", "--no-hashes")
        build = _build_pins(folder, bare)
        pinned = bare + "\n" + pins_block(constraint_lines(resolved), constraint_lines(build))
        (folder / "pyproject.toml").write_text(pinned, "utf-8")
        _uv(folder, "lock")
        hashed = _export(folder, "--no-default-groups", *(f"--no-extra={name}" for name in NOT_EXPORTED))
    PROJECT.write_text(pinned, "utf-8")
    EXPORT.write_text(HEADER + "\n".join(hashed) + "\n", "utf-8")
    BUILD.write_text(BUILD_HEADER + "\n".join(build) + "\n", "utf-8")


def check() -> list[str]:
    """Packages of the present `uv.lock` whose versions are not the pinned ones."""
    pins = pinned_versions(PROJECT.read_text("utf-8"))
    locked = locked_versions((ROOT / "uv.lock").read_text("utf-8"))
    return [f"{name} {sorted(v)}" for name, v in sorted(locked.items()) if pins.get(name) != v]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _build_pins(folder: Path, project_text: str) -> list[str]:
    wanted = folder / "build.in"
    wanted.write_text("\n".join(tomllib.loads(project_text)["build-system"]["requires"]), "utf-8")
    options = ["--universal", "--python-version", "3.11", "--no-header", "--no-annotate", "--generate-hashes"]
    return _uv(folder, "pip", "compile", wanted.name, *options).splitlines()


def _export(folder: Path, *options: str) -> list[str]:
    shared = ["--all-extras", "--no-emit-project", "--no-header", "--no-annotate"]
    return _uv(folder, "export", *shared, *options).splitlines()


def _uv(folder: Path, *arguments: str) -> str:
    command = ["uv", *arguments, "--quiet"]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> int:
    """Exit 0 when pins are written, or with `--check` when the lock holds exactly the pinned versions."""
    parser = argparse.ArgumentParser(description="Rewrite or check every pin of the project.")
    parser.add_argument("--check", action="store_true", help="compare uv.lock with the pins, write nothing")
    if not parser.parse_args().check:
        refresh()
        return 0
    differing = check()
    for line in differing:
        print(f"not pinned as resolved: {line}; run `make lock`", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
