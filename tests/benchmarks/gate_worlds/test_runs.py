"""Many runs: parts, processes, what is kept, and what is refused."""

import json

import numpy as np
import pytest

from benchmarks.gate_worlds.catalogue import world_of
from benchmarks.gate_worlds.figures import document_of, figures_of
from benchmarks.gate_worlds.runs import Columns, KeptParts, gate_hash, measure_rows
from benchmarks.gate_worlds.table import BURST, GROUPS, QUICK, Row, Target, rows
from schemas.errors import ConfigError
from schemas.settings import GateSettings

GATE = GateSettings()
ROW = Row(
    "null", "flags", world_of("counts", {"per_week": 1.0}, playbooks=1, regimes=2), (Target("any", 0.05),)
)
PART = ROW.part


def measured(runs, kept=None, processes=1, tell=lambda done, total: None):
    kept = kept or KeptParts(None, 1, GATE)
    return measure_rows([ROW], runs, 1, GATE, processes, kept, tell)[0]


def test_more_runs_begin_with_the_fewer():
    few, many = measured(3), measured(PART + 5)
    assert all(many[name][:3] == column for name, column in few.items())
    assert {len(column) for column in many.values()} == {PART + 5}


def test_two_processes_give_the_figures_of_one():
    assert measured(PART + 5, processes=2) == measured(PART + 5)


def test_kept_parts_are_not_drawn_again_and_a_stop_keeps_them(tmp_path):
    file = tmp_path / "kept.jsonl"

    class Stopped(Exception):
        pass

    def stop(done, total):
        if done >= PART:
            raise Stopped

    with pytest.raises(Stopped):
        measured(3 * PART, KeptParts(file, 1, GATE), tell=stop)
    assert len(file.read_text().splitlines()) == 2
    shown = []
    again = measured(3 * PART, KeptParts(file, 1, GATE), tell=lambda done, total: shown.append(done))
    assert shown == [PART, 2 * PART, 3 * PART]
    assert again == measured(3 * PART)


def test_line_that_was_torn_is_drawn_again(tmp_path):
    file = tmp_path / "kept.jsonl"
    whole = measured(2 * PART, KeptParts(file, 1, GATE))
    file.write_text(file.read_text()[:-30])
    kept = KeptParts(file, 1, GATE)
    assert len(kept.parts) == 1
    assert measured(2 * PART, kept) == whole
    assert [json.loads(line) for line in file.read_text().splitlines()][0]["gate"] == gate_hash(GATE)


def test_file_of_another_gate_or_seed_is_refused(tmp_path):
    file = tmp_path / "kept.jsonl"
    KeptParts(file, 1, GATE)
    with pytest.raises(ConfigError, match="figures of two gates do not mix"):
        KeptParts(file, 1, GateSettings(q=0.05))
    with pytest.raises(
        ConfigError, match="was written with seed 1, this is 2: figures of two seeds do not mix"
    ):
        KeptParts(file, 2, GATE)


def kept_file(folder, seed=1):
    file = folder / f"kept{seed}.jsonl"
    measure_rows([ROW], PART + 3, seed, GATE, 1, KeptParts(file, seed, GATE), lambda done, total: None)
    return file


def test_line_that_was_edited_is_refused_with_its_number_and_the_next_step(tmp_path):
    file = kept_file(tmp_path)
    lines = file.read_text().splitlines()
    payload = json.loads(lines[2])
    payload["runs"]["any"][0] = 1.0 - payload["runs"]["any"][0]
    file.write_text("\n".join([*lines[:2], json.dumps(payload)]) + "\n")
    with pytest.raises(ConfigError, match=r"kept1.jsonl' line 3 was changed after .* remove the line"):
        KeptParts(file, 1, GATE)
    file.write_text("\n".join(lines[:2]) + "\n")  # the next step
    assert len(KeptParts(file, 1, GATE).parts) == 1


@pytest.mark.parametrize(
    "edited",
    [
        lambda line: line.replace('"digest"', '"digits"'),
        lambda line: "nonsense",
        lambda line: "[]",
    ],
)
def test_line_that_is_no_part_is_refused_with_its_number(tmp_path, edited):
    file = kept_file(tmp_path)
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], edited(lines[1]), lines[2]]) + "\n")
    with pytest.raises(ConfigError, match="kept1.jsonl' line 2 does not hold a part of worlds: remove"):
        KeptParts(file, 1, GATE)


def test_line_of_a_file_of_another_seed_is_refused(tmp_path):
    file, other = kept_file(tmp_path), kept_file(tmp_path, 2)
    file.write_text(file.read_text().splitlines()[0] + "\n" + other.read_text().splitlines()[1] + "\n")
    with pytest.raises(ConfigError, match="line 2 was changed"):
        KeptParts(file, 1, GATE)


@pytest.mark.parametrize("text", ["nonsense\n", "[]\n", '{"worlds": 1}\n'])
def test_file_of_something_else_is_refused(tmp_path, text):
    file = tmp_path / "kept.jsonl"
    file.write_text(text)
    with pytest.raises(ConfigError):
        KeptParts(file, 1, GATE)
    assert file.read_text() == text


def test_rate_holds_within_two_standard_errors_of_its_target():
    rates = {}
    for hits in (5, 12):
        columns: Columns = {"any": [float(number < hits) for number in range(100)]}
        rates[hits] = figures_of(ROW, columns)["rates"]["any"]
    assert rates[5]["se"] == pytest.approx(np.sqrt(0.05 * 0.95 / 100), abs=1e-6)
    assert (rates[5]["holds"], rates[12]["holds"]) == (True, False)


def test_document_names_the_worst_world_and_every_missed_target():
    good: Columns = {"any": [0.0 for _ in range(100)]}
    bad: Columns = {"any": [float(number < 30) for number in range(100)]}
    other = Row("null", "flags", world_of("trend"), (Target("any", 0.05),))
    document = document_of([ROW, other], [good, bad], 100, 1, "gate")
    assert document["worst"]["world"] == other.world.label
    assert [item["world"] for item in document["broken"]] == [other.world.label]
    assert document["targets"] == 2


def test_runs_that_cannot_say_are_left_out_of_a_rate():
    row = Row(BURST, "promotion", world_of("bursts", playbooks=1, regimes=1), (Target("ever", 0.1),))
    found = figures_of(row, {"ever": [None, 1.0, 0.0, 0.0, 0.0]})["rates"]["ever"]
    assert (found["n"], found["rate"]) == (4, 0.25)


def test_table_has_every_group_distinct_rows_and_quick_ones_that_exist():
    table = rows()
    assert {row.group for row in table} == set(GROUPS)
    assert len({(row.measure, row.world) for row in table}) == len(table)
    labels = {(row.group, row.world.label) for row in table}
    assert {(group, label) for group, chosen in QUICK.items() for label in chosen} <= labels
    assert sum(row.held_out for row in table) >= 10
