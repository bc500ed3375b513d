"""`thinktwice worlds`: rates where the truth is known, by the running gate."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import gate_worlds
from tests.commands.started import thinktwice
from worker.cli import app
from worker.studies.worlds.table import QUICK

TINY = ("--world", "counts", "--per-week", "2", "--runs", "4", "--processes", "1")


def run(*words):
    return CliRunner().invoke(app, ["worlds", *words])


def document(*words):
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_one_world_with_its_parameters_gives_rates_with_errors_and_targets():
    found = document(
        "--world", "symbols", "--symbols", "4", "--rho", "0.5", "--runs", "6", "--processes", "1"
    )
    (row,) = found["rows"]
    assert (row["group"], row["runs"], found["targets"]) == ("null", 6, 1)
    assert row["parameters"]["given"]["symbols"] == 4
    assert set(row["rates"]["any"]) == {"rate", "se", "n", "target", "at_least", "holds"}
    assert found["worst"]["world"] == row["world"] == "symbols, t3, 1 a week, 4 at once, rho 0.5"


def test_planted_loss_is_found_and_its_blocks_are_told():
    words = ("--world", "independent", "--per-week", "15", "--planted", "-0.8", "--runs", "8")
    (row,) = document(*words, "--processes", "1")["rows"]
    assert row["group"] == "power"
    assert row["rates"]["by 52"]["rate"] >= 0.5
    assert 5 <= row["medians"]["blocks"] <= 40


def test_profitable_world_is_held_against_being_called_losing():
    (row,) = document("--world", "trend", "--edge", "0.3", "--runs", "4", "--processes", "1")["rows"]
    assert row["group"] == "wrong side"
    assert row["rates"]["losing"]["target"] == 0.03
    assert row["rates"]["losing"]["rate"] == 0.0


def test_same_seed_gives_the_same_bytes_and_another_seed_other_worlds():
    first, again, other = (run(*TINY, "--seed", seed, "--json").stdout for seed in ("5", "5", "6"))
    assert first == again != other


def test_small_table_begins_with_the_worst_world_and_has_every_group():
    text = run("--runs", "1", "--processes", "1").stdout
    assert text.startswith("worst null world: ")
    assert "targets hold" in text.splitlines()[0]
    lines = text.splitlines()
    assert all(group in lines or any(line.strip() == group for line in lines) for group in QUICK)


@pytest.mark.parametrize(
    ("words", "label", "figure"),
    [
        (("decay",), "decay, t3, 5 a week, +0.2 to -0.3R, 2 years", "E of 20"),
        (("decay", "--planted", "0.4", "--later", "-0.4", "--target", "2", "--years", "3"),
         "decay, +2/-1, 5 a week, +0.4 to -0.4R, 3 years", "detector"),
        (("symbols", "--symbols", "3", "--later", "-0.2"),
         "symbols, t3, 1 a week, 3 at once, rho 0.9, +0.2 to -0.2R, 2 years", "detector"),
        (("turn",), "turn, t3, 5 a week, +0.3 to -0.3R", "any"),
        (("turn", "--planted", "0.1", "--later", "-0.5"), "turn, t3, 5 a week, +0.1 to -0.5R", "any"),
    ],
)  # fmt: skip
def test_worlds_of_decay_and_of_a_regime_that_turns_take_their_means_and_length(words, label, figure):
    done = run("--world", *words, "--runs", "2", "--processes", "1", "--json")
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["rows"]
    assert row["world"] == label
    assert row["rates"][figure]["n"] == 2


def test_world_whose_means_its_own_parameters_make_takes_no_others():
    for option in ("--edge", "--planted", "--later"):
        done = run("--world", "bursts", option, "0.1")
        assert done.exit_code == 2
        assert f"{option}: world 'bursts' has the mean that --calm, --crash-every and" in done.stderr


def test_resume_goes_on_with_what_a_file_holds(tmp_path):
    file = tmp_path / "parts.jsonl"
    first = run(*TINY, "--resume", str(file), "--json").stdout
    size = file.stat().st_size
    assert run(*TINY, "--resume", str(file), "--json").stdout == first
    assert file.stat().st_size == size
    refused = run(*TINY, "--resume", str(file), "--seed", "9")
    assert refused.exit_code == 2
    assert "was written with seed 1, this is 9: figures of two seeds do not mix" in refused.stderr


def test_ctrl_c_keeps_finished_parts(tmp_path):
    file = tmp_path / "parts.jsonl"
    words = ["--world", "counts", "--per-week", "1", "--runs", "100000", "--processes", "1"]
    command = [thinktwice(), "worlds", *words, "--resume", str(file)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not (file.exists() and len(file.read_bytes().splitlines()) >= 2):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "stopping after this part" in told
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0]["seed"] == 1
    assert all(len(line["runs"]["any"]) == 25 for line in lines[1:])


def begun_by(process):
    """Command lines of the processes that a process has begun."""
    folders = [Path(f"/proc/{name}") for name in os.listdir("/proc") if name.isdigit()]
    found = []
    for folder in folders:
        with suppress(OSError):
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == process.pid:
                found.append((folder / "cmdline").read_bytes().decode())
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads processes as Linux shows them")
def test_ctrl_c_of_a_terminal_while_processes_start_ends_in_lines_of_ours():
    # A process of its own from the first: those that it begins are to be in its group.
    command = [sys.executable, "-m", "thinktwice", "worlds", "--world", "counts", "--per-week", "1"]
    process = subprocess.Popen(
        [*command, "--runs", "200", "--processes", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 120
        while not any("spawn_main" in line for line in begun_by(process)):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, told
    assert told.endswith("thinktwice: stopped by SIGINT\n")
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--world", "symbol"), "Did you mean 'symbols'"),
        (("--world", "trend", "--rho", "0.5"), "does not take --rho; it takes --per-week, --tail"),
        (("--world", "trend", "--whole"), "give one of them"),
        (("--rho", "0.5"), "--rho is about one world: name it with --world"),
        (("--edge", "0.5"), "name it with --world"),
        (("--only", "nul"), "--only 'nul' is not one of null"),
        (("--runs", "0"), "--runs 0 is not between 1"),
        (("--years", "0", "--world", "trend"), "--years 0 is not between 1"),
        (("--seed", "-1"), "--seed -1 is not between 0"),
        (("--world", "sequential", "--planted", "9"), "--planted 9.0 is not between"),
        (("--world", "trend", "--edge", "nan"), "--edge nan is not between"),
    ],
)
def test_worlds_refuse_what_draws_nothing(words, message):
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_section_of_the_page_has_every_group_and_both_seeds(tmp_path):
    words = ("--runs", "1", "--processes", "1")
    documents = [document(*words, "--seed", seed) for seed in ("1", "2")]
    text = gate_worlds.section(documents)
    assert all(f"### {group.capitalize()}" in text for group in QUICK)
    assert text.count("\n| independent, t3, 5 a week |") == 4  # two seeds, flags and interval
    page = tmp_path / "page.md"
    page.write_text(f"before\n{gate_worlds.BEGIN}\nold\n{gate_worlds.END}\nafter\n")
    gate_worlds.write(text, page)
    assert gate_worlds.kept_section(page) == text
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("\nafter\n")
