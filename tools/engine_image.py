"""Write the engine's image, `trading_core/engine_image.xz`: all that is compiled, for one kind of processor.

uv run python -m tools.engine_image          about 40 CPU seconds; the same bytes each time
uv run python -m tools.engine_image --check  whether the image is for these sources and pins
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from trading_core.compiled import CPU, IMAGE, UnusableImage, read_image

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """
import sys
from pathlib import Path
from trading_core.compiled import encode_image, number_apart
number_apart()
from worker.runs.warm_up import call_everything
Path(sys.argv[1]).write_bytes(encode_image(call_everything()))
"""


def build(path: Path = IMAGE) -> None:
    """Compile everything in a process and a cache of their own, and write its image."""
    with TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "NUMBA_CPU_NAME": CPU,
            "NUMBA_CPU_FEATURES": "",
            "PYTHONHASHSEED": "0",
            "THINKTWICE_CACHE_DIR": folder,
        }
        subprocess.run([sys.executable, "-c", PROGRAM, str(path)], env=environment, cwd=ROOT, check=True)


def main(arguments: list[str]) -> int:
    """Exit status: 1 where the image is to be written again."""
    if arguments != ["--check"]:
        build()
    try:
        read_image(IMAGE)
    except UnusableImage as error:
        print(f"{error}: run `uv run python -m tools.engine_image`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
