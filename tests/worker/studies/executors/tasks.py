"""Work of tasks that the tests hand to executors."""

import os
import signal
from pathlib import Path

from worker.studies.executors.named_features import NamedFeature, load_features
from worker.studies.executors.shared_bars import shared_bars


def total(task: tuple[str, int]) -> float:
    """Sum of some closes of shared bars, times a number."""
    key, number = task
    return float(shared_bars(key).close[: number + 1].sum()) * (number + 0.1)


def die_once(task: tuple[str, str]) -> str:
    """Ends its process unless it did so before; marks lie in a folder, a line for each start."""
    folder, name = task
    with (Path(folder) / name).open("a") as marks:
        marks.write("start\n")
    if name == "0" and len((Path(folder) / name).read_text().splitlines()) < 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return name


def die(task: str) -> str:
    """Ends its process where the task says so."""
    if task == "bad":
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def own_error(module: str) -> None:
    """Asks for a feature that a module would define."""
    load_features([NamedFeature("mine", module, "0" * 64)])


class OfTwo(Exception):
    """Takes two arguments and hands on one, so that no pickle of it can be read."""

    def __init__(self, what: str, row: int) -> None:
        super().__init__(f"{what} in row {row}")


def raise_of_two(task: int) -> None:
    """Raises what cannot be made anew elsewhere."""
    raise OfTwo("no number", task)
