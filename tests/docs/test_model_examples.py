"""Every `[llm]` that a page shows is one that the settings take."""

import re
import tomllib

import pytest

from schemas.settings.llm import LlmSettings
from tools.docs_pages import DOCS

BLOCK = re.compile(r"^( *)```toml[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
SHOWN = [
    (page.relative_to(DOCS).as_posix(), block[2])
    for page in sorted(DOCS.rglob("*.md"))
    for block in BLOCK.finditer(page.read_text("utf-8"))
    if "llm" in block[2]
]


@pytest.mark.parametrize(("page", "text"), SHOWN)
def test_llm_of_a_page_is_taken_by_the_settings(page, text):
    LlmSettings.model_validate(tomllib.loads(text).get("llm", {}), strict=False)


def test_pages_show_an_llm():
    assert "how-to/ask-a-model-again.md" in {page for page, _ in SHOWN}
