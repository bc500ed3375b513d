import json
from dataclasses import replace

import pytest

from agents.language_models.cassette import Cassette, CassetteWriter, read_cassette, recorded_call
from schemas.errors import CassetteMiss, ConfigError, ModelError, OperatorError
from services.model_calls.language_model import ModelReply
from services.model_calls.record import Caller, Question, record_failure, record_reply, record_silence

CALLER = Caller("anthropic", "claude-test", "policy_level_reflection", "ab" * 32)
QUESTION = Question(CALLER, "system", "prompt", 512, 1)
REPLY = ModelReply('{"verdict": "pass"}\n\u2028', "claude-test", 11, 7, 3.5, 2, 3, 2)


def test_cassette_written_and_read_again_holds_the_same_calls(tmp_path):
    path = tmp_path / "c.jsonl"
    second = replace(QUESTION, repeat=2)
    calls = [
        record_reply(QUESTION, REPLY, 12.5),
        record_failure(second, ModelError("no", retryable=True, kind="throttled", raw="slow \ud800"), 9.0),
        record_silence(replace(QUESTION, prompt="other"), 250.0, requested=True),
    ]
    writer = CassetteWriter(path)
    for call in calls:
        writer.keep(call)
    cassette = read_cassette(path)
    assert len(cassette) == 3
    assert cassette.find(QUESTION) == calls[0]
    assert cassette.find(second) == calls[1]
    assert cassette.find(QUESTION).result() == replace(REPLY, latency_ms=12.5)
    with pytest.raises(ModelError, match="no") as caught:
        cassette.find(second).result()
    assert (caught.value.context["kind"], caught.value.retryable) == ("throttled", True)


@pytest.mark.parametrize(
    "changed",
    [
        replace(QUESTION, repeat=2),
        replace(QUESTION, prompt="prompt "),
        replace(QUESTION, system="system "),
        replace(QUESTION, max_tokens=513),
        replace(QUESTION, caller=replace(CALLER, model="claude-other")),
        replace(QUESTION, caller=replace(CALLER, provider="other")),
        replace(QUESTION, caller=replace(CALLER, prompt_hash="cd" * 32)),
    ],
)
def test_cassette_anything_changed_in_the_question_is_a_miss_that_says_what_to_do(changed):
    cassette = Cassette("the journal of r0007", [record_reply(QUESTION, REPLY, 1.0)])
    with pytest.raises(CassetteMiss) as caught:
        cassette.find(changed)
    text = str(caught.value)
    assert isinstance(caught.value, OperatorError)
    for part in (changed.key[:16], "prompts/policy_level_reflection.txt", "r0007", "--llm record"):
        assert part in text
    assert (changed.key == QUESTION.key) == (changed.repeat == 2)


def test_cassette_text_split_differently_between_system_and_prompt_is_another_question():
    assert replace(QUESTION, system="ab", prompt="c").key != replace(QUESTION, system="a", prompt="bc").key


def test_cassette_rows_of_other_kinds_and_empty_lines_are_passed_over(tmp_path):
    path = tmp_path / "c.jsonl"
    call = record_reply(QUESTION, REPLY, 1.0)
    rows = [
        {"seq": 0, "kind": "genesis", "payload": {}},
        {"seq": 1, "kind": "model_call", "payload": {"call": call.payload(), "usd": 0.1}, "hash": "x"},
    ]
    path.write_text("\n\n".join(json.dumps(row) for row in rows), "utf-8")
    assert read_cassette(path).find(QUESTION) == call.model_copy(update={"latency_ms": 0.0})


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "no recorded call"),
        (b'{"kind": "genesis", "payload": {}}', "no recorded call"),
        (b"not json", "line 1"),
        (b"[]", "line 1"),
        (b'\n{"kind": "model_call"}', "line 2"),
        (b'{"kind": "model_call", "payload": {}}', "line 1"),
        (b'{"kind": "model_call", "payload": []}', "line 1"),
        (b'{"kind": "model_call", "payload": {"call": {"key": "x"}}}', "line 1"),
        (b'{"kind": "model_call", "payload": {"call": {}}, "telemetry": [1]}', "line 1"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_cassette_file_that_is_none_error_names_the_line(tmp_path, content, part):
    path = tmp_path / "c.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="c.jsonl") as caught:
        read_cassette(path)
    assert part in str(caught.value)


def test_cassette_that_does_not_exist_error_says_how_to_record(tmp_path):
    with pytest.raises(ConfigError, match="--llm record"):
        read_cassette(tmp_path / "none.jsonl")


def test_cassette_writer_takes_only_a_new_place(tmp_path):
    (tmp_path / "old.jsonl").write_text("{}", "utf-8")
    for path in (tmp_path / "old.jsonl", tmp_path, tmp_path / "no" / "c.jsonl"):
        with pytest.raises(ConfigError):
            CassetteWriter(path)
    CassetteWriter(tmp_path / "new.jsonl")
    assert not (tmp_path / "new.jsonl").exists()


def test_cassette_payload_with_an_unknown_field_is_refused():
    payload = {"call": record_reply(QUESTION, REPLY, 1.0).payload() | {"verdict": "pass"}}
    with pytest.raises(ValueError, match="verdict"):
        recorded_call(payload, None)


def test_cassette_edited_by_hand_is_refused_with_its_line_and_not_played(tmp_path):
    path = tmp_path / "c.jsonl"
    writer = CassetteWriter(path)
    for repeat in (1, 2):
        writer.keep(record_reply(replace(QUESTION, repeat=repeat), REPLY, 1.0))
    good = path.read_text("utf-8")
    first, second = good.rstrip("\n").split("\n")
    row = json.loads(second)
    del row["digest"]
    for edited in (
        good.replace("pass", "block"),
        good.replace('"latency_ms":1', '"latency_ms":2'),
        f"{first}\n{json.dumps(row)}\n",
        f"{json.dumps(row)}\n",
    ):
        assert edited != good
        path.write_text(edited, "utf-8")
        with pytest.raises(ConfigError, match=r"line [12]: it was changed after it was recorded"):
            read_cassette(path)
