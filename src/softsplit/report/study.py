"""Choosing and training a tree, with work that stays within bounds whatever the table's size.

Settings are compared on a sample of the rows where there are many: the same rows for the same
seed, so that the result can be repeated. The tree itself is trained on all rows.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from softsplit.cli.inputs import framed
from softsplit.data.schema import Learned
from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.estimators.classifier_cv import SoftTreeClassifierCV
from softsplit.selection.strengths import SHARES, shared
from softsplit.training.warm_up import warm_up

COMPARED_CELLS = 60_000
"""Rows times features on which settings are compared."""
FEWEST_ROWS = 500
SCALES, STEEPNESSES = ("minmax", "quantile"), (512.0, 128.0)
LEAST_SECONDS = 5.0
STARTS = 5


@dataclass(frozen=True)
class Wishes:
    """What the user has fixed; the rest is chosen."""

    depth: int | None = None
    strength: float | None = None
    scale: str | None = None
    scope: str = "global"
    selection: str = "one_se"
    time_limit: float | None = None
    seed: int = 0
    jobs: int | None = None
    quiet: bool = False


@dataclass(frozen=True)
class Fitted:
    """A tree, what there is to say about how it came about, and whether Ctrl-C ended it."""

    tree: SoftTreeClassifier
    story: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    score: float | None
    interrupted: bool


def sample_rows(y: NDArray[Any], count: int, seed: int) -> NDArray[np.intp]:
    """``count`` rows in ascending order, with classes in proportion where they can be."""
    everything = np.arange(len(y))
    if count >= len(y):
        return everything
    counts = np.unique(y, return_counts=True)[1]
    strata = y if counts.min() >= 2 and count >= len(counts) <= len(y) - count else None
    chosen = train_test_split(everything, train_size=count, stratify=strata, random_state=seed)[0]
    present = set(y[chosen].tolist())
    lost = [int(np.argmax(y == label)) for label in np.unique(y) if label not in present]
    return np.sort(np.concatenate([chosen, np.array(lost, dtype=np.intp)]))


def fit_tree(data: Learned, wishes: Wishes) -> Fitted:
    """Choose what is not fixed by cross-validation, and train on all rows."""
    warm_up()  # before the clock runs: on a new installation it takes as long as all the rest
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if wishes.depth is not None and wishes.strength is not None:
            tree, story, score = _plain(data, wishes), [("Settings", "as given")], None
        else:
            tree, story, score = _chosen(data, wishes, began)
    notes = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    tree.input_schema_ = data.schema
    story += _facts(tree, wishes)
    return Fitted(
        tree=tree,
        story=tuple(story),
        notes=tuple(dict.fromkeys(_worth_telling(notes))),
        score=score,
        interrupted=any("interrupted" in note for note in notes),
    )


def _worth_telling(notes: list[str]) -> list[str]:
    """Without the classes' names in front."""
    return [note.split(": ", 1)[-1] for note in notes]


def _plain(data: Learned, wishes: Wishes) -> SoftTreeClassifier:
    assert wishes.strength is not None
    local, global_ = shared(SHARES[wishes.scope], wishes.strength)
    tree = SoftTreeClassifier(
        depth=wishes.depth if wishes.depth is not None else "auto",
        scale=wishes.scale or SCALES[0],
        local_strength=local,
        global_strength=global_,
        n_starts=STARTS,
        time_limit=wishes.time_limit,
        random_state=wishes.seed,
        n_jobs=wishes.jobs,
        verbose=int(not wishes.quiet),
    )
    return tree.fit(framed(data.X, data.schema), data.y)


def _chosen(
    data: Learned, wishes: Wishes, began: float
) -> tuple[SoftTreeClassifier, list[tuple[str, str]], float | None]:
    _check_choice(data.y)
    n_rows, n_features = data.X.shape
    rows = sample_rows(data.y, max(FEWEST_ROWS, COMPARED_CELLS // n_features), wishes.seed)
    part = len(rows) / n_rows
    search = SoftTreeClassifierCV(
        depths="auto" if wishes.depth is None else [wishes.depth],
        scales=SCALES if wishes.scale is None else [wishes.scale],
        steepnesses=STEEPNESSES,
        scopes=[wishes.scope],
        strengths=None if wishes.strength is None else [part * wishes.strength],
        selection=wishes.selection,
        time_limit=wishes.time_limit,
        random_state=wishes.seed,
        n_jobs=wishes.jobs,
        verbose=int(not wishes.quiet),
    )
    frame = framed(data.X, data.schema)
    search.fit(frame.iloc[rows], data.y[rows])
    sample = "" if part == 1 else f", on {len(rows):,} of {n_rows:,} rows drawn for that"
    story = [("Settings", _told_choice(search, sample))]
    tree = search.best_estimator_
    if part < 1:
        try:
            tree = _on_all_rows(data, wishes, search, part, began)
            story.append(("Training", f"on all {n_rows:,} rows with the chosen settings"))
        except KeyboardInterrupt:  # before there was a tree on all rows
            story.append(("Training", f"on the {len(rows):,} rows drawn for the choice"))
            message = "interrupted; the tree of the rows that were drawn for the choice is kept."
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
    score = float(search.best_score_)
    return tree, story, score if np.isfinite(score) else None


def _check_choice(y: NDArray[Any]) -> None:
    labels, counts = np.unique(y, return_counts=True)
    if np.sort(counts)[-2] < 2:
        raise ValueError(
            f"only one class of {len(labels)} has more than one row, too few to choose settings by "
            "cross-validation; give them with --depth and --strength, or more rows."
        )


def _on_all_rows(
    data: Learned, wishes: Wishes, search: SoftTreeClassifierCV, part: float, began: float
) -> SoftTreeClassifier:
    """The chosen settings on all rows; strengths grow with their number."""
    settings: dict[str, Any] = dict(search.best_params_)
    for name in ("local_strength", "global_strength"):
        settings[name] /= part
    limit = wishes.time_limit
    if limit is not None:
        limit = max(limit - (time.perf_counter() - began), LEAST_SECONDS)
    tree = SoftTreeClassifier(
        **settings,
        n_starts=STARTS,
        time_limit=limit,
        random_state=wishes.seed,
        n_jobs=wishes.jobs,
        verbose=int(not wishes.quiet),
    )
    return tree.fit(framed(data.X, data.schema), data.y)


def _told_choice(search: SoftTreeClassifierCV, sample: str) -> str:
    count = len(search.cv_results_["mean_test_score"])
    if count == 0:
        return "the first of those to choose from: there was no time to compare any"
    rule = "the sparsest within one standard error of the best"
    if search.selection == "best":
        rule = "the highest accuracy"
    return f"chosen by {search.n_splits_}-fold cross-validation among {count} trees{sample}: {rule}"


def _facts(tree: SoftTreeClassifier, wishes: Wishes) -> list[tuple[str, str]]:
    return [
        (
            "Tree",
            f"depth {tree.tree_.topology.depth}, scaling {tree.scale}, steepness "
            f"{tree.steepness:g}, penalty {tree.penalty}, local strength "
            f"{tree.local_strength:.4g}, global strength {tree.global_strength:.4g}",
        ),
        ("Random numbers", f"seed {wishes.seed}; the same seed gives the same tree"),
    ]
