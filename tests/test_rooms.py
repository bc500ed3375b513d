import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hatch_build

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ["schemas", "trading_core", "services", "agents", "prompts", "worker"]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]


@pytest.mark.parametrize("room", ROOMS)
def test_room_imported_from_elsewhere_is_ours(room, tmp_path):
    # A fresh interpreter in another folder: only the installed environment decides which package wins.
    command = [sys.executable, "-P", "-c", f"import {room}; print({room}.__file__)"]
    found = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()
    assert Path(found).resolve() == ROOT / room / "__init__.py"


def test_wheel_and_import_contracts_cover_every_room():
    assert sorted(hatch_build.ROOMS) == sorted(ROOMS)
    assert sorted(CONFIG["importlinter"]["root_packages"]) == sorted([*ROOMS, "thinktwice"])


def test_import_contracts_hold_the_direction_of_the_rooms():
    layered = [c for c in CONFIG["importlinter"]["contracts"] if c["type"] == "layers"]
    assert layered[0]["layers"] == ["thinktwice", "worker", "agents", "services", "trading_core", "schemas"]
    inside = {c["containers"][0]: c for c in layered[1:]}
    assert set(inside) == {"services", "worker"}
    for room, contract in inside.items():
        assert contract["exhaustive"]
        named = {part.strip() for layer in contract["layers"] for part in layer.split("|")}
        held = {path.stem for path in (ROOT / room).iterdir() if path.suffix in ("", ".py")}
        assert named == {item for item in held if not item.startswith("__")}


@pytest.mark.parametrize(
    "package", ["anthropic", "openai", "sqlalchemy", "asyncpg", "apscheduler", "prompts"]
)
def test_import_contracts_keep_models_and_stores_out_of_the_engine(package):
    forbidden = [c for c in CONFIG["importlinter"]["contracts"] if c["type"] == "forbidden"]
    engine = [c for c in forbidden if "trading_core" in c["source_modules"]]
    assert any(package in c["forbidden_modules"] for c in engine)
