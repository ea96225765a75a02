"""The native solver beside the global optimum of tiny problems.

    python benchmarks/global_optimum.py [--problems 10] [--kinds TEXT] [--write]

The optimum is that of tests/exhaustive.py: every assignment of classes to leaves and every set of
features, with a fine multistart in each. Printed is, for each kind of problem, how often ten starts
and the search after them reach it (to 1e-6 relative), and the largest gap.
"""

from __future__ import annotations

import sys

from common import WRITE, arguments, keep, markdown

from exhaustive import global_optimum
from softsplit.problem.penalties import linear, logarithmic
from tiny_problems import tiny, trained

KINDS = {
    "depth 1, 1 feature, 2 classes": (1, 1, 2),
    "depth 1, 2 features, 2 classes": (1, 2, 2),
    "depth 1, 2 features, linear": (1, 2, 2, linear()),
    "depth 1, 2 features, log": (1, 2, 2, logarithmic(), 0.02),
    "depth 2, 1 feature, 2 classes": (2, 1, 2),
    "depth 2, 1 feature, 3 classes": (2, 1, 3),
    "depth 2, 2 features, 2 classes": (2, 2, 2),
}
SAME = 1e-6


def main() -> None:
    args = arguments(
        __doc__, problems=(10, ""), kinds=("", "only kinds whose name contains this"), **WRITE
    )
    rows, missed = [], 0
    for name, kind in KINDS.items():
        if args.kinds not in name:
            continue
        gaps = [gap(tiny(seed, *kind)) for seed in range(args.problems)]
        reached = sum(value <= SAME for value in gaps)
        missed += len(gaps) - reached
        rows.append([name, f"{reached} of {len(gaps)}", f"{max(gaps):.1e}"])
        print(*rows[-1], sep="; ", file=sys.stderr)
    columns = ["problems", "reached", "largest gap"]
    figures = {"kinds": [dict(zip(columns, row, strict=True)) for row in rows]}
    keep("global optimum", figures, markdown(columns, rows), write=args.write and not args.kinds)
    if missed:
        raise SystemExit(f"{missed} optima were missed.")


def gap(problem) -> float:
    """How far the trained tree is above the optimum, relative to one plus its size."""
    lowest = global_optimum(problem)
    return (trained(problem)[1].objective - lowest) / (1 + abs(lowest))


if __name__ == "__main__":
    main()
