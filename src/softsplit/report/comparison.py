"""Trees at other strengths beside a fitted one, and how good all of them are on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from softsplit.data.dataset import sample_rows
from softsplit.data.learning import LabelledRows
from softsplit.estimators.alternatives import Alternatives
from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.estimators.path import (
    PathTrees,
    assess,
    path_trees,
    strengths_on,
    usual_fractions,
)
from softsplit.formulations.rates import RateConstraint, as_requirements, named_columns
from softsplit.report.metrics import Interval, balanced_share, rare_class, share
from softsplit.report.report_data import BoundPoint, ReportData
from softsplit.selection.assessment import Assessment
from softsplit.selection.strengths import price, priced, shares_of
from softsplit.solvers import Budget
from softsplit.support.messages import visible
from softsplit.support.row_budgets import ROWS
from softsplit.support.version import __version__


@dataclass(frozen=True)
class ComparisonOptions:
    """How many trees are compared with the fitted one, and on which rows.

    Attributes
    ----------
    points : int
        Strengths on the path.
    folds : int
        Parts of the rows, each predicted by models trained on the others.
    path_starts : int
        Starts of each tree on the path, as of ``softsplit fit`` with given settings.
    judged_starts : int
        Starts of each tree that is judged in its place, and of a path of many rows.
    path_cells : int
        Rows times features for the other trees along the path, as for the models that are
        judged in their place: trees of fewer rows would not be worth their figures.
    held_out_from : int
        From so many rows on a fifth is held out, and there are no folds.
    trained_cells : int
        Rows times features that each judged model is trained on, where a fifth is held out.
    fewest_rows : int
        Rows that are kept however many features there are.
    near : float
        Strengths that differ by less, in parts, are one point of the path.
    fresh_seed : int
        Added to the seed, so that trees are judged on other folds than they were chosen on.
    bound_factors : tuple of float
        Other bounds of a tree with ``fairness`` that are judged, as multiples of its own.
    alternatives : int
        Other trees as good as the chosen one that are shown.
    share_with_worker : float
        Fraction of the remaining time for this search while a worker process judges plain methods;
        these may need both cores after it.
    """

    points: int = 9
    folds: int = 5
    path_starts: int = 5
    judged_starts: int = 2
    path_cells: int = 1_200_000
    held_out_from: int = ROWS.held_out
    trained_cells: int = 1_200_000
    fewest_rows: int = 1000
    near: float = 0.15
    fresh_seed: int = 1
    bound_factors: tuple[float, ...] = (0.5, 2.0, 4.0)
    alternatives: int = 5
    share_with_worker: float = 0.5


OPTIONS = ComparisonOptions()


Say = Callable[[str], None]


class OtherTrees(NamedTuple):
    """Other trees of a search, if there are any, and whether the end came before the first."""

    trees: Alternatives | None = None
    missing: bool = False


def _alternatives(search: Any, budget: Budget, say: Say, share: float = 1.0) -> OtherTrees:
    """Other trees of a search, if it remembers any, in a share of the time that is left."""
    if search is None or budget.exhausted:
        return OtherTrees(None, search is not None)
    say("looking for other trees")
    began, limit = budget.now(), None if budget.time_limit is None else share * budget.remaining
    try:
        trees: Alternatives = search.alternatives(OPTIONS.alternatives, time_limit=limit)
    except ValueError:  # of a copy, or of a table that was not remembered
        return OtherTrees()
    if trees.interrupted:  # the user waits for the page
        budget.stop()
    if len(trees):
        return OtherTrees(trees)
    late = limit is not None and budget.now() - began >= limit
    return OtherTrees(None, late or trees.interrupted)


def walk_path(
    tree: SoftTreeClassifier,
    rows: LabelledRows,
    name: str = "data",
    provenance: tuple[tuple[str, str], ...] = (),
    *,
    fitted: bool = True,
    points: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    say: Say = lambda _: None,
    search: Any = None,
    worker: Executor | None = None,
    **shown: Any,
) -> ReportData:
    """Train trees like the given one at other strengths, and judge all on held-out rows.

    Parameters
    ----------
    tree : SoftTreeClassifier
    rows : LabelledRows
        The rows that it was, or would be, trained on.
    name : str
        How to call the data set.
    provenance : tuple of (str, str)
        How the tree was fitted, see :class:`softsplit.report.Fitted`.
    fitted : bool
        If not, the tree gives the settings only and is no point of the path.
    points : int, optional
        Strengths on the path, 9 if not given.
    seed, n_jobs : int
    time_limit : float, optional
        Seconds after which what is done is returned.
    say : callable
        Is handed a line about every step of the work.
    search : SoftTreeClassifierCV, optional
        What has chosen the tree, for alternatives if it still knows what it compared.
    worker : Executor, optional
        A process that judges plain methods while this one works on the trees, unless there are so
        many rows that a fifth is held out: trees then need all cores.
    **shown
        Other fields of :class:`softsplit.report.ReportData`.
    """
    # 1. Settings of the trees that are trained here, and their strengths.
    base = _settings(tree, seed)
    known = _knows_requirements(base, rows)
    if not known:
        base.set_params(fairness=None, constraints=None)
    own: float | None = None
    if fitted:
        rows = rows.coded_as(tree.tree_.coding)
        strengths, own = strengths_on(base, *rows.part())
        if "auto" in (tree.local_strength, tree.global_strength):
            tree = copy(tree).set_params(**strengths)  # as numbers, like those of the other trees
    grid = _with_own(usual_fractions(base, OPTIONS.points if points is None else points), own)

    # 2. The trees of the slider, and all models on held-out rows. Plain methods come last: they may
    # take all of the time. Of few rows the trees of the slider take a moment and come first; of
    # many, a tree that is judged is worth more than another one.
    budget = Budget(time_limit=time_limit)
    held_out = len(rows.y) >= OPTIONS.held_out_from
    drawn = sample_rows(rows.y, _most(OPTIONS.path_cells, rows.matrix), seed)
    helper = None if held_out else worker
    others: list[OtherTrees] = []

    def walked() -> PathTrees:
        say(f"training {len(grid)} trees from weak to strong on {len(drawn):,} rows")
        return path_trees(
            base, *rows.part(drawn), grid, budget, n_starts=OPTIONS.path_starts, n_jobs=n_jobs
        )

    def meanwhile() -> None:
        if not paths:
            paths.append(walked())
        if helper is not None:  # plain methods have had a core of their own, and get this one too
            others.append(_alternatives(search, budget, say, OPTIONS.share_with_worker))

    judge = partial(
        assess, n_folds=OPTIONS.folds, seed=seed + OPTIONS.fresh_seed, n_jobs=n_jobs,
        held_out=held_out, budget=budget, say=say,
        most_trained=_most(OPTIONS.trained_cells, rows.matrix) if held_out else None,
    )  # fmt: skip
    paths = [] if held_out else [walked()]
    say(f"judging {len(grid)} trees and four plain methods on held-out rows")
    assessment = judge(base, *rows.part(), grid, between=meanwhile, worker=helper)
    trees, again = paths[0] if paths else walked()
    missing = len(grid) - len(trees)
    bounds = () if own is None else _other_bounds(base, rows, own, judge, budget)
    if len(drawn) < len(rows.y):
        trees, again = [_rescaled(t, len(rows.y) / len(drawn)) for t in trees], False

    # 3. The tree itself in its place; a path that was cut short ends with it.
    judged, place = list(assessment.trees[: len(trees)]), len(trees) - 1
    if own is not None:
        place = min(grid.index(own), len(trees))
        trees[place : place + 1] = [tree]
        judged[place : place + 1] = [assessment.trees[grid.index(own)]]
    assessment = replace(assessment, trees=tuple(judged))
    other = others[0] if others else _alternatives(search, budget, say)

    # 4. Trees that are worth showing.
    kept = _undominated(trees, place, assessment, rows) if fitted else list(range(len(trees)))
    if fitted and budget.stopped:  # the user waits, and every tree takes time to draw
        missing, kept = missing + len(kept) - 1, [place]
    rows = rows.coded_as(trees[place].tree_.coding)

    judging = _provenance(len(rows.y), drawn, assessment, fitted, again, len(trees))
    return ReportData(
        name=name,
        rows=rows,
        trees=tuple(trees[i] for i in kept),
        chosen=kept.index(place),
        assessment=replace(assessment, trees=tuple(assessment.trees[i] for i in kept)),
        provenance=(*provenance, *judging, *_source(rows, known)),
        bounds=bounds,
        missing=missing,
        interrupted=budget.stopped,
        alternatives=other.trees,
        no_alternatives=other.missing,
        **shown,
    )


def _source(rows: LabelledRows, known: bool) -> tuple[tuple[str, str], ...]:
    """What is said of the rows; ``known`` says whether requirements on rates could be met."""
    without = "held-out figures and other trees are without them: their rows are not known here"
    left = ", ".join(f"{visible(name)} ({why})" for name, why in rows.coding.left_out)
    gaps = any(np.any(cells.missing) for cells in rows.rows.cells)
    learned = "where there were some in training, a tree learns what they mean"
    return (
        *(() if known else (("Requirements on rates", without),)),
        *((("Columns left out", left),) if left else ()),
        ("Missing values", learned if gaps else "none"),
        ("Software", f"softsplit {__version__}"),
    )


def _settings(tree: SoftTreeClassifier, seed: int) -> SoftTreeClassifier:
    """An estimator with the settings of a tree; rows are coded already when it gets them."""
    base = clone(tree).set_params(n_starts=OPTIONS.judged_starts, verbose=0, time_limit=None)
    base.set_params(n_jobs=None, feature_types=None)
    return base if base.random_state is not None else base.set_params(random_state=seed)


def _knows_requirements(base: SoftTreeClassifier, rows: LabelledRows) -> bool:
    """Whether trees can be trained on parts of these rows under the requirements on rates.

    Not so for constraints on rows by their numbers, nor for columns that are not in the table.
    """
    required = as_requirements(base.constraints, base.fairness)
    by_number = any(
        isinstance(rule, RateConstraint) and rule.rows and not isinstance(rule.rows[0], str)
        for rule in required
    )
    known = {variable.name for variable in rows.coding.variables}
    known |= set() if rows.rows.apart is None else set(rows.rows.apart.columns)
    return not by_number and set(named_columns(base.constraints, base.fairness)) <= known


def _other_bounds(
    base: SoftTreeClassifier,
    rows: LabelledRows,
    fraction: float,
    judge: Callable[..., Assessment],
    budget: Budget,
) -> tuple[BoundPoint, ...]:
    """Judge the settings of the tree under other bounds; fewer, or none, if the time ends."""
    if base.fairness is None:
        return ()
    given = base.fairness if isinstance(base.fairness, list | tuple) else [base.fairness]
    points = []
    for factor in budget.while_left(OPTIONS.bound_factors):
        scaled = [replace(gap, bound=min(factor * gap.bound, 0.99)) for gap in given]
        other = clone(base).set_params(fairness=scaled)
        assessment = judge(other, *rows.part(), [fraction], baselines=False)
        if assessment.judged(0):
            points.append(BoundPoint(tuple(gap.bound for gap in scaled), assessment))
    return tuple(points)


def _undominated(
    trees: list[SoftTreeClassifier], chosen: int, assessment: Assessment, rows: LabelledRows
) -> list[int]:
    """Return the positions of the trees that no other one beats in features and in accuracy.

    The accuracy is the balanced one where a class is rare. Trees that were cut short go too: those
    that do worse on all rows than their like on held-out rows. The chosen tree stays, whatever the
    others are, and so do trees that were not judged.
    """
    labels = np.searchsorted(trees[0].classes_, rows.y)
    rare = rare_class(labels, len(trees[0].classes_))
    sizes = [len(tree.selected_features_) for tree in trees]

    def figure(calls: NDArray[Any], true: NDArray[Any]) -> Interval:
        hits = calls == true
        return share(hits) if rare is None else balanced_share(hits, true)

    figures = [figure(judged.calls, assessment.labels) for judged in assessment.trees]
    known = [judged.complete for judged in assessment.trees]

    def cut_short(i: int) -> bool:
        model = trees[i].tree_
        own = figure(model.predict_index(rows.coded_as(model.coding).matrix), labels)
        return known[i] and own.value < figures[i].low

    def beaten(i: int) -> bool:
        return known[i] and any(
            sizes[j] <= sizes[i]
            and figures[j].value >= figures[i].value
            and (sizes[j] < sizes[i] or figures[j].value > figures[i].value or j == chosen or j < i)
            for j in whole
            if j != i and known[j]
        )

    whole = [i for i in range(len(trees)) if i == chosen or not cut_short(i)]
    return [i for i in whole if i == chosen or not beaten(i)]


def _with_own(grid: list[float], own: float | None) -> list[float]:
    """Strengths as parts of the cost without features, with that of the tree among them."""
    if own is None:
        return grid
    others = [f for f in grid if abs(np.log(f / own)) > OPTIONS.near] if own > 0 else grid
    return sorted([*others, own])


def _most(cells: int, X: NDArray[Any]) -> int:
    return max(OPTIONS.fewest_rows, cells // X.shape[1])


def _rescaled(tree: SoftTreeClassifier, factor: float) -> SoftTreeClassifier:
    """Strengths as they are for all rows, for a tree of a sample."""
    pair = float(tree.local_strength), float(tree.global_strength)
    local, global_ = priced(shares_of(*pair), factor * price(*pair))
    return tree.set_params(local_strength=local, global_strength=global_)


def _provenance(
    n_rows: int,
    drawn: NDArray[Any],
    assessment: Assessment,
    fitted: bool,
    repeatable: bool,
    n_trees: int,
) -> tuple[tuple[str, str], ...]:
    who = f"{n_trees} trees at other strengths" if fitted else f"{n_trees} trees"
    others = f"{who} were trained from weak to strong, each from the one before"
    if repeatable:
        others = f"{who} were trained as with --strength, all from the same starts"
    if len(drawn) < n_rows:
        others += f", on {len(drawn):,} rows drawn for that"
    judged = (
        f"in {assessment.n_folds} parts: each row is predicted by models that were trained on the "
        "other parts."
    )
    if assessment.n_folds == 1:
        judged = (
            f"{len(assessment.labels):,} rows were held out. One more tree for each, and each "
            f"plain method, was trained on {assessment.n_trained:,} of the other rows, the same "
            "for all."
        )
    judged += (
        " The settings were chosen on all rows, so that the figures of the tree are "
        "slightly optimistic."
    )
    interval = "95 %: about 95 of 100 such intervals contain the true figure"
    return (("Other trees", others), ("Held-out rows", judged), ("Intervals", interval))
