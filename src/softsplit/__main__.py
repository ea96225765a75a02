"""``python -m softsplit``, and the script ``softsplit``."""

import gc
import io
import os
import sys
from contextlib import suppress

INTERRUPTED = 130
FEWER_COLLECTIONS = 100_000
"""New objects after which Python looks for garbage: most objects of a command are modules, which
live to its end, and to look at them time and again takes half a second of a report."""


def main() -> None:
    """The command line; Ctrl-C while it is loaded is no error."""
    gc.set_threshold(FEWER_COLLECTIONS)
    for stream in (sys.stdout, sys.stderr):
        # A code page of Windows lacks letters that names may have: they are shown as escapes.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    try:
        from softsplit.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("softsplit: interrupted before there was anything to keep.\n")
        sys.exit(INTERRUPTED)
    try:
        run()
    except SystemExit as end:
        _leave(end.code)
        raise


def _leave(code: object) -> None:
    """End the process at once if a thread still runs code of another library.

    Python would unwind that thread, which C++ takes for an error: it aborts the process.
    """
    from softsplit.support.parallel import threads_left

    if threads_left() and (code is None or isinstance(code, int)):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code or 0)


if __name__ == "__main__":
    main()
