"""Text templates of the model calls and their content-hashed loader.

A template file has two halves, divided by one line: instructions without placeholders (the same for every
call, so a provider can cache them) and a request with `{{name}}` placeholders. What several templates say is
a file of `parts`, and stands where a line names it. The hash covers the whole text and stands on every
artifact the template had a part in. Read by `services` and `agents`; imports nothing of ours.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

DIVIDER = "=== request ==="
FOLDER = Path(__file__).parent
PART = re.compile(r"^=== part ([a-z_]+) ===$", re.MULTILINE)
PLACEHOLDER = re.compile(r"\{\{\s*([a-z][a-z0-9_]*)\s*\}\}")


class PromptError(ValueError):
    """A template is missing or malformed, or was rendered with other values than it names."""


@dataclass(frozen=True)
class PromptTemplate:
    """One template: `system` goes out unchanged, `render` fills the request.

    Attributes:
        name: file name without `.txt`.
        text: the whole file with its parts, line ends normalised.
        hash: SHA-256 of `text`, 64 hex digits.
    """

    name: str
    text: str
    hash: str

    @property
    def system(self) -> str:
        """The instructions: everything before the divider."""
        return self.text.partition(DIVIDER)[0].strip()

    @property
    def placeholders(self) -> frozenset[str]:
        """Names that `render` needs."""
        return frozenset(PLACEHOLDER.findall(self.text.partition(DIVIDER)[2]))

    def render(self, **values: str) -> str:
        """The request with every placeholder filled in one pass; text inside a value is never expanded again.

        Raises:
            PromptError: a placeholder has no value, or a value has no placeholder.
        """
        missing, unknown = self.placeholders - set(values), set(values) - self.placeholders
        if missing:
            raise PromptError(f"prompt {self.name!r}: no value for placeholder {', '.join(sorted(missing))}")
        if unknown:
            names = ", ".join(sorted(unknown))
            raise PromptError(
                f"prompt {self.name!r}: no placeholder {names}; it has {sorted(self.placeholders)}"
            )
        request = self.text.partition(DIVIDER)[2].strip()
        return PLACEHOLDER.sub(lambda match: values[match.group(1)], request)


def template_from_text(name: str, text: str) -> PromptTemplate:
    """Check and hash one template text.

    Raises:
        PromptError: the divider is missing or repeated, a part is empty, or the instructions hold a
            placeholder.
    """
    normal = text.replace("\r\n", "\n")
    if normal.count(DIVIDER) != 1:
        raise PromptError(
            f"prompt {name!r}: needs exactly one line {DIVIDER!r}, found {normal.count(DIVIDER)}"
        )
    template = PromptTemplate(name, normal, hashlib.sha256(normal.encode()).hexdigest())
    if not template.system or not normal.partition(DIVIDER)[2].strip():
        raise PromptError(f"prompt {name!r}: nothing before or nothing after {DIVIDER!r}")
    found = PLACEHOLDER.search(template.system)
    if found:
        raise PromptError(
            f"prompt {name!r}: placeholder {found.group(0)!r} in the instructions; move it to the request"
        )
    return template


@lru_cache(maxsize=16)
def load_prompt(name: str) -> PromptTemplate:
    """Load `prompts/<name>.txt`.

    Raises:
        PromptError: no such file, or the template is malformed.
    """
    path = FOLDER / f"{name}.txt"
    known = sorted(file.stem for file in FOLDER.glob("*.txt"))
    if name not in known:
        raise PromptError(f"no prompt {name!r}; there are {known}")
    return template_from_text(name, PART.sub(_part, path.read_text("utf-8")))


def _part(named: re.Match[str]) -> str:
    """The text of a part."""
    return (FOLDER / "parts" / f"{named.group(1)}.txt").read_text("utf-8").strip()
