"""A sign of life: no command is silent on standard error for longer than two seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from softsplit.cli.console import say

SILENCE = 2.0
"""Seconds."""


class _Noted:
    """A stream that knows when something was last written to it."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.last = time.monotonic()

    def write(self, text: str) -> Any:
        self.last = time.monotonic()
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def signs_of_life(quiet: bool) -> Iterator[None]:
    """While this runs, a line with the seconds gone whenever nothing else was said for a while."""
    if quiet:
        yield
        return
    began, noted, done = time.monotonic(), _Noted(sys.stderr), threading.Event()

    def watch() -> None:
        while not done.wait(SILENCE / 4):
            if time.monotonic() - noted.last >= SILENCE - SILENCE / 4:
                say(f"at work, {time.monotonic() - began:.0f} s")

    watcher = threading.Thread(target=watch, daemon=True)
    sys.stderr = noted
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        sys.stderr = noted.stream
