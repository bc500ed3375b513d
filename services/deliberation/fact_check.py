"""Does a text say what the run says? Each claim against the facts as of one moment; the rest is struck.

A figure is true if a stored value rounds to it at the decimals it is given with. A claim that names no
question of the catalogue, or one that the run has no answer to, is unverifiable, which is an answer of its
own. Lines that the run itself wrote may be quoted whole.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence

from schemas.errors import nearest
from schemas.fact_check import CheckedClaim, ClaimVerdict, FactCheck, FactRow
from schemas.vocabulary import EvidenceGrade
from services.deliberation.claims import Claim, read_claims
from services.deliberation.mentions import Figure, Lexicon
from services.evidence.catalogue import lost, won
from services.evidence.facts import Fact, Subject
from services.evidence.run_facts import KnownEpisode, RunFacts
from services.text.claims import sentences

SHORTEST_QUOTE = 12
MOST_VALUES = 3
SLACK = 0.5000001  # of the last digit: a stored value may be rounded already
NS_PER_YEAR_START = 1970
GRADES = list(EvidenceGrade)
HALF = (0.45, 0.55)
UNKNOWN = "the run has no answer to it"
UNREAD = "the words name no measure that the run has"


class Held:
    """What a claim was held against: a verdict, what was found, its rows, and what would pass."""

    def __init__(
        self,
        verdict: ClaimVerdict,
        found: str | None = None,
        rows: tuple[FactRow, ...] = (),
        would_pass: Sequence[str] = (),
    ) -> None:
        self.verdict = verdict
        self.found = found
        self.rows = rows
        self.would_pass = tuple(dict.fromkeys(would_pass))[:MOST_VALUES]


def judged(true: bool, found: str, rows: tuple[FactRow, ...] = (), would_pass: Sequence[str] = ()) -> Held:
    """Verified or contradicted."""
    return (
        Held("verified", found, rows) if true else Held("contradicted", found, rows, would_pass or (found,))
    )


def check_facts(text: str, facts: RunFacts) -> FactCheck:
    """Every claim of a text with its verdict, and the text without the sentences that do not hold."""
    lexicon = Lexicon(facts)
    quoted = _quoted(text, facts)
    checked = []
    for claim in read_claims(text, lexicon):
        if any(start <= claim.start and claim.end <= end for start, end in quoted):
            held, confidence = Held("verified", "a line of the report", (facts.report_row,)), 1.0
        else:
            held, confidence = _held(claim, facts), claim.confidence
        checked.append(_checked(text, claim, held, confidence))
    failed = {claim.start for claim in checked if claim.verdict != "verified"}
    return FactCheck(known_at=facts.known_at, claims=tuple(checked), struck_text=strike(text, failed))


def strike(text: str, places: set[int]) -> str:
    """The text without every sentence that holds one of the places."""
    kept, last, ordered = [], 0, sorted(places)
    for sentence in sentences(text):
        following = bisect_left(ordered, sentence.start)
        if following < len(ordered) and ordered[following] < sentence.end:
            kept.append(text[last : sentence.start])
            last = sentence.end
    return re.sub(r"[ \t]+\n", "\n", "".join([*kept, text[last:]])).strip() if places else text


def _checked(text: str, claim: Claim, held: Held, confidence: float) -> CheckedClaim:
    return CheckedClaim(
        text=claim.sentence.text.strip(),
        start=claim.start,
        end=claim.end,
        kind=claim.kind,
        said=text[claim.start : claim.end].strip(),
        verdict=held.verdict,
        confidence=round(confidence, 6),
        found=held.found,
        rows=held.rows,
        would_pass=held.would_pass,
    )


def _quoted(text: str, facts: RunFacts) -> list[tuple[int, int]]:
    """Places of the run's own lines in a text, each from one boundary to another."""
    found = []
    for line in facts.texts:
        if len(line) < SHORTEST_QUOTE:
            continue
        place = text.find(line)
        while place >= 0:
            end = place + len(line)
            opens = place == 0 or re.search(r"(?:\n|[-*] |[.!?;:] )$", text[:place]) is not None
            if opens and re.match(r"[.!?;]?(?:\s|$)", text[end:]):
                found.append((place, end))
            place = text.find(line, place + 1)
    return found


def _held(claim: Claim, facts: RunFacts) -> Held:
    """The verdict on the first subject that the run knows something of; a true one of another will do."""
    best: Held | None = None
    for subject in claim.subjects:
        held = CHECKS[claim.said](claim, subject, facts)
        if held.verdict == "verified":
            return held
        if best is None or best.verdict == "unverifiable":
            best = held
    return best or Held("unverifiable", UNKNOWN)


def _figure(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    if not claim.questions:
        return Held("unverifiable", UNREAD)
    held: Figure = claim.value
    found = [fact for question in claim.questions for fact in _answers(question, held, subject, facts)]
    if not found:
        return Held("unverifiable", UNKNOWN)
    share = held.unit == "%" or held.unit.casefold().startswith("per")
    same = [fact for fact in found if _is_so(held, fact, share, claim.relation, claim.questions)]
    told = [written(fact, held, share) for fact in found]
    if claim.negated:
        return (
            Held("contradicted", told[0], same[0].rows)
            if same
            else Held("unverifiable", told[0], found[0].rows)
        )
    rows = same[0].rows if same else found[0].rows
    return judged(bool(same), told[found.index(same[0])] if same else told[0], rows, told)


def _answers(question: str, held: Figure, subject: Subject, facts: RunFacts) -> tuple[Fact, ...]:
    """Facts in the unit of the figure; a share of losers is counted where a failure mode is meant."""
    if question == "failures" and held.unit:
        counted = facts.facts("failures", subject)
        losers = facts.facts("losers", Subject(**{**vars(subject), "failure_mode": None}))
        if not counted or not losers or not losers[0].value:
            return ()
        return (Fact(counted[0].value / losers[0].value, "share", counted[0].rows),)
    if question in ("winners", "losers", "longs", "shorts", "trades"):
        found = facts.facts(question, subject)
        of_mode = Subject(**{**vars(subject), "failure_mode": None})
        return found or facts.facts(question, of_mode)
    return facts.facts(question, subject)


def _is_so(held: Figure, fact: Fact, share: bool, relation: str, questions: tuple[str, ...]) -> bool:
    value = fact.value * 100.0 if share and fact.unit == "share" else fact.value
    said = held.value
    if "mae_p80" in questions and not held.sign:
        value = abs(value)
    margin = held.step * SLACK
    near = abs(said - value) <= margin
    if near and held.sign in ("+",) and value < 0 and said == 0:
        near = False
    if relation == ">=":
        return near or value > said
    if relation == "<=":
        return near or value < said
    return near


def written(fact: Fact, held: Figure, share: bool) -> str:
    """A fact as a text would write it: at the decimals and in the unit of the figure that it answers."""
    decimals = max(0, -math.floor(math.log10(held.step) + 0.5)) if held.step < 1 else 0
    value = fact.value * 100.0 if share and fact.unit == "share" else fact.value
    if fact.unit == "r":
        return f"{value:+.{max(decimals, 2)}f}R"
    return f"{value:,.{decimals}f}{' %' if share else ''}"


def _interval(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    cluster = facts.cluster(subject)
    if cluster is None:
        return Held("unverifiable", UNKNOWN)
    pairs = [(cluster.lower_r, cluster.upper_r), (cluster.fixed_lower_r, cluster.fixed_upper_r)]
    pairs = [pair for number, pair in enumerate(pairs) if number == 0 or pair != (None, None)]
    true = any(
        all(_same_edge(said, edge) for said, edge in zip(claim.value, pair, strict=True)) for pair in pairs
    )
    told = [
        "[" + ", ".join("open" if edge is None else f"{edge:+.2f}" for edge in pair) + "]" for pair in pairs
    ]
    return judged(true, told[0], (facts.report_row,), told)


def _same_edge(said: Figure | None, edge: float | None) -> bool:
    if said is None or edge is None:
        return said is None and edge is None
    return abs(said.value - edge) <= said.step * SLACK


def _share(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """All, most, half or none of the trades, of the playbooks, of the symbols or of the clusters."""
    noun = next(iter(claim.questions), "")
    kind, value = claim.value or ("", "")
    if noun in ("playbooks", "symbols") and kind in ("direction", "measure"):
        return _share_of_members(claim, noun, _gained_word(str(value)), facts)
    if kind == "grade":
        return _share_of_grades(claim, noun, str(value), subject, facts)
    chosen = facts.trades(subject)
    if noun in ("winners", "losers"):
        outcome = won if noun == "winners" else lost
        chosen = [known for known in chosen if outcome(known.episode)]
    if claim.value is None and claim.relation == "none":
        return judged((not chosen) != claim.negated, f"{len(chosen)} trades", _row_of(chosen))
    test = _predicate(kind, str(value))
    if test is None or not chosen:
        return Held("unverifiable", UNREAD if test is None else UNKNOWN)
    held = _portion(claim, sum(test(known) for known in chosen), len(chosen), "trades")
    return Held(held.verdict, held.found, _row_of(chosen), held.would_pass)


def _portion(claim: Claim, count: int, total: int, noun: str, rows: tuple[FactRow, ...] = ()) -> Held:
    """Whether a part of a whole is what "all", "most", "half", "none" or a number says."""
    said = {
        "all": count == total,
        "none": count == 0,
        "most": 2 * count > total,
        "half": HALF[0] <= count / total <= HALF[1],
    }
    true = said[claim.relation] if claim.relation in said else count == float(claim.relation)
    return judged(true != claim.negated, f"{count} of {total} {noun}", rows)


def _gained_word(value: str) -> bool:
    return value in ("gained", "winners")


def _share_of_members(claim: Claim, noun: str, gained: bool, facts: RunFacts) -> Held:
    """Playbooks or symbols by the sign of their mean; of those that have traded."""
    names = facts.playbook_ids if noun == "playbooks" else facts.symbols
    asked = (Subject(playbook=name) if noun == "playbooks" else Subject(symbol=name) for name in names)
    means = [found[0] for subject in asked if (found := facts.facts("mean_r", subject))]
    if not means:
        return Held("unverifiable", UNKNOWN)
    count = sum(fact.value > 0 if gained else fact.value < 0 for fact in means)
    return _portion(claim, count, len(means), noun, tuple(row for fact in means for row in fact.rows))


def _predicate(kind: str, value: str) -> Callable[[KnownEpisode], bool] | None:
    if kind in ("direction", "measure"):
        if value in ("gained", "winners"):
            return lambda known: won(known.episode)
        if value in ("lost", "losers"):
            return lambda known: lost(known.episode)
        return lambda known: known.episode.direction == ("long" if value == "longs" else "short")
    if kind == "side":
        return lambda known: known.episode.direction == value
    if kind == "exit":
        return lambda known: known.episode.exit_reason.value == value
    if kind == "failure":
        return lambda known: (
            known.episode.failure_mode is not None and known.episode.failure_mode.value == value
        )
    return None


def _share_of_grades(claim: Claim, noun: str, grade: str, subject: Subject, facts: RunFacts) -> Held:
    cluster = facts.cluster(subject)
    grades = (cluster.grade,) if cluster is not None else facts.grades(of_playbooks=noun == "playbooks")
    if not grades or not (subject.is_empty or cluster):
        return Held("unverifiable", UNKNOWN)
    return _portion(
        claim, sum(found == grade for found in grades), len(grades), "clusters", (facts.report_row,)
    )


def _row_of(chosen: Sequence[KnownEpisode]) -> tuple[FactRow, ...]:
    return (chosen[-1].row,) if chosen else ()


def _direction(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    found = facts.facts("mean_r", subject)
    if not found:
        return Held("unverifiable", UNKNOWN)
    gained = found[0].value > 0
    word = "gained" if gained else "lost" if found[0].value < 0 else "earned nothing"
    return judged(
        (claim.value == word) != claim.negated, f"{word}: {found[0].value:+.2f}R a trade", found[0].rows
    )


def _comparison(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    mine = facts.facts(claim.questions[0], subject)
    theirs = () if claim.other is None else facts.facts(claim.questions[0], claim.other)
    if not mine or not theirs:
        return Held("unverifiable", UNKNOWN)
    a, b = mine[0].value, theirs[0].value
    true = a > b if claim.relation == ">" else a < b
    return judged(true != claim.negated, f"{_plain(a)} against {_plain(b)}", mine[0].rows + theirs[0].rows)


def _plain(value: float) -> str:
    return f"{value:.4g}"


def _extreme(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    field = "playbook" if subject.playbook is not None else "symbol"
    mine = getattr(subject, field)
    if subject != Subject(**{field: mine}):
        return Held("unverifiable", UNREAD)
    names = facts.playbook_ids if field == "playbook" else facts.symbols
    found = {name: facts.facts(claim.questions[0], Subject(**{field: name})) for name in names}
    values = {name: answers[0].value for name, answers in found.items() if answers}
    if mine not in values or len(values) < 2:
        return Held("unverifiable", UNKNOWN)
    best = (max if claim.value == "highest" else min)(values.values())
    first = sorted(name for name, value in values.items() if value == best)
    told = f"{', '.join(first)}: {_plain(best)}"
    return judged((mine in first) != claim.negated, told, found[first[0]][0].rows, first)


def _grade(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    cluster = facts.cluster(subject)
    if cluster is None:
        return _grade_of_the_run(claim, subject, facts)
    same = cluster.grade == claim.value
    return judged(same != claim.negated, cluster.grade.value, (facts.report_row,))


def _grade_of_the_run(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """Where no cluster is named: false when no cluster has the grade, and else open which one is meant."""
    grades = facts.grades()
    if not grades or not subject.is_empty:
        return Held("unverifiable", UNKNOWN)
    if claim.value == EvidenceGrade.INSUFFICIENT_SAMPLE and facts.report is not None:
        return judged(
            facts.report.insufficient_sample != claim.negated, str(facts.report.insufficient_sample).lower()
        )
    if not any(found == claim.value for found in grades):
        return judged(claim.negated, "no cluster", (facts.report_row,))
    return Held("unverifiable", UNREAD)


def _name(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    kind, name = claim.value
    if kind == "playbook":
        return Held("verified", name, _row_of(facts.trades(Subject(playbook=name))) or (facts.report_row,))
    if kind == "symbol":
        return Held("verified", name, _row_of(facts.trades(Subject(symbol=name))))
    if kind == "id":
        rows = {known: row for known, row in facts.ids.items() if known.startswith(name)}
        if len(rows) == 1:
            return Held("verified", *next(iter((known, (row,)) for known, row in rows.items())))
        return (
            Held("contradicted", "no id of the run") if not rows else Held("unverifiable", f"{len(rows)} ids")
        )
    if kind == "capitals":
        return Held("unverifiable", "no symbol of the run", (), facts.symbols)
    like = nearest(name, sorted(facts.names)).strip()
    options = [word for word in facts.playbook_ids if word in like] or list(facts.playbook_ids)
    return Held("contradicted", "no name of the run", (), options)


def _day(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    start, following = claim.value
    report = facts.report
    if start > facts.known_at:
        return Held("contradicted", "after the moment of the text")
    edges = {facts.known_at} if facts.report is None else {facts.known_at, facts.report.known_at}
    for known in facts.trades(subject):
        moments = (known.episode.entry_label, known.episode.exit_label, known.episode.known_at)
        if any(start <= moment < following for moment in moments):
            return Held("verified", known.episode.episode_id, (known.row,))
    if report is not None and subject.is_empty:
        edges |= {
            int(moment.timestamp()) * 1_000_000_000 for moment in (report.window_start, report.window_end)
        }
    if facts.first_label is not None:
        edges.add(facts.first_label)
    if any(start <= edge < following for edge in edges):
        return Held("verified", "an edge of the window", (facts.report_row,))
    return Held("contradicted", "nothing of the run happened on it")


def _year(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    from datetime import UTC, datetime

    last = datetime.fromtimestamp(facts.known_at / 1e9, UTC).year
    labels = [known.episode.entry_label for known in facts.trades(subject)]
    labels += [] if facts.first_label is None else [facts.first_label]
    if not labels:
        return Held("unverifiable", UNKNOWN)
    first = datetime.fromtimestamp(min(labels) / 1e9, UTC).year
    return judged(first <= claim.value <= last, f"{first} to {last}")


CHECKS: dict[str, Callable[[Claim, Subject, RunFacts], Held]] = {
    "figure": _figure,
    "interval": _interval,
    "share": _share,
    "direction": _direction,
    "comparison": _comparison,
    "extreme": _extreme,
    "grade": _grade,
    "name": _name,
    "day": _day,
    "year": _year,
}
