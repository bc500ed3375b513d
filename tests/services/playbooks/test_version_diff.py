"""What a version changed, field by field."""

from services.playbooks.loader import load_playbooks
from services.playbooks.measures import alter, with_parameter
from services.playbooks.version_diff import changes
from worker.studies.scenarios import PLANTED

BOOK = load_playbooks(PLANTED)[0]


def read_shown(after, before=BOOK):
    return [change.payload() for change in changes(before, after)]


def test_changes_name_each_field_with_its_value_before_and_after():
    banned = alter(BOOK.eligibility["long"], banned=("up/low",))
    after = alter(with_parameter(BOOK, "side", -1.0), risk_fraction=0.0025, eligibility={"long": banned})
    assert read_shown(after) == [
        {"field": "eligibility.long.banned", "from": [], "to": ["up/low"]},
        {"field": "parameters.side.value", "from": 1.0, "to": -1.0},
        {"field": "risk_fraction", "from": 0.005, "to": 0.0025},
    ]


def test_changes_of_number_and_date_alone_are_none():
    assert read_shown(alter(BOOK, version=9, known_at=5)) == []


def test_changes_show_a_field_that_only_one_version_has():
    more = {**BOOK.parameters, "other": BOOK.parameters["side"]}
    found = {item["field"]: item["from"] for item in read_shown(alter(BOOK, parameters=more))}
    assert found["parameters.other.value"] is None
