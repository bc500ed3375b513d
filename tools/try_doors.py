"""Tries doors of the guard with frameworks that no test can import, each in an environment of its own.

`make doors-check` takes minutes and reaches the package index. The OpenAI Agents SDK is a package called
`agents`, as a room of this checkout is; freqtrade brings a hundred packages. Each is installed beside the
wheel, and its script of `tests/doors/alone` runs agents before a broker that counts; its page runs, too.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.docs_pages import DOCS, ROOT, fences

SCRIPTS = ROOT / "tests" / "doors" / "alone"
PAGES = DOCS / "how-to" / "guard"
FRAMEWORKS = {"openai-agents": "run_openai_agents.py", "freqtrade": "run_freqtrade.py"}


def try_door(wheel: Path, package: str, script: Path, folder: Path) -> None:
    """Install a framework beside the wheel and run its script.

    Raises:
        subprocess.CalledProcessError: it failed; what it said stands on stderr.
    """
    uv = shutil.which("uv") or "uv"
    home, here = folder / "environment", folder / "work"
    here.mkdir(parents=True)
    subprocess.run([uv, "venv", "-q", "--python", "3.11", str(home)], check=True)
    program = home / "bin" / "python"
    subprocess.run([uv, "pip", "install", "-q", "--python", str(program), str(wheel), package], check=True)
    [block] = [fence.text for fence in fences(PAGES / f"{package}.md") if fence.language == "python"]
    (here / "page.py").write_text(block, "utf-8")
    for path in (script, here / "page.py"):
        subprocess.run([str(program), "-P", str(path)], cwd=here, check=True)


def main(packages: list[str]) -> int:
    """Build once, try each; those named, or all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        uv = shutil.which("uv") or "uv"
        subprocess.run([uv, "build", "-q", "--wheel", "-o", str(folder)], cwd=ROOT, check=True)
        [wheel] = folder.glob("*.whl")
        for package in packages or FRAMEWORKS:
            sys.stdout.write(f"{package}\n")
            sys.stdout.flush()
            try_door(wheel, package, SCRIPTS / FRAMEWORKS[package], folder / package)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
