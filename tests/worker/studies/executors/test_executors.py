"""Where tasks run changes no bit of their answers; deaths, stops and what cannot be imported are told."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

from schemas.errors import ConfigError, DataError, InfrastructureError
from tests.worker.studies.executors.tasks import die, die_once, own_error, raise_of_two, total
from worker.feeds.sample_data.worlds import make_world
from worker.studies.executors import process_pool
from worker.studies.executors.choosing import opened_executor
from worker.studies.executors.executor import SerialExecutor, TaskLost
from worker.studies.executors.kept_answers import KeptAnswers, run_tasks
from worker.studies.executors.process_pool import ProcessPool
from worker.studies.executors.shared_bars import bars_key, read_bars, write_bars

BARS = make_world("random_walk", seed=1, bars=300, symbols=2)
ROOT = Path(__file__).parents[4]


def nothing():
    return None


@pytest.fixture(scope="module")
def pool():
    with opened_executor("processes", processes=2) as executor:
        yield executor


@pytest.fixture(scope="module")
def cluster():
    """A real scheduler with two workers on loopback, each a command of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        with opened_executor("local", processes=2) as executor:
            yield executor


@pytest.fixture(params=["pool", "cluster"])
def executor(request):
    return request.getfixturevalue(request.param)


def answers(executor):
    key = executor.share(BARS)
    return dict(executor.run(total, {f"task {n}": (key, n) for n in range(7)}, nothing))


def test_answers_are_the_same_bit_by_bit_wherever_tasks_run(executor):
    serial = SerialExecutor()
    expected = answers(serial)
    serial.close()
    assert answers(executor) == expected
    assert len(set(expected.values())) == 7


def test_dead_worker_costs_its_task_which_runs_again(executor, tmp_path):
    tasks = {f"life {n}": (str(tmp_path), str(n)) for n in range(4)}
    found = dict(executor.run(die_once, tasks, nothing))
    assert found == {f"life {n}": str(n) for n in range(4)}
    starts = {path.name: len(path.read_text().splitlines()) for path in tmp_path.iterdir()}
    assert starts["0"] == 2
    assert answers(executor)  # the worker that took the place of the dead one has the bars


def test_task_that_kills_twice_is_named_and_all_others_have_answers(executor):
    found = []
    tasks = {"deadly": "bad", "one": "a", "two": "b"}
    with pytest.raises(TaskLost, match="'deadly'"):
        found.extend(executor.run(die, tasks, nothing))
    assert dict(found) == {"one": "a", "two": "b"}


def test_error_of_a_task_is_raised_as_it_was(executor):
    with pytest.raises(DataError, match="bars 'none' were not shared with this worker"):
        list(executor.run(total, {"lost bars": ("none", 1)}, nothing))


def test_error_that_cannot_be_made_anew_is_raised_by_its_name(pool):
    with pytest.raises(InfrastructureError, match="OfTwo: no number in row 7"):
        list(pool.run(raise_of_two, {"one": 7}, nothing))
    assert answers(pool)


def test_worker_that_dies_before_it_reads_its_task_costs_nothing(monkeypatch):
    started: list[process_pool._Worker] = []

    class Doomed(process_pool._Worker):
        def __init__(self, folder):
            super().__init__(folder)
            started.append(self)
            if len(started) == 1:
                self.process.kill()
                self.process.join()

    monkeypatch.setattr(process_pool, "_Worker", Doomed)
    with opened_executor("processes", processes=2) as executor:
        assert dict(executor.run(len, {"one": "a", "two": "bb"}, nothing)) == {"one": 1, "two": 2}
    assert len(started) == 3


def test_stop_ends_the_tasks_and_the_next_study_runs(pool, tmp_path):
    class Stopped(Exception):
        pass

    def stop():
        raise Stopped

    with pytest.raises(Stopped):
        list(pool.run(die_once, {"one": (str(tmp_path), "1")}, stop))
    assert answers(pool)


def test_bars_come_back_as_they_were_mapped_and_not_copied(tmp_path):
    key = write_bars(BARS, tmp_path)
    found = read_bars(tmp_path / f"{key}.arrow")
    assert (found.sha256, bars_key(found)) == (BARS.sha256, key)
    assert found.close.flags.aligned
    assert found.close.flags.writeable
    assert not found.close.flags.owndata
    found.close[0, 0] += 1.0
    assert read_bars(tmp_path / f"{key}.arrow").close[0, 0] == BARS.close[0, 0]


def test_script_without_a_main_guard_is_not_run_again_by_workers(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from tests.worker.studies.executors.tasks import die\n"
        "from worker.studies.executors.choosing import opened_executor\n"
        "print('started')\n"
        "with opened_executor('processes', processes=1) as executor:\n"
        "    print(dict(executor.run(die, {'k': 'v'}, lambda: None)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert done.stdout == "started\n{'k': 'v'}\n", done.stderr


def test_unknown_executor_and_cluster_are_refused_with_the_next_step():
    for given, shown in (
        ("pool", "executor 'pool': give 'serial'"),
        ("tcp://127.0.0.1:9", "no scheduler answers"),
    ):
        with pytest.raises(ConfigError, match=shown), opened_executor(given):
            pass
    with pytest.raises(ConfigError, match="processes 0: give 1 or more"), opened_executor(processes=0):
        pass


def test_client_of_the_caller_is_used_and_stays_open(cluster):
    with Client(cluster._client.scheduler.address, set_as_default=False) as client:
        with opened_executor(client) as executor:
            assert len(answers(executor)) == 7
        assert client.status == "running"


def test_one_task_or_one_process_needs_no_pool():
    with opened_executor(tasks=1) as one, opened_executor(processes=1, tasks=9) as alone:
        assert isinstance(one, SerialExecutor)
        assert isinstance(alone, SerialExecutor)
    with opened_executor(processes=2, tasks=9) as several:
        assert isinstance(several, ProcessPool)


class Counting(SerialExecutor):
    """Ends after some tasks, as a killed process does, and counts those that it ran."""

    def __init__(self, most):
        super().__init__()
        self.most, self.ran = most, []

    def run(self, work, tasks, look):
        for number, (key, answer) in enumerate(super().run(work, tasks, look)):
            if number == self.most:
                raise KeyboardInterrupt
            self.ran.append(key)
            yield key, answer


def described(task):
    return {"n": task, "half": task / 3.0, "row": np.arange(task) / 7.0, "raw": bytes([task]), "none": None}


def test_study_that_is_killed_three_times_repeats_nothing_and_finds_the_same(tmp_path):
    tasks = {f"task {n}": n for n in range(10)}
    whole = run_tasks(SerialExecutor(), described, tasks, None, lambda done, of: None)
    ran = []
    for _ in range(3):
        executor = Counting(most=2)
        with pytest.raises(KeyboardInterrupt):
            run_tasks(executor, described, tasks, KeptAnswers(tmp_path), lambda done, of: None)
        ran += executor.ran
    last = Counting(most=99)
    found = run_tasks(last, described, tasks, KeptAnswers(tmp_path), lambda done, of: None)
    assert sorted([*ran, *last.ran]) == sorted(tasks)
    assert list(found) == list(whole)
    for key, answer in whole.items():
        np.testing.assert_array_equal(found[key].pop("row"), answer.pop("row"))
        assert found[key] == answer


def test_damaged_answer_is_named_with_the_next_step(tmp_path):
    kept = KeptAnswers(tmp_path)
    kept.keep("one", {"n": 1})
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(ConfigError, match="remove it, and its task runs again"):
        kept.find("one")


def test_answer_with_an_error_is_not_kept_and_its_task_runs_again(tmp_path):
    failing: list[dict[str, Any]] = [{"n": 1, "error": "no answer"}, {"n": 2}]
    for expected in ([["one"], 1], [["one"], 2], [[], 2]):
        executor = Counting(most=9)
        found = run_tasks(
            executor, lambda task: failing.pop(0), {"one": 1}, KeptAnswers(tmp_path), lambda done, of: None
        )
        assert [executor.ran, found["one"]["n"]] == expected


def test_folder_of_answers_that_is_gone_is_made_again_and_one_that_cannot_be_is_named(tmp_path):
    kept = KeptAnswers(tmp_path / "answers")
    (tmp_path / "answers").rmdir()
    kept.keep("one", {"n": 1})
    assert kept.find("one") == {"n": 1}
    with pytest.raises(ConfigError, match="File exists: give one to write into"):
        KeptAnswers(next((tmp_path / "answers").iterdir()))
    lost = KeptAnswers(tmp_path / "other")
    (tmp_path / "other").rmdir()
    (tmp_path / "other").write_text("")
    with pytest.raises(ConfigError, match="give one to write into"):
        lost.keep("one", {"n": 1})


def test_worker_without_the_module_of_a_feature_says_so(executor):
    with pytest.raises(ConfigError, match=r"feature 'mine': this worker cannot import 'nowhere'"):
        list(executor.run(own_error, {"one": "nowhere"}, nothing))
