"""``softsplit compile``: compile all numerical code ahead of time."""

from __future__ import annotations

import time

from softsplit.cli import options
from softsplit.cli.console import echo, heartbeat, print_json

EPILOG = "Example, in the recipe of an image: softsplit compile"


def compile_code(quiet: options.Quiet = False, as_json: options.AsJson = False) -> None:
    """Compile all numerical code of this installation ahead of time.

    A first fit compiles what it needs, and other code follows when it is needed. In
    images and on clusters it is better done once, where the package is installed. Code is compiled
    for the kind of processor that this command runs on, and kept beside the package or, if
    NUMBA_CACHE_DIR names one, in that folder.
    """
    began = time.monotonic()
    with heartbeat(quiet, "compiling all numerical code"):
        from softsplit.training.precompile import compile_everything

        folder = compile_everything()
    if folder is None:
        raise ValueError(
            "compiled code cannot be kept on disk; name a folder that can be written in "
            "NUMBA_CACHE_DIR."
        )
    seconds = time.monotonic() - began
    if as_json:
        print_json({"folder": str(folder), "seconds": round(seconds, 1)})
    else:
        echo(f"all numerical code is compiled ({seconds:.0f} s)")
