"""The pages of the documentation: where they lie, their generated blocks and their fenced examples.

A generated block stands between `<!-- begin NAME ... -->` and `<!-- end NAME -->`; only programs write there.
Read by the two writers (`docs_reference`, `docs_examples`) and by the tests.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import ConfigError, nearest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
_BLOCK = re.compile(r"(<!-- begin ([\w-]+)[^>]*-->\n).*?(<!-- end \2 -->)", re.DOTALL)
_FENCE = re.compile(r"^```(\w+)([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Fence:
    """One fenced block: language, options of its info string, text, and where it lies on the page."""

    page: Path
    language: str
    options: Mapping[str, str]
    text: str
    start: int
    end: int


def pages() -> list[Path]:
    """Every page, README first, then by path."""
    return [README, *sorted(DOCS.rglob("*.md"))]


def fences(page: Path) -> Iterator[Fence]:
    """The fenced blocks of a page, from top to bottom."""
    text = page.read_text("utf-8")
    for found in _FENCE.finditer(text):
        language, info, body = found.groups()
        yield Fence(page, language, dict(_OPTION.findall(info)), body, found.start(3), found.end(3))


def with_blocks(text: str, blocks: Mapping[str, str]) -> str:
    """The page with each generated block replaced.

    Raises:
        ConfigError: the page has a block that nothing writes.
    """

    def write_block(found: re.Match[str]) -> str:
        name = found[2]
        if name not in blocks:
            raise ConfigError(f"no command writes the block {name!r}.{nearest(name, blocks)}")
        return f"{found[1]}{blocks[name].strip()}\n{found[3]}"

    return _BLOCK.sub(write_block, text)


def block_names(text: str) -> list[str]:
    """Names of the generated blocks of a page."""
    return [found[2] for found in _BLOCK.finditer(text)]


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table; bars inside a cell are escaped."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
