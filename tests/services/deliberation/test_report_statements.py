"""The forms that the prompts tell a writer are read, and what is false in them does not pass.

The sentences are filled in here from the reports of recorded runs, beside the reader's own records of them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

import prompts
from schemas.reflection import HighLevelReflectionReport
from schemas.vocabulary import RecommendedAction
from services.deliberation.fact_check import check_facts
from services.deliberation.report_claims import LEAD, NAMES, NEXT, forms, values_of, words_of_value
from services.deliberation.report_records import records_of
from services.evidence.run_facts import RunFacts
from tests.services.deliberation.recorded import EMBEDDED, WORLDS, recorded, whole

PART = (prompts.FOLDER / "parts/checked_sentences.txt").read_text("utf-8")
TOLD = [re.sub(r"\s+", " ", told) for told in re.findall(r'"([^"]{12,}\.)"', PART)]
Filled = tuple[str, Sequence[str]]


def facts_with_report(name: str) -> tuple[RunFacts, HighLevelReflectionReport]:
    facts = recorded(name)
    assert facts.report is not None
    return facts, facts.report


def of_clusters(report: HighLevelReflectionReport) -> Iterator[Filled]:
    for reason in (found for found in report.clusters if found.timeframe is None):
        whom = reason.playbook_id + (f" in {reason.regime}" if reason.regime else "")
        effect, needed = reason.smallest_detectable_r, 1.0 / reason.alpha
        none = f"No effect could have been detected for {whom}."
        if effect is None:
            yield none, (f"The smallest detectable effect of {whom} is 0.50R.",)
        else:
            yield (
                f"The smallest detectable effect of {whom} is {effect:.2f}R.",
                (f"The smallest detectable effect of {whom} is {effect + 0.1:.2f}R.", none),
            )
        yield (
            f"{whom} needs an E of {needed:.1f} to be significant.",
            (f"{whom} needs an E of {needed + 5:.1f} to be significant.",),
        )
        action = reason.strongest_action.value
        other = "replan" if action == "hold" else "hold"
        yield (
            f"The strongest action for {whom} is {action}.",
            (f"The strongest action for {whom} is {other}.",),
        )
        short = re.search(r"(\d+) of (\d+) resolved trades", reason.reason)
        if short is not None:
            yield (
                f"{whom} has {short[1]} of the {short[2]} trades that a grade needs.",
                (
                    f"{whom} has {int(short[1]) + 1} of the {short[2]} trades that a grade needs.",
                    f"{whom} has {short[1]} of the {int(short[2]) + 5} trades that a grade needs.",
                ),
            )


def of_expectations(report: HighLevelReflectionReport) -> Iterator[Filled]:
    for expectation in report.expectations:
        book, now, then = (
            expectation.playbook_id,
            (expectation.hold_p50_bars, expectation.hold_p90_bars),
            (
                expectation.expected_hold_p50_bars,
                expectation.expected_hold_p90_bars,
            ),
        )
        held = (
            "{} held its trades for {:g} bars at P50 and {:g} bars at P90, where {:g} and {:g} were expected."
        )
        false = [held.format(book, now[0] + 2, now[1], *then)]
        if now != then:
            false.append(held.format(book, *then, *now))
        yield held.format(book, *now, *then), false
        z = expectation.hold_calibration_z
        if z is not None:
            yield f"The hold of {book} has a z of {z:.2f}.", (f"The hold of {book} has a z of {z + 1:.2f}.",)
        if expectation.winner_mae_p80_r is not None:
            mae = "The MAE of the winners of {} at P80 was {:.2f}R, where {:.2f}R was expected."
            deep, planned = expectation.winner_mae_p80_r, expectation.expected_winner_mae_p80_r
            yield mae.format(book, deep, planned), (mae.format(book, planned, deep),)


def of_failures(report: HighLevelReflectionReport) -> Iterator[Filled]:
    losers = sum(report.failure_modes.values())
    for mode, count in report.failure_modes.items():
        yield (
            f"{mode} ended {count} of {losers} losers.",
            (
                f"{mode} ended {count + 1} of {losers} losers.",
                f"{mode} ended {count} of {losers + 1} losers.",
            ),
        )
    for cluster in report.clusters:
        if cluster.regime is None and cluster.timeframe is None:
            for mode, count in cluster.failure_modes.items():
                yield (
                    f"{mode} ended {count} losers of {cluster.playbook_id}.",
                    (f"{mode} ended {count + 2} losers of {cluster.playbook_id}.",),
                )


def of_drift(report: HighLevelReflectionReport) -> Iterator[Filled]:
    for row in report.fire_quality:
        rule, now, before = f"{row.playbook_id} {row.direction}", row.now, row.before
        for name, old, new in (
            ("expired", before.expiry_share, now.expiry_share),
            ("activated", before.activation_share, now.activation_share),
        ):
            if old is None or new is None or abs(old - new) < 0.01:
                continue
            turned, verb = ("fell", "rose") if new > old else ("rose", "fell")
            share = f"The share {name} of {rule} {{}} from {{:.2f}} to {{:.2f}}."
            yield (
                share.format("went", old, new),
                (
                    share.format("went", new, old),
                    share.format(turned, old, new),
                    share.format(verb, old, new + 0.05),
                ),
            )
        if now.mean_r is not None and before.mean_r is not None:
            mean = "The mean R of {} went from {:+.2f}R on {} trades to {:+.2f}R on {} trades."
            yield (
                mean.format(rule, before.mean_r, before.trades, now.mean_r, now.trades),
                (
                    mean.format(rule, before.mean_r, before.trades + 1, now.mean_r, now.trades),
                    mean.format(rule, -before.mean_r, before.trades, now.mean_r, now.trades),
                ),
            )
    shift = report.regime_shift
    if shift is not None and shift.p_value is not None:
        energy = "The energy distance was {:.3f} with a p of {:.3f}."
        assert shift.energy_distance is not None
        yield (
            energy.format(shift.energy_distance, shift.p_value),
            (
                energy.format(shift.energy_distance + 0.01, shift.p_value),
                energy.format(shift.energy_distance, shift.p_value + 0.01),
            ),
        )
        for name, old in shift.older.items():
            rank = f"The mean {name.replace('_', ' ')} went from {{:.3f}} to {{:.3f}}."
            yield rank.format(old, shift.newer[name]), (rank.format(old, shift.newer[name] + 0.1),)
    for level in report.decay:
        decay = f"The decay level of {level.playbook_id} is {{:.2f}} against a limit of {level.limit:g}."
        yield decay.format(level.level), (decay.format(level.level + 1),)


def of_advice(report: HighLevelReflectionReport) -> Iterator[Filled]:
    for item in report.recommendations:
        if item.regime is not None or item.playbook_id is None:
            continue
        said = "The report recommends {} for {} with a confidence of {:.2f}."
        other = "retire" if item.action.value == "hold" else "hold"
        yield (
            said.format(item.action.value, item.playbook_id, item.confidence),
            (
                said.format(other, item.playbook_id, item.confidence),
                said.format(item.action.value, item.playbook_id, item.confidence + 0.1),
            ),
        )
    for why, told in report.untraded.items():
        if told["mean_counterfactual_r"] is not None:
            would = f"{{}} {why} signals would have averaged {{:+.2f}}R."
            n, mean = told["n"], told["mean_counterfactual_r"]
            yield would.format(n, mean), (would.format(n + 1, mean), would.format(n, mean + 0.2))


SORTS = {
    "clusters": of_clusters,
    "expectations": of_expectations,
    "failures": of_failures,
    "drift": of_drift,
    "advice": of_advice,
}


@pytest.mark.parametrize("world", sorted(WORLDS.values()))
@pytest.mark.parametrize("sort", sorted(SORTS))
def test_statement_of_a_record_passes_and_with_another_value_it_does_not(sort, world):
    facts, report = facts_with_report(world)
    filled = list(SORTS[sort](report))
    assert filled
    assert [true for true, _ in filled if not check_facts(true, facts).holds] == []
    false = [text for _, others in filled for text in others]
    assert [text for text in false if check_facts(text, facts).holds] == []


TRIAL = {
    "kind": "experiment", "playbook_id": "squeeze_breakout", "parameter": "failure_atr", "value": 0.0,
    "regime": None, "n": 83, "mean_r": 0.1868, "e_value": 4.1469, "e_needed": 40.0,
}  # fmt: skip


def facts_with_trial(of: str) -> RunFacts:
    facts, report = facts_with_report(EMBEDDED)
    shown = report.model_copy(update={"shadow_trials": (TRIAL | {"playbook_id": of},)})
    return replace(facts, report=shown)


@pytest.mark.parametrize("told", TOLD)
def test_form_that_a_prompt_tells_is_read(told):
    facts = facts_with_trial("channel_breakout")
    text = re.sub(
        r"\bS\b",
        "mean_reversion",
        re.sub(r"\bQ\b", "trend_pullback", re.sub(r"\bP\b", "channel_breakout", told)),
    )
    checked = check_facts(text.replace("REGIME", "up/low"), facts)
    assert checked.claims
    assert [claim.said for claim in checked.claims if claim.verdict == "unverifiable"] == []


def test_every_kind_of_statement_stands_in_the_prompt():
    assert len(TOLD) >= 25


@pytest.mark.parametrize(
    "text",
    [
        "No mean rank moved by 0.2 over 401 decision windows.",
        "All five playbooks raised a decay alarm.",
        "Hold is recommended for channel_breakout, and replan is recommended for trend_pullback.",
        "Hold is recommended for every playbook.",
        "No effect could have been detected for channel_breakout and nothing could have been seen for it.",
    ],
)
def test_statement_that_the_report_denies_does_not_pass(text):
    facts, report = facts_with_report(EMBEDDED)
    assert {item.action.value for item in report.recommendations} != {"hold"}
    assert not check_facts(text, facts).holds


def test_it_is_whom_the_sentence_named_alone():
    facts, report = facts_with_report(EMBEDDED)
    graded = {
        cluster.playbook_id: cluster
        for cluster in report.clusters
        if not cluster.regime and not cluster.timeframe
    }
    effect = graded["channel_breakout"].smallest_detectable_r
    assert effect is not None
    said = f"the smallest detectable effect is {effect:.2f}R."
    n = graded["channel_breakout"].n
    assert check_facts(f"channel_breakout made {n} trades, and {said}", facts).holds
    both = "channel_breakout averaged more per trade than squeeze_breakout, and "
    assert not check_facts(both + said, facts).holds


def test_no_pattern_of_a_statement_repeats_spaces_without_end():
    patterns = [LEAD.pattern, NEXT.pattern, *(form.pattern.pattern for form in forms())]
    assert [pattern for pattern in patterns if re.search(r"(?:\\s| )[*+]", pattern)] == []
    facts, _ = facts_with_report(EMBEDDED)
    text = f"The energy distance of {' ' * 45_000}channel_breakout was 0.4."
    assert not check_facts(text, facts).holds


def test_statement_that_two_records_may_answer_holds_where_one_does():
    facts, report = facts_with_report(EMBEDDED)
    one = next(
        cluster for cluster in report.clusters if not cluster.regime and len(cluster.failure_modes) > 1
    )
    (first, count), (second, other) = sorted(one.failure_modes.items())[:2]
    assert other != report.failure_modes[second]
    said = f"{first} ended {count} losers of {one.playbook_id} and {second} ended "
    assert check_facts(f"{said}{other}.", facts).holds
    assert not check_facts(f"{said}{report.failure_modes[second] + other}.", facts).holds


def listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def test_statement_of_several_playbooks_is_held_for_each_of_them():
    facts, report = facts_with_report(EMBEDDED)
    held = [str(item.playbook_id) for item in report.recommendations if item.action.value == "hold"]
    other = next(str(item.playbook_id) for item in report.recommendations if item.action.value != "hold")
    assert len(held) >= 3
    assert check_facts(f"Hold is recommended for {listed(held)}.", facts).holds
    for place in range(1, len(held)):
        false = [*held[:place], other, *held[place:]]
        assert not check_facts(f"Hold is recommended for {listed(false)}.", facts).holds
    trades = next(
        cluster.n for cluster in report.clusters if cluster.playbook_id == other and not cluster.regime
    )
    assert check_facts(f"Hold is recommended for {held[0]}, and {other} made {trades} trades.", facts).holds


def test_second_statement_takes_what_the_first_one_said():
    facts, report = facts_with_report(EMBEDDED)
    hold = [item for item in report.recommendations if item.action.value == "hold"]
    other = next(item for item in report.recommendations if item.action.value != "hold")
    first = f"Hold is recommended for {hold[0].playbook_id} with a confidence of {hold[0].confidence:.2f}"
    second = "for {} with a confidence of {:.2f}."
    assert check_facts(f"{first} and {second.format(hold[1].playbook_id, hold[1].confidence)}", facts).holds
    for whom, confidence in (
        (hold[1].playbook_id, hold[1].confidence + 0.1),
        (other.playbook_id, other.confidence),
    ):
        assert not check_facts(f"{first} and {second.format(whom, confidence)}", facts).holds
    overall = [cluster for cluster in report.clusters if not cluster.regime and not cluster.timeframe]
    mode = "gave_back"
    one, two = [found for found in overall if mode in found.failure_modes][:2]
    said = f"{mode} ended {one.failure_modes[mode]} losers of {one.playbook_id} and"
    count = two.failure_modes[mode]
    assert check_facts(f"{said} {count} of {two.playbook_id}.", facts).holds
    assert not check_facts(f"{said} {count + 1} of {two.playbook_id}.", facts).holds
    assert not check_facts(f"{count} of {two.playbook_id}.", facts).holds


def test_count_of_a_playbook_may_name_the_window_and_no_other_days():
    facts, report = facts_with_report(EMBEDDED)
    one = next(cluster for cluster in report.clusters if not cluster.regime and not cluster.timeframe)
    first, last = f"{report.window_start:%Y-%m-%d}", f"{report.window_end:%Y-%m-%d}"
    said = f"{one.playbook_id} made {one.n} of the {report.n_episodes} trades from {{}} to {{}}."
    assert check_facts(said.format(first, last), facts).holds
    assert not check_facts(said.format(first, "2011-07-20"), facts).holds
    assert not check_facts(said.format("2004-07-20", last), facts).holds


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        ("The trial of failure_atr for squeeze_breakout averaged +0.19R on 83 trades.", True),
        ("The trial of failure_atr for squeeze_breakout averaged -0.19R on 83 trades.", False),
        ("The trial of failure_atr for squeeze_breakout averaged +0.19R on 84 trades.", False),
        ("The shadow trial of failure_atr for squeeze_breakout has an E of 4.15 and needs 40.", True),
        ("The trial of failure_atr for squeeze_breakout has an E of 4.15, where 40 is needed.", True),
        ("The trial of failure_atr for squeeze_breakout has an E of 4.15 and needs 10.", False),
        ("The trial of failure_atr for squeeze_breakout has an E of 3.15 and needs 40.", False),
        ("The trial of target_atr for squeeze_breakout has an E of 4.15 and needs 40.", False),
        ("The trial of failure_atr for channel_breakout has an E of 4.15 and needs 40.", False),
    ],
)
def test_trial_is_held_against_what_it_has_shown(said, holds):
    assert check_facts(said, facts_with_trial("squeeze_breakout")).holds == holds


def test_advice_names_its_parameter():
    facts, report = facts_with_report(EMBEDDED)
    item = next(item for item in report.recommendations if item.change.get("parameter"))
    action, book, parameter = item.action.value, item.playbook_id, item.change["parameter"]
    said = f"The report recommends {action} for {book} on {{}} with a confidence of {item.confidence:.2f}."
    assert check_facts(said.format(parameter), facts).holds
    assert not check_facts(said.format("target_atr"), facts).holds


@pytest.mark.parametrize("said", ["which was {} the expected", "{} the expected", "which is {} the expected"])
def test_side_of_what_was_expected_is_the_side_on_which_the_figure_lies(said):
    facts, report = facts_with_report(EMBEDDED)
    apart = [
        expectation
        for expectation in report.expectations
        if expectation.mfe_p50_r and expectation.mfe_p50_r != expectation.expected_mfe_p50_r
    ]
    assert apart
    for episode in apart:
        lies, other = (
            ("below", "above") if episode.mfe_p50_r < episode.expected_mfe_p50_r else ("above", "below")
        )
        expected = f"{said} {episode.expected_mfe_p50_r:.2f}R."
        told = f"The median MFE of {episode.playbook_id} was {episode.mfe_p50_r:.2f}R, {expected}"
        assert check_facts(told.format(lies), facts).holds
        assert not check_facts(told.format(other), facts).holds


def test_every_value_of_a_form_has_words_in_which_a_reader_is_told_of_it():
    slots = {slot for form in forms() for slot in form.pattern.groupindex if slot not in NAMES}
    named = {name for slot in slots for name in values_of(slot)} | {
        name for form in forms() for name in form.where
    }
    assert len({words_of_value(name) for name in named}) == len(named)


def test_false_statement_is_told_in_words_and_with_both_ends():
    facts, report = facts_with_report(EMBEDDED)
    row = next(row for row in report.fire_quality if (row.before.mean_r or 0.0) < (row.now.mean_r or 0.0))
    rule = f"{row.playbook_id} {row.direction}"
    said = f"The mean R of {rule} fell from {row.before.mean_r:+.2f}R to {row.now.mean_r:+.2f}R."
    [claim] = [entry for entry in check_facts(said, facts).claims if entry.verdict == "contradicted"]
    assert re.fullmatch(r"mean R before: -?[\d.]+, mean R now: -?[\d.]+", str(claim.found))


def test_records_have_what_the_report_says_of_all_of_it():
    _, report = facts_with_report(EMBEDDED)
    [whole] = records_of(report, 0)["report"]
    actions = {item.action for item in report.recommendations}
    assert len(actions) > 1
    assert whole["only_action"] is None
    assert (whole["structural"], whole["alarms"], whole["advised"]) == (False, 0, len(report.recommendations))
    first = report.recommendations[0]
    changed = first.model_copy(update={"action": RecommendedAction.REPLAN})
    alarmed = [level.model_copy(update={"alarmed": True}) for level in report.decay[:1]]
    other = report.model_copy(update={"recommendations": (changed,), "decay": (*alarmed, *report.decay[1:])})
    [whole] = records_of(other, 0)["report"]
    assert (whole["structural"], whole["alarms"], whole["only_action"]) == (True, 1, "replan")
    for record in records_of(report, 0)["cluster"]:
        short = re.search(r"(\d+) of (\d+) resolved trades", record["reason"])
        assert record["missing"] == (int(short[2]) - int(short[1]) if short else None)
        reached = (record["e_value"] or 0.0) >= 10.0
        assert record["e_next"] == (record["e_significant"] if reached else 10.0)
    shift = report.regime_shift
    assert shift is not None
    [moved] = records_of(report, 0)["shift"]
    assert moved["largest_move"] == max(abs(shift.newer[name] - old) for name, old in shift.older.items())
    overall = [cluster for cluster in report.clusters if cluster.regime is None and cluster.timeframe is None]
    assert len(records_of(report, 0)["failure_of"]) == sum(len(entry.failure_modes) for entry in overall)


def test_value_of_a_parameter_share_of_losers_and_a_lead_are_read():
    facts, report = facts_with_report(EMBEDDED)
    item = next(item for item in report.recommendations if item.change.get("parameter"))
    said = f"The report recommends {item.action.value} for {item.playbook_id} on {item.change['parameter']}"
    assert check_facts(f"{said} with the value {item.change['value']}.", facts).holds
    assert not check_facts(f"{said} with the value {item.change['value'] + 0.5}.", facts).holds
    share = 100.0 * (report.unclassified_share or 0.0)
    assert check_facts(f"{share:.1f} % of the losers are unclassified.", facts).holds
    assert not check_facts(f"{share + 3:.1f} % of the losers are unclassified.", facts).holds
    assert check_facts("However, no decay alarm was raised.", facts).holds


def test_what_a_first_statement_said_ends_with_what_stands_between():
    facts, report = facts_with_report(EMBEDDED)
    overall = [cluster for cluster in report.clusters if not cluster.regime and not cluster.timeframe]
    one, two = [found for found in overall if "gave_back" in found.failure_modes][:2]
    first = f"gave_back ended {one.failure_modes['gave_back']} losers of {one.playbook_id}"
    last = f"{two.failure_modes['gave_back']} of {two.playbook_id}."
    assert check_facts(f"{first} and {last}", facts).holds
    assert not check_facts(f"{first}, the judge saw it, and {last}", facts).holds


def test_trials_of_one_parameter_that_are_several_are_not_told_apart():
    facts = facts_with_trial("squeeze_breakout")
    assert facts.report is not None
    other = TRIAL | {"playbook_id": "squeeze_breakout", "value": 0.2, "e_value": 1.0}
    both = facts.report.model_copy(update={"shadow_trials": (*facts.report.shadow_trials, other)})
    said = "The trial of failure_atr for squeeze_breakout has an E of 4.15 and needs 40."
    assert check_facts(said, facts).holds
    assert not check_facts(said, replace(facts, report=both)).holds


def test_regime_of_one_in_a_list_is_its_own():
    facts, report = facts_with_report(EMBEDDED)
    clusters = [cluster for cluster in report.clusters if not cluster.timeframe]
    none = [
        (cluster.playbook_id, cluster.regime) for cluster in clusters if cluster.smallest_detectable_r is None
    ]
    some = [
        cluster.playbook_id
        for cluster in clusters
        if cluster.smallest_detectable_r is not None and not cluster.regime
    ]
    other = next(book for book, regime in none if not regime)
    whole, within = next((book, regime) for book, regime in none if regime and book in some)
    said = f"No effect could have been detected for {other} and {whole}"
    assert check_facts(f"{said} in {within}.", facts).holds
    assert not check_facts(f"{said}.", facts).holds


# By the report 150 trades had lost and 123 of them had a failure mode; at the run's end 156 had lost.
@pytest.mark.parametrize(
    ("text", "by_the_report", "at_the_end"),
    [
        ("false_breakout ended 30 of 123 losers.", True, False),
        ("false_breakout ended 30 of 123 losers that have a failure mode.", True, False),
        ("false_breakout: 30 of 123 losers that have a failure mode.", True, False),
        ("false_breakout ended 30 of 150 losers.", True, False),
        ("false_breakout ended 30 of 149 losers.", False, False),
        ("false_breakout ended 30 of 150 losers that have a failure mode.", False, False),
        ("false_breakout ended 32 of 156 losers.", False, True),
        ("false_breakout ended 33 of 156 losers.", False, False),
    ],
)
def test_losers_by_failure_mode_are_those_of_the_moment(text, by_the_report, at_the_end):
    assert check_facts(text, recorded()).holds is by_the_report
    assert check_facts(text, whole("whole_embedded")).holds is at_the_end
