"""The cells of an experiment, and the order in which they must be trained.

A cell is one training: data set x fold x start x model x strengths x solver. Cells that warm-start
one another form a chain; a chain is walked by one process at a time, and different chains know
nothing of one another, so that results do not depend on how they are spread over processes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from softsplit.experiments.spec import Grid, Scope, Spec

WHOLE = -1
"""In place of the number of an inner fold: the whole training fold."""

FRESH = -1
"""In place of a parent: the step starts from a tree drawn for the chain."""

PEER = "peer"
"""In place of a solver: another method."""


class ChainStep(NamedTuple):
    """One training of a chain: its strengths and the step whose tree it starts from."""

    local: float
    global_: float
    parent: int


class Cell(NamedTuple):
    """The key of a row. ``protocol`` stands for all settings that are no axis."""

    protocol: str
    dataset: str
    fold: int
    inner: int
    model: str
    solver: str
    start: int
    local_strength: float
    global_strength: float


class Chain(NamedTuple):
    """Cells that share everything but the strengths, in the order of their steps."""

    protocol: str
    dataset: str
    fold: int
    inner: int
    model: str
    solver: str
    start: int
    steps: tuple[ChainStep, ...]

    def cell(self, index: int) -> Cell:
        """The key of a step: the fields of the chain, but for its steps, and the strengths."""
        step = self.steps[index]
        return Cell(*self[:-1], step.local, step.global_)


def steps_of(grid: Grid, scope: Scope) -> tuple[ChainStep, ...]:
    """Weak to strong. Of a grid of pairs, each row starts from the first pair of the row before."""
    strengths, size = grid.strengths, len(grid.strengths)
    pairs = {
        "local": [(strength, 0.0) for strength in strengths],
        "global": [(0.0, strength) for strength in strengths],
        "both": list(product(strengths, strengths)),
    }[scope]

    def parent(i: int) -> int:
        if grid.walk != "warm":
            return FRESH
        begins_row = scope == "both" and i % size == 0
        return max(i - size, FRESH) if begins_row else i - 1

    return tuple(ChainStep(*pair, parent(i)) for i, pair in enumerate(pairs))


def chains_of(spec: Spec) -> Iterator[Chain]:
    """All chains of a spec; a peer is a chain of one step."""
    for dataset in spec.dataset_names:
        for fold in spec.fold_numbers:
            for peer in spec.peers:
                yield Chain(
                    peer_protocol(spec), dataset, fold, WHOLE, peer, PEER, 0,
                    (ChainStep(0.0, 0.0, FRESH),),
                )  # fmt: skip
            for inner, start in _inner_and_starts(spec):
                protocol = tree_protocol(spec, inner)
                for model in spec.model_names:
                    steps = steps_of(spec.grid, spec.model(model).scope)
                    for solver in spec.solvers:
                        yield Chain(protocol, dataset, fold, inner, model, solver, start, steps)


def _inner_and_starts(spec: Spec) -> Iterator[tuple[int, int]]:
    if not spec.models:
        return
    for start in range(spec.starts):
        yield WHOLE, start
    if spec.inner is not None:
        for inner in range(spec.inner.folds):
            for start in range(spec.inner.starts):
                yield inner, start


WITHOUT_MEANING = {"cost": {"loss", "ridge"}, "log": {"steepness"}}
"""Settings that change no row by loss; stores are older than the choice of a loss."""


def tree_protocol(spec: Spec, inner: int) -> str:
    """Digest of everything that bears on a tree's row and is no axis."""
    settings: dict[str, Any] = {
        "folds": spec.folds.model_dump(),
        "seed": spec.seed,
        "training": spec.training.model_dump(exclude=WITHOUT_MEANING[spec.training.loss]),
        "own": [d.model_dump() for d in (*spec.datasets, *spec.models) if not isinstance(d, str)],
        # A tree that was not warm-started does not depend on the other strengths.
        "grid": spec.grid.model_dump() if spec.grid.walk == "warm" else "fresh",
        "inner": spec.inner.folds if spec.inner is not None and inner != WHOLE else None,
    }
    return _digest(settings)


def peer_protocol(spec: Spec) -> str:
    """Digest of everything that bears on a peer's row and is no axis."""
    training = spec.training
    settings = {
        "folds": spec.folds.model_dump(),
        "seed": spec.seed,
        "own": [d.model_dump() for d in spec.datasets if not isinstance(d, str)],
        "coding": training.coding,
        "scaling_fit": training.scaling_fit,
        "depth": training.depth,
    }
    return _digest(settings)


def _digest(settings: dict[str, Any]) -> str:
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
