"""True sentences that are made false, or say more than a run can answer, pass in no way of changing them."""

import re
from functools import cache

import pytest

from services.deliberation.fact_check import check_facts
from tests.services.deliberation import test_composed_sentences
from tests.services.deliberation.recorded import WHOLE, WORLDS, recorded, whole
from tests.services.deliberation.test_labelled_sentences import FRESH, OF_WHOLE_RUNS, TRUE

TURNED = (
    ("highest", "lowest"), ("lowest", "highest"), ("more", "fewer"), ("best", "worst"), ("worst", "best"),
    ("winners", "losers"), ("earned", "lost"), ("largest", "smallest"),
)  # fmt: skip
CASE = re.compile(r"If |Should |When ")
NEVER_TRADED = re.compile(r"\bFB\b")  # of which nothing is true in 1990, too
VERB = re.compile(r"\b(?:is|was|were|are|has|have|did|does)\b(?! not| never| no )")
FIGURE = re.compile(r"(?<![\d-])\d+\.\d+(?=R| %| percent)")
FEWEST_CHANGED = 50
EVERY = 8  # of the composed ones


def facts_of(run):
    return whole(run) if run in WHOLE else recorded(WORLDS[run])


@cache
def true_sentences():
    """Those that pass, with their run."""
    labelled = [("embedded", text) for text in TRUE]
    labelled += [(run, text) for run, label, _, text in [*FRESH, *OF_WHOLE_RUNS] if label == "T"]
    composed = [text for text, is_true in test_composed_sentences.composed("whole_embedded") if is_true]
    composed += [text for text, _ in test_composed_sentences.comparisons("whole_embedded")]
    labelled += [("whole_embedded", text) for text in composed[::EVERY]]
    claiming = [(run, text) for run, text in labelled if not CASE.match(text) and not text.endswith("?")]
    return [(run, text) for run, text in claiming if check_facts(text, facts_of(run)).holds]


def behind(words):
    return lambda text: [f"{text.rstrip('.')}{words}."]


def before(words):
    return lambda text: [f"{words} {text}"]


def in_a_year_without_bars(text):
    if NEVER_TRADED.search(text):
        return []
    return [f"In 1990, {text}", f"{text.rstrip('.')} in 1990.", f"{text.rstrip('.')} before 1990."]


def denied(text):
    return [f"{text[: verb.end()]} not{text[verb.end() :]}" for verb in VERB.finditer(text)]


def with_another_digit(text):
    digits = [(found, str((int(found[0][-1]) + 5) % 10)) for found in FIGURE.finditer(text)]
    return [text[: found.end() - 1] + digit + text[found.end() :] for found, digit in digits]


def in_another_unit(text):
    return [f"{text[: r.start()]} dollars{text[r.end() :]}" for r in re.finditer(r"(?<=\d)R\b", text)]


def turned(text):
    return [
        text[: found.start()] + put + text[found.end() :]
        for word, put in TURNED
        for found in re.finditer(rf"\b{word}\b", text)
    ]


CHANGES = {
    "in a year without bars": in_a_year_without_bars,
    "all others left out": behind(", unlike all others"),
    "by the week": behind(" per week"),
    "in no regime": behind(" in no regime"),
    "called false": before("It is false that"),
    "denied": denied,
    "another digit": with_another_digit,
    "another unit": in_another_unit,
    "turned": turned,
}


@pytest.mark.parametrize("way", CHANGES)
def test_changed_sentence_does_not_pass(way):
    changed = [(run, new) for run, text in true_sentences() for new in CHANGES[way](text)]
    assert len(changed) >= FEWEST_CHANGED
    assert [new for run, new in changed if check_facts(new, facts_of(run)).holds] == []
