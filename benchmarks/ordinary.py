"""Five hundred ordinary problems with the defaults of SoftTreeClassifierCV.

    python benchmarks/ordinary.py run       a row each, appended to --out (may be resumed)
    python benchmarks/ordinary.py table     what has been found, printed

The problems are those of tests/ordinary_problems.py, which also says what must hold: no exception,
no warning other than limits reached, never worse than the most frequent class by more than two
standard errors on held-out rows. The exit code of "table" is 1 if any problem has a complaint
or has not been run.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from common import arguments, resumed, rows_of, timed
from methods import warm_up
from threadpoolctl import threadpool_limits

from ordinary_problems import complaint, ordinary_problems, shared_names


def main() -> None:
    args = arguments(
        __doc__, ["run", "table"], out=Path("results/ordinary.jsonl"), problems=500, seed=2026
    )
    sys.exit({"run": run, "table": table}[args.part](args))


def run(args: argparse.Namespace) -> int:
    """The problems that are not in the file yet, in the order of their numbers."""
    tasks = (
        ({"seed": args.seed, "problem": number}, partial(examined, number, args.seed))
        for number in range(args.problems)
    )
    for row in resumed(args.out, tasks):
        told = row["complaint"] or "well"
        print(f"{row['problem']} {row['story']}: {told}, {row['seconds']:.1f} s", flush=True)
    return 0


def examined(number: int, seed: int) -> dict[str, Any]:
    warm_up()
    (problem,) = ordinary_problems([number], seed)
    with threadpool_limits(1):
        trouble, took = timed(lambda: complaint(problem))
    return {
        "story": problem.story, "complaint": trouble, "rows": len(problem.y),
        "classes": len(set(problem.y.tolist())), "columns": problem.X.shape[1],
        "seconds": took["cpu"],
    }  # fmt: skip


def table(args: argparse.Namespace) -> int:
    """How many are well, and what is wrong with the others."""
    rows = pd.DataFrame(row for row in rows_of(args.out) if row["seed"] == args.seed)
    if rows.empty:
        print(f"there are no problems of seed {args.seed} in {args.out}.")
        return 1
    wrong = rows[rows["complaint"].notna()]
    print(
        f"{len(rows)} problems of {len(shared_names())} data sets, {rows['rows'].min()} to "
        f"{rows['rows'].max()} rows, {rows['classes'].min()} to {rows['classes'].max()} classes; "
        f"seconds of the processor: median {rows['seconds'].median():.2f}, most "
        f"{rows['seconds'].max():.1f}.\n{len(wrong)} with a complaint{':' if len(wrong) else '.'}"
    )
    for row in wrong.itertuples():
        print(f"- {row.problem}, {row.story}: {row.complaint}")
    missing = args.problems - len(rows)
    if missing > 0:
        print(f"{missing} of {args.problems} problems have not been run.")
    return int(len(wrong) > 0 or missing > 0)


if __name__ == "__main__":
    main()
