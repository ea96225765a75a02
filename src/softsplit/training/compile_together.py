"""On a new installation two processes compile the numerical code, and then all that may come.

All code is cut into pieces, functions with the arguments they are called with. What a fit needs is
compiled by this process and another, which take the pieces from both ends of the list; the cache
on disk is where each finds what the other has made. The pieces that other inputs need (the other
loss, blocks, single precision, many rows) are compiled meanwhile and afterwards by a process of
low priority that nobody waits for: whatever comes later finds its code. It is no part of this
process and may outlast it, since a command is over in seconds and the next one should not wait.
``softsplit compile`` does all of it at once.

If the other process cannot be started, fails or hangs, this one compiles what it needs.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import parent_process
from pathlib import Path
from threading import Lock, Timer

from softsplit.support.compile_notice import of_a_first_fit
from softsplit.support.interruption import never_lost
from softsplit.support.machine_code import turns
from softsplit.support.turns import Turns
from softsplit.training.pieces import PIECES, TRAINING
from softsplit.tree.routing import open_gates

HELP = "from softsplit.training.compile_together import help_with; help_with({names!r})"
FINISH = "from softsplit.training.compile_together import finish; finish()"
"""What the other processes run."""

DETACH = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"
"""What starts one that belongs to nobody: its parent is gone at once."""

SECONDS = {"log": 15, "cost": 45}
"""What two processes take for each loss: the descent by cost is one large piece."""

PATIENCE = 120.0
"""Seconds to wait for the other process after the work of this one is done."""

LONGEST = 600.0
"""Seconds after which a process that nobody waits for gives up."""

SWITCH = "SOFTSPLIT_COMPILE_AHEAD"
"""Set to 0 in the environment, no process compiles what is not needed yet."""

_one_at_a_time = Lock()
_done: set[str] = set()


def compile_together(loss: str = "cost") -> None:
    """Compile what trains by a loss in two processes, unless that was done before."""
    with _one_at_a_time:
        if loss not in _done:
            known = turns(open_gates)
            if known is not None and _may_start_another():
                if not all(map(known.is_done, TRAINING[loss])):
                    of_a_first_fit(SECONDS[loss])
                    _compile(known, TRAINING[loss])
                _start_the_rest(known)
            _done.add(loss)


def compile_everything() -> Path | None:
    """Compile all pieces in two processes; where they are kept, None if that is nowhere."""
    known = turns(open_gates)
    if known is None:
        return None
    _compile(known, tuple(PIECES))
    return known.folder


def help_with(names: Iterable[str]) -> None:
    """What the other process does."""
    known = turns(open_gates)
    if known is not None:
        with _no_collection():
            known.work(_pieces(names), PATIENCE, backwards=True)


def finish() -> None:
    """What the process does that nobody waits for.

    What cannot be compiled here is left to those whom it concerns, and not tried again.
    """
    with suppress(AttributeError, OSError):
        os.nice(19)
    end = Timer(LONGEST, os._exit, (1,))
    end.daemon = True
    end.start()
    known = turns(open_gates)
    if known is None:
        return
    with known.turn("the-rest") as mine:
        if mine:  # rubbish is collected: this may hold no more memory than it must
            known.work({name: _without_errors(PIECES[name]) for name in PIECES}, PATIENCE)


def _compile(known: Turns, names: tuple[str, ...]) -> None:
    with never_lost(), _no_collection():
        other = _start(HELP.format(names=names)) if _may_start_another() else None
        try:
            known.work(_pieces(names), PATIENCE)
        finally:
            if other is not None:
                other.kill()
                other.wait()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Compilers make millions of objects that live long: to look for rubbish among them over and
    over takes an eighth of the time."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()


def _start_the_rest(known: Turns) -> None:
    if os.environ.get(SWITCH) == "0" or all(map(known.is_done, PIECES)):
        return
    with known.turn("the-rest") as free:
        pass
    if free:
        intermediate = _start(FINISH, "-I", "-S", "-c", DETACH, sys.executable)
        if intermediate is not None:
            intermediate.wait()


def _pieces(names: Iterable[str]) -> dict[str, Callable[[], None]]:
    return {name: PIECES[name] for name in names}


def _without_errors(call: Callable[[], None]) -> Callable[[], None]:
    def tried() -> None:
        with suppress(Exception):
            call()

    return tried


def _may_start_another() -> bool:
    """Not in a pool, where others compile already, and not where Python is part of a program."""
    plain = "python" in Path(sys.executable or "").name.lower() and not hasattr(sys, "frozen")
    return plain and parent_process() is None and _n_cores() > 1


def _n_cores() -> int:
    """Those that this process may use, where the system tells."""
    with suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start(code: str, *before: str) -> subprocess.Popen[bytes] | None:
    """The same Python with the same paths; with -P it does not look into the working directory."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    quiet = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [sys.executable, *before, "-P", "-c", code],
            env=environment, stdin=quiet, stdout=quiet, stderr=quiet,
        )  # fmt: skip
    except OSError:
        return None
