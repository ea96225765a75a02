"""Thousands of hostile inputs to the public functions and the command line.

    python benchmarks/hostile_input.py run       cases in chunks; figures into --out after each
    python benchmarks/hostile_input.py page      the figures as a table, written to --document

The cases are those of tests/hostile_cases.py, what must hold is in tests/hostile_check.py: sound
trees or one sentence. A few hundred of them are part of the tests, always the same ones; here
other ones are drawn by --seed. Everything runs in one process after a few calls that compile. A
broken promise does not end the run: the case is written to --failures, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from pages import write_page  # noqa: E402

import softsplit  # noqa: E402
from hostile_cases import HostileCase, problems, tables  # noqa: E402
from hostile_check import Outcome, outcome, table_outcome  # noqa: E402

KINDS = {
    "SoftTreeClassifier.fit, read, saved": (problems(calls=("fit", "fit", "fit", "refit")), 0.64),
    "strength_path": (problems(calls=("path",)), 0.08),
    "SoftTreeClassifierCV": (problems(calls=("choose",)), 0.12),
    "softsplit fit, predict, explain": (tables(), 0.16),
}
"""What is called, the cases for it, and their share of a chunk."""

CHUNK = 500
ALLOWED = 1.0
"""Seconds by which a call may exceed its time limit, by the processor time of this process: other
work on the machine is not its fault. The clock on the wall is reported beside it."""


@dataclass
class Figures:
    """What has been counted for one kind of call."""

    cases: int = 0
    distinct: int = 0
    calls_with_trees: int = 0
    trees: int = 0
    refusals: int = 0
    failures: int = 0
    late: int = 0
    worst_overrun: float = 0.0
    worst_busy: float = 0.0
    seconds: float = 0.0
    sentences: Counter[str] = field(default_factory=Counter)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["run", "page"])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/hostile_input.json")
    parser.add_argument("--failures", type=Path, default=Path("results/hostile_failures.txt"))
    parser.add_argument("--document", type=Path, default=ROOT / "docs/results/reliability.md")
    args = parser.parse_args()
    if args.part == "page":
        write_page(args.document, {"hostile input": table(json.loads(args.out.read_text()))})
        return
    sys.exit(run(args))


def run(args: argparse.Namespace) -> int:
    """All cases; the number of broken promises decides the exit code."""
    args.failures.parent.mkdir(parents=True, exist_ok=True)
    args.failures.write_text("")
    found = {kind: Figures() for kind in KINDS}
    seen: set[int] = set()
    with tempfile.TemporaryDirectory() as folder:
        check = checker(Path(folder))
        warm_up(check)
        chunk = 0
        while sum(f.cases for f in found.values()) < args.cases:
            for kind, (cases, share) in KINDS.items():
                draw(
                    cases,
                    round(share * min(CHUNK, args.cases)),
                    [args.seed, chunk],
                    check,
                    found[kind],
                    seen,
                    args,
                )
            chunk += 1
            store(found, args)
            print(progress(found, args.cases), flush=True)
    print(table(json.loads(args.out.read_text())))
    for kind, figures in found.items():
        print(f"\n{kind}: refusals by sentence")
        for sentence, count in figures.sentences.most_common(25):
            print(f"{count:>7}  {sentence}")
    broken = sum(f.failures + f.late for f in found.values())
    print(f"\n{broken} broken promises" + (f"; see {args.failures}" if broken else ""))
    return int(broken > 0)


Check = Callable[[Any], Outcome]


def checker(folder: Path) -> Check:
    """The check of any case; files go to ``folder``."""
    return lambda case: (
        outcome(case) if isinstance(case, HostileCase) else table_outcome(case, folder)
    )


def warm_up(check: Check) -> None:
    """Compile and import everything before the first clock starts."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.integers(0, 3, 30)
    known = {"depth": 3, "scale": "minmax", "penalty": "l0", "steepness": 64.0}
    known |= {"local_strength": 0.1, "global_strength": 0.1}
    for call in ("fit", "path", "choose"):
        for rows in (X, X.astype(np.float32)):
            check(HostileCase(call, rows, y, None, known))
    draw(tables(), 5, [0], check, Figures(), set(), None)


def draw(
    cases: Any,
    count: int,
    entropy: list[int],
    check: Check,
    figures: Figures,
    seen: set[int],
    args: argparse.Namespace | None,
) -> None:
    """Check ``count`` cases and count what happens."""

    @seed(int(np.random.SeedSequence(entropy).generate_state(1)[0]))
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def every(case: Any) -> None:
        record(case, check, figures, seen, args)

    every()


def record(
    case: Any, check: Check, figures: Figures, seen: set[int], args: argparse.Namespace | None
) -> None:
    key = hash(repr(case))
    figures.distinct += key not in seen
    seen.add(key)
    figures.cases += 1
    began = time.perf_counter()
    try:
        found = check(case)
    except Exception as error:  # whatever it is, it is a broken promise
        figures.failures += 1
        tell(args, f"{type(error).__name__}: {error}", case)
    else:
        figures.trees += found.trees
        figures.calls_with_trees += found.trees > 0
        figures.refusals += found.trees == 0
        figures.worst_overrun = max(figures.worst_overrun, found.overrun)
        figures.worst_busy = max(figures.worst_busy, found.busy)
        if found.sentence:
            figures.sentences[kind_of(found.sentence)] += 1
        if found.busy > ALLOWED:
            figures.late += 1
            tell(args, f"{found.busy:.2f} s beyond its time limit", case)
    figures.seconds += time.perf_counter() - began


def tell(args: argparse.Namespace | None, what: str, case: Any) -> None:
    if args is not None:
        print(f"BROKEN: {what.splitlines()[0][:200]}", flush=True)
        with args.failures.open("a", encoding="utf-8") as file:
            file.write(f"{what}\n{case!r}\n\n")


def kind_of(sentence: str) -> str:
    """A sentence without the names and numbers of its case."""
    text = re.sub(r"'[^']*'", "'...'", sentence)
    text = re.sub(r"[-+]?\d[\d.,]*(e[-+]?\d+)?", "#", text)
    text = re.sub(r"\(#(, #)*,?\)|\[.*\]", "(#)", text)
    return text[:110]


def store(found: dict[str, Figures], args: argparse.Namespace) -> None:
    made = {
        "seed": args.seed,
        "softsplit": softsplit.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "calls": {
            kind: asdict(f) | {"sentences": dict(f.sentences.most_common())}
            for kind, f in found.items()
        },
    }
    args.out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def progress(found: dict[str, Figures], wanted: int) -> str:
    done, seconds = sum(f.cases for f in found.values()), sum(f.seconds for f in found.values())
    broken = sum(f.failures + f.late for f in found.values())
    left = seconds / done * max(0, wanted - done)
    return f"{done:,} of {wanted:,} cases, {broken} broken, about {left / 60:.0f} min left"


def table(made: dict[str, Any]) -> str:
    """The figures as Markdown, with a line of sums."""
    head = (
        "| calls | cases | ended in a tree | refused | kinds of sentence | worst overrun of a time "
        "limit: processor | by the wall | broken promises |\n|---|---|---|---|---|---|---|---|"
    )
    lines, all_kinds = [head], set()
    total = Counter[str]()
    for kind, f in made["calls"].items():
        broken = f["failures"] + f["late"]
        lines.append(
            f"| {kind} | {f['cases']:,} | {f['calls_with_trees']:,} | {f['refusals']:,} | "
            f"{len(f['sentences'])} | {f['worst_busy']:.2f} s | {f['worst_overrun']:.2f} s | "
            f"{broken} |"
        )
        total.update({k: f[k] for k in ("cases", "distinct", "calls_with_trees", "refusals")})
        total.update(broken=broken)
        all_kinds |= set(f["sentences"])
    busy, wall = (
        max(f[name] for f in made["calls"].values()) for name in ("worst_busy", "worst_overrun")
    )
    lines.append(
        f"| **all** | **{total['cases']:,}** | {total['calls_with_trees']:,} | "
        f"{total['refusals']:,} | {len(all_kinds)} | {busy:.2f} s | {wall:.2f} s | "
        f"**{total['broken']}** |"
    )
    seconds = sum(f["seconds"] for f in made["calls"].values())
    return "\n".join(lines) + (
        f"\n\nSeed {made['seed']}; {total['distinct']:,} cases differ from all others; "
        f"{seconds / 60:.0f} minutes in one process; Python {made['python']}, numpy "
        f"{made['numpy']}."
    )


if __name__ == "__main__":
    main()
