"""What runs now, on standard error: a line that Rich rewrites, or plain lines now and then.

In a terminal or a notebook one line is rewritten; finished lines stay above it. Elsewhere (files,
pipes, logs) there are no control codes, and one line of progress in ten seconds. One status line
serves the whole process: work inside of other work says what it does in the line of the outer one.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, NamedTuple

# Seconds between two lines of progress where a line cannot be rewritten.
SILENCE = 10.0

# Looks in a second at what runs now.
LOOKS = 2.0


class Activity(NamedTuple):
    """What runs now, how long it takes, and the part of it that is done; None if not known.

    A narrow terminal cuts ``text`` and keeps ``times``.
    """

    text: str
    times: str
    part: float | None = None

    def __str__(self) -> str:
        return f"{self.text}, {self.times}"


class StatusLine:
    """What a process is at: the innermost of what runs counts.

    Attributes
    ----------
    running : list of functions
        Each tells the activity of work inside of the one before.
    """

    def __init__(self) -> None:
        self.running: list[Callable[[], Activity]] = []
        self.thread = threading.get_ident()

    def now(self) -> Activity:
        return self.running[-1]()

    def finish(self, line: str) -> None:
        """Show a line that stays, where that is possible."""

    def start(self) -> None:
        """Begin to show what runs."""

    def stop(self) -> None:
        """Take the line of what runs now away."""


class PlainLines(StatusLine):
    """A line in ``SILENCE`` seconds; of finished lines the last one is told there."""

    def __init__(self) -> None:
        super().__init__()
        self._stream, self._finished, self._stopped = sys.stderr, "", threading.Event()

    def finish(self, line: str) -> None:
        self._finished = f"; last {line}"

    def start(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def tell(self) -> None:
        """Write a line of progress."""
        with suppress(OSError, ValueError):
            self._stream.write(f"{self.now()}{self._finished}\n")
            self._stream.flush()
        self._finished = ""

    def _watch(self) -> None:
        while not self._stopped.wait(SILENCE):
            self.tell()


class LiveLine(StatusLine):
    """A line that Rich draws above all that is written to standard error meanwhile."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        super().__init__()
        line = self

        class Drawn(Progress):
            def get_renderables(self) -> Any:
                if line.running:
                    activity = line.now()
                    for task in self.task_ids:
                        total = None if activity.part is None else 1.0
                        self.update(task, description=activity.text, times=activity.times)
                        self.update(task, total=total, completed=activity.part or 0.0)
                return super().get_renderables()

        wide = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        self._drawn = Drawn(
            TextColumn("{task.description}", markup=False, table_column=wide),
            BarColumn(12),
            TextColumn("{task.fields[times]}", markup=False),
            console=console, transient=True, expand=True, redirect_stdout=False,
            refresh_per_second=LOOKS,
        )  # fmt: skip
        self._drawn.add_task("", times="")

    def finish(self, line: str) -> None:
        self._drawn.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def start(self) -> None:
        self._drawn.start()

    def stop(self) -> None:
        self._drawn.stop()


def usual_line() -> StatusLine:
    """A line for the standard error of this process."""
    from rich.console import Console

    console = Console(file=sys.stderr)
    notebook = console.is_jupyter and find_spec("ipywidgets") is not None  # Rich needs it there
    live = notebook or (console.is_terminal and not console.is_dumb_terminal)
    return LiveLine(console) if live else PlainLines()


_lock = threading.Lock()
_in_use: list[StatusLine] = []


def line_in_use() -> StatusLine | None:
    """The status line of this process, if it shows one now."""
    return _in_use[0] if _in_use else None


@contextmanager
def status_line(describe: Callable[[], Activity]) -> Iterator[None]:
    """Show ``describe()`` while the block runs.

    Inside of another such block of the same thread it is shown in that one's line. In other
    threads, and in processes of a pool, nothing is shown: they would overwrite one another.
    """
    with _lock:
        outer = line_in_use()
        if outer is None and multiprocessing.parent_process() is None:
            _in_use.append(usual_line())
    line = line_in_use()
    if line is None or line.thread != threading.get_ident():
        yield
        return
    line.running.append(describe)
    try:
        if outer is None:
            line.start()
        yield
    finally:
        if outer is None:
            _in_use.clear()
            line.stop()
        line.running.remove(describe)


def finish_line(text: str) -> None:
    """Show a finished line above the status line in use, if there is one."""
    line = line_in_use()
    if line is not None:
        line.finish(text)


def time_left(most: float) -> str:
    """How long it may take still, within a time limit."""
    return f"at most {seconds(most)} more" if most > 0 else "the time limit has passed, ending"


def seconds(value: float) -> str:
    """A time for people: "8 s", "2 min 5 s", "1 h 10 min"."""
    whole = max(0, round(value))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
