"""Runs that are killed, starved and interrupted."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from experiment_parts import SMALL, contents, small
from softsplit.experiments.runner import run_experiment
from softsplit.experiments.store import Store, StoreError


def environment() -> dict[str, str]:
    """Bundled data only, whatever the machine has."""
    return {name: value for name, value in os.environ.items() if name != "SOFTSPLIT_DATA"}


def start_run(store: Path, *, jobs: int = 1, file_limit: int | None = None, prefix=()):
    """``softsplit experiment run`` of the small experiment, in a process of its own."""
    spec = store.with_name("small.toml")
    spec.write_text(SMALL)

    def limit() -> None:
        # Writing beyond it fails as on a full disk, without being root; Python ignores the signal.
        if file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

    command = [sys.executable, "-m", "softsplit", "experiment", "run", str(spec)]
    return subprocess.Popen(
        [*prefix, *command, "--store", str(store), "--jobs", str(jobs)],
        env=environment(),
        preexec_fn=limit,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def whole_run(store: Path) -> list[tuple[object, ...]]:
    """All rows, of a run that nothing disturbs."""
    with Store(store) as opened:
        run_experiment(small(), opened)
    return contents(store)


def as_a_user() -> list[str]:
    """A command before the command that takes away what root may do beyond others' rights."""
    if os.geteuid() != 0:
        return []
    program = shutil.which("setpriv")
    if program is None:
        raise FileNotFoundError("setpriv")
    taken = "-dac_override,-dac_read_search"
    return [program, "--bounding-set", taken, "--inh-caps", taken]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """A store as a failing disk, an interrupted copy or a wrong program leaves it."""
    what = rng.randrange(4)
    if what == 0:
        return content[: rng.randrange(1, len(content))]
    place = rng.randrange(len(content))
    if what == 1:
        return (
            content[:place]
            + bytes([content[place] ^ (1 << rng.randrange(8))])
            + content[place + 1 :]
        )
    noise = rng.randbytes(rng.choice([1, 4, 64, 4096]))
    if what == 2:
        return (content[:place] + noise + content[place + len(noise) :])[: len(content)]
    return content[:place] + bytes(len(noise)) + content[place + len(noise) :]


def use_damaged(content: bytes, store: Path, whole: list[tuple[object, ...]]) -> str:
    """Go on with a damaged store: "refused" with a sentence, or all rows are the right ones."""
    for path in store.parent.glob(f"{store.name}*"):
        path.unlink()
    store.write_bytes(content)
    try:
        with Store(store) as opened:
            run_experiment(small(), opened)
            opened.runs("small")
    except StoreError as error:
        said = str(error)
        assert "\n" not in said and said.endswith(".") and str(store) in said
        return "refused"
    assert contents(store) == whole, "a damaged store gave wrong rows"
    return "unharmed"


LONG_WORK = """
import time, warnings
import numpy as np
from sklearn.datasets import load_wine
from softsplit import SoftTreeClassifier, strength_path
from softsplit.training import regularisation_path as walk

X, y = load_wine(return_X_y=True)
warnings.simplefilter("ignore")
SoftTreeClassifier(n_starts=1, max_iter=5, random_state=0).fit(X, y)  # machine code is loaded
warnings.simplefilter("default")
real, begun = walk.numbered_start, []

def numbered_start(*arguments):
    begun.append(arguments)
    print(f"start {len(begun)}", flush=True)
    return real(*arguments)

walk.numbered_start = numbered_start
began = time.perf_counter()
print("begin", flush=True)
try:
    base = SoftTreeClassifier(depth=3, n_starts=3, random_state=0)
    path = strength_path(X, y, estimator=base, strengths=np.geomspace(1e-3, 50, 4000))
    assert all(p.classifier.score(X, y) > 0.1 for p in path.points[::50])
    print("kept", flush=True)
except KeyboardInterrupt:
    print("nothing yet", flush=True)
"""


def interrupt(seconds: float, after: str = "begin") -> tuple[str, str, float]:
    """SIGINT to a process that walks a path, so long ``after`` a line of it.

    Returns how it ended, what it said, and the seconds it took to stop.
    """
    run = subprocess.Popen(
        [sys.executable, "-c", LONG_WORK],
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    assert f"{after}\n" in run.stdout
    time.sleep(seconds)
    sent = time.perf_counter()
    run.send_signal(signal.SIGINT)
    out, said = run.communicate(timeout=600)
    assert run.returncode == 0, said
    return out.split("\n")[-2], said, time.perf_counter() - sent
