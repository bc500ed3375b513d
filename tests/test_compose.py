"""The containers start commands that exist, on loopback, with a password that only files hold."""

import asyncio
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml  # type: ignore[import-untyped]  # ships no types
from typer.testing import CliRunner

from services.store.migrations import HEAD
from tests.worker.operations.asking import endpoint
from tools.lock import versions_by_name
from trading_core.compiled_cache import cache_folder
from worker.cli import app

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if "build" in service]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


def instructions(name):
    return re.findall(rf"^{name} (.+)$", DOCKERFILE, re.MULTILINE)


@pytest.mark.parametrize("name", OURS)
def test_container_starts_a_command_that_exists(name):
    done = CliRunner().invoke(app, [*SERVICES[name]["command"], "--help"])
    assert done.exit_code == 0, done.output


def test_containers_are_started_in_the_order_database_tables_worker():
    assert OURS == ["upgrade", "worker"]
    assert "healthcheck" in SERVICES["db"]
    assert SERVICES["upgrade"]["depends_on"] == {"db": {"condition": "service_healthy"}}
    assert SERVICES["worker"]["depends_on"] == {"upgrade": {"condition": "service_completed_successfully"}}


def test_database_and_worker_are_started_again_and_the_upgrade_ends():
    again = {name: service.get("restart") for name, service in SERVICES.items()}
    assert again == {"db": "unless-stopped", "upgrade": "no", "worker": "unless-stopped"}


def test_database_is_the_newest_major_and_keeps_its_files_where_that_looks_for_them():
    assert SERVICES["db"]["image"] == "postgres:18"
    assert SERVICES["db"]["volumes"] == ["database:/var/lib/postgresql"]


def test_ports_are_open_on_loopback_only():
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_password_stands_in_a_file_outside_the_repository_and_nowhere_else():
    assert COMPOSE["secrets"] == {"db_password": {"file": "./secrets/db_password"}}
    assert all(service["secrets"] == ["db_password"] for service in SERVICES.values())
    environments = [service.get("environment", {}) for service in SERVICES.values()]
    named = {
        name: environment[name] for environment in environments for name in environment if "PASSWORD" in name
    }
    assert named == dict.fromkeys(
        ("POSTGRES_PASSWORD_FILE", "THINKTWICE_DB_PASSWORD_FILE"), "/run/secrets/db_password"
    )
    # No shell puts it into the environment of the process that it starts, either.
    assert not any("entrypoint" in service for service in SERVICES.values())
    assert "/secrets/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()


def test_two_containers_at_once_make_the_tables_with_the_password(postgres_url, tmp_path):
    server = urlsplit(postgres_url)
    (tmp_path / "password").write_text(f"{server.password}\n")
    [given] = {tuple(SERVICES[name]["environment"].items()) for name in OURS}
    here = {
        "/run/secrets/db_password": str(tmp_path / "password"),
        "thinktwice@db:5432/thinktwice": f"{server.username}@{server.hostname}:{server.port}{server.path}",
    }
    environment = dict(os.environ)
    for there, replacement in here.items():
        assert any(there in value for _, value in given)
        environment |= {name: value.replace(there, replacement) for name, value in given if there in value}
    thinktwice = os.path.join(sysconfig.get_path("scripts"), json.loads(instructions("ENTRYPOINT")[0])[0])
    words = [thinktwice, *SERVICES["upgrade"]["command"]]
    out, err = subprocess.PIPE, subprocess.STDOUT
    both = [
        subprocess.Popen(words, cwd=tmp_path, env=environment, text=True, stdout=out, stderr=err)
        for _ in range(2)
    ]
    lines = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], lines
    assert all(f"{server.path} is at revision {HEAD}" in entry for entry in lines)
    assert sorted("applied" in entry for entry in lines) == [False, True]
    assert str(server.password) not in "".join(lines)


def test_image_installs_what_the_hashes_name_and_runs_as_a_plain_user():
    assert "pip install --require-hashes -r requirements.lock.txt" in instructions("RUN")
    assert instructions("USER") == ["thinktwice"]
    assert instructions("ENTRYPOINT") == ['["thinktwice"]']


def test_image_builds_with_a_back_end_of_pinned_version_and_hash():
    commands = instructions("RUN")
    hashed = commands.index("pip install --require-hashes -r requirements.build.txt")
    assert commands[hashed + 1] == "pip install --no-deps --no-build-isolation ."
    assert len([command for command in commands if "pip install" in command]) == 3
    lines = (ROOT / "requirements.build.txt").read_text("utf-8").splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    pinned = versions_by_name(project["tool"]["uv"]["build-constraint-dependencies"])
    assert versions_by_name(lines) == pinned
    assert set(project["build-system"]["requires"]) <= pinned.keys()
    for number, line in enumerate(lines):
        if "==" in line:
            assert "--hash=sha256:" in lines[number + 1]
    assert "://" not in "".join(lines)


def test_image_compiles_where_the_program_looks_and_as_the_user_who_runs_it(tmp_path, monkeypatch):
    [given] = re.findall(r"^ENV (.+?[^\\])$", DOCKERFILE, re.MULTILINE | re.DOTALL)
    environment = dict(word.split("=", 1) for word in given.replace("\\\n", " ").split())
    assert "NUMBA_CACHE_DIR" not in environment
    folder = environment["THINKTWICE_CACHE_DIR"]
    monkeypatch.setenv("THINKTWICE_CACHE_DIR", str(tmp_path))
    assert cache_folder().is_relative_to(tmp_path)
    made, compiled = f"install --directory --owner=thinktwice {folder}", "compile_engine()"
    assert made in DOCKERFILE
    assert DOCKERFILE.index(made) < DOCKERFILE.index("\nUSER thinktwice") < DOCKERFILE.index(compiled)


def test_health_check_of_the_worker_asks_the_endpoint_that_its_environment_opens():
    service = SERVICES["worker"]
    kind, program, *words = service["healthcheck"]["test"]
    port = service["environment"]["THINKTWICE_RUNTIME__OPERATIONS__PORT"]
    assert (kind, program) == ("CMD", "python")
    assert f"127.0.0.1:{port}/health" in words[-1]
    assert "healthcheck" not in SERVICES["upgrade"]  # it ends by itself

    async def checked():
        async with endpoint() as one:
            command = [sys.executable, *(word.replace(port, str(one.port)) for word in words)]
            up = await asyncio.create_subprocess_exec(*command)
            codes = [await up.wait()]
        down = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
        return [*codes, await down.wait()]

    assert asyncio.run(checked()) == [0, 1]


def test_password_that_the_page_makes_is_read_by_the_user_of_the_image_under_any_umask(tmp_path):
    page = (ROOT / "docs/how-to/use-postgresql.md").read_text("utf-8")
    made = page.split("```sh\n")[1].split("docker compose")[0]
    for umask in ("022", "077"):
        folder = tmp_path / umask
        folder.mkdir()
        subprocess.run(["sh", "-ec", f"umask {umask}\n{made}"], cwd=folder, check=True)
        assert (folder / "secrets").stat().st_mode & 0o777 == 0o700
        assert (folder / "secrets" / "db_password").stat().st_mode & 0o777 == 0o644


def test_image_holds_every_room_and_nothing_that_is_not_there():
    copied = [word for line in instructions("COPY") for word in line.split()[:-1]]
    kept = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert all((ROOT / name).exists() for name in copied)
    assert {"schemas", "trading_core", "services", "agents", "prompts", "worker"} <= set(copied)
    assert {f"!{name}" for name in copied} <= set(kept)
    assert kept[0] == "*"
