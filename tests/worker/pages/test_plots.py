"""What the pictures draw, read back from their shapes."""

import copy

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.worker.pages.reading import Node, entries, read
from worker.pages.drift_plot import drift_plot, regime_distances, series
from worker.pages.expectation_plot import expectation_plot
from worker.pages.forest_plot import forest_plot, shown_clusters
from worker.pages.shapes import GRADES, Scale, apart, spanning, tag, write

REPORT = entries()[-1]["report"]


def drawn(element) -> Node:
    return read(write(element))


def finding(**changes):
    return copy.deepcopy(REPORT["clusters"][0]) | changes


def marks(tree: Node, grade: str) -> list[Node]:
    found = [node for name in ("circle", "polygon") for node in tree.all(name, grade)]
    return [node for node in found if "mark" in str(node.attributes["class"]).split()]


def test_forest_plot_tells_each_grade_by_shape_and_by_colour():
    rows = [finding(regime=f"up/{k}", grade=grade) for k, grade in enumerate(GRADES)]
    tree = drawn(forest_plot(rows))
    shapes = set()
    for grade in GRADES:
        in_row = marks(tree, grade)
        assert len(in_row) == 2  # one in the row, one in the legend
        classes = {str(node.attributes["class"]) for node in in_row}
        assert len(classes) == 1
        shapes.add((in_row[0].name, *sorted(set(classes.pop().split()) - {"mark", grade})))
    assert len(shapes) == 4


def test_forest_plot_draws_the_mean_between_its_edges_and_the_reference_where_it_is():
    rows = [finding(mean_r=0.5, lower_r=-0.25, upper_r=1.0, reference_r=0.25)]
    tree = drawn(forest_plot(rows))
    (whole, *caps) = tree.all("line", "interval")
    left, right = float(str(whole.attributes["x1"])), float(str(whole.attributes["x2"]))
    (_, mark) = marks(tree, rows[0]["grade"])
    reference = tree.all("line", "reference")[-1]
    place = lambda value: left + (value + 0.25) / 1.25 * (right - left)  # noqa: E731
    middle = mark.attributes.get("cx") or str(mark.attributes["points"]).split(",")[0]
    assert abs(float(str(reference.attributes["x1"])) - place(0.25)) < 0.1
    assert len(caps) == 2
    if mark.name == "circle":
        assert abs(float(str(middle)) - place(0.5)) < 0.1


def test_forest_plot_interval_that_leaves_the_picture_ends_in_arrows():
    rows = [
        finding(regime=None, mean_r=0.1, lower_r=-0.2, upper_r=0.4),
        finding(regime="up/low", mean_r=0.1, lower_r=-3.0, upper_r=0.2),
    ]
    tree = drawn(forest_plot(rows))
    assert len(tree.all("polygon", "arrow")) == 1
    assert len(tree.all("line", "interval")) == 2 + 2 + 1


def test_forest_plot_cluster_without_a_mean_has_a_row_and_no_mark():
    rows = [finding(mean_r=None, lower_r=None, upper_r=None, e_value=None, n=0)]
    tree = drawn(forest_plot(rows))
    assert len(marks(tree, rows[0]["grade"])) == 1
    assert rows[0]["playbook_id"] in tree.text


def test_forest_plot_leaves_out_timeframes_that_only_repeat_their_cell():
    one = finding(regime="up/mid", timeframe=None)
    frames = [finding(regime="up/mid", timeframe=name) for name in ("1h", "4h")]
    assert shown_clusters([frames[0], one]) == [one]
    assert shown_clusters([*frames, one]) == [one, *frames]


def test_drift_plot_has_a_point_for_every_report_of_every_playbook():
    reports = [entry["report"] for entry in entries()]
    for field in ("level", "mean_r"):
        points = {name: [value for _, value in known] for name, known in series(reports, field).items()}
        for report in reports:
            for row in report["decay"]:
                assert row[field] in points[row["playbook_id"]]
        assert [len(point) for point in points.values()] == [3, 3]
    tree = drawn(drift_plot(reports))
    distances = [report["regime_shift"]["energy_distance"] for report in reports]
    (line,) = regime_distances(reports).values()
    assert distances[0] is None
    assert [value for _, value in line] == distances[1:]
    *playbooks, regimes = tree.all("polyline", "series")
    assert (len(playbooks), len(str(regimes.attributes["points"]).split())) == (4, 2)
    assert all(len(str(playbook.attributes["points"]).split()) == 3 for playbook in playbooks)
    assert "limit 5000" in tree.text


def test_drift_plot_of_the_first_report_alone_draws_its_points():
    tree = drawn(drift_plot([REPORT]))
    assert len(tree.all("polyline", "series")) == 5


def test_drift_plot_of_many_reports_keeps_every_point_and_marks_the_last():
    reports = [copy.deepcopy(REPORT) | {"known_at": REPORT["known_at"] + k * 10**15} for k in range(41)]
    tree = drawn(drift_plot(reports))
    assert {len(str(node.attributes["points"]).split()) for node in tree.all("polyline", "series")} == {41}
    assert len(tree.all("circle", "s0")) == 2 * 3  # the last point and its name, in each of three panels


def test_drift_plot_alarm_lies_above_the_limit():
    loud = copy.deepcopy(REPORT)
    loud["decay"] = [row | {"level": 1e9} for row in loud["decay"][:1]]
    tree = drawn(drift_plot([loud]))
    limit = float(str(tree.all("line", "reference")[0].attributes["y1"]))
    (point,) = str(tree.all("polyline", "series")[0].attributes["points"]).split()
    assert float(point.partition(",")[2]) < limit


def test_expectation_plot_gives_what_is_off_another_shape():
    row = copy.deepcopy(REPORT["expectations"][0])
    fine, off = (
        drawn(expectation_plot([row | {"missed": missed}])) for missed in ([], ["hold", "MAE", "MFE"])
    )
    legend = 1
    assert (len(fine.all("circle", "fine")), len(fine.all("polygon", "missed"))) == (4 + legend, legend)
    assert (len(off.all("circle", "fine")), len(off.all("polygon", "missed"))) == (legend, 4 + legend)


def test_expectation_plot_without_winners_draws_the_expectation_alone():
    row = copy.deepcopy(REPORT["expectations"][0]) | {"winner_mae_p80_r": None, "missed": []}
    assert len(drawn(expectation_plot([row])).all("circle", "fine")) == 3 + 1


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8))
@example([0.0, 7.5e-15])
@example([0.9])
@example([1.5e-203])
@example([1e6, 1e6 + 0.5])
def test_scale_spans_all_values_and_its_ticks_lie_inside(values):
    scale = spanning(values, 10.0, 110.0)
    places = [scale(value) for value in values]
    assert all(10.0 < place < 110.0 for place in places)
    ticks = scale.ticks()
    assert all(scale.low <= tick <= scale.high for tick in ticks)
    assert len(ticks) <= 8
    assert list(ticks) == sorted(set(ticks))


@pytest.mark.parametrize(
    ("value", "place"), [(0.01, 0.0), (0.1, 0.0), (10.0, 50.0), (1_000.0, 100.0), (1e9, 100.0)]
)
def test_scale_in_powers_of_ten_clamps_at_its_ends(value, place):
    scale = Scale(0.1, 1_000.0, 0.0, 100.0, log=True)
    assert scale(value) == pytest.approx(place)
    assert scale.ticks() == (0.1, 1.0, 10.0, 100.0, 1_000.0)


@given(st.lists(st.floats(0, 500), max_size=8))
def test_labels_stand_apart_in_the_order_of_their_lines(places):
    moved = apart(places, 15.0)
    ordered = sorted(moved)
    assert all(later - earlier >= 14.999 for earlier, later in zip(ordered, ordered[1:], strict=False))
    assert all(new >= old for new, old in zip(moved, places, strict=True))


def test_markup_writes_text_and_attributes_that_cannot_end_early():
    element = tag(
        "p", 'a<b>"&', tag("b", "x"), "tail</p>\u202e", class_='"><script>', data_value="1", none=None
    )
    node = read(write(element)).all("p")[0]
    assert node.text == 'a<b>"&xtail</p>\\u202e'
    assert node.attributes == {"class": '"><script>', "data-value": "1"}
