"""The library's log on the console, for those who ask for it with ``verbose``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def console(verbose: int) -> Iterator[None]:
    """Show the library's messages while a fit runs, unless logging is set up already."""
    package = logging.getLogger("softsplit")
    level, handler = package.level, None
    if verbose:
        package.setLevel(min(level or logging.INFO, logging.INFO))
        if not package.hasHandlers():
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("softsplit: %(message)s"))
            package.addHandler(handler)
    try:
        yield
    finally:
        package.setLevel(level)
        if handler is not None:
            package.removeHandler(handler)
