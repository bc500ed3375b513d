"""Ask every guard of the same orders, and write the tables of docs/reference/guards.md.

`uv run python -m benchmarks.guards` takes some minutes; `--print` leaves the page alone, `--ours` asks no
other guard, `--planted 2 --right 40` is a quick look.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from math import sqrt

from benchmarks.guards.cases import PLANTED, RIGHT, Case, Generator, faulty_cases, right_cases
from benchmarks.guards.limits import LIMITS
from benchmarks.guards.others import NOT_ASKED, OTHERS, ask
from benchmarks.guards.ours import judge_all
from benchmarks.guards.section import write_section
from tools.docs_pages import table

OURS_TITLE = "thinktwice"
LEAST_STOPPED, MOST_REFUSED = 0.9, 0.03
Z = 1.96
Reasons = Mapping[str, str]


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson, JASA 1927)."""
    share, square = hits / of, Z * Z / of
    centre = (share + square / 2.0) / (1.0 + square)
    reach = Z / (1.0 + square) * sqrt(share * (1.0 - share) / of + square / (4.0 * of))
    return max(0.0, centre - reach), min(1.0, centre + reach)


def rate(hits: int, of: int) -> str:
    """A share in percent with its interval."""
    low, high = wilson(hits, of)
    return f"{hits / of:.1%} ({100 * low:.1f} to {100 * high:.1f})"


def count(cases: Sequence[Case], reasons: Reasons, kind: str | None = None) -> tuple[int, int]:
    """Orders of a kind that were stopped, and all of them."""
    of_kind = [case for case in cases if kind in (None, case["kind"])]
    return sum(bool(reasons[case["id"]]) for case in of_kind), len(of_kind)


def kinds_of(cases: Sequence[Case]) -> list[str]:
    """Kinds in their order."""
    return list(dict.fromkeys(case["kind"] for case in cases))


def counts_table(cases: Sequence[Case], found: Mapping[str, Reasons]) -> str:
    """Stopped of all, by kind and guard, with a row of all kinds."""
    rows = []
    for kind in kinds_of(cases):
        of_kind = (count(cases, reasons, kind) for reasons in found.values())
        rows.append((kind, *(f"{stopped}/{every}" for stopped, every in of_kind)))
    rows.append(("all", *(rate(*count(cases, reasons)) for reasons in found.values())))
    return table(("orders stopped", *found), rows)


def better(right: Sequence[Case], faulty: Sequence[Case], found: Mapping[str, Reasons]) -> str:
    """Where other guards do better than ours: more faults of a kind stopped, or fewer right orders."""
    names, ours = dict[str, list[str]](), found[OURS_TITLE]
    for cases, sign, word in ((faulty, 1, "faulty"), (right, -1, "right")):
        for kind in kinds_of(cases):
            own, of = count(cases, ours, kind)
            for title, reasons in found.items():
                theirs, _ = count(cases, reasons, kind)
                if (theirs - own) * sign > 0:
                    what = f"{theirs} of {of} {word} orders of {kind!r} stopped, ours {own}"
                    names.setdefault(what, []).append(title)
    shown = [f"{what} ({', '.join(titles)})" for what, titles in names.items()]
    return "; ".join(shown) or "no other stops more of a kind of faults, or fewer right orders of a kind"


def section(right: Sequence[Case], faulty: Sequence[Case], found: Mapping[str, Reasons]) -> str:
    """Both tables, the bounds and who else is better where."""
    ours, kinds = found[OURS_TITLE], kinds_of(faulty)
    stopped, refused = rate(*count(faulty, ours)), rate(*count(right, ours))
    whole = sum(count(faulty, ours, kind)[0] == count(faulty, ours, kind)[1] for kind in kinds)
    each = len(faulty) // len(kinds)
    shares = ", ".join(f"{hits}/{each} {rate(hits, each)}" for hits in (0, each // 2, each))
    left = "; ".join(f"{name}: {why}" for name, why in NOT_ASKED.items())
    return f"""{len(kinds)} kinds of faults, each planted into {each} right entries, and {len(right)} right
orders, all drawn over the embedded bars by a seed (`benchmarks/guards/faults.toml`, `cases.py`). Every guard
has the same limits in its own words, as far as it has them (`limits.py`, `peers/`), and judges each order by
itself. What a guard raises counts as stopped, a warning does not. Intervals are Wilson's at 95 %:
{shares}.

{counts_table(faulty, found)}

Ours: {stopped} of faulty orders (bound {LEAST_STOPPED:.0%}), all of {whole} kinds of {len(kinds)}, and
{refused} of right orders (bound {MOST_REFUSED:.0%}).

{counts_table(right, found)}

Where another is better: {better(right, faulty, found)}.
That an exit passes whatever holds is our rule and not everybody's: a guard that refuses a sale on stale
prices, or above its size of an order, means to. No other spends its verdict with the order itself, so what
happens to an order after it passed is stopped by none of them; approvals of Position Risk MCP expire and are
spent by the fill that is told afterwards. The bank was written beside our checks and by the same hands: a
bank of others' faults would be the fairer one.

Not asked: {left}."""


def main(arguments: list[str] | None = None) -> int:
    """Ask, write, and say by the exit code whether ours keeps its bounds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guards", description=__doc__)
    parser.add_argument("--right", type=int, default=RIGHT, help="right orders")
    parser.add_argument("--planted", type=int, default=PLANTED, help="orders of each fault")
    parser.add_argument("--ours", action="store_true", help="ask no other guard")
    parser.add_argument("--print", action="store_true", help="leave the page alone")
    given = parser.parse_args(arguments)
    generator = Generator()
    right, faulty = list(right_cases(generator, given.right)), list(faulty_cases(generator, given.planted))
    cases = [*right, *faulty]
    sys.stderr.write(f"{OURS_TITLE}\n")
    found = {OURS_TITLE: judge_all(cases, generator.bars)}
    for guard in () if given.ours else OTHERS:
        sys.stderr.write(f"{guard.title}\n")
        version, reasons = ask(guard, cases, LIMITS)
        found[f"{guard.title} {version}"] = reasons
    text = section(right, faulty, found)
    if not given.print:
        write_section("crash", text)
    sys.stdout.write(text + "\n")
    (stopped, planted), (refused, every) = (count(part, found[OURS_TITLE]) for part in (faulty, right))
    return int(stopped < LEAST_STOPPED * planted or refused > MOST_REFUSED * every)


if __name__ == "__main__":
    sys.exit(main())
