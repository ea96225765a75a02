"""Damaged files by the ten thousand, read in processes of limited memory.

    python benchmarks/hostile_files.py --inputs 100000 --write

Every input is known by its kind and number: ``--kind csv --only 4711`` reads that one alone. A
process that dies is a finding; the next one goes on behind the input that killed it. Files that
were wrong are kept in ``--keep``.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import json
import multiprocessing
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import keep, markdown

from file_readers import READERS, SECONDS, read_hostile
from mutated_files import mutated_file, valid_files

SHARES = {"model": 0.4, "spec": 0.2, "csv": 0.2, "csv.gz": 0.1, "parquet": 0.1}
HEADROOM = 2 * 2**30
"""Address space a reader may take beyond what the process has when it begins."""

BATCH = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--kind", choices=READERS)
    parser.add_argument("--only", type=int, help="number of one input")
    parser.add_argument("--keep", type=Path, default=Path("build/hostile"))
    parser.add_argument("--write", action="store_true", help="figures to docs/results/reliability")
    args = parser.parse_args()
    args.keep.mkdir(parents=True, exist_ok=True)
    if args.only is not None:
        with tempfile.TemporaryDirectory() as folder:
            print(read_hostile(args.kind, numbered(args.kind, args.only), Path(folder)))
        return
    shares = {args.kind: 1.0} if args.kind else SHARES
    rows = [campaign(kind, int(share * args.inputs), args.keep) for kind, share in shares.items()]
    figures: dict[str, Any] = {"kinds": rows, "inputs": sum(row["inputs"] for row in rows)}
    table = markdown(
        ["file", "inputs", "loaded", "refused", "different sentences", "findings", "crashes",
         "ms each", "slowest, ms", "memory gained, MB"],
        [[r["kind"], r["inputs"], r["loaded"], r["refused"], r["sentences"], r["findings"],
          r["crashes"], r["mean_ms"], r["slowest_ms"], r["gained_mb"]] for r in rows],
    )  # fmt: skip
    keep("hostile", figures, table, write=args.write)
    sys.exit(any(row["findings"] or row["crashes"] for row in rows))


def numbered(kind: str, number: int) -> bytes:
    """The input of that number."""
    return mutated_file(kind, random.Random(f"{kind}-{number}"))


def campaign(kind: str, n_inputs: int, folder: Path) -> dict[str, Any]:
    """All inputs of a kind, in processes that read some thousand each."""
    began = time.perf_counter()
    total: dict[str, Any] = {"kind": kind, "inputs": n_inputs, "loaded": 0, "refused": 0}
    total |= {"findings": 0, "crashes": 0, "slowest_ms": 0, "gained_mb": 0}
    sentences: set[str] = set()
    first = 0
    while first < n_inputs:
        report = folder / "report.json"
        report.write_text(json.dumps({"next": first}))
        last = min(first + BATCH, n_inputs)
        process = multiprocessing.get_context("spawn").Process(
            target=read_batch, args=(kind, first, last, folder)
        )
        process.start()
        process.join()
        found = json.loads(report.read_text())
        if process.exitcode:
            total["crashes"] += 1
            number = found["next"]
            (folder / f"crash-{kind}-{number}").write_bytes(numbered(kind, number))
            print(f"{kind} {number}: the process died ({process.exitcode})", file=sys.stderr)
            found["next"] = number + 1
        for name in ("loaded", "refused", "findings"):
            total[name] += found.get(name, 0)
        for name in ("slowest_ms", "gained_mb"):
            total[name] = max(total[name], found.get(name, 0))
        sentences |= set(found.get("sentences", ()))
        first = found["next"]
        print(f"{kind}: {first} of {n_inputs}", file=sys.stderr)
    total["sentences"] = len(sentences)
    total["mean_ms"] = round(1e3 * (time.perf_counter() - began) / max(n_inputs, 1), 1)
    return total


def read_batch(kind: str, first: int, last: int, folder: Path) -> None:
    """In a process of its own: what became of the inputs goes to report.json after each."""
    limit_memory(kind)
    counts: collections.Counter[str] = collections.Counter()
    sentences: set[str] = set()
    slowest, before = 0.0, peak_mb()
    with tempfile.TemporaryDirectory() as place:
        for number in range(first, last):
            (folder / "report.json").write_text(
                json.dumps({"next": number, **counts, "sentences": sorted(sentences)})
            )
            content = numbered(kind, number)
            faulthandler.dump_traceback_later(30 * SECONDS, exit=True)  # a hang in compiled code
            began = time.perf_counter()
            try:
                said = read_hostile(kind, content, Path(place))
                counts["loaded" if said == "loaded" else "refused"] += 1
                sentences.add(" ".join(said.split()[:10]))
            except BaseException as error:
                counts["findings"] += 1
                (folder / f"finding-{kind}-{number}").write_bytes(content)
                print(f"{kind} {number}: {type(error).__name__}: {error}"[:500], file=sys.stderr)
            slowest = max(slowest, time.perf_counter() - began)
    done = {"next": last, **counts, "sentences": sorted(sentences)}
    done |= {"slowest_ms": round(1e3 * slowest), "gained_mb": round(peak_mb() - before)}
    (folder / "report.json").write_text(json.dumps(done))


def limit_memory(kind: str) -> None:
    """Libraries are loaded and a sound file is read first: that much is needed anyway."""
    with tempfile.TemporaryDirectory() as place:
        read_hostile(kind, valid_files(kind)[0], Path(place))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + HEADROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
