"""A clock that stands still until a test moves it."""

from __future__ import annotations


class Clock:
    """Seconds by which time limits are kept, and moved by events instead of by a busy machine."""

    def __init__(self, seconds: float = 1000.0) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds

    def after(self, count: int, function, seconds: float = 1e9):
        """``function``, whose call number ``count`` ends so many seconds later."""
        calls = []

        def counted(*arguments, **options):
            found = function(*arguments, **options)
            calls.append(arguments)
            if len(calls) == count:
                self.advance(seconds)
            return found

        return counted
