"""The page of a run: one file that a browser opens without a network.

Figures, tables and why-chains come from the picture of the run. The file holds the scripts that draw it, and
its policy lets nothing else run. The same run gives the same bytes.
"""

from functools import cache
from typing import Any

from worker.pages.expectation_plot import expectation_plot
from worker.pages.forest_plot import forest_plot, shown_clusters
from worker.pages.rendering import render, template_text
from worker.pages.report_tables import clusters_of_run, trials_of_run
from worker.pages.run_data import RunData, script_json
from worker.pages.run_picture import RunPicture
from worker.pages.run_summary import RunSummary
from worker.pages.shapes import write


def run_html(picture: RunPicture) -> str:
    """The page of a run; the same run gives the same bytes."""
    newest = picture.reports[-1] if picture.reports else None
    report = None if newest is None else newest["report"]
    clusters = [] if report is None else shown_clusters(report["clusters"])
    expectations = None if report is None else report.get("expectations")
    return render(
        "run.html",
        f"Run {picture.run_id}",
        (_bokeh(), template_text("chart.js") + template_text("run.js")),
        run_style=template_text("run.css"),
        data=script_json(RunData(picture).document()),
        figures=script_json(_figures(picture)),
        summary=RunSummary(picture),
        picture=picture,
        document=picture.document,
        newest=newest,
        report=report,
        clusters=clusters_of_run(clusters),
        trials=trials_of_run(picture.document["high_level"]["on_trial"]),
        forest=write(forest_plot(clusters)) if clusters else "",
        expectation=write(expectation_plot(expectations)) if expectations else "",
    )


@cache
def _bokeh() -> str:
    from bokeh.resources import Resources

    text = "\n".join(Resources(mode="inline", components=["bokeh"], minified=True).js_raw)
    return text.replace("</script", "<\\/script")


def _figures(picture: RunPicture) -> dict[str, Any]:
    from bokeh.layouts import column

    from worker.pages.run_figures import (
        candle_figure,
        curve_figures,
        excursion_figure,
        outcome_figure,
        spread_figure,
        year_figure,
    )

    roots = {
        "curves": column(*curve_figures(is_flat=picture.is_flat), sizing_mode="stretch_width"),
        "candles": candle_figure(),
        "excursions": excursion_figure(),
        "outcomes": outcome_figure(picture.outcomes),
        "years": year_figure([(year, gain) for year, gain, _ in picture.years]),
        "spread": spread_figure([trade.r for trade in picture.episodes]),
    }
    return {name: figure_item(root) for name, root in roots.items()}


def figure_item(root: Any) -> dict[str, Any]:
    """A drawing as `Bokeh.embed.embed_item` takes it, the same each time."""
    from bokeh.document import Document

    document = Document()
    document.add_root(root)
    names: dict[str, str] = {}
    return {"doc": _rename(document.to_json(deferred=False), names), "root_id": names[root.id]}


def _rename(value: Any, names: dict[str, str]) -> Any:
    """The same with ids counted from one in order of appearance; Bokeh counts through the whole process."""
    if isinstance(value, dict):
        return {
            key: names.setdefault(entry, f"b{len(names) + 1}")
            if key == "id" and isinstance(entry, str)
            else _rename(entry, names)
            for key, entry in value.items()
        }
    return [_rename(item, names) for item in value] if isinstance(value, list) else value
