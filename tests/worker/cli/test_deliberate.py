"""`thinktwice deliberate`: a text whose claims are held against a stored run, and what is refused."""

import json

import pytest

QUOTED = "The number of trades of mean_reversion was 9999."
LIE = f"{QUOTED} The week was quiet."
KEYS = {
    "run_id", "preset", "status", "skip_reason", "initial", "final", "candidates", "critiques", "fact_checks",
    "stop_reason", "degraded_from", "error", "self_reported_gain", "verified_gain", "usage", "events",
    "cleaned", "elapsed_ms", "not_read",
    "final_response", "iterations", "improvement_trace", "chain_of_thought", "total_quality_gain", "metadata",
}  # fmt: skip
QUALITY = ("--preset", "quality")


def read_shown(shell, text, *words):
    (shell.folder / "text.txt").write_text(text, "utf-8")
    result = shell.run("deliberate", "text.txt", *(words or QUALITY), "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_figure_that_is_not_so_gives_way_to_the_stored_one_without_a_model(planted):
    document = read_shown(planted, LIE)
    assert set(document) == KEYS
    assert document["initial"] == LIE
    assert "9999" not in document["final"]
    assert document["final"].startswith("text:\n- The number of trades of mean_reversion was ")
    assert document["not_read"] == ["The week was quiet."]
    assert [check["claims"][0]["verdict"] for check in document["fact_checks"]] == [
        "contradicted",
        "verified",
    ]


def test_outcome_shows_what_was_found_what_was_not_read_and_what_stands(planted):
    (planted.folder / "text.txt").write_text(LIE, "utf-8")
    shown = planted.run("deliberate", "text.txt", *QUALITY).output
    assert shown.index("claim_refused") < shown.index("Not read:") < shown.index("What stands:")
    assert "The week was quiet." in shown


def test_what_nobody_sees_is_taken_out_and_counted(planted):
    hidden = LIE.replace("week", "we\u200bek\x07")
    document = read_shown(planted, hidden)
    assert document["cleaned"] == 2
    assert "cleaned 2" in planted.run("deliberate", "text.txt", *QUALITY).output


def test_several_texts_are_refined_one_after_the_other_and_the_run_is_read_once(planted, monkeypatch):
    from worker.review import run_facts

    read, reads = run_facts.read_facts, []

    async def counted(*given, **named):
        reads.append(given)
        return await read(*given, **named)

    monkeypatch.setattr(run_facts, "read_facts", counted)
    (planted.folder / "other.txt").write_text("The week was quiet.", "utf-8")
    words = (*QUALITY, "--also", "other.txt")
    first, other = read_shown(planted, LIE, *words)
    alone = read_shown(planted, LIE)
    assert all(first[name] == alone[name] for name in ("final", "critiques", "fact_checks", "status"))
    assert (first["initial"], other["not_read"]) == (LIE, ["The week was quiet."])
    assert len(reads) == 2, "one for each command"
    shown = planted.run("deliberate", "text.txt", *words).output
    assert [line for line in shown.splitlines() if line.startswith("==")] == ["== text.txt", "== other.txt"]
    assert "standard input" in planted.complaint("deliberate", "-", *QUALITY, "--also", "-")


@pytest.mark.parametrize(
    "words", [("pass",), ("review",), ("chunked",), ("quality", "--mode", "full")], ids=lambda words: words[0]
)
def test_preset_that_needs_a_model_names_the_setting(planted, words):
    (planted.folder / "text.txt").write_text(LIE, "utf-8")
    text = planted.complaint("deliberate", "text.txt", "--preset", *words)
    assert "reflection.mode = 'full'" in text
    assert "--preset quality --mode critique_only" in text


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("--preset", "pas"), "Did you mean 'pass'?"),
        (("--preset", "review", "--mode", "sometimes"), "always, never, on_error"),
        (("--preset", "pass", "--mode", "full"), "it has none"),
        (("--preset", "quality", "--question", "x" * 8_001), "8,001 characters; at most 8,000"),
        (("--preset", "quality", "--reflection", "full"), "llm.model"),
    ],
)
def test_bad_invocation_is_one_line_with_what_would_work(planted, words, word):
    (planted.folder / "text.txt").write_text("fine", "utf-8")
    assert word in planted.complaint("deliberate", "text.txt", *words)


@pytest.mark.parametrize(
    ("key", "value"),
    [("threshold", "101"), ("threshold", "-1"), ("iterations", "4"), ("iterations", "-1"), ("rounds", "4")],
)
def test_bound_of_a_setting_is_named(shell, monkeypatch, key, value):
    (shell.folder / "text.txt").write_text("fine", "utf-8")
    monkeypatch.setenv(f"THINKTWICE_DELIBERATION__QUALITY__{key.upper()}", value)
    reply = shell.complaint("deliberate", "text.txt", "--preset", "quality")
    assert f"deliberation.quality.{key}" in reply
    assert value in reply
