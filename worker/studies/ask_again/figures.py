"""What the answers of some arms of asking come to: the spread of each, and paired tests between them.

Decisions have no order: the test is McNemar's of each one, exact, on the usual decision of each question: are
as many questions lost by a decision as it wins? Its p-values are adjusted by Holm over all decisions and all
arms, so the smallest one is that of "nothing moved in any direction". `detectable_share` is the power: the
smallest share of questions that, moving from one decision to another, is found with 80 % at this level.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, log2
from typing import Any

from worker.studies.ask_again.asking import Answer, RunQuestion, RunQuestions, StudyArm

Table = Sequence[Sequence[Answer]]  # a row for each question, an answer for each sample
Move = tuple[str, str]
ALPHA, POWER, TWO_KINDS = 0.05, 0.8, 2
FEWEST_MOVED = 1.0 - log2(ALPHA)  # of n that move alike the sign test gives p = 2 / 2^n


def study_document(
    questions: RunQuestions,
    requests: Sequence[RunQuestion],
    arms: Sequence[StudyArm],
    tables: Sequence[Table],
    samples: int,
) -> dict[str, Any]:
    """The document: each arm, the first one against each of the others, and every answer."""
    comparisons = compare([[usual(row) for row in table] for table in tables], tables)
    missing = sum(not answer.replied for table in tables for row in table for answer in row)
    return {
        "run_id": questions.run_id,
        "prompt": questions.prompt,
        "questions": len(requests),
        "samples": samples,
        "left_out": dict(questions.left_out),
        "without_background": questions.bare,
        "same": not missing and not any(each["moved"] for each in comparisons),
        "missing": missing,
        "arms": [_arm_document(arm, requests, table) for arm, table in zip(arms, tables, strict=True)],
        "comparisons": comparisons,
        "answers": [
            {
                **question.about,
                "recorded": question.recorded,
                "decisions": [[answer.decision for answer in table[place]] for table in tables],
            }
            for place, question in enumerate(requests)
        ],
    }


def _arm_document(arm: StudyArm, questions: Sequence[RunQuestion], table: Table) -> dict[str, Any]:
    every = [answer for row in table for answer in row]
    replied = [answer for answer in every if answer.replied]
    known = [
        (question.recorded, answer.decision)
        for question, row in zip(questions, table, strict=True)
        for answer in row
        if answer.replied and question.recorded is not None
    ]
    facts = sorted({name for answer in replied for name in answer.facts})
    return {
        "prompt_hash": arm.template.hash,
        "model": arm.model,
        "asked": len(every),
        "answered": len(replied),
        "usual_share": _mean(
            [answer.decision == usual(row) for row in table for answer in row if answer.replied]
        ),
        "stable": sum(len({answer.decision for answer in row if answer.replied}) == 1 for row in table),
        "as_recorded": _mean([before == after for before, after in known]),
        "decisions": tally(answer.decision for answer in replied),
        "failed": tally(answer.decision for answer in every if not answer.replied),
        "means": {name: _mean([a.facts[name] for a in replied if name in a.facts]) for name in facts},
        "tokens": sum(answer.tokens for answer in every),
        "usd": sum(answer.usd for answer in every),
    }


def compare(usuals: Sequence[Sequence[str | None]], tables: Sequence[Table]) -> list[dict[str, Any]]:
    """The first arm against each of the others, their tests adjusted together."""
    pairs = [
        [(a, b) for a, b in zip(usuals[0], other, strict=True) if a is not None and b is not None]
        for other in usuals[1:]
    ]
    tested = [paired_tests(each) for each in pairs]
    adjusted = holm({(n, row["decision"]): row["p_value"] for n, rows in enumerate(tested) for row in rows})
    found = []
    for number, (each, rows) in enumerate(zip(pairs, tested, strict=True)):
        tests = [{**row, "p_adjusted": adjusted[number, row["decision"]]} for row in rows]
        both = zip(tables[0], tables[number + 1], strict=True)
        found.append(
            {
                "second": number + 1,
                "compared": len(each),
                "moved": sum(before != after for before, after in each),
                "other_plan": sum(a[0].decision == b[0].decision and a[0].plan != b[0].plan for a, b in both),
                "moves": moves(each),
                "p_value": min((row["p_adjusted"] for row in tests), default=None),
                "by_decision": tests,
                "detectable_share": detectable_share(len(each), max(1, len(adjusted))),
            }
        )
    return found


def usual(answers: Sequence[Answer]) -> str | None:
    """The most frequent decision, the first of those that are equally frequent; None without a reply."""
    counted = Counter(answer.decision for answer in answers if answer.replied)
    return max(counted, key=lambda name: counted[name], default=None)


def moves(pairs: Sequence[Move]) -> list[dict[str, Any]]:
    """Moves from one decision to another, the most frequent first."""
    moved = Counter(pair for pair in pairs if pair[0] != pair[1])
    ordered = sorted(moved.items(), key=lambda item: (-item[1], item[0]))
    return [{"from": before, "to": after, "count": count} for (before, after), count in ordered]


def paired_tests(pairs: Sequence[Move]) -> list[dict[str, Any]]:
    """The exact two-sided test of each decision that anything left or entered.

    What one of two decisions loses the other wins: that is one test, and stands under the first of them.
    """
    from scipy.stats import binomtest  # loaded where it is used: it takes half a second

    moved = [pair for pair in pairs if pair[0] != pair[1]]
    left, entered = Counter(a for a, _ in moved), Counter(b for _, b in moved)
    names = sorted({*left, *entered})
    return [
        {
            "decision": name,
            "left": left[name],
            "entered": entered[name],
            "p_value": float(binomtest(left[name], left[name] + entered[name]).pvalue),
        }
        for name in (names[:1] if len(names) == TWO_KINDS else names)
    ]


def holm(p_values: Mapping[Any, float]) -> dict[Any, float]:
    """P-values adjusted by Holm's step-down procedure; source: Holm 1979."""
    adjusted, highest = {}, 0.0
    for rank, (name, p_value) in enumerate(sorted(p_values.items(), key=lambda item: (item[1], item[0]))):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_value))
        adjusted[name] = highest
    return adjusted


def detectable_share(questions: int, tests: int) -> float | None:
    """The share of questions whose move is found with a power of 80 %; None where too few are asked."""
    from scipy.special import betaincinv  # loaded where it is used: it takes a while

    needed = ceil(FEWEST_MOVED + log2(tests))
    return None if needed > questions else float(betaincinv(needed, questions - needed + 1, POWER))


def tally(names: Iterable[str]) -> dict[str, int]:
    """How often each name occurs, by name."""
    return dict(sorted(Counter(names).items()))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
