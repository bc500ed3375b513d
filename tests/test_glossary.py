"""The glossary has every noun that the name of a class is made of."""

import ast
import re
from collections.abc import Iterator

from tools.docs_pages import ROOT
from tools.way import ROOMS

GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
WORD = re.compile(r"[A-Z][a-z0-9]+|[A-Z]+(?=[A-Z][a-z]|$)")
# Words of class names that are no nouns, and names of others' products.
NO_NOUNS = frozenset({
    "abandoned", "abstain", "accounted", "ai", "amended", "another", "answered", "anthropic", "approved",
    "arguing", "asked", "asking", "backed", "begun", "both", "bounded", "cached",
    "ccxt", "checked", "chunked", "closed", "comparing", "damaged", "deferred",
    "discarding", "dropped", "early", "empty", "executed", "exited", "failed", "finished", "first", "found",
    "from", "frozen", "gathered", "graded", "growing", "held", "high", "in", "interrupted", "invalid",
    "judged", "keep", "kept", "late", "lazy", "live", "lost", "made", "malformed",
    "missing", "named", "new", "not", "observed", "offered", "on", "once", "one",
    "open", "operated", "outgoing", "paired", "parked", "parking", "partial", "past", "pending",
    "per", "plain", "possible", "prepared", "propose", "proposed", "public", "published",
    "quiet", "random", "raw", "rebuilt", "recent", "recommended", "recorded", "recovering",
    "redacted", "redacting", "reflecting", "refused", "resolved", "restored", "resume", "retrying",
    "remote", "replayable", "rewriting", "running", "safe", "sampled", "sectioned", "seen", "shared",
    "sifted", "silent", "simulated", "slow", "spent", "spliced", "stateful", "stopped", "stored",
    "system", "taken", "thinktwice",
    "tighten", "traded", "tried", "two", "understood", "unlocking", "unreadable",
    "untraded", "unusable", "vital", "waiting", "with",
})  # fmt: skip


def class_names() -> Iterator[str]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def terms() -> set[str]:
    rows = re.findall(r"^\| ([^|]+) \|", GLOSSARY.read_text("utf-8"), re.M)
    return {word for row in rows for word in re.findall(r"[a-z]+", row.lower())}


def singular(word: str) -> str:
    """The word without its plural, as the glossary has it."""
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith("ses"):
        return f"{word[:-3]}sis" if word == "hypotheses" else word[:-1]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def test_glossary_has_every_noun_of_a_class_name() -> None:
    known, missing = terms(), dict[str, str]()
    for name in class_names():
        for word in map(str.lower, WORD.findall(name)):
            if word not in NO_NOUNS and not {word, singular(word)} & known:
                missing[word] = name
    assert missing == {}, "name the thing in the field's words, or say in the glossary what the word means"


def test_glossary_words_that_are_no_nouns_are_used() -> None:
    used = {word.lower() for name in class_names() for word in WORD.findall(name)}
    assert NO_NOUNS - used == frozenset()


def test_glossary_explains_no_word_twice() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", GLOSSARY.read_text("utf-8"), re.M)
    named = [row for row in rows if row not in ("term", "word", "---")]
    assert sorted(set(named)) == sorted(named)
