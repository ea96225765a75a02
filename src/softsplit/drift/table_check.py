"""Whether new rows are like the training rows of a tree, with tests that hold for many columns.

Training rows are n rows of which only counts are known (profile.py), new rows are m. Under the null
hypothesis both are drawn from one distribution. Every comparison is one of

shares      counts a_1, ..., a_K of training and b_1, ..., b_K of new rows: Pearson's chi-squared of
            the 2 x K table, which takes both samples as random; cells with a small expected count
            (``FEWEST_EXPECTED``) are merged, bins of a number with their neighbours; where
            some levels are not listed, those that are rare in both samples together are one cell
location    of ordered bins: the rank sum test (Wilcoxon; Mann and Whitney) with ties, which sees a
            shift that chi-squared spreads over all bins
beyond      k new rows beyond the largest (smallest) training value, of a class that no training row
            has, or without a value where no training row lacks one: the k topmost of n + m
            exchangeable rows are all new with probability  prod_{i<k} (m - i) / (n + m - i)
unseen      k new rows of levels that no training row has: among many levels with few rows some have
            new rows alone by chance (``two_samples.p_value_levels_unseen``)
target      of rows with a number: the difference of its mean from that of the training rows, which
            has the variance s^2 (1 / m + 1 / n), s^2 that of the new rows
worse       of labelled rows: scores 1 - p_y against those of held-out rows (conformal.py), the rank
            sum test for larger ones alone; of a number scores are |residual| / error of the leaf
calibrated  of labelled rows and class k: mean of (y_k - p_k), which has the variance
            mean(p_k (1 - p_k)) (1 / m + 1 / n) for a tree whose probabilities fit its training rows

A column has the smallest of its p-values, times the number of tests that columns of its kind can
have, whether or not this one gave rise to them: five of a number (shares, location, above, below,
missing), three of a category (shares, unseen, missing) and four of an ordered one. Columns, leaves,
classes, worse and calibrated are adjusted together by the weighted procedure of Holm (1979): the
chance that anything is said to have moved though nothing has is at most ``level``. Columns have
half of the weight together, and what sums the table up the other half, so that a change of the
classes is not lost among hundreds of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from softsplit.drift.number_check import checked_numbers
from softsplit.drift.results import (
    ColumnCheck,
    Reliability,
    TableCheck,
    moved_words,
    percent,
    shown_value,
)
from softsplit.drift.two_samples import (
    frequent,
    holm,
    p_value_all_unseen,
    p_value_levels_unseen,
    p_value_location,
    p_value_shares,
    p_value_worse,
    stability,
)
from softsplit.fitted.conformal import NO_CLASS, UNKNOWN_CLASS, HeldOutScores
from softsplit.fitted.model import TreeModel
from softsplit.fitted.profile import ColumnProfile, counted_cells, has_levels
from softsplit.reading.outline import outline
from softsplit.support.arrays import FloatArray, wilson
from softsplit.support.messages import counted, visible
from softsplit.variables import Cells, CodedRows, Variable
from softsplit.variables.levels import RARE_ROWS
from softsplit.variables.variable import DATE, ORDERED

LEVEL = 0.05
"""Chance of a false alarm over all comparisons together."""

BINS = 10
"""Bins of a reliability table."""

UNKNOWN_SHARE = 0.1
"""Part of the level of the classes that is for classes that training did not have."""


def coded_with_missing(model: TreeModel, X: Any) -> tuple[CodedRows, list[int]]:
    """Rows of a table with names; variables that it lacks are missing unless the tree uses them."""
    coding, names = model.table_coding, set(map(str, X.columns))
    used = set(model.selected_variables.tolist())
    there = [
        i
        for i, variable in enumerate(coding.variables)
        if i in used or {variable.column, variable.since or variable.column} <= names
    ]
    rows = coding.code(X, there)
    return rows, [i for i in range(len(coding.variables)) if i not in coding.siblings(there)]


def check_table(
    model: TreeModel,
    rows: CodedRows,
    labels: NDArray[Any] | None = None,
    *,
    absent: Sequence[int] = (),
    level: float = LEVEL,
    used_only: bool = False,
) -> TableCheck:
    """New rows beside the training rows of a tree.

    1. What is known of the training rows: the profile, else the rows that the walk has counted.
    2. Each column.
    3. The leaves at which rows arrive.
    4. Of rows with a class: shares of the classes, answers, probabilities; with a number: its mean,
       errors.
    5. All p-values together.

    Parameters
    ----------
    model : TreeModel
    rows : CodedRows
        Coded by ``model.table_coding``.
    labels : array of int, shape (n_rows,), optional
        Positions in ``model.classes``; -1 for a class that the tree does not know, -2 for none. Of
        a tree for a number its values, NaN for none.
    absent : sequence of int
        Variables that the new table does not have.
    level : float
        Chance of a false alarm over all comparisons together.
    used_only : bool
        Whether only the columns that the tree uses are compared.
    """
    if not len(rows):
        raise ValueError("the table has no rows to compare with the training rows.")
    # 1. What is known of the training rows.
    notes: list[str] = []
    profile, leaves, classes = model.profile, None, None
    if model.walk is not None and np.all(np.isfinite(model.walk.counts)):
        leaves, classes = model.walk.counts.sum(axis=0), model.walk.counts.sum(axis=1)
    if profile is not None:
        walked = None if leaves is None else profile.rows * leaves / max(leaves.sum(), 1e-300)
        leaves, classes = profile.leaves if leaves is None else walked, profile.classes
    else:
        notes.append(
            "the tree has no summary of its training table, as files of before and trees of sparse "
            "or distributed tables: shares of columns are not compared; fit it again to have one"
        )
    n_training = 0.0 if classes is None else float(classes.sum())

    # 2. Columns; dates that the tree does not use have moved by nature.
    used = set(model.selected_variables.tolist())
    checks: list[ColumnCheck] = []
    for i, variable in enumerate(model.table_coding.variables):
        dated = variable.kind == DATE or bool(variable.part)
        if i in absent or (i not in used and (dated or used_only)):
            continue
        known = None if profile is None else profile.columns[i]
        column = _checked_column(model, i, rows.cells[i], known, n_training)
        checks.append(replace(column, used=i in used))
    if absent and not used_only:
        names = [visible(model.table_coding.variables[i].name) for i in absent]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        notes.append(f"not in the table, and not used by the tree: {', '.join(names[:5])}{more}")

    # 3. Leaves.
    if leaves is not None:
        arrived = np.bincount(model.arrive(rows.X), minlength=len(leaves)).astype(float)
        checks.append(_checked_leaves(model, leaves, arrived))

    # 4. Rows with a class, or a number.
    result = TableCheck(len(rows), level, (), tuple(notes))
    if model.numbers is not None:
        given = np.zeros(0, int) if labels is None else np.flatnonzero(np.isfinite(labels))
        if labels is not None and len(given):
            errors, tests = checked_numbers(model, rows.X[given], labels[given], leaves)
            checks += tests
            result = replace(result, labelled=len(given), error=errors)
    elif labels is not None and np.any(labels > NO_CLASS):
        asked, known_class = labels > NO_CLASS, labels >= 0
        hits = float(np.sum(model.predict_index(rows.X[asked]) == labels[asked]))
        n_labelled = int(np.sum(asked))
        result = replace(
            result, labelled=n_labelled, accuracy=wilson(hits, float(n_labelled)),
            held_out_accuracy=_held_out_accuracy(model),
        )  # fmt: skip
        truth = labels[known_class]
        if classes is not None:
            counts = np.bincount(truth, minlength=len(model.classes)).astype(float)
            unknown = int(np.sum(labels == UNKNOWN_CLASS))
            checks.append(_checked_classes(model, classes, counts, unknown))
        if len(truth):
            proba = model.predict_proba(rows.X[known_class])
            own = proba[np.arange(len(truth)), truth]
            result = replace(result, reliability=tuple(_reliability(model, proba, truth)))
            if model.held_out is not None:
                shares = float(np.mean(own)), 1.0 - model.held_out.mean
                result = replace(result, true_class=shares)
                checks.append(_checked_answers(model.held_out, own))
            if n_training > 0:
                checks.append(_checked_probabilities(model, proba, truth, n_training))

    # 5. Columns have half of the weight together, all else the other half.
    tested = [i for i, check in enumerate(checks) if check.p_value is not None]
    of_columns = [checks[i].what == "column" for i in tested]
    weights = [1 / of_columns.count(kind) for kind in of_columns]
    p_values = [checks[i].p_value or 0.0 for i in tested]
    for i, p_value in zip(tested, holm(p_values, weights).tolist(), strict=True):
        checks[i] = replace(checks[i], adjusted=p_value, moved=p_value <= level)
    return replace(result, comparisons=tuple(checks))


# --- columns --------------------------------------------------------------------------------------


def _checked_column(
    model: TreeModel, i: int, cells: Cells, profile: ColumnProfile | None, n_training: float
) -> ColumnCheck:
    """One variable; what is known of it decides which tests there are."""
    variable = model.table_coding.variables[i]
    m, known = len(cells.numbers), int(np.sum(~cells.missing))
    n = n_training if profile is None else float(profile.counts.sum())
    gaps, missing, psi = m - known, float("nan"), float("nan")
    tests: dict[str, float] = {}
    said: list[str] = []
    if has_levels(variable):
        outside = int(np.sum(variable.unseen(cells)))
        if outside:
            said.append(f"{counted(outside, 'row')} of levels that training did not have")
            totals = _level_totals(variable, cells, profile)
            tests["unseen"] = p_value_levels_unseen(outside, totals, known, n) if n > 0 else 1.0
    else:
        j, outside = model.table_coding.firsts[i], 0
        low, high = float(model.summary.low[j]), float(model.summary.high[j])
        ends = ("above", high, cells.numbers > high), ("below", low, cells.numbers < low)
        for word, end, beyond in ends:
            count = int(np.sum(beyond))
            outside += count
            if count:
                said.append(f"{counted(count, 'row')} {word} {shown_value(variable, end)}")
                tests[word] = p_value_all_unseen(count, known, n) if n > 0 else 1.0
    if profile is not None:
        counts, _ = counted_cells(variable, cells, None, profile.edges)
        before, now = profile.counts, counts
        ordered = not has_levels(variable) or variable.kind == ORDERED
        if not ordered and (variable.may_omit_levels or np.any(cells.unlisted)):
            before, now = frequent(before, now)
        tests["shares"] = p_value_shares(before, now, ordered=ordered)
        if ordered:
            tests["location"] = p_value_location(profile.counts, counts)
        psi, missing = stability(profile.counts, counts), profile.missing_share
        spread = tests["shares"] <= LEVEL < tests.get("location", 1.0)
        said = [*moved_words(variable, profile, counts, cells, spread=spread), *said]
        if profile.missing:
            before, now = np.array([profile.missing, n]), np.array([gaps, known], dtype=float)
            tests["missing"] = p_value_shares(before, now)
        elif gaps:
            tests["missing"] = p_value_all_unseen(gaps, m, n)
        if gaps or profile.missing:
            said.append(f"missing {percent(gaps / max(m, 1))}, was {percent(missing)}")
    elif n_training > 0 and gaps and not variable.has_missing:
        tests["missing"] = p_value_all_unseen(gaps, m, n_training)
        said.append(f"missing {percent(gaps / m)}, as in no training row")
    # All tests that there could have been: the number must not depend on what was seen.
    possible = 4 if variable.kind == ORDERED else 3 if has_levels(variable) else 5
    p_value = min(1.0, possible * min(tests.values(), default=1.0))
    return ColumnCheck(
        name=variable.name,
        what="column",
        p_value=p_value if profile is not None or n > 0 else None,
        said="; ".join(said),
        missing=gaps / max(m, 1),
        missing_in_training=missing,
        outside=outside,
        psi=psi,
    )


def _level_totals(variable: Variable, cells: Cells, profile: ColumnProfile | None) -> FloatArray:
    """Training and new rows of each level.

    Of rare levels only the number and the rows together are known. As many as possible count as
    levels of one training row, which are the likeliest to have new rows alone, so that p-values are
    too large, not too small. All do where the profile has fewer rows than there are rare levels: it
    may be that of a part of the table.
    """
    unseen, n_rare = variable.unseen(cells), variable.n_rare
    codes = np.zeros(len(cells.numbers), dtype=int) if cells.content is None else cells.content[0]
    new = np.bincount(codes[unseen])
    known = np.bincount(codes[cells.unlisted & ~unseen & ~cells.missing], minlength=n_rare)
    rare = np.sort(known)[len(known) - n_rare :]
    listed, most, before = np.zeros(0), RARE_ROWS - 1, np.ones(n_rare)
    if profile is not None:
        listed = (profile.counts + counted_cells(variable, cells)[0])[: len(variable.levels)]
        before[: max(0, int((profile.counts[-1] - n_rare) // (most - 1)))] = most
    return np.concatenate([new[new > 0], before[::-1] + rare, listed])


# --- leaves, classes, answers ---------------------------------------------------------------------


def _checked_leaves(model: TreeModel, before: FloatArray, now: FloatArray) -> ColumnCheck:
    """Where rows arrive."""
    old, new = before / before.sum(), now / now.sum()
    k = int(np.argmax(np.abs(new - old)))
    leaf = outline(model).end_number(k) if model.walk is not None else k + 1
    return ColumnCheck(
        name="leaves",
        what="leaves",
        p_value=p_value_shares(before, now),
        used=True,
        said=f"{percent(new[k])} of the rows arrive at leaf {leaf}, was {percent(old[k])}",
        psi=stability(before, now),
    )


def _checked_classes(
    model: TreeModel, before: FloatArray, now: FloatArray, unknown: int
) -> ColumnCheck:
    """Shares of the classes, and classes that the tree does not know."""
    # Classes that training did not have are certain to be seen by a small part of the level.
    tests = [p_value_shares(before, now) / (1 - UNKNOWN_SHARE)]
    said = []
    if now.sum() > 0:
        old, new = before / before.sum(), now / now.sum()
        k = int(np.argmax(np.abs(new - old)))
        said.append(f"{visible(model.labels[k])} {percent(new[k])}, was {percent(old[k])}")
    if unknown:
        chance = p_value_all_unseen(unknown, int(now.sum()) + unknown, float(before.sum()))
        tests.append(chance / UNKNOWN_SHARE)
        said.append(f"{counted(unknown, 'row')} of classes that the tree does not know")
    return ColumnCheck(
        name=f"classes of {model.target}" if model.target else "classes",
        what="classes",
        p_value=min(1.0, *tests),
        used=True,
        said="; ".join(said),
        outside=unknown,
        psi=stability(before, now),
    )


def _checked_answers(held_out: HeldOutScores, own: FloatArray) -> ColumnCheck:
    """Whether probabilities ``own`` (n_rows,) of true classes are below those of held-out rows."""
    scores, weight = np.concatenate(held_out.scores), np.concatenate(held_out.weights)
    return ColumnCheck(
        name="answers",
        what="worse",
        p_value=p_value_worse(scores, weight, 1.0 - own),
        used=True,
        said=f"the tree gives the true class {100 * float(np.mean(own)):.1f} % on average; on "
        f"held-out rows it gave {100 * (1 - held_out.mean):.1f} %",
    )


def _checked_probabilities(
    model: TreeModel, proba: FloatArray, labels: NDArray[np.int64], n_training: float
) -> ColumnCheck:
    """Whether mean probabilities are the shares of the classes."""
    truth = np.eye(proba.shape[1])[labels]
    differences = (truth - proba).mean(axis=0)
    variance = (proba * (1 - proba)).mean(axis=0) * (1 / len(labels) + 1 / n_training)
    z = np.abs(differences) / np.sqrt(np.maximum(variance, 1e-300))
    k, n_tests = int(np.argmax(z)), 1 if len(differences) == 2 else len(differences)
    label = visible(model.labels[k])
    return ColumnCheck(
        name="probabilities",
        what="calibrated",
        p_value=float(min(1.0, n_tests * 2 * norm.sf(z[k]))),
        used=True,
        said=f"the tree gives {label} {100 * proba[:, k].mean():.1f} % on average; "
        f"{100 * truth[:, k].mean():.1f} % of the rows are {label}",
    )


def _held_out_accuracy(model: TreeModel) -> float | None:
    """Of two classes, by the threshold of their probability; None where it is not known."""
    held_out = model.held_out
    if held_out is None or len(model.classes) != 2 or model.distributions is not None:
        return None
    pairs = enumerate(zip(held_out.scores, held_out.weights, strict=True))
    hits = [weight @ (scores <= 1.0 - model.decision_threshold(k)) for k, (scores, weight) in pairs]
    return float(sum(hits) / held_out.rows.sum())


def _reliability(
    model: TreeModel, proba: FloatArray, labels: NDArray[np.int64]
) -> list[Reliability]:
    """Predicted and observed frequencies in bins of equal size; of two classes the second."""
    bins = []
    for k in [1] if proba.shape[1] == 2 else range(proba.shape[1]):
        order = np.argsort(proba[:, k], kind="stable")
        for part in np.array_split(order, min(BINS, max(1, len(order) // 20))):
            hits = float(np.sum(labels[part] == k))
            share, low, high = wilson(hits, float(len(part)))
            said = float(proba[part, k].mean())
            bins.append(Reliability(model.labels[k], said, share, low, high, len(part)))
    return bins
