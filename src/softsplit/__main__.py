"""``python -m softsplit``, and the script ``softsplit``."""

import io
import sys

INTERRUPTED = 130


def main() -> None:
    """The command line; Ctrl-C while it is loaded is no error."""
    for stream in (sys.stdout, sys.stderr):
        # A code page of Windows lacks letters that names may have: they are shown as escapes.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    try:
        from softsplit.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("softsplit: interrupted before there was anything to keep.\n")
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
