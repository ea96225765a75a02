"""The report of a fitted tree: its rivals along the path, their accuracy, the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from softsplit.cli.inputs import framed
from softsplit.data.schema import Learned
from softsplit.estimators.assessment import strength_fraction
from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.report import Assessment, Subject, assess, path_trees
from softsplit.report.study import sample_rows
from softsplit.selection.strengths import fraction_grid
from softsplit.solvers import Budget
from softsplit.support.version import __version__

PATH_CELLS = 400_000
"""Rows times features for the rivals of the tree along the path."""
JUDGED_CELLS = 200_000
"""The same for the folds on which all are judged."""
FEWEST_ROWS = 1000
POINTS, FOLDS, PATH_STARTS = 9, 5, 2
NEAR = 0.15
"""Strengths that differ by less, in parts, are one point of the path."""
FRESH = 1
"""Added to the seed, so that trees are judged on other folds than they were chosen on."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Path:
    """Trees along the path, which of them was given, and how all were judged."""

    trees: tuple[SoftTreeClassifier, ...]
    chosen: int
    assessment: Assessment
    story: tuple[tuple[str, str], ...]
    interrupted: bool


def make_subject(
    name: str, data: Learned, path: Path, story: tuple[tuple[str, str], ...] = ()
) -> Subject:
    """What the page needs to know."""
    missing = {
        "error": "none were there",
        "drop": f"{data.dropped_rows:,} rows with one were left out",
        "fill": "replaced by the median or the most frequent level",
    }[data.schema.missing]
    texts = any(column.levels is not None for column in data.schema.columns)
    source = (
        *((("Text columns", f"coded as {data.schema.coding}"),) if texts else ()),
        ("Missing values", missing),
        ("Software", f"softsplit {__version__}"),
    )
    return Subject(
        name=name,
        schema=data.schema,
        X=data.X,
        y=data.y,
        missing=data.missing,
        dropped_rows=data.dropped_rows,
        trees=path.trees,
        chosen=path.chosen,
        assessment=path.assessment,
        story=(*story, *path.story, *source),
    )


def walk_path(
    tree: SoftTreeClassifier,
    data: Learned,
    *,
    fitted: bool = True,
    points: int = POINTS,
    seed: int = 0,
    jobs: int | None = None,
    time_limit: float | None = None,
    say: Say = lambda _: None,
) -> Path:
    """Rivals of a tree at other strengths, and the accuracy of all.

    If the tree is not ``fitted``, it gives the settings only and is no point of the path.
    """
    base = clone(tree).set_params(n_starts=PATH_STARTS, verbose=0, time_limit=None, n_jobs=None)
    if base.random_state is None:
        base.set_params(random_state=seed)
    grid = [*fraction_grid(points)]
    own = strength_fraction(base, data.X, data.y) if fitted else None
    if own is not None:
        grid = [f for f in grid if abs(np.log(f / own)) > NEAR] if own > 0 else grid
        grid = sorted([*grid, own])
    budget = Budget(time_limit=time_limit)
    rows = sample_rows(data.y, _most(PATH_CELLS, data.X), seed)
    say(f"walking the path: {len(grid)} strengths on {len(rows):,} rows")
    trees = path_trees(base, framed(data.X[rows], data.schema), data.y[rows], grid, budget)
    trees = [_rescaled(t, len(data.y) / len(rows)) for t in trees]
    if own is not None:
        place = grid.index(own)
        trees = [*trees[:place], tree, *trees[place + 1 :]]
        place = min(place, len(trees) - 1)  # a path that was cut short ends with the tree itself
        grid = grid[: len(trees)] if place < len(trees) - 1 else [*grid[: len(trees) - 1], own]
    else:
        grid, place = grid[: len(trees)], len(trees) - 1
    judged = sample_rows(data.y, _most(JUDGED_CELLS, data.X), seed + FRESH)
    say(f"judging {len(grid)} trees and two plain methods in {FOLDS} folds")
    found = assess(
        base, data.X[judged], data.y[judged], grid,
        n_folds=FOLDS, seed=seed + FRESH, n_jobs=jobs, budget=budget, say=say,
    )  # fmt: skip
    story = _story(len(data.y), rows, judged, found.n_folds, fitted)
    return Path(tuple(trees), place, found, story, budget.stopped)


def _most(cells: int, X: NDArray[Any]) -> int:
    return max(FEWEST_ROWS, cells // X.shape[1])


def _rescaled(tree: SoftTreeClassifier, factor: float) -> SoftTreeClassifier:
    """Strengths as they are for all rows, for a tree of a sample."""
    return tree.set_params(
        local_strength=factor * tree.local_strength, global_strength=factor * tree.global_strength
    )


def _story(
    n_rows: int, rows: NDArray[Any], judged: NDArray[Any], folds: int, fitted: bool
) -> tuple[tuple[str, str], ...]:
    who = "rivals at other strengths" if fitted else "trees"
    rivals = f"{who} were trained from weak to strong, each from the one before"
    if len(rows) < n_rows:
        rivals += f", on {len(rows):,} rows drawn for that"
    which = "all rows" if len(judged) == n_rows else f"{len(judged):,} rows drawn for that"
    accuracy = (
        f"{folds}-fold cross-validation on {which}, other folds than those of the choice: "
        "each row is predicted by a tree that was trained without it. The settings were chosen "
        "with these rows in sight, so that the figure may flatter a little."
    )
    interval = "95 % by Wilson's formula, for rows that are predicted independently"
    return (("Path", rivals), ("Accuracy", accuracy), ("Interval", interval))
