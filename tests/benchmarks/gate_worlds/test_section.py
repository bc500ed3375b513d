"""`python -m benchmarks.gate_worlds`: what it draws again, prints and writes on the page."""

import pytest

from benchmarks.gate_worlds import __main__ as program
from benchmarks.gate_worlds import section
from benchmarks.gate_worlds.figures import pool_documents
from benchmarks.gate_worlds.table import QUICK, rows

SMALL = [row for row in rows() if row.quick]


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setattr(program, "cores", lambda: 1)
    return tmp_path


def test_quick_table_begins_with_the_worst_world_and_has_every_group(root, capsys):
    assert program.main(["--quick", "--runs", "1"]) == 0
    text = capsys.readouterr().out
    assert "**worst null world: " in text
    assert " targets hold" in text
    assert "(1 run a world, seed 1)**" in text
    assert all(f"### {group.capitalize()}" in text for group in QUICK)


def test_same_seed_gives_the_same_document_from_kept_parts_and_another_seed_other_worlds(root):
    chosen = SMALL[:1]
    first = program.measure(chosen, 2, 1)
    (kept,) = (root / "out").iterdir()
    size = kept.stat().st_size
    assert program.measure(chosen, 2, 1) == first
    assert kept.stat().st_size == size
    other = program.measure(chosen, 2, 2)
    assert len(list((root / "out").iterdir())) == 2
    assert (other["seed"], other["gate"]) == (2, first["gate"])


def test_section_of_the_page_has_every_group_and_pools_both_seeds(root):
    documents = [program.measure(SMALL, 1, seed) for seed in (1, 2)]
    text = section.section(documents)
    assert all(f"### {group.capitalize()}" in text for group in QUICK)
    assert text.count("\n| independent, t3, 5 a week |") == 2  # flags and interval
    assert "(2 runs a world, seeds 1 and 2)" in text
    pooled, single = (
        pool_documents(documents)["rows"][0]["rates"]["any"],
        documents[0]["rows"][0]["rates"]["any"],
    )
    both = [document["rows"][0]["rates"]["any"]["rate"] for document in documents]
    assert (pooled["n"], pooled["rate"]) == (2 * single["n"], sum(both) / 2)
    page = root / "page.md"
    page.write_text(f"before\n{section.BEGIN}\nold\n{section.END}\nafter\n")
    section.write(text, page)
    assert section.kept_section(page) == text
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("\nafter\n")
