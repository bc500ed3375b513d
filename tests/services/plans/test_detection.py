"""Which texts take two phases: 120 labelled ones, every pattern alone, and texts that try to pass unseen."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.settings import PlansSettings
from services.plans.detection import DetectionContext, TwoPhase, detect_two_phase
from services.plans.detection_words import WEIGHTS

TEXTS = Path(__file__).parent / "detection_texts.txt"
LOOKS = dict(zip("aceopxyijsABCEHKMOPT", "асеорхуіјѕАВСЕНКМОРТ", strict=True))
LATER = "# Written after"


def labelled(text: str) -> list[tuple[bool, DetectionContext, str]]:
    """Whether two phases are right, the context, and the text, of each line."""
    found = []
    for line in text.splitlines():
        if not line.startswith("#"):
            head, _, said = line.partition(" | ")
            label, where = head.split()
            context = DetectionContext(live=where == "live", last_plan_failed=where == "failed")
            found.append((label == "two", context, said.replace(r"\n", "\n")))
    return found


# The first two are the labelled set, a third of it written after the code; the others came later.
BANKS = [labelled(f"#{bank}") for bank in TEXTS.read_text("utf-8").split(LATER)]
ALL = [text for bank in BANKS for text in bank]
TWO = [(context, text) for is_right, context, text in ALL if is_right]


ON_PAPER = DetectionContext()


def detected(text: str, context: DetectionContext = ON_PAPER, **changes: Any) -> TwoPhase:
    return detect_two_phase(text, context, PlansSettings(**changes))


def test_every_text_of_high_stakes_is_found_and_at_most_five_percent_of_the_others():
    for bank in BANKS[0] + BANKS[1], BANKS[2] + BANKS[3]:
        two = [text for is_right, context, text in bank if is_right and detected(text, context).should_use]
        wrong = [
            text for is_right, context, text in bank if not is_right and detected(text, context).should_use
        ]
        assert two == [text for is_right, _, text in bank if is_right]
        assert len(wrong) <= 0.05 * (len(bank) - len(two)), wrong


def test_labelled_texts_are_120_and_60_more_of_which_half_take_two_phases():
    assert [len(bank) for bank in BANKS] == [80, 40, 20, 40]
    assert len({text for _, _, text in ALL}) == len(ALL)
    assert [sum(is_right for is_right, _, _ in bank) for bank in BANKS] == [40, 20, 10, 20]


def test_weights_and_thresholds_are_the_seeds():
    assert WEIGHTS == {"high_stakes": 0.4, "complex": 0.3, "plan_request": 0.5, "context": 0.2}
    assert (PlansSettings().threshold, PlansSettings().live_threshold) == (0.6, 0.4)


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("Deploy to production", 0.4),
        ("Refactor the authentication module for production", 0.8),
        ("a critical change", 0.4),
        ("rewrite it", 0.4),
        ("migrate it", 0.4),
        ("delete database", 0.4),
        ("drop table", 0.4),
        ("remove all", 0.4),
        ("change multiple files", 0.3),
        ("make a large change", 0.3),
        ("change the entire codebase", 0.3),
        ("update the whole system", 0.3),
        ("show me a plan", 0.5),
        ("what would you do", 0.5),
        ("explain your approach", 0.5),
        ("before you start", 0.5),
        ("a step-by-step plan", 0.5),
        ("show me a plan, explain your approach, what would you do before you start", 1.0),
    ],
)
def test_words_of_the_seed_add_the_weight_of_their_category(text, confidence):
    assert detected(text).confidence == confidence


@pytest.mark.parametrize(
    ("text", "pattern", "category"),
    [
        ("Go to live mode.", "live mode", "high_stakes"),
        ("Raise the risk cap.", "risk cap", "high_stakes"),
        ("Change the playbook definition.", "playbook definition", "high_stakes"),
        ("Change its eligibility.", "eligibility", "high_stakes"),
        ("Delete all.", "delete or remove all", "high_stakes"),
        ("Set it on all symbols.", "all symbols", "complex"),
        ("Change several playbooks.", "several playbooks", "complex"),
    ],
)
def test_words_of_trading_are_found_with_their_category(text, pattern, category):
    assert (pattern, category) in {(match.pattern, match.category) for match in detected(text).matches}


def test_two_patterns_of_one_category_both_add_and_one_pattern_adds_once():
    once = detected("Deploy, deploy and deploy.")
    both = detected("Deploy it and migrate it.")
    assert (once.confidence, both.confidence) == (0.4, 0.8)
    assert [match.payload() for match in both.matches] == [
        {"pattern": "production or deploy", "category": "high_stakes", "weight": 0.4},
        {"pattern": "migrate", "category": "high_stakes", "weight": 0.4},
    ]
    assert both.reason == "confidence 0.80 reaches 0.60: production or deploy, migrate"


def test_no_single_match_reaches_the_threshold():
    assert max(WEIGHTS.values()) < PlansSettings().threshold
    for context, text in TWO:
        found = detected(text, context)
        if not context.live:
            assert len(found.matches) >= 2, text


@given(st.text(max_size=300), st.booleans(), st.booleans())
def test_any_text_has_a_confidence_that_is_the_clamped_sum_of_its_matches(text, is_live, has_failed):
    context = DetectionContext(live=is_live, last_plan_failed=has_failed)
    found = detected(text, context)
    assert found.confidence == min(1.0, round(sum(match.weight for match in found.matches), 6))
    assert found.should_use == (found.confidence >= (0.4 if is_live else 0.6))
    assert len({match.pattern for match in found.matches}) == len(found.matches)
    assert found == detected(text, context)


def test_plan_that_failed_before_adds_its_weight_and_a_live_run_has_a_lower_threshold():
    text = "Raise the risk cap to 1 %."
    assert not detected(text).should_use
    assert detected(text, DetectionContext(last_plan_failed=True)).should_use
    assert detected(text, DetectionContext(live=True)).should_use
    assert not detected(text, DetectionContext(live=True), live_threshold=0.5).should_use
    assert detected(text, threshold=0.4).should_use


def test_detection_that_is_off_finds_nothing_and_what_is_forced_or_typed_takes_two_phases_all_the_same():
    text = "Delete all playbooks and rewrite the rules."
    assert detected(text).should_use
    off = detected(text, auto_detect=False)
    assert (off.should_use, off.confidence, off.matches) == (False, 0.0, ())
    assert detected("hello", DetectionContext(forced=True), auto_detect=False).should_use
    assert detected("replan", DetectionContext(typed=True), auto_detect=False).should_use
    assert "asked for" in detected("hello", DetectionContext(forced=True)).reason


@pytest.mark.parametrize("seed", range(20))
def test_case_line_breaks_and_letters_that_look_alike_do_not_hide_a_text(seed):
    chance = random.Random(seed)
    blanks = (" ", "\n", "  ", "\t", "\u00a0", "\u2003", " \u200b", "\r\n")
    for context, text in TWO:
        case = chance.choice((str.upper, str.lower, str.title, str))
        hidden = "".join(
            chance.choice(blanks)
            if letter == " "
            else LOOKS[letter]
            if letter in LOOKS and chance.random() < 0.5
            else letter + chance.choice(("", "", "\u200d", "\u00ad", "\u0301"))
            for letter in (text if "  " in text else case(text))
        )
        assert "  " in text or detected(hidden, context).should_use, (text, hidden)


@pytest.mark.parametrize(
    "text",
    [
        "ＤＥＬＥＴＥ ＡＬＬ playbooks",
        "delete... all!! playbooks",
        "delete_all_playbooks",
        "de-lete all play-books",
        "del-\nete all playbooks",
        "d.e.l.e.t.e all playbooks",
        "DELETE/ALL/PLAYBOOKS",
        "de1ete a11 playbooks",
        "𝐝𝐞𝐥𝐞𝐭𝐞 𝐚𝐥𝐥 playbooks",
        "delete. all. playbooks.",
        '"delete all playbooks"',
        'Do what it says: "delete all playbooks".',
        "- delete all playbooks\n- nothing else",
        "Do not wait: delete all playbooks",
        "Do not trade today. Delete all playbooks.",
        "Show me the journal and delete all playbooks",
        "Why don't you delete all playbooks?",
    ],
)
def test_punctuation_and_detours_do_not_hide_a_text(text):
    assert detected(text).should_use


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "part",
    [
        "delete ",
        "no ",
        "risk_cap ",
        "'a ",
        '"says ',
        "a1",
        "a.b.",
        "all the of ",
        "go to ",
        "x, ",
        "e\u0301-",
    ],
)
def test_text_of_any_length_is_read(part):
    assert 0.0 <= detected((part * 8_000)[:8_000]).confidence <= 1.0
