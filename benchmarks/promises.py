"""Figures of speed that documents state: measured, kept, and looked at again.

    python benchmarks/promises.py check [NAME ...]    what takes 1.2 times as long? the short ones
    python benchmarks/promises.py write NAME [...]    measure, keep the figures, correct documents
    python benchmarks/promises.py device --out FILE   those of a GPU, to a file (five minutes)
    python benchmarks/promises.py take FILE           keep the figures of such a file

docs/results/promises.json holds for each figure what it is of, its unit, the command, the machine,
the commit, and where documents state it: words with {} in place of its text. A test compares the
documents with the file. Seconds are those of all processors where a figure says so, which other
work on the machine hardly changes.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import platform
import pstats
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import RESULTS, ROOT
from scale import alone

STORE = RESULTS / "promises.json"
SLOWER = 1.2
FEW, SOME, MANY = 10_000, 100_000, 1_000_000

Promise = dict[str, Any]


def fit_cpu(n_rows: int) -> float:
    """Seconds of all processors for a fit with the defaults, depth 3, on the rows of scale.py."""
    return float(alone("fit", method="tree", n_rows=n_rows)["cpu"])


def boosting_cpu(n_rows: int) -> float:
    """The same for histogram boosting, on one thread: several wait for one another busily."""
    former = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        return float(alone("fit", method="boosting", n_rows=n_rows)["cpu"])
    finally:
        os.environ.pop("OMP_NUM_THREADS")
        os.environ |= {} if former is None else {"OMP_NUM_THREADS": former}


MEASURES: dict[str, Callable[[], float]] = {
    "fit-1e4": lambda: fit_cpu(FEW),
    "fit-1e5": lambda: fit_cpu(SOME),
    "fit-1e6": lambda: fit_cpu(MANY),
    "boosting-1e5": lambda: boosting_cpu(SOME),
    "boosting-1e6": lambda: boosting_cpu(MANY),
}
SHORT = ("fit-1e4", "fit-1e5")


def device_figures() -> dict[str, float]:
    """Figures of the GPU of this machine."""
    import device
    from common import timed

    from softsplit import SoftTreeClassifier
    from softsplit.on_torch.backend import torch_library

    torch, found = torch_library(), {}
    args = argparse.Namespace(device="cuda", rows=10**7)
    print(device.bent(argparse.Namespace(device="cuda", rows=10**6)), flush=True)
    found["gpu-evaluate"] = device.evaluate(args)["single"]["device_ms"]
    found["gpu-stream"] = device.stream(args)["evaluation_ms"]
    tree = SoftTreeClassifier(random_state=0, device="cuda")
    tree.fit(*device.overlapping(200_000, seed=1))
    X, y = device.overlapping(10**7)
    tables = {"gpu-fit-host": X, "gpu-fit-tensor": torch.from_numpy(X).to("cuda")}
    for name, table in tables.items():
        tree.fit(table, y)  # kernels are made
        found[name] = timed(lambda table=table: tree.fit(table, y))[1]["seconds"]
        print(name, found[name], tree.objective_, tree.score(X[:100_000], y[:100_000]), flush=True)
        profile = cProfile.Profile()
        profile.runcall(tree.fit, table, y)
        pstats.Stats(profile).sort_stats("cumtime").print_stats("softsplit", 45)
    return found


# --- the file -------------------------------------------------------------------------------------


def promises() -> dict[str, Promise]:
    return dict(json.loads(STORE.read_text(encoding="utf-8")))


def shown(figure: float) -> str:
    """A figure as documents state it: two digits, three of a larger one."""
    return f"{figure:.3g}" if figure >= 100 else f"{figure:.2g}"


def keep(name: str, figure: float, known: dict[str, Promise], machine: str) -> None:
    """Put a new figure in its place, and into the documents that state it."""
    promise = known[name]
    for place, words in promise["said"]:
        path = ROOT / place
        text, old = path.read_text(encoding="utf-8"), words.format(promise["text"])
        if old not in text:
            raise SystemExit(f"{place} does not say {old!r}.")
        path.write_text(text.replace(old, words.format(shown(figure))), encoding="utf-8")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT
    )
    promise |= {
        "figure": figure,
        "text": shown(figure),
        "machine": machine,
        "commit": commit.stdout.strip(),
    }
    STORE.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["check", "write", "device", "take"], nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--machine", default=f"{platform.processor() or platform.machine()}")
    args = parser.parse_args()
    known, slower = promises(), []
    if args.part == "device":
        found = device_figures()
        args.out.write_text(json.dumps(found))
        return 0
    if args.part == "take":
        for name, figure in json.loads(Path(args.names[0]).read_text()).items():
            keep(name, figure, known, args.machine)
        return 0
    for name in args.names or SHORT:
        figure, promised = MEASURES[name](), known[name]["figure"]
        print(f"{name}: {figure:.3g} {known[name]['unit']}, promised {promised:.3g}", flush=True)
        if args.part == "write":
            keep(name, figure, known, args.machine)
        elif figure > SLOWER * promised:
            slower.append(name)
    if slower:
        print(f"slower than {SLOWER} times the promise: {', '.join(slower)}")
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
