"""What the parts of a question ask for: their kinds, and what they name.

That is symbols, playbooks, regimes, moments, ids and what is wanted of rows.

Whatever the case and with the commoner misspellings. A name that the run does not have is said to be unknown,
never replaced. A part that gives an order is no question.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from agents.planning.plan_terms import plan_terms
from agents.planning.question_forms import (
    ACTING_RUN,
    ASKS,
    BY_EXIT,
    DIRECTION,
    EXPLETIVE,
    FILLERS,
    FINITE,
    FOLLOWS,
    FRAGMENT,
    HALF_REGIME,
    ID,
    IMPERATIVES,
    INNER_POINT,
    IS_THAT,
    JOINT,
    NO_OUTCOME,
    OF_THE_RUN,
    ONE,
    ONLY_RUN,
    POINTS,
    RATE,
    REGIME,
    RULE,
    RUN,
    SHOULD,
    SOME,
    STATES,
    SUPPOSED,
    THAT_DAY,
    VERSION,
    WANTS,
    WHETHER_MONEY,
    WORD,
    regime_of,
)
from agents.planning.question_kinds import CLASSES_OF, PLACES, Kind, kind_scores, tokens
from agents.planning.question_names import QuestionNames
from agents.planning.question_phrases import (
    earlier_things,
    has_far_limit,
    is_order,
    limit_of,
    outcome_of,
    pieces_of,
    scored_words,
    without_denial,
)
from agents.planning.question_times import NamedTime, clock_of, named_time
from agents.planning.question_words import IT, WANTED_WHOLE
from agents.planning.row_questions import BOUGHT, RowQuestion, row_question
from services.ports import EvidenceQuestion
from services.text.claim_words import words as words_of
from services.text.claims import sentences

WHETHER = re.compile(r"^(?:and )?(?:was|were|is|did|has)\b")  # the outcome is what is asked
NOT_SOME = re.compile(rf"^(?!.*{SOME.pattern})")
OF_SYMBOLS: frozenset[Kind] = frozenset({"market"})
OF_IDS = frozenset({"why", "entry", "trade", "report", "decision"})
OF_TRADES = frozenset({"exit_reason", "direction", "outcome"})
OF_PLAYBOOKS: frozenset[Kind] = frozenset({"definition", "gate"})
# Two halves of a part ask for two things where each is as surely of its kind.
HALF_SURE, WHOLE_SURE = 0.5, 0.8
LEAST_SCORE, LEAST_MARGIN, WEAK_SCORE = 0.3, 0.08, 0.4
ALSO = 0.5
BESIDE: frozenset[Kind] = frozenset({"definition", "report"})
IF_SO = words_of("which is it that true right correct so who are they has a point really agree do you fair")
LITTLE = words_of("and but what how about same for in on the then please")
SURE_SCORE, SURE_MARGIN = 0.5, 0.2


@dataclass(frozen=True)
class Reading:
    """What one part of a question names.

    Attributes:
        words: as they are scored, with what stands for names.
        time: what it says of time.
        rows: what it wants of the rows that are found.
        is_one: whether it speaks of the last one of something.
        earlier: kinds of things that an earlier turn is to name.
        terms: what it says of a plan beside its symbol, playbook and direction.
        follows: whether it goes on with what was asked before.
        is_asked: whether it is told, and asked behind it whether it is so.
        of_before: kind of the part that it goes on with.
    """

    text: str
    names: QuestionNames
    words: tuple[str, ...] = ()
    time: NamedTime = field(default_factory=lambda: named_time("", None))
    cues: int = 0
    regimes: tuple[str, ...] = ()
    has_half_regime: bool = False
    ids: tuple[str, ...] = ()
    rule: str | None = None
    run: str | None = None
    rows: RowQuestion = RowQuestion()
    outcome: Literal["won", "lost"] | None = None
    limit: int | None = None
    has_far_limit: bool = False
    is_one: bool = False
    is_whole: bool = False
    is_guessed: bool = False
    is_order: bool = False
    asks_advice: bool = False
    is_supposed: bool = False
    is_by_exit: bool = False
    direction: str | None = None
    terms: Mapping[str, Any] = field(default_factory=dict)
    earlier: frozenset[str] = frozenset()
    follows: bool = False
    of_before: Kind | None = None
    is_asked: bool = False

    @property
    def symbols(self) -> tuple[str, ...]:
        """Those that it names."""
        return self.names.symbols

    @property
    def playbooks(self) -> tuple[str, ...]:
        """Those that it names."""
        return self.names.playbooks

    @cached_property
    def scores(self) -> tuple[tuple[float, Kind], ...]:
        """How much of each kind it is that what it names allows, the most first."""
        scores = kind_scores(self.words)
        allowed = [kind for kind in scores if not self._is_barred(kind)]
        return tuple(sorted(((scores[kind], kind) for kind in allowed), key=lambda pair: (-pair[0], pair[1])))

    def _is_barred(self, kind: Kind) -> bool:
        """Whether what it names cannot be asked of a kind: no tool takes it."""
        names = set(self.words) & PLACES
        symbol, book = "SYMBOL" in names, "BOOK" in names
        match kind:
            case "market":
                return (book and not symbol) or "ID" in names
            case "gate" | "definition":
                return (symbol and not book) or "ID" in names or (self.rows.by in OF_TRADES and not book)
            case "overview":
                return not (symbol or book) or "ID" in names
            case "runs":
                return book or (symbol and "runs" not in self.words) or bool(names & {"REGIME", "ID"})
            case "outside":
                return "ID" in names and bool(self.classes & OF_IDS)
            case "trades" | "decisions" | "check":
                return "ID" in names
            case _:
                return False

    @property
    def kind(self) -> Kind:
        """What it asks for most likely."""
        return self.of_before or self.scores[0][1]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Its kind, and others that it is as much of as of nothing else."""
        if self.of_before is not None:
            return (self.of_before,)
        if self.kind not in BESIDE:
            return (self.kind,)
        return (self.kind, *(kind for score, kind in self.scores[1:] if score >= ALSO and kind in BESIDE))

    @property
    def classes(self) -> frozenset[str]:
        """The classes that its words are of."""
        return frozenset(name for word in self.words for name in CLASSES_OF.get(word, ()))

    @property
    def says_little(self) -> bool:
        """Whether it says no more than a name, as `BOOK?` or `what about SYMBOL`."""
        return set(self.words) <= PLACES | LITTLE

    @property
    def asks_if_so(self) -> bool:
        """Whether it asks no more than whether what was told is so, as `which is it?`."""
        return "?" in self.text and set(self.words) <= LITTLE | IF_SO | PLACES and not self.symbols

    @property
    def is_half(self) -> bool:
        """Whether it asks for something on its own, where it stands beside another."""
        return (
            self.kind != "outside" and self.score >= HALF_SURE and not self.says_little and not self.is_order
        )

    @property
    def score(self) -> float:
        """How much of its kind it is."""
        return self.scores[0][0]

    @property
    def margin(self) -> float:
        """By how much the next kind is less likely."""
        return self.scores[0][0] - self.scores[1][0] if len(self.scores) > 1 else 1.0

    @property
    def is_doubtful(self) -> bool:
        """Whether its kind is not quite sure."""
        return self.of_before is None and (self.score < SURE_SCORE or self.margin < SURE_MARGIN)

    @property
    def is_clear(self) -> bool:
        """Whether it is of one kind that is known."""
        return self.kind != "outside" and self.score >= WEAK_SCORE and self.margin >= LEAST_MARGIN

    @property
    def is_idle(self) -> bool:
        """Whether it asks for nothing, such as a greeting before a question."""
        found = self.symbols or self.playbooks or self.ids or self.regimes or self.earlier
        doubtful = self.names.unknown or self.names.unsure or self.time.is_unclear or self.time.wrong
        strange = self.names.strange and ASKS.search(self.text)
        return self.kind == "outside" and not (found or doubtful or strange)

    @property
    def is_statement(self) -> bool:
        """Whether it tells something, as people do before they ask."""
        if self.is_asked or "?" in self.text or ASKS.search(self.text):
            return False
        first = next((word for word in self.words if word not in FILLERS), "")
        return STATES.match(self.text) is not None or (
            first not in IMPERATIVES and FINITE.search(self.text) is not None
        )

    def only_elaborates(self, before: "Reading") -> bool:
        """Whether it goes on with what stands before it and asks for nothing of its own."""
        names = self.symbols or self.playbooks or self.ids or self.regimes or self.names.unknown
        if names or self.names.strange or self.is_order or before.kind == "outside":
            return False
        if before.is_statement or before.is_order:
            return False
        named = _take_names(before, self)
        if named is not self and named.kind not in (before.kind, "outside") and not named.is_doubtful:
            return False
        if FRAGMENT.match(self.text) or self.says_little:
            return True
        of_before = next((score for score, kind in self.scores if kind == before.kind), 0.0)
        is_weak = self.kind == "outside" or self.score < WEAK_SCORE
        rows, time = self.rows, self.time
        own = self.outcome or self.limit or rows.order or rows.by or rows.direction or time.since or time.at
        return (is_weak and bool(POINTS & set(self.words))) or (
            not own and self.score - of_before < LEAST_MARGIN
        )

    @property
    def asks_why_of_fill(self) -> bool:
        """Whether it asks why a fill happened that it does not name by its id."""
        return self.kind == "fill" and not self.ids

    def with_names(self, symbols: Sequence[str], playbooks: Sequence[str]) -> "Reading":
        """It with the names that it leaves out."""
        names = replace(self.names, symbols=tuple(symbols), playbooks=tuple(playbooks))
        places = ["SYMBOL"] * bool(symbols) + ["BOOK"] * bool(playbooks)
        added = [place for place in places if place not in self.words]
        words = tuple(added[0] if word in IT else word for word in self.words) if added else self.words
        added = [place for place in added if place not in words]
        earlier = self.earlier - {"it", "symbol", "playbook"}
        return replace(self, names=names, words=(*words, *added), earlier=earlier)


def parts_of(question: EvidenceQuestion) -> tuple[Reading, ...]:
    """The parts of a question that ask for something."""
    return read_question(question)[0]


def read_question(question: EvidenceQuestion) -> tuple[tuple[Reading, ...], tuple[Reading, ...]]:
    """The parts of a question that ask for something, and those that are left out.

    What `it` means in a part is what the part before names. Left out are orders where something else is
    asked, what asks for nothing, and what goes on with a part before it. A part is not empty.
    """
    whole = without_denial(unicodedata.normalize("NFKC", question.text))  # letters of full width, too
    spans = sentences(INNER_POINT.sub("_", whole), parts=True)
    asked = [whole[span.start : span.end] for span in spans]
    texts = [part for text in asked for part in pieces_of(text)]
    found, left_out = list[Reading](), list[Reading]()
    for text in texts or [whole]:
        for reading in _halves(text, question.context):
            if found and found[-1].is_statement and reading.asks_if_so:
                found[-1] = replace(found[-1], is_asked=True)
            elif found and (whole_of := _join(found[-1], reading, question.context)):
                found[-1] = whole_of
            elif found and (_is_of_the_same(found[-1], reading) or reading.only_elaborates(found[-1])):
                left_out.append(reading)
            else:
                found.append(_take_names(found[-1], reading) if found else reading)
    asking = [reading for reading in found if not reading.is_order and not reading.is_idle]
    if any(ASKS.search(reading.text) or reading.is_asked for reading in asking):
        asking = [reading for reading in asking if not reading.is_statement]
    asking = [
        reading
        for place, reading in enumerate(asking)
        if not (reading.says_little and _has_names(asking[place + 1 :], reading))
    ]
    asking = asking or [reading for reading in found if reading.is_order][:1] or found[:1]
    kept = {id(reading) for reading in asking}
    return tuple(asking), tuple(reading for reading in (*found, *left_out) if id(reading) not in kept)


def _halves(text: str, context: Mapping[str, Any]) -> list[Reading]:
    """A part, or its halves where they ask for two things of the same names, as `rules and losers of` one."""
    whole = read_part(text, context)
    if whole.score >= WHOLE_SURE or whole.is_order or whole.ids or whole.is_statement:
        return [whole]
    for joint in JOINT.finditer(text):
        first, second = read_part(text[: joint.start()], context), read_part(text[joint.end() :], context)
        both = first, second
        if first.kind == second.kind or not all(part.is_half for part in both):
            continue
        if not (first.symbols or first.playbooks or first.earlier):
            first = first.with_names(second.symbols, second.playbooks)
        if not first.regimes:
            first = replace(first, regimes=second.regimes)
        return [first, *_halves(text[joint.end() :], context)]
    return [whole]


def _join(before: Reading, reading: Reading, context: Mapping[str, Any]) -> Reading | None:
    """Both as one part where one alone says too little."""
    own = reading.symbols or reading.playbooks or reading.ids or reading.names.unknown or reading.names.unsure
    if own or reading.is_order or before.is_order or before.is_asked:
        return None
    opens = before.is_statement or not before.is_clear
    if not opens or reading.is_clear or (before.is_idle and not before.symbols and not before.playbooks):
        return None
    both = read_part(f"{before.text.rstrip(' .;:!,')}, {reading.text.strip()}", context)
    return both if both.is_clear else None


def _is_of_the_same(before: Reading, reading: Reading) -> bool:
    """Whether it asks no more of the one thing that the part before it names."""
    said = reading.outcome or reading.rows.order or reading.names.strange
    return before.is_one and "it" in reading.earlier and reading.kind in ("trades", "outside") and not said


def _has_names(readings: Sequence[Reading], reading: Reading) -> bool:
    """Whether the next one asks about all that a bare name announces."""
    return bool(readings) and (
        set(reading.symbols) <= set(readings[0].symbols)
        and set(reading.playbooks) <= set(readings[0].playbooks)
    )


def _at_the_time_of(before: Reading, reading: Reading) -> Reading:
    """It at the time and in the regimes that are told before it, where it names none."""
    time, own = before.time, reading.time
    if not before.is_statement:
        return replace(reading, time=time) if time.at and THAT_DAY.search(reading.text) else reading
    is_timeless = not (own.since or own.at or own.is_unclear or own.wrong)
    return replace(
        reading,
        time=time if is_timeless and (time.since or time.at) else own,
        regimes=reading.regimes or before.regimes,
    )


def _take_names(before: Reading, reading: Reading) -> Reading:
    if (
        before.ids
        and reading.earlier & {"it", "fill"}
        and not (reading.ids or reading.symbols or reading.playbooks)
    ):
        words = tuple("ID" if word in IT else word for word in reading.words)
        return replace(reading, ids=before.ids, words=words, earlier=frozenset())
    if reading.playbooks and before.symbols and "it" in reading.earlier and not reading.symbols:
        return reading if before.playbooks else reading.with_names(before.symbols, reading.playbooks)
    is_open = not reading.symbols and not reading.playbooks
    is_meant = reading.earlier & {"it", "symbol", "playbook"} or (before.is_statement and not reading.earlier)
    if not is_open or not is_meant or not (before.symbols or before.playbooks):
        return reading
    named = _at_the_time_of(before, reading.with_names(before.symbols, before.playbooks))
    if not before.is_statement:
        return replace(named, regimes=named.regimes or (before.regimes if named.kind == "gate" else ()))
    return replace(
        named, direction=named.direction or before.direction, terms={**before.terms, **named.terms}
    )


def read_part(text: str, context: Mapping[str, Any]) -> Reading:
    """What a text names among the symbols and playbooks of `context`, and of what kind it is."""
    plain = IS_THAT.sub(r"\1 it", text.replace("\u2019", "'"))
    plain = ACTING_RUN.sub("we ", plain)
    run, bare = RUN.search(plain), OF_THE_RUN.sub(" ", plain)
    plain = bare if any(word in CLASSES_OF for word in tokens(bare)) else plain
    plain = VERSION.sub(" version ", RUN.sub(" run " if ONLY_RUN.search(plain) else " ", plain))
    ids = tuple(dict.fromkeys(found.lower() for found in ID.findall(plain)))
    terms, rest = plan_terms(plain)
    rule = RULE.search(rest)
    rest = ID.sub(" ID ", RULE.sub(" RULE ", rest))
    time = named_time(rest, clock_of(context), tuple(context.get("symbols", ())))
    regimes = tuple(dict.fromkeys(regime_of(found) for found in REGIME.finditer(time.rest)))
    half = HALF_REGIME.search(REGIME.sub(" ", time.rest)) is not None
    rest = EXPLETIVE.sub("is ", HALF_REGIME.sub(" REGIME ", REGIME.sub(" REGIME ", time.rest)))
    names = QuestionNames.of([word.strip("'./-") for word in WORD.findall(rest)], context)
    earlier = earlier_things(rest.casefold(), names)
    words, spelled = scored_words(names.left, earlier)
    flat = " ".join(spelled)
    has_book = bool(names.playbooks or "BOOK" in words or IT & set(spelled))
    rows = row_question(flat, has_playbook=has_book)
    one = (ONE if rows.order is None else NOT_SOME).search(flat) is not None
    is_asked = one and WHETHER.search(flat) is not None
    no_outcome = is_asked or rows.by or RATE.search(flat) or WHETHER_MONEY.search(flat)
    return Reading(
        text=text,
        names=names,
        words=tuple(words),
        time=time,
        cues=sum(word in CLASSES_OF for word in spelled),
        regimes=regimes,
        has_half_regime=half,
        ids=ids,
        rule=rule[0] if rule else None,
        rows=rows,
        outcome=None if no_outcome else outcome_of(NO_OUTCOME.sub(" ", flat)),
        limit=limit_of(flat),
        has_far_limit=has_far_limit(flat),
        is_one=one,
        is_whole=bool(WANTED_WHOLE & set(spelled)),
        is_guessed=names.is_guessed or words != [w for w in tokens(" ".join(names.left)) if w],
        is_order=is_order(spelled) or is_order(tokens(rest)) or WANTS.search(plain) is not None,
        asks_advice=SHOULD.search(flat) is not None,
        is_supposed=SUPPOSED.search(plain) is not None,
        direction=next(iter(DIRECTION.findall(flat)), "long" if BOUGHT.search(flat) else None),
        terms=terms,
        run=run["run"].lower() if run else None,
        is_by_exit=BY_EXIT.search(flat) is not None,
        earlier=earlier,
        follows=FOLLOWS.search(plain) is not None,
    )
