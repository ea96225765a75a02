"""``python -m softsplit``, and the script ``softsplit``."""

import atexit
import gc
import io
import os
import signal
import sys
from contextlib import suppress

INTERRUPTED = 130

# Exit code that Python itself uses when the last output cannot be written.
OUTPUT_LOST = 120

# Allocations after which the garbage collector runs. Most objects of a command belong to modules
# and live until it ends; to traverse them repeatedly takes half a second of a report.
FEWER_COLLECTIONS = 100_000


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
    """Run the exit handlers, flush the output, and end the process at once.

    A normal exit deallocates every module, which takes a second, and unwinds threads that still run
    compiled code of another library, whereupon the C++ runtime aborts the process.
    """
    if code is not None and not isinstance(code, int):
        return
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            code = code or OUTPUT_LOST
    os._exit(code or 0)


if __name__ == "__main__":
    main()
