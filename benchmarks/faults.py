"""Runs killed, starved, damaged and interrupted; what is recorded must stand it.

    python benchmarks/faults.py --write          all parts, some ten minutes on two cores
    python benchmarks/faults.py kill --times 50

Parts: kill, disk, damage, interrupt, compile; tests/system/test_faults.py has others, once each. A
full disk is a limit on the size of files (RLIMIT_FSIZE), which needs no root; writing beyond it
fails as on a full device.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import keep, kept, markdown

from experiment_parts import contents, small
from fault_runs import damaged, environment, interrupt, start_run, use_damaged, whole_run
from softsplit.experiments.runner import run_experiment
from softsplit.experiments.store import Store

Rows = list[tuple[object, ...]]
DAMAGED_PER_KILL = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS, help="one part only")
    parser.add_argument("--times", type=int, default=50, help="kills; other parts follow from it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="figures to docs/results/reliability")
    args = parser.parse_args()
    os.environ.pop("SOFTSPLIT_DATA", None)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        whole = whole_run(folder / "whole.sqlite")
        for name in [args.part] if args.part else PARTS:
            began = time.perf_counter()
            rng = random.Random(f"{name}-{args.seed}")
            figures[name] = PARTS[name](folder, whole, args.times, rng)
            figures[name]["seconds"] = round(time.perf_counter() - began)
            print(f"{name}: {figures[name]}", file=sys.stderr)
    if args.part:  # beside the others' figures
        before = kept("faults")
        figures = {name: (before | figures)[name] for name in PARTS if name in before | figures}
    table = markdown(
        ["fault", "times", "what came of it"],
        [[name, f.pop("times"), ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in f.items())]
         for name, f in ((name, dict(f)) for name, f in figures.items())],
    )  # fmt: skip
    keep("faults", figures, table, write=args.write)


def kill(folder: Path, whole: Rows, times: int, rng: random.Random) -> dict[str, Any]:
    """SIGKILL at random moments; a store that is full is put aside and compared, bit for bit."""
    rows, gained, finished = set(whole), [], 0
    store = folder / "killed.sqlite"
    while len(gained) < times:
        working = len(gained) % 5 > 0  # one in five at any moment, before the first row as well
        seconds = rng.uniform(0.0, 0.5) if working else rng.uniform(0.2, 6.0)
        new, killed = kill_once(store, seconds, rows, rng.choice([1, 2]), working=working)
        if killed:
            gained.append(new)
        if len(gained) % 5 == 4 or len(gained) == times or rows_of(store) == rows:
            with Store(store) as opened:
                run_experiment(small(), opened)
            assert contents(store) == whole, "a run that was killed ended with other rows"
            finished += 1
            store = folder / f"killed-{finished}.sqlite"
    return {
        "times": times,
        "rows_recorded_by_killed_runs": sum(gained),
        "kills_that_left_new_rows": sum(g > 0 for g in gained),
        "stores_finished_bit_for_bit": finished,
        "rows_lost": 0,
        "rows_doubled": 0,
    }


def disk(folder: Path, whole: Rows, times: int, rng: random.Random) -> dict[str, Any]:
    """A disk that is full at some size; the run says so and is taken up when there is room."""
    said, kept = 0, []
    times = max(1, times // 5)
    for i in range(times):
        store = folder / f"full-{i}.sqlite"
        run = start_run(store, file_limit=rng.randrange(8_000, 900_000))
        _, sentence = run.communicate()
        assert run.returncode == 2 and "the disk may be full" in sentence, sentence
        assert sentence.strip().count("\n") == 0
        said += 1
        found = rows_of(store)
        assert found <= set(whole), "a row differs from that of an undisturbed run"
        kept.append(len(found))
        with Store(store) as opened:
            run_experiment(small(), opened)
        assert contents(store) == whole
    return {
        "times": times,
        "said_so_in_one_sentence": said,
        "rows_kept_median": statistics.median(kept),
        "taken_up_bit_for_bit": times,
    }


def damage(folder: Path, whole: Rows, times: int, rng: random.Random) -> dict[str, Any]:
    """Cut, flipped, overwritten and zeroed stores: refused, or every cell has a row."""
    content = (folder / "whole.sqlite").read_bytes()
    times = times * DAMAGED_PER_KILL
    ends = collections.Counter(
        use_damaged(damaged(content, rng), folder / "damaged.sqlite", whole) for _ in range(times)
    )
    return {"times": times, **ends}


def interrupts(folder: Path, whole: Rows, times: int, rng: random.Random) -> dict[str, Any]:
    """SIGINT to fits, paths and searches: the best so far, or word that there is nothing yet."""
    ends: collections.Counter[str] = collections.Counter()
    seconds = []
    each = max(1, times // 5)
    for work in ("fit", "path", "cv"):
        for _ in range(each):
            end, said, took = interrupt(work, rng.uniform(0.0, 8.0))
            ends[f"{work}_{end.replace(' ', '_')}"] += 1
            seconds.append(took)
            assert (end == "kept") == ("interrupted" in said), said
    return {
        "times": 3 * each,
        **ends,
        "seconds_to_stop_median": round(statistics.median(seconds), 2),
        "most": round(max(seconds), 2),
    }


def compiling(folder: Path, whole: Rows, times: int, rng: random.Random) -> dict[str, Any]:
    """SIGINT or SIGKILL to the first fit of an installation, while it compiles; then once more."""
    began = time.perf_counter()
    right, _ = first_fit(folder / "undisturbed")
    long = time.perf_counter() - began
    ends: collections.Counter[str] = collections.Counter()
    each = max(1, times // 10)
    for number, name in ((signal.SIGINT, "interrupted"), (signal.SIGKILL, "killed")):
        for i in range(each):
            cache = folder / f"{name}{i}"
            end, left = first_fit(cache, rng.uniform(0.0, 0.8 * long), number)
            ends[name if end in ("", "interrupted") else "too_late"] += 1
            if number == signal.SIGINT:  # one that is killed cannot end its helper, which ends soon
                assert end in ("interrupted", right) and left == 0, (end, left)
            assert first_fit(cache)[0] == right
            shutil.rmtree(cache)
    return {"times": 2 * each, **ends, "then_the_same_tree": 2 * each}


PARTS = {
    "kill": kill,
    "disk": disk,
    "damage": damage,
    "interrupt": interrupts,
    "compile": compiling,
}


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


if __name__ == "__main__":
    main()
