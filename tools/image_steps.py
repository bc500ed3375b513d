"""Runs the steps of the Dockerfile in a fresh folder, without Docker, and tries what they made.

Paths of the image lie below the folder, its interpreter is a virtual environment of this Python version, and
its user is the same number when root runs this, else whoever does. What follows is what compose would do:
secrets as the how-to page makes them under umask 077, and the first run, which must compile nothing.
`make image-check` takes minutes and reaches the package index that pip is set to.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from schemas.errors import ConfigError
from tools.dockerfile import Step, copy_context, steps
from tools.docs_pages import DOCS, ROOT

SECRETS_PAGE = DOCS / "how-to" / "use-postgresql.md"
REACHES_INDEX = ("PIP_", "SSL_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
SHELL_SIGNS = frozenset("|;<>`$&")
# Counts what numba compiles in this process; what comes from the disk cache is not compiled.
COUNTED = """
import atexit
from numba.core import event
heard = event.RecordingListener()
event.register("numba:compile", heard)
atexit.register(lambda: print("compiled", len(heard.buffer)))
from thinktwice.__main__ import main
main()
"""


@dataclass
class Image:
    """The state that the steps of a Dockerfile build up, below one folder."""

    prefix: Path
    context: Path
    environment: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = "root"
    uids: dict[str, int] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()

    def path(self, inside: str) -> Path:
        """Where a path of the image lies here."""
        return self.prefix / inside.lstrip("/")

    def take(self, step: Step) -> None:
        """Do what one instruction says.

        Raises:
            ConfigError: it failed or says what this cannot do, with its line.
        """
        try:
            getattr(self, f"_{step.name.lower()}")(step.text)
        except (ConfigError, OSError) as error:
            raise ConfigError(f"Dockerfile:{step.line}: {step.name} {step.text}: {error}") from error

    def run(self, words: Sequence[str], extra: Mapping[str, str] | None = None) -> str:
        """What a program prints that the user of the image starts in its working folder.

        Raises:
            ConfigError: it ended with an error; its output is in the message.
        """
        uid = self.uids.get(self.user) if os.geteuid() == 0 else None
        account = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        home = "/root" if self.user == "root" else f"/home/{self.user}"
        environment = {**self.environment, "HOME": str(self.path(home)), **(extra or {})}
        program = shutil.which(words[0], path=environment["PATH"])
        if program is None:
            raise ConfigError(f"the image has no program {words[0]!r}")
        done = subprocess.run(
            [program, *words[1:]],
            cwd=self.path(self.workdir),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            umask=0o022,
            **account,  # type: ignore[call-overload]  # none of the three, or all
        )
        if done.returncode:
            raise ConfigError(f"ended with {done.returncode}:\n{done.stdout[-4_000:]}")
        return str(done.stdout)

    def _from(self, text: str) -> None:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        if not text.startswith(f"python:{version}-"):
            raise ConfigError(f"this is Python {version}: `uv run --python` takes that of the image")
        base = Path(sys.base_prefix)
        if os.geteuid() == 0 and not _open_to_all(base):
            # Another user cannot enter the folder of root's interpreter.
            left = shutil.ignore_patterns("site-packages", "__pycache__", "test", "*.a")
            base = Path(shutil.copytree(base, self.path("/python"), symlinks=True, ignore=left))
        self.path("/root").mkdir(parents=True)
        libraries = {"LD_LIBRARY_PATH": str(base / "lib")}
        local = self.path("/usr/local")
        subprocess.run(
            [base / "bin" / f"python{version}", "-m", "venv", local],
            check=True,
            env={**os.environ, **libraries},
        )
        self.environment |= libraries | {
            "PATH": f"{local / 'bin'}{os.pathsep}{os.defpath}",
            "LANG": "C.UTF-8",
        }
        self.environment |= {k: v for k, v in os.environ.items() if k.upper().startswith(REACHES_INDEX)}
        settings = Path.home() / ".config" / "pip" / "pip.conf"
        if settings.exists():
            self.environment["PIP_CONFIG_FILE"] = str(settings)

    def _env(self, text: str) -> None:
        for name, value in (word.split("=", 1) for word in shlex.split(text)):
            self.environment[name] = str(self.path(value)) if value.startswith("/") else value

    def _workdir(self, text: str) -> None:
        self.path(text).mkdir(parents=True, exist_ok=True)
        self.workdir = text

    def _copy(self, text: str) -> None:
        *sources, target = text.split()
        for source in sources:
            origin = self.context / source
            there = self.path(self.workdir) / target / (source if target.endswith("/") else "")
            (shutil.copytree if origin.is_dir() else shutil.copy)(origin, there)

    def _run(self, text: str) -> None:
        for command in text.split(" && "):
            words = shlex.split(command)
            own = {"useradd": self._useradd, "install": self._install}.get(words[0])
            if own is not None:
                own(words[1:])
            elif SHELL_SIGNS & set("".join(words[:1] if "-c" in words else words)):
                raise ConfigError(f"{command!r} needs a shell")
            else:
                self.run(words)

    def _useradd(self, words: Sequence[str]) -> None:
        if words[:2] != ["--create-home", "--uid"] or len(words) != 4:
            raise ConfigError("only `useradd --create-home --uid NUMBER NAME` is understood")
        self.uids[words[3]] = int(words[2])
        self._own(f"/home/{words[3]}", words[3], 0o700)

    def _install(self, words: Sequence[str]) -> None:
        if len(words) != 3 or words[0] != "--directory" or not words[1].startswith("--owner="):
            raise ConfigError("only `install --directory --owner=NAME FOLDER` is understood")
        self._own(words[2], words[1].removeprefix("--owner="), 0o755)

    def _own(self, folder: str, owner: str, mode: int) -> None:
        self.path(folder).mkdir(parents=True)
        self.path(folder).chmod(mode)
        if os.geteuid() == 0:
            os.chown(self.path(folder), self.uids[owner], self.uids[owner])

    def _user(self, text: str) -> None:
        if text not in self.uids:
            raise ConfigError(f"no step made the user {text!r}")
        self.user = text

    def _entrypoint(self, text: str) -> None:
        self.entrypoint = tuple(json.loads(text))

    def _cmd(self, text: str) -> None:
        self.command = tuple(json.loads(text))


def build(prefix: Path, root: Path = ROOT) -> Image:
    """The image that the Dockerfile of a repository describes, below an empty folder that others may enter.

    Raises:
        ConfigError: a step failed.
    """
    copy_context(root, prefix / "context")
    image = Image(prefix / "image", prefix / "context")
    image.prefix.mkdir()
    for step in steps((root / "Dockerfile").read_text("utf-8")):
        started = time.perf_counter()
        image.take(step)
        _say(f"{step.line:>3}  {time.perf_counter() - started:6.1f} s  {step.name} {step.text}")
    return image


def lay_out_secrets(image: Image, host: Path) -> dict[str, str]:
    """Make the password as the page says, under umask 077; the file is the image's, as with compose.

    Returns:
        What compose adds to the environment for it.
    """
    made = SECRETS_PAGE.read_text("utf-8").split("```sh\n")[1].split("docker compose")[0]
    host.mkdir()
    subprocess.run(["sh", "-ec", f"umask 077\n{made}"], cwd=host, check=True)
    inside = image.path("/run/secrets/db_password")
    inside.parent.mkdir(parents=True)
    os.link(host / "secrets" / "db_password", inside)  # owner and mode stay, as in a bind mount
    return {"THINKTWICE_DB_PASSWORD_FILE": str(inside)}


def try_it(image: Image, secrets: Mapping[str, str]) -> None:
    """Start the program as a container would.

    Raises:
        ConfigError: it does not start, cannot read the password, or its first run compiles.
    """
    if "Usage: thinktwice" not in image.run([*image.entrypoint, *image.command]):
        raise ConfigError("ENTRYPOINT with CMD prints no help")
    checks = json.loads(image.run([*image.entrypoint, "doctor", "--json"], secrets))["checks"]
    for check in checks:
        if check["name"] in ("secret_files", "compiled_code", "settings"):
            _say(f"doctor: {check['name']} {check['state']}: {check['found']}")
            if check["state"] == "failed":
                raise ConfigError(f"doctor: {check['name']}: {check['found']}")
    before = compiled_files(image)
    started = time.perf_counter()
    text = image.run(["python", "-c", COUNTED, "backtest"], secrets)
    _say(f"first backtest: {time.perf_counter() - started:.1f} s, {text.splitlines()[-1]}")
    if not text.endswith("compiled 0\n") or compiled_files(image) != before or not before:
        raise ConfigError(f"the first run compiles: {text.splitlines()[-1]}, {len(before)} files were cached")


def compiled_files(image: Image) -> dict[str, int]:
    """Every file of compiled code below the folder of the image, with the time of its last change."""
    return {str(path): path.stat().st_mtime_ns for path in image.prefix.rglob("*.nb[ci]")}


def _open_to_all(folder: Path) -> bool:
    return all(part.stat().st_mode & 0o005 == 0o005 for part in (folder, *folder.parents))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Build below a temporary folder, try it, and remove it."""
    with tempfile.TemporaryDirectory(prefix="thinktwice-image-") as name:
        prefix = Path(name)
        prefix.chmod(0o755)
        try:
            image = build(prefix)
            try_it(image, lay_out_secrets(image, prefix / "host"))
        except ConfigError as error:
            _say(f"error: {error}")
            return 1
    _say("the image builds, starts and compiles nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
