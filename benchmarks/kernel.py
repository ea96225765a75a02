"""What one loss-and-gradient call costs beside the two matrix products it cannot avoid.

Prints the ratio of the two times, measured in turns in one run on one thread, and the memory one
call takes beyond X and the gate array. Bar: ratio at most 3, memory under 10 MB.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc

import numpy as np
from threadpoolctl import threadpool_limits

from softsplit.engines.compiled import CompiledRows
from softsplit.engines.outer import IDENTITY
from softsplit.engines.samples import Samples
from softsplit.problem.loss import ExpectedCost
from softsplit.tree.parameters import Topology, TreeParameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--classes", type=int, default=8)
    parser.add_argument("--steepness", type=float, default=512.0)
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()
    samples, tree = make_case(args.rows, args.features, args.depth, args.classes)
    table = ExpectedCost.uniform(args.classes).table(tree.leaf_classes)
    rows = CompiledRows(samples)

    def call() -> None:
        rows.evaluate(tree.splits, table, IDENTITY, args.steepness)

    def products() -> None:
        scores = np.dot(tree.weights.T, samples.features)
        np.dot(samples.features, scores.T)

    with threadpool_limits(limits=1):
        call()
        ours, bare = interleaved(call, products, args.repeats)
        peak = peak_memory(call)
    gates = tree.weights.shape[1] * samples.n_rows * 8
    print(f"N = {samples.n_rows}, p = {args.features}, depth {args.depth}, one thread")
    print(f"loss and gradient   {1e3 * ours:8.2f} ms (median of {args.repeats})")
    print(f"two matrix products {1e3 * bare:8.2f} ms")
    print(f"ratio               {ours / bare:8.2f}    bar 3: {verdict(ours / bare <= 3)}")
    extra = (peak - gates) / 1e6
    print(f"memory beyond X and the gate array {extra:.2f} MB    bar 10: {verdict(extra < 10)}")


def verdict(good: bool) -> str:
    return "met" if good else "MISSED"


def make_case(
    n_rows: int, n_features: int, depth: int, n_classes: int
) -> tuple[Samples, TreeParameters]:
    rng = np.random.default_rng(0)
    samples = Samples.from_arrays(
        rng.random((n_rows, n_features)), rng.integers(0, n_classes, n_rows), n_classes
    )
    topology = Topology(depth)
    weights = rng.uniform(-1, 1, (n_features, topology.n_branches))
    rows = rng.integers(0, n_rows, topology.n_branches)
    thresholds = np.sum(weights * samples.features[:, rows], axis=0) / n_features
    leaves = np.eye(n_classes)[:, np.arange(topology.n_leaves) % n_classes]
    return samples, TreeParameters(weights, thresholds, leaves)


def interleaved(first, second, repeats: int) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Median seconds of both, run in turns so that both meet the same load."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for action, record in zip((first, second), times, strict=True):
            began = time.perf_counter()
            action()
            record.append(time.perf_counter() - began)
    return float(np.median(times[0])), float(np.median(times[1]))


def peak_memory(action) -> int:  # type: ignore[no-untyped-def]
    """Most bytes held at once while ``action`` runs, beyond what was there before."""
    tracemalloc.start()
    action()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


if __name__ == "__main__":
    main()
