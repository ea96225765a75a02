"""What runs now, on standard error: a line that is rewritten, a line now and then, or a bar.

In a terminal one line is rewritten; finished lines stay above it. In a notebook there is a bar.
Elsewhere (files, pipes, logs) there are no control codes, and at most one line of progress in ten
seconds. One status line serves the whole process: work inside of other work says what it does in
the line of the outer one.
"""

from __future__ import annotations

import html
import multiprocessing
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from softsplit.support.messages import cut


@dataclass(frozen=True)
class StatusOptions:
    """How often something is shown."""

    redraw: float = 0.5
    """Seconds between two looks at what runs now; a fit that is done by then shows no line."""

    silence: float = 10.0
    """Least seconds between two lines of progress where a line cannot be rewritten."""

    width: int = 100
    """Characters of a line in a terminal that does not tell its width."""

    label: int = 24
    """Characters of what runs now that stay beside how far it is; else only the time is told."""


OPTIONS = StatusOptions()
Clock = Callable[[], float]


class Activity(NamedTuple):
    """What runs now, and the part of it that is done; None if that is not known.

    A narrow terminal cuts ``label``, with which the text begins, and keeps ``end``, such as the
    time that is left.
    """

    text: str
    part: float | None = None
    label: str = ""
    end: str = ""

    def within(self, length: int) -> str:
        """The text in so many characters, and three for what is left out."""
        if len(self.text) <= length or not self.label:
            return cut(self.text, length)
        middle = self.text[len(self.label) : len(self.text) - len(self.end)]
        room = length - len(self.end)
        if room - len(middle) < OPTIONS.label:
            middle = ""
        label = cut(self.label, max(room - len(middle), 0))
        return f"{label}{middle}{self.end}"[: length + 3]


class Display(Protocol):
    """Where a status line is shown."""

    def show(self, status: Activity, finished: str) -> None:
        """Show what runs now; ``finished`` is the last line that was finished, or ""."""

    def finish(self, line: str) -> None:
        """Show a line that stays."""

    def close(self) -> None:
        """Take the line of what runs now away."""


class Terminal:
    """One line that is rewritten; writing to ``sys.stderr`` by others clears it before."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._shown, self._lock = stream, False, threading.RLock()

    def show(self, status: Activity, finished: str) -> None:
        with self._lock, suppress(OSError, ValueError):
            self._stream.write(f"\r\x1b[2K{status.within(self._width() - 4)}")
            self._stream.flush()
            self._shown = True

    def finish(self, line: str) -> None:
        self.write(f"{line}\n")

    def close(self) -> None:
        self.write("")

    def write(self, text: str) -> Any:
        with self._lock:
            if self._shown:
                self._shown = False
                self._stream.write("\r\x1b[2K")
                self._stream.flush()
            return self._stream.write(text)

    def _width(self) -> int:
        with suppress(OSError, ValueError, AttributeError):
            if columns := os.get_terminal_size(self._stream.fileno()).columns:
                return columns  # a terminal that does not know its size says 0
        return shutil.get_terminal_size((OPTIONS.width, 1)).columns

    def __getattr__(self, name: str) -> Any:  # in the place of sys.stderr
        return getattr(self._stream, name)


class Plain:
    """Plain lines, at most one in ``OPTIONS.silence`` seconds."""

    def __init__(self, stream: Any, clock: Clock = time.monotonic) -> None:
        self._stream, self._clock, self._last, self._finished = stream, clock, clock(), ""

    def show(self, status: Activity, finished: str) -> None:
        new = f"; last {finished}" if finished and finished == self._finished else ""
        self._say(f"{status.text}{new}")

    def finish(self, line: str) -> None:
        """Kept for the next line of progress: it would be one of many."""
        self._finished = line

    def close(self) -> None:
        """Tell the last finished line, if it is new."""
        if self._finished:
            self._say(f"softsplit: {self._finished}")

    def _say(self, line: str) -> None:
        now = self._clock()
        if now - self._last >= OPTIONS.silence:
            self._last, self._finished = now, ""
            with suppress(OSError, ValueError):
                self._stream.write(f"{line}\n")
                self._stream.flush()


class Notebook:
    """A bar with its text, and the last finished line below it.

    ``display`` is that of IPython: it shows an object and returns a handle with ``update``.
    """

    def __init__(self, display: Callable[..., Any], made: Callable[[str], Any]) -> None:
        self._display, self._made, self._handle = display, made, None

    def show(self, status: Activity, finished: str) -> None:
        value = "" if status.part is None else f' value="{status.part:.3f}" max="1"'
        page = self._made(
            f'<div><progress{value} style="width:16em;vertical-align:middle"></progress> '
            f"{html.escape(status.text)}<br><small>{html.escape(finished)}</small></div>"
        )
        if self._handle is None:
            self._handle = self._display(page, display_id=True)
        else:
            self._handle.update(page)

    def finish(self, line: str) -> None:
        """Shown below the bar with the next look."""

    def close(self) -> None:
        if self._handle is not None:
            self._handle.update(self._made(""))


class StatusLine:
    """The status line of a process: shows the innermost of what runs.

    Attributes
    ----------
    display : Display
    running : list of functions
        Each tells the status of work inside of the one before.
    finished : str
        The last finished line.
    """

    def __init__(self, display: Display) -> None:
        self.display, self.finished = display, ""
        self.running: list[Callable[[], Activity]] = []
        self.thread = threading.get_ident()
        self._done = threading.Event()

    def look(self) -> None:
        """Show what runs now."""
        if self.running:
            self.display.show(self.running[-1](), self.finished)

    def finish(self, line: str) -> None:
        """Show a line that stays, where that is possible."""
        self.finished = line
        self.display.finish(line)

    def watch(self) -> None:
        """Look again and again until the end."""
        while not self._done.wait(OPTIONS.redraw):
            self.look()

    def end(self) -> None:
        self._done.set()
        self.display.close()


@dataclass
class _Process:
    """The status line in use; tests look here too."""

    line: StatusLine | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


PROCESS = _Process()


@contextmanager
def status_line(
    describe: Callable[[], Activity], display: Display | None = None
) -> Iterator[Callable[[str], None]]:
    """Show ``describe()`` while the block runs; yields a function for lines that are finished.

    Inside of another such block of the same thread it is shown in that one's line. In other
    threads, and in processes of a pool, nothing is shown: they would overwrite one another.
    """
    with PROCESS.lock:
        outer = PROCESS.line
        line = None
        if outer is None and multiprocessing.parent_process() is None:
            line = PROCESS.line = StatusLine(display or _usual_display())
    if line is None:
        if outer is None or outer.thread != threading.get_ident():
            yield lambda _: None
            return
        outer.running.append(describe)
        try:
            yield outer.finish
        finally:
            outer.running.remove(describe)
        return
    line.running.append(describe)
    before, own = sys.stderr, line.display
    watcher = threading.Thread(target=line.watch, daemon=True)
    try:
        if isinstance(own, Terminal):
            sys.stderr = own
        watcher.start()
        yield line.finish
    finally:
        if sys.stderr is own:
            sys.stderr = before
        PROCESS.line = None
        line.end()
        watcher.join()


def finish_line(text: str) -> bool:
    """Show a finished line above the status line in use; whether there is one."""
    line = PROCESS.line
    if line is None:
        return False
    line.finish(text)
    return True


def _usual_display() -> Display:
    stream, notebook = sys.stderr, _notebook()
    if notebook is not None:
        return notebook
    live = hasattr(stream, "isatty") and stream.isatty() and os.environ.get("TERM") != "dumb"
    return Terminal(stream) if live else Plain(stream)


def _notebook() -> Notebook | None:
    """A bar if this process is the kernel of a notebook; whoever runs one has loaded IPython."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    shown = import_module("IPython.display")
    return Notebook(shown.display, shown.HTML)


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
