"""A text as a reader takes it in: letters that look alike, digits for letters, letters that stand apart.

It is for finding words, never for showing or storing a text: what comes back is another text.
"""

import re
import unicodedata

_LOOK_ALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеорсухіјѕһԁԛԝкмтнвпґзΑΒΕΖΗΙΚΜΝΟΡΤΥΧαεικνορτυχօսհցոıɑɡɩʟᴀʙᴄᴅᴇɢʜɪᴊᴋᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢøđłŧ’‘´`“”„‟‐‑‒–—−",
    "ABESIJKMHOPCTYXaeopcyxijshdqwkmthbnr3ABEZHIKMNOPTYXaeikvoptuxouhgniaglLabcdeghijkmnoprstuvwyzodlt''''\"\"\"\"------",
)
_DIGITS = str.maketrans("034578@$", "oeastbas")
_MIXED = re.compile(r"[a-z0-9@$!|]*(?:[a-z][0-9@$!|]|[0-9@$!|][a-z])[a-z0-9@$!|]*")
_SPACED = re.compile(r"\b[a-z](?:[ ._*/-][a-z]\b){2,}")
_CUT = re.compile(r"(?<=[a-z])-\n\s*(?=[a-z])")
_INNER = re.compile(r"(?<=[a-z])[-._*'~^+](?=[a-z])")
_BLANK_LINE = re.compile(r"\n[ \t]*\n\s*")


def readings(text: str) -> tuple[str, ...]:
    """Small letters of the Latin alphabet on one line, in each way in which the text may be read.

    The first has its words and marks as they stand; others join what marks tear apart, or take a 1 for an l.
    """
    whole = unicodedata.normalize("NFKC", text.translate(_LOOK_ALIKES)).translate(_LOOK_ALIKES).casefold()
    seen = "".join(
        character
        for character in unicodedata.normalize("NFKD", whole)
        if character in "\n\t\r" or unicodedata.category(character) not in ("Mn", "Me", "Cf", "Cc", "Co")
    )
    lines = _BLANK_LINE.sub(". ", _CUT.sub("", seen.replace("\r\n", "\n")))
    found = []
    for one in ("i", "l"):
        spelt = _MIXED.sub(lambda mixed, one=one: _as_letters(mixed[0], one), lines)  # type: ignore[misc]
        joined = _SPACED.sub(lambda spaced: re.sub(r"[^a-z]", "", spaced[0]), spelt)
        found += [" ".join(spelt.split()), " ".join(joined.split()), " ".join(_INNER.sub("", joined).split())]
    return tuple(dict.fromkeys(found))


def _as_letters(word: str, one: str) -> str:
    """A word with the letters that its digits stand for; a number with a unit (`20x`, `0.5r`) stays."""
    if re.fullmatch(r"\d+[a-z]{1,2}", word):
        return word
    return re.sub(r"1|[!|](?=[a-z0-9])", one, word).translate(_DIGITS)
