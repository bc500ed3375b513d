"""What is read of a server's complaint, whatever the server wraps it in."""

import pytest

from agents.language_models.wire_failures import read_complaint

QUOTED = "credit balance is too low"
LOC = {"type": "missing", "loc": ["body", "model"], "msg": QUOTED}


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"error": {"type": "t", "message": QUOTED}}, "t"),
        ({"type": "t", "message": QUOTED}, "t"),
        ([{"error": {"code": 400, "message": QUOTED}}], "400"),
        ({"error": [{"message": QUOTED}]}, ""),
        ({"success": False, "errors": [{"code": 7003, "message": QUOTED}]}, "7003"),
        ({"detail": QUOTED}, ""),
        ({"detail": [LOC]}, "missing"),
        ({"object": "error", "type": "t", "message": {"detail": [LOC]}}, "missing"),
        ({"message": QUOTED}, ""),
        ({"message": QUOTED, "detail": "x"}, ""),
        ({"error": "Bad Request", "message": QUOTED}, ""),
        ({"error": None, "message": QUOTED}, ""),
        ({"error": QUOTED}, ""),
        (QUOTED, ""),
    ],
)
def test_complaint_is_read_from_whatever_its_server_wraps_it_in(body, name):
    assert read_complaint(body) == (name, QUOTED)


@pytest.mark.parametrize("body", [None, [], {}, 3, {"error": {}}, {"detail": []}, {"message": []}, [[]]])
def test_complaint_without_words_has_none(body):
    assert read_complaint(body) == ("", "")
