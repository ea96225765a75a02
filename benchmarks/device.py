"""Rows on a GPU, measured: ARGS=evaluate, bent, stream or fit.

    evaluate   one evaluation of a tree of depth 3 over rows x 30 in single precision
    bent       the same of rows that bend at three knots, over all columns and over 60 of them
    stream     the same where only a part of the rows may be on the device
    fit        SoftTreeClassifier with its defaults over the same rows: twice, the second time with
               kernels made, and from a tensor on the device; beside device=None

Times of evaluations are medians of 20 by the events of the device; others are seconds of the wall,
after a first run that compiles what there is to compile.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial

import numpy as np
import torch
from common import arguments, timed

from softsplit import SoftTreeClassifier
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.outer import LOGARITHM
from softsplit.engines.samples import Samples
from softsplit.on_torch.arrival import arrive
from softsplit.on_torch.backend import find_device
from softsplit.on_torch.rows import DeviceRows
from softsplit.variables import bent_matrix

N_FEATURES, N_CLASSES = 30, 4


def overlapping(n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The largest of four linear scores with Gumbel noise, and a tenth of the labels anew."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    directions = rng.standard_normal((N_FEATURES, N_CLASSES), dtype=np.float32)
    scores = X @ (directions / np.float32(np.sqrt(N_FEATURES)))
    scores += 0.3 * rng.gumbel(size=scores.shape)
    y = np.argmax(scores, axis=1)
    anew = rng.random(n_rows) < 0.1
    y[anew] = rng.integers(0, N_CLASSES, int(anew.sum()))
    return X, y


def grouped(n_rows: int) -> Samples:
    """Rows that are grouped by class already, in single precision."""
    rng = np.random.default_rng(0)
    features = rng.random((N_FEATURES, n_rows), dtype=np.float32)
    starts = np.linspace(0, n_rows, N_CLASSES + 1).astype(np.int64)
    return Samples(features, starts, np.ones(n_rows), np.diff(starts).astype(float))


def question(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(N_CLASSES), 8).T.copy()
    return rng.normal(size=(7, N_FEATURES + 1)), table


def evaluate(args: argparse.Namespace) -> dict[str, object]:
    """Milliseconds of an evaluation by the device's clock and by that of the caller."""
    device, samples = find_device(args.device), grouped(args.rows)
    splits, table = question()
    found: dict[str, object] = {"rows": args.rows}
    for name, single in (("single", True), ("double", False)):
        rows = DeviceRows.of(samples, device, single=single)
        answer = rows.evaluate(splits, table, LOGARITHM, 90.0)
        expected = CompiledRows(samples).evaluate(splits, table, LOGARITHM, 90.0)
        times, began = [], time.perf_counter()
        for _ in range(20):
            if device.type == "cuda":
                first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                first.record()
                rows.evaluate(splits, table, LOGARITHM, 90.0)
                last.record()
                last.synchronize()
                times.append(first.elapsed_time(last))
            else:
                rows.evaluate(splits, table, LOGARITHM, 90.0)
        found[name] = {
            "device_ms": float(np.median(times)) if times else None,
            "caller_ms": (time.perf_counter() - began) / 20 * 1e3,
            "value_off": abs(answer.value / expected.value - 1),
            "gradient_off": float(
                np.abs(answer.splits - expected.splits).max() / np.abs(expected.splits).max()
            ),
        }
    return found


def bent(args: argparse.Namespace) -> dict[str, object]:
    """Rows that bend arrive on the device, and an evaluation over them."""
    device = find_device(args.device)
    X, y = overlapping(args.rows)
    coded = bent_matrix(X, None, 3, np.ones(len(X)))
    assert coded is not None
    given = coded.X, y, N_CLASSES, np.ones(len(X)), "standard", device
    arrive(*given, counts=np.ones(len(X)))
    arrived, seconds = timed(lambda: arrive(*given, counts=np.ones(len(X))))
    assert arrived is not None
    found: dict[str, object] = {"arrival": seconds["seconds"]}
    host = Samples.from_hinged(coded.X, *given[1:4], arrived.scaling)
    rng = np.random.default_rng(2)
    for columns in (np.arange(coded.X.shape[1]), np.sort(rng.permutation(120)[:60])):
        rows = arrived.rows.of_columns(columns)
        splits, leaves = 0.3 * rng.normal(size=(7, len(columns) + 1)), question()[1]
        asked = splits, leaves, LOGARITHM, float(len(columns))
        expected = CompiledRows(host).of_columns(columns).in_threads(16).evaluate(*asked)
        answer, times = rows.evaluate(*asked), []
        for _ in range(20):
            times.append(timed(partial(rows.evaluate, *asked))[1]["seconds"])
        off = np.abs(answer.splits - expected.splits).max() / np.abs(expected.splits).max()
        found[f"{len(columns)} columns"] = {
            "caller_ms": 1e3 * float(np.median(times)),
            "value_off": abs(answer.value / expected.value - 1),
            "gradient_off": float(off),
        }
    return found


def stream(args: argparse.Namespace) -> dict[str, object]:
    """The same rows, of which a tenth may be on the device."""
    device, samples = find_device(args.device), grouped(args.rows)
    splits, table = question()
    rows = DeviceRows.of(samples, device, single=True, room=samples.features.nbytes // 10)
    whole = DeviceRows.of(samples, device, single=True)
    answer = rows.evaluate(splits, table, LOGARITHM, 90.0)
    expected = whole.evaluate(splits, table, LOGARITHM, 90.0)
    began = time.perf_counter()
    for _ in range(5):
        rows.evaluate(splits, table, LOGARITHM, 90.0)
    seconds = (time.perf_counter() - began) / 5
    return {
        "slabs": len(rows.slabs),
        "evaluation_ms": seconds * 1e3,
        "GB_per_s": samples.features.nbytes / seconds / 1e9,
        "value_off": abs(answer.value / expected.value - 1),
    }


def fit(args: argparse.Namespace) -> dict[str, object]:
    """Seconds of a fit with the defaults, on the device and without it."""
    found: dict[str, object] = {}
    small = overlapping(30_000, seed=1)
    for device in (args.device, None) if args.beside else (args.device,):
        SoftTreeClassifier(n_starts=1, random_state=0, device=device).fit(*small)
        X, y = overlapping(args.rows)
        tables = [X] if device is None else [X, X, torch.from_numpy(X).to(device)]
        seconds = []
        for table in tables:
            began = time.perf_counter()
            tree = SoftTreeClassifier(random_state=0, device=device, n_jobs=args.jobs).fit(table, y)
            seconds.append(time.perf_counter() - began)
        found[str(device)] = {
            "seconds": seconds,
            "objective": tree.objective_,
            "features": len(tree.selected_features_),
            "status": tree.solution_.status.name,
        }
    return found


PARTS = {"evaluate": evaluate, "bent": bent, "stream": stream, "fit": fit}


def main() -> None:
    args = arguments(
        __doc__,
        PARTS,
        device=("cuda", ""),
        rows=(10000000, ""),
        jobs=(int, ""),
        beside=(False, "fit without the device too"),
    )
    print(json.dumps(PARTS[args.part](args), indent=1))


if __name__ == "__main__":
    main()
