"""`thinktwice calibration`: stated confidence of a stored run against what came true."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from services.statistics.calibration import CalibrationError, calibrate
from tests.services.store.stores import opened
from tools.docs_pages import DOCS
from worker.studies.calibration_document import meaning, source_of

PAGE = DOCS / "reference" / "calibration-document.md"


def calibrated(shell):
    result = shell.run("calibration", "latest", "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def stored_labels(folder):
    """Conviction and R of every episode, joined by SQLite alone."""
    with opened(folder / "thinktwice.db") as store:
        return np.array(
            store.execute(
                """
                select json_extract(unpacked(f.payload), '$.policy.proposal.conviction'),
                       json_extract(unpacked(e.payload), '$.episode.r') > 0
                from journal e join journal f on f.kind = 'policy_frozen'
                 and json_extract(unpacked(f.payload), '$.policy_id')
                   = json_extract(unpacked(e.payload), '$.episode.policy_id')
                where e.kind = 'episode'
                """
            ).fetchall()
        )


def changed(statement):
    with opened("thinktwice.db") as store:
        store.execute(statement)


def test_every_episode_of_a_run_is_a_label_of_its_conviction(planted):
    document = calibrated(planted)
    assert list(document) == ["run_id", "sources"]
    conviction, critic = document["sources"]
    stated, came = stored_labels(planted.folder).T
    assert conviction["name"] == "conviction"
    assert conviction["n"] == len(stated) > 30
    assert conviction["base_rate"] == pytest.approx(came.mean())
    assert conviction["mean_forecast"] == pytest.approx(stated.mean())
    assert conviction["brier"] == pytest.approx(((stated - came) ** 2).mean())
    parts = (
        conviction["reliability"]
        - conviction["resolution"]
        + conviction["uncertainty"]
        + conviction["within_bin"]
    )
    assert parts == pytest.approx(conviction["brier"], abs=1e-15)
    assert sum(cell["n"] for cell in conviction["bins"]) == conviction["n"]
    assert critic == source_of("critic", None)
    assert (critic["n"], critic["bins"], critic["brier"], critic["ece"]) == (0, [], None, None)


def test_document_has_the_keys_of_its_page_and_no_other(planted):
    document = calibrated(planted)
    source = document["sources"][0]
    present = {"run_id", *(f"sources[].{name}" for name in source if name != "bins")}
    present |= {f"sources[].bins[].{name}" for name in source["bins"][0]}
    documented = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text("utf-8"), re.M)
    assert set(documented) == present
    assert len(documented) == len(present)


def figures(**changes):
    random = np.random.default_rng(3)
    stated = random.uniform(0.1, 0.9, 300)
    found = calibrate(list(stated), list(random.random(300) < stated))
    assert found is not None
    return replace(found, **changes)


@pytest.mark.parametrize(
    ("changes", "quoted"),
    [
        ({"brier": 0.26, "uncertainty": 0.25}, "No skill: Brier 0.2600 against 0.2500 of whoever says"),
        ({"association": 1.9}, "No skill beyond chance: Brier"),
        ({}, "Some skill: Brier"),
        ({"uncertainty": 0.0}, "Nothing can be told apart: all 300 came out alike."),
        ({"excess": 2.0, "mean_forecast": 0.7, "base_rate": 0.5}, "Overconfident: 70.0 % stated on average"),
        ({"excess": -2.0}, "Underconfident: "),
        ({"excess": 1.9}, "Neither over- nor underconfident beyond chance: "),
        ({"error": None}, "No calibration error below 200 labels"),
    ],
)  # fmt: skip
def test_sentence_says_what_the_figures_mean(changes, quoted):
    assert quoted in meaning(figures(**changes))


def test_sentence_holds_the_calibration_error_against_chance():
    assert "0.050, within chance: a calibrated forecaster shows 0.060 on average, below 0.090 in" in meaning(
        figures(error=CalibrationError(0.05, 0.06, 0.09))
    )
    assert "Calibration error 0.100, beyond chance" in meaning(
        figures(error=CalibrationError(0.1, 0.06, 0.09))
    )
    assert meaning(None) == "no label yet."


def test_page_has_a_line_for_each_bin(planted):
    bins = calibrated(planted)["sources"][0]["bins"]
    printed = planted.run("calibration", "latest").stdout
    for cell in bins:
        shares = " +".join(f"{100 * cell[name]:.1f} %" for name in ("mean_forecast", "base_rate"))
        line = rf"{cell['lower']:.2f} to {cell['upper']:.2f} +{cell['n']} +{shares}"
        assert re.search(line, printed), line
    assert "critic: no label yet." in printed


def test_run_without_episodes_says_where_the_reason_is(shell):
    shell.backtest()
    text = shell.complaint("calibration", "latest")
    assert "run r0001 has no episode and no text that a model criticised" in text
    assert "thinktwice journal r0001 --kind policy_skip" in text


@pytest.mark.parametrize("kind", ["episode", "policy_frozen"])
def test_damaged_row_is_named(planted, kind):
    changed(
        f"update journal set payload = substr(unpacked(payload), 1, 20) where seq = "
        f"(select min(seq) from journal where kind = '{kind}')"
    )
    text = planted.complaint("calibration", "latest")
    assert "is damaged: row" in text
    assert "thinktwice db restore" in text
