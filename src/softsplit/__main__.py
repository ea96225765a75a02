"""``python -m softsplit``, and the script ``softsplit``."""

import sys

INTERRUPTED = 130


def main() -> None:
    """The command line; Ctrl-C while it is loaded is no error."""
    try:
        from softsplit.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("softsplit: interrupted before there was anything to keep.\n")
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
