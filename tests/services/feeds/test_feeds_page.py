"""The page about feeds names everything that a feed may say, and its bounds as they are."""

import re

import pytest

from schemas.settings.live import FeedSettings
from services.feeds.assembler import MOST_KEYS, MOST_LABELS, MOST_STRANGERS, MOST_WAITING
from services.feeds.port import BlockReason, FeedAnomalyKind
from tools.docs_pages import DOCS
from worker.feeds.csv.tail import MOST_UNREADABLE

PAGE = (DOCS / "explanation" / "feeds.md").read_text("utf-8")


def first_cells() -> list[str]:
    return [
        name
        for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
        for name in re.findall("`(.*?)`", row)
    ]


def test_page_explains_every_anomaly_and_every_reason_in_its_order():
    cells = first_cells()
    assert sorted(cells) == sorted([*FeedAnomalyKind, *BlockReason])
    assert cells[-len(BlockReason) :] == list(BlockReason)


@pytest.mark.parametrize("bound", [MOST_WAITING, MOST_LABELS, MOST_KEYS, MOST_STRANGERS, MOST_UNREADABLE])
def test_page_states_the_bounds_as_they_are(bound):
    assert re.search(rf"\b{bound:,}\b", PAGE.partition("## Bounds")[2])


def test_page_speaks_of_settings_that_exist():
    named = set(re.findall(r"`feed\.(\w+)`", PAGE))
    assert named
    assert named <= set(FeedSettings.model_fields)
