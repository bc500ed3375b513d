import pytest

from services.high_level.narrative import read_narrative, unknown_numbers

SOURCE = '{"mean_r":-0.41,"n":30,"id":"12a45b789c01d2e3","text":"1,200 bars to 2024-03-05"}'


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("30 trades lost 0.41R each", ()),
        ("1200 bars until 2024-03-05", ()),
        ("31 trades", ("31",)),
        ("lost 0.4R", ("0.4",)),
        ("12 of 30", ("12",)),
        ("see 12a45b789c01d2e3", ()),
        ("see 99a45b789c01d2e3", ("99a45b789c01d2e3",)),
    ],
)
def test_number_that_was_not_computed_is_found(text, unknown):
    assert unknown_numbers(text, SOURCE) == unknown


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        ("[1]", "reply: model type"),
        ('{"narrative": "", "cited_evidence": []}', "narrative: string too short (min_length 1)"),
        ('{"narrative": " ", "cited_evidence": []}', "no words"),
        ('{"narrative": 3, "cited_evidence": []}', "narrative: string type"),
        ('{"narrative": "fine", "cited_evidence": "a"}', "cited_evidence: tuple type"),
        ('{"narrative": "fine", "cited_evidence": ["b"]}', "not offered"),
        ('{"narrative": "fine", "cited_evidence": [], "action": "replan"}', "action: extra forbidden"),
    ],
)
def test_reply_of_another_shape_is_refused_with_its_reason(reply, word):
    told = read_narrative(reply, SOURCE, ["a"])
    assert not told.by_model
    assert told.refused is not None
    assert word in told.refused
