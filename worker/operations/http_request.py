"""The head of one HTTP request, read strictly: what is not plainly a GET without a body is refused.

A request is data from outside. Every refusal is a status and a reason; nothing that arrives raises anything
else. The rules are those of RFC 9112, and stricter where leniency has let requests be smuggled.
"""

import re
from dataclasses import dataclass

LONGEST_HEAD = 8_192
MOST_FIELDS = 64
METHODS = ("GET", "HEAD")
_LINE = re.compile(rb"([A-Z]{1,16}) (/[!-~]{0,2047}) HTTP/1\.([01])")
_METHOD = re.compile(rb"[A-Z]{1,16} [!-~]{1,2048} HTTP/1\.[01]")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}):[ \t]{0,8}([\x21-\x7e\x80-\xff\t ]{0,4096})")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::([0-9]{1,5}))?")


class Refused(Exception):
    """A request that gets no answer but its status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True)
class Request:
    """A request as far as it matters here; names of fields are in lower case, each once."""

    method: str
    path: str
    fields: dict[str, str]

    @property
    def host(self) -> str:
        """Name or address in the Host field, without port and brackets, in lower case.

        Raises:
            Refused: it is missing or is none.
        """
        match = _HOST.fullmatch(self.fields.get("host", ""))
        if match is None or int(match[2] or 0) > 65_535:
            raise Refused(400, "the Host field is missing or is no host")
        return match[1].strip("[]").lower().removesuffix(".")


def parse_head(head: bytes) -> Request:
    """The request of a head that ends before its empty line.

    Raises:
        Refused: it is malformed, too large, has a body, or asks for something else than reading.
    """
    if len(head) > LONGEST_HEAD:
        raise Refused(431, "the head of the request is too large")
    first, *lines = head.split(b"\r\n")
    match = _LINE.fullmatch(first)
    if match is None:
        known = _METHOD.fullmatch(first)
        raise Refused(
            400, "the request line is malformed" if known is None else "only a path can be asked for"
        )
    if len(lines) > MOST_FIELDS:
        raise Refused(431, "the request has too many fields")
    request = Request(match[1].decode(), match[2].decode().partition("?")[0], _fields(lines))
    if request.method not in METHODS:
        raise Refused(405, "this endpoint can only be read: use GET")
    if request.fields.get("content-length", "0") != "0" or "transfer-encoding" in request.fields:
        raise Refused(413, "a request has no body here")
    return request


def _fields(lines: list[bytes]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in lines:
        match = _FIELD.fullmatch(line)
        if match is None:
            raise Refused(400, "a field of the request is malformed")
        name = match[1].decode().lower()
        if name in fields and name in ("host", "authorization", "content-length"):
            raise Refused(400, f"the field {name} is given twice")
        fields[name] = match[2].decode("latin-1").strip()
    return fields
