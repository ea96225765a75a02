"""What the library says without being asked: single lines, through the log."""

from __future__ import annotations

import logging
import multiprocessing

logger = logging.getLogger("softsplit")


def announce(message: str) -> None:
    """Say one sentence to the user.

    Where logging is not set up, Python prints a record of this level as a plain line on standard
    error; where it is, its handlers and levels decide. Of the processes of a pool, which all do
    the same, only the first one speaks.
    """
    name = multiprocessing.current_process().name
    if multiprocessing.parent_process() is None or name.endswith("-1"):
        logger.warning("softsplit: %s", message)
