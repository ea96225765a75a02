"""A bar with the time left, on the console."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from softsplit.experiments.rows import Row


class ConsoleProgress:
    """Cells done, cells in all, the data set at work, time gone and time left.

    The time left goes by the size of the data of the cells that are left, not by their number.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._bar = Progress(
            TextColumn("{task.fields[dataset]:<20}"),
            BarColumn(),
            TextColumn("{task.fields[done]} of {task.fields[cells]} cells"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console or Console(stderr=True),
            speed_estimate_period=600.0,
        )

    def begin(self, n_cells: int, n_done: int, work: float) -> None:
        self._done = n_done
        self._task = self._bar.add_task("", total=work, dataset="", done=n_done, cells=n_cells)
        self._bar.start()

    def advance(self, row: Row, work: float) -> None:
        self._done += 1
        self._bar.update(self._task, advance=work, done=self._done, dataset=row.cell.dataset)

    def end(self) -> None:
        self._bar.stop()
