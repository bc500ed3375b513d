"""What a trader reads of an ablation, from its JSON document and nothing else."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from services.model_calls.quoting import counted
from worker.pages.ablation_figures import (
    ARM_HEAD,
    PAPER_HEAD,
    arm_row,
    chance_line,
    exposure_line,
    how_told,
    paper_row,
    rates_told,
    worth_line,
)

if TYPE_CHECKING:
    from rich.console import Console


def render(document: dict[str, Any], console: "Console") -> None:
    """Print arms, answers and the shadow ledger."""
    data = document["data"]
    head = f"{', '.join(data['symbols'])}   {data['timeframe']}   {counted(data['bars'], 'bar')}"
    console.print(head, soft_wrap=True)
    console.print()
    console.print(_table(ARM_HEAD, [arm_row(one) for one in document["arms"]], 2))
    for one in document["tiers"]:
        console.print()
        console.print(f"{one['tier']}: {one['answer'] or one['reason']}", style="bold", soft_wrap=True)
        for line in (worth_line(one), chance_line(one), exposure_line(one)):
            if line:
                console.print(f"  {line}", soft_wrap=True)
    if document["shadow_ledger"]:
        console.print()
        title = "Shadow ledger: what refused plans would have made, on paper and after costs"
        console.print(title, style="bold")
        console.print(_table(PAPER_HEAD, [paper_row(one) for one in document["shadow_ledger"]], 1))
    console.print()
    console.print(how_told(document), soft_wrap=True)
    if document["random_veto"]["seeds"]:
        console.print(rates_told(document), soft_wrap=True)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], names: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, name in enumerate(head):
        table.add_column(name, justify="left" if number < names else "right", no_wrap=number >= names)
    for row in rows:
        table.add_row(*row)
    return table
