"""`thinktwice deliberate`: a text in each preset, alone and against a stored run, and what is refused."""

import json
import sys

import pytest

from tests.worker.cli.terminals import in_terminal

LIE = (
    "All trades of mean_reversion won, which is significant. The week was quiet. Nothing is recommended, and"
)
KEYS = {
    "run_id", "preset", "status", "skip_reason", "initial", "final", "candidates", "critiques", "fact_checks",
    "stop_reason", "degraded_from", "error", "self_reported_gain", "verified_gain", "usage", "events",
    "cleaned", "elapsed_ms",
}  # fmt: skip
OWN = {
    "pass": {"reflected", "critique", "correction_applied", "original_response", "final_response"},
    "quality": {"final_response", "iterations", "improvement_trace", "chain_of_thought", "total_quality_gain",
                "metadata"},
    "review": {"passes"},
    "chunked": {"chunk_count", "outline", "chunks"},
}  # fmt: skip


def told(shell, text, *words):
    (shell.folder / "text.txt").write_text(text, "utf-8")
    result = shell.run("deliberate", "text.txt", *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("preset", OWN)
def test_lie_about_a_run_does_not_stand_in_any_preset(planted, preset):
    document = told(planted, LIE, "--preset", preset, "--run", "latest")
    assert set(document) == KEYS | OWN[preset]
    assert document["preset"] == preset
    assert document["initial"] == LIE
    assert "won" not in document["final"]
    assert "significant" not in document["final"]
    assert not document["final"].endswith("and")


@pytest.mark.parametrize("preset", OWN)
def test_table_of_every_preset_has_what_was_found_in_the_first_text(planted, preset):
    (planted.folder / "text.txt").write_text(LIE, "utf-8")
    shown = planted.run("deliberate", "text.txt", "--preset", preset, "--run", "latest").output
    assert shown.index("would pass") < shown.index("is unverifiable: ") < shown.index("What stands:")


@pytest.mark.parametrize("preset", OWN)
def test_what_nobody_sees_is_taken_out_and_counted(shell, preset):
    said = "The week was\x07 quiet,\u202e all\u200b things considered.\n\nNothing\telse was seen, says IBM."
    document = told(shell, said, "--preset", preset)
    plain = said.translate(dict.fromkeys(map(ord, "\x07\u202e\u200b")))
    assert (document["initial"], document["final"], document["cleaned"]) == (said, plain, 3)
    assert "taken out 3" in shell.run("deliberate", "text.txt", "--preset", preset).output


def test_several_texts_are_refined_one_after_the_other_and_the_run_is_read_once(planted, monkeypatch):
    from worker.review import run_facts

    read, reads = run_facts.read_facts, []

    async def counted(*given, **named):
        reads.append(given)
        return await read(*given, **named)

    monkeypatch.setattr(run_facts, "read_facts", counted)
    (planted.folder / "other.txt").write_text(
        "All trades won. The week was quiet, and nothing else was.", "utf-8"
    )
    words = ("--preset", "pass", "--run", "latest", "--also", "other.txt")
    first, other = told(planted, LIE, *words)
    alone = told(planted, LIE, *words[:4])
    assert all(first[name] == alone[name] for name in ("final", "critiques", "fact_checks", "status"))
    assert (first["initial"], other["final"]) == (LIE, "The week was quiet, and nothing else was.")
    assert len(reads) == 2, "one for each command"
    shown = planted.run("deliberate", "text.txt", *words).output
    assert [line for line in shown.splitlines() if line.startswith("==")] == ["== text.txt", "== other.txt"]
    assert "standard input" in planted.complaint("deliberate", "-", *words[:4], "--also", "-")


def test_what_holds_stands_word_by_word(planted):
    text = "Trades of mean_reversion were resolved, and the week was quiet."
    assert told(planted, text, "--preset", "pass", "--run", "latest")["final"] == text


def test_name_that_the_run_does_not_have_is_struck_and_not_replaced(planted):
    text = "Trades of planted_reversal were resolved. The week was quiet, all things considered."
    final = told(planted, text, "--preset", "pass", "--run", "latest")["final"]
    assert final == "The week was quiet, all things considered."


@pytest.mark.parametrize("preset", OWN)
def test_text_without_a_run_is_looked_at_by_the_other_rules(shell, preset):
    document = told(shell, "The week was quiet. Nothing else was seen, and the", "--preset", preset)
    assert document["run_id"] is None
    assert document["final"] == "The week was quiet."
    assert document["fact_checks"] == []


def test_short_text_is_skipped_with_its_reason(shell):
    document = told(shell, "Fine.", "--preset", "pass")
    assert (document["status"], document["skip_reason"], document["final"]) == (
        "skipped",
        "too_short",
        "Fine.",
    )
    assert (document["skipped"], document["reason"]) == (True, "too_short")


def test_mode_of_a_review_decides_whether_there_is_one(shell):
    whole = "The week was quiet, and nothing else was seen in it."
    assert (
        told(shell, whole, "--preset", "review", "--mode", "on_incomplete")["skip_reason"]
        == "mode_on_incomplete"
    )
    assert told(shell, f"{whole} And the", "--preset", "review", "--mode", "on_incomplete")["final"] == whole
    assert told(shell, whole, "--preset", "review", "--mode", "never")["status"] == "skipped"


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("--preset", "pas"), "Did you mean 'pass'?"),
        (("--preset", "review", "--mode", "sometimes"), "always, never, on_error"),
        (("--preset", "pass", "--mode", "full"), "it has none"),
        (("--preset", "quality", "--question", "x" * 8_001), "8,001 characters; at most 8,000"),
        (("--preset", "quality", "--db", "sqlite:///x.db"), "there is no store at sqlite:///x.db"),
        (("--preset", "quality", "--db", "sqlite:///x.db", "--no-run"), "leave --run and --db out"),
        (("--preset", "quality", "--run", "r9999"), "r9999"),
        (("--preset", "quality", "--reflection", "full"), "llm.provider"),
    ],
)
def test_bad_invocation_is_one_line_with_what_would_work(planted, words, word):
    (planted.folder / "text.txt").write_text("fine", "utf-8")
    assert word in planted.complaint("deliberate", "text.txt", *words)


@pytest.mark.parametrize(
    ("key", "value"), [("threshold", "101"), ("threshold", "-1"), ("iterations", "4"), ("iterations", "-1")]
)
def test_bound_of_a_setting_is_named(shell, monkeypatch, key, value):
    (shell.folder / "text.txt").write_text("fine", "utf-8")
    monkeypatch.setenv(f"THINKTWICE_DELIBERATION__QUALITY__{key.upper()}", value)
    said = shell.complaint("deliberate", "text.txt", "--preset", "quality")
    assert f"deliberation.quality.{key}" in said
    assert value in said


@pytest.mark.parametrize("content", [b"", b"a\0b", b"\xff\xfe\x41", b"x" * 51_201])
def test_bad_text_is_one_line(shell, content):
    (shell.folder / "text.txt").write_bytes(content)
    assert shell.complaint("deliberate", "text.txt", "--preset", "pass")


@pytest.mark.parametrize("columns", [60, 200])
def test_outcome_in_a_terminal_is_clean(planted, columns):
    (planted.folder / "text.txt").write_text(f"{LIE} \x1b[2J [/x] n 3.", "utf-8")
    words = [
        sys.executable,
        "-m",
        "thinktwice",
        "deliberate",
        "text.txt",
        "--preset",
        "quality",
        "--run",
        "latest",
    ]
    seen = in_terminal(words, planted.folder, columns=columns)
    seen.demand_clean()
    assert seen.code == 0, seen.end
    assert "quality against run" in seen.text


def test_text_without_a_named_run_is_held_against_the_newest(planted):
    assert told(planted, LIE, "--preset", "pass")["run_id"] is not None
    assert told(planted, LIE, "--preset", "pass", "--no-run")["run_id"] is None
