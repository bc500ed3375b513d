"""What is read of a server's complaint, whatever the server wraps it in."""

import pytest

from agents.language_models.wire_failures import read_complaint

SAID = "credit balance is too low"
LOC = {"type": "missing", "loc": ["body", "model"], "msg": SAID}


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"error": {"type": "t", "message": SAID}}, "t"),
        ({"type": "t", "message": SAID}, "t"),
        ([{"error": {"code": 400, "message": SAID}}], "400"),
        ({"error": [{"message": SAID}]}, ""),
        ({"success": False, "errors": [{"code": 7003, "message": SAID}]}, "7003"),
        ({"detail": SAID}, ""),
        ({"detail": [LOC]}, "missing"),
        ({"object": "error", "type": "t", "message": {"detail": [LOC]}}, "missing"),
        ({"message": SAID}, ""),
        ({"message": SAID, "detail": "x"}, ""),
        ({"error": "Bad Request", "message": SAID}, ""),
        ({"error": None, "message": SAID}, ""),
        ({"error": SAID}, ""),
        (SAID, ""),
    ],
)
def test_complaint_is_read_from_whatever_its_server_wraps_it_in(body, name):
    assert read_complaint(body) == (name, SAID)


@pytest.mark.parametrize("body", [None, [], {}, 3, {"error": {}}, {"detail": []}, {"message": []}, [[]]])
def test_complaint_without_words_has_none(body):
    assert read_complaint(body) == ("", "")
