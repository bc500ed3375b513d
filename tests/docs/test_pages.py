"""The pages agree with the code that writes parts of them, and with each other."""

import re
from pathlib import Path

import pytest

from schemas.errors import ConfigError
from tests.each_case import check_each
from tools.docs_pages import DOCS, README, ROOT, block_names, fences, pages, with_blocks
from tools.docs_reference import BLOCKS, stale_pages

LINK = re.compile(r"(?<!\!)\[[^\]]+\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
KINDS = {"tutorial", "how-to", "explanation", "reference", "images"}


def prose(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    slugs = (
        re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
        for title in HEADING.findall(prose(page))
    )
    return set(slugs)


def test_generated_blocks_are_what_the_code_says():
    assert [str(page.relative_to(ROOT)) for page in stale_pages()] == [], "run `make docs`"


def test_generated_blocks_all_stand_on_a_page():
    standing = {name for page in pages() for name in block_names(page.read_text("utf-8"))}
    assert standing == set(BLOCKS)


def test_page_with_a_block_that_nothing_writes_is_refused():
    with pytest.raises(ConfigError, match="no command writes the block 'statez'.*'states'"):
        with_blocks("<!-- begin statez -->\n<!-- end statez -->", {"states": ""})


@check_each("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_page_links_lead_somewhere(page):
    dead = []
    for target in LINK.findall(prose(page)):
        name, _, anchor = target.partition("#")
        if "://" in name:
            continue
        other = page if not name else (page.parent / name).resolve()
        if not other.exists() or (anchor and anchor not in anchors(other)):
            dead.append(target)
    assert dead == []


def test_index_names_every_page():
    index = (DOCS / "README.md").read_text("utf-8")
    linked = {(DOCS / target.partition("#")[0]).resolve() for target in LINK.findall(index)}
    assert set(pages()) - {README, DOCS / "README.md"} <= linked


def test_pages_are_of_one_of_four_kinds():
    assert {path.relative_to(DOCS).parts[0] for path in DOCS.rglob("*.*") if path.parent != DOCS} == KINDS
    assert [path.name for path in DOCS.iterdir() if path.is_file()] == ["README.md"]


@check_each("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_page_shows_no_place_of_the_machine_it_was_written_on(page):
    assert re.findall(r"/(?:home|root|tmp|work|Users|usr)/\w+", page.read_text("utf-8")) == []


def test_pictures_shown_on_pages_exist():
    shown = [
        (page.parent / target).resolve()
        for page in pages()
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text("utf-8"))
    ]
    assert shown
    assert [str(path) for path in shown if not path.is_file()] == []


def test_every_fence_is_closed_and_has_a_language():
    for page in pages():
        text = page.read_text("utf-8")
        assert text.count("```") == 2 * len(list(fences(page))), page
