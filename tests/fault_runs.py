"""Runs that are killed, starved and interrupted, for the tests and for benchmarks/faults.py."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sqlite3
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


def rows_of(store: Path) -> set[tuple[object, ...]]:
    """What is recorded; nothing if there is no store yet."""
    if not store.exists():
        return set()
    with sqlite3.connect(store) as base:
        made = base.execute("SELECT count(*) FROM sqlite_master WHERE name = 'cells'").fetchone()[0]
    base.close()
    return set(contents(store)) if made else set()


def kill_once(
    store: Path, seconds: float, whole: set[tuple[object, ...]], jobs: int, *, working: bool = False
) -> tuple[int, bool]:
    """Kill a run after so many seconds: rows gained, and whether it had not ended by itself.

    Nothing may be lost, doubled or wrong.

    With ``working`` the seconds count from the first row that the run adds.
    """
    before = rows_of(store)
    run = start_run(store, jobs=jobs)
    while working and run.poll() is None and not (rows_of(store) - before):
        time.sleep(0.05)
    try:
        run.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGKILL)
    run.communicate()
    killed = run.returncode == -signal.SIGKILL
    if not store.exists():
        return 0, killed
    found = contents(store) if rows_of(store) else []
    assert len(found) == len(set(found)), "a row is doubled"
    assert before <= set(found), "a recorded row was lost"
    assert set(found) <= whole, "a row differs from that of an undisturbed run"
    with Store(store):  # its own check of the file
        return len(found) - len(before), killed


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
import sys, time, warnings
import numpy as np
from sklearn.datasets import load_wine
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, strength_path
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
    if sys.argv[1] == "fit":
        tree = SoftTreeClassifier(depth=3, n_starts=5000, random_state=0).fit(X, y)
        np.testing.assert_allclose(tree.predict_proba(X).sum(axis=1), 1.0)
        assert tree.score(X, y) > 0.5
    elif sys.argv[1] == "path":
        base = SoftTreeClassifier(depth=3, n_starts=3, random_state=0)
        path = strength_path(X, y, estimator=base, strengths=np.geomspace(1e-3, 50, 4000))
        assert all(p.classifier.score(X, y) > 0.1 for p in path.points[::50])
    else:
        tree = SoftTreeClassifierCV(cv=10, n_starts=200, n_jobs=1, random_state=0).fit(X, y)
        assert tree.score(X, y) > 0.3
    print("kept", flush=True)
except KeyboardInterrupt:
    print("nothing yet", flush=True)
"""


def interrupt(work: str, seconds: float, after: str = "begin") -> tuple[str, str, float]:
    """SIGINT to a process that fits, so long ``after`` a line of it.

    Returns how it ended, what it said, and the seconds it took to stop.
    """
    run = subprocess.Popen(
        [sys.executable, "-c", LONG_WORK, work],
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


FIRST_FIT = """
import hashlib, warnings
from sklearn.datasets import load_iris
from softsplit import SoftTreeClassifier

X, y = load_iris(return_X_y=True)
print("begin", flush=True)
try:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*interrupted")
        tree = SoftTreeClassifier(n_starts=2, global_strength=1.0, random_state=0).fit(X, y)
    print(hashlib.sha256(tree.predict_proba(X).tobytes()).hexdigest(), flush=True)
except (KeyboardInterrupt, UserWarning):
    print("interrupted", flush=True)
"""


def first_fit(cache: Path, seconds: float = 600.0, number: int = signal.SIGINT) -> tuple[str, int]:
    """A fit with the compiled code of a folder, and a signal if it takes so long.

    Returns what it printed, and how many processes of its own were left two seconds later.
    """
    run = subprocess.Popen(
        [sys.executable, "-c", FIRST_FIT],
        env={**environment(), "NUMBA_CACHE_DIR": str(cache)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        start_new_session=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "begin\n"
    try:
        run.wait(seconds)
    except subprocess.TimeoutExpired:
        run.send_signal(number)
    run.wait(120)
    end = run.stdout.read().strip()
    time.sleep(2.0)
    return end, sum(_session_of(place) == run.pid for place in Path("/proc").glob("[0-9]*"))


def _session_of(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[3])
    except OSError:  # it has just ended
        return -1
