"""Five hundred ordinary problems with the defaults of SoftTreeClassifierCV.

    python benchmarks/ordinary.py run       a row each, appended to --out (may be resumed)
    python benchmarks/ordinary.py table     what has been found, printed

The problems are those of tests/ordinary_problems.py, which also says what must hold: no exception,
no warning other than limits reached, never worse than the most frequent class by more than two
standard errors on held-out rows. The exit code of "table" is 1 if any problem has a complaint.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import pandas as pd
from methods import rows_of, warm_up
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from ordinary_problems import complaint, ordinary_problems, shared_names


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["run", "table"])
    parser.add_argument("--out", type=Path, default=Path("results/ordinary.jsonl"))
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--seed", type=int, default=2026)
    args = parser.parse_args()
    sys.exit({"run": run, "table": table}[args.part](args))


def run(args: argparse.Namespace) -> int:
    """The problems that are not in the file yet, in the order of their numbers."""
    args.out.parent.mkdir(parents=True, exist_ok=True)
    known = {(row["seed"], row["problem"]) for row in rows_of(args.out)}
    missing = [n for n in range(args.problems) if (args.seed, n) not in known]
    if missing:
        warm_up()
    for number in missing:
        (problem,) = ordinary_problems([number], args.seed)
        began = time.process_time()
        with threadpool_limits(1):
            found = complaint(problem)
        row = {"seed": args.seed, "problem": number, "story": problem.story, "complaint": found}
        row |= {"rows": len(problem.y), "classes": len(set(problem.y.tolist()))}
        row |= {"columns": problem.X.shape[1], "seconds": time.process_time() - began}
        with args.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{number} {problem.story}: {found or 'well'}, {row['seconds']:.1f} s", flush=True)
    return 0


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
    return int(len(wrong) > 0)


if __name__ == "__main__":
    main()
