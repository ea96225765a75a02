"""Whether new rows are like the training rows of a tree, with tests that hold for many columns.

Training rows are n rows of which only counts are known (profile.py), new rows are m. Under the null
hypothesis both are drawn from one distribution. Every comparison is one of

shares      counts a_1, ..., a_K of training and b_1, ..., b_K of new rows: Pearson's chi-squared of
            the 2 x K table, which takes both samples as random; cells with a small expected count
            (``TwoSampleOptions.fewest``) are merged, bins of a number with their neighbours; where
            some levels are not listed, those that are rare in both samples together are one cell
location    of ordered bins: the rank sum test (Wilcoxon; Mann and Whitney) with ties, which sees a
            shift that chi-squared spreads over all bins
beyond      k new rows beyond the largest (smallest) training value, of a class that no training row
            has, or without a value where no training row lacks one: the k topmost of n + m
            exchangeable rows are all new with probability  prod_{i<k} (m - i) / (n + m - i)
unseen      k new rows of levels that no training row has: among many levels with few rows some have
            new rows alone by chance (``two_samples.all_of_levels_new``)
worse       of labelled rows: scores 1 - p_y against those of held-out rows (conformal.py), the rank
            sum test for larger ones alone
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
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom, norm

from softsplit.drift.two_samples import (
    all_new,
    all_of_levels_new,
    holm,
    location_differs,
    shares_differ,
)
from softsplit.fitted.conformal import NO_CLASS, UNKNOWN_CLASS
from softsplit.fitted.model import TreeModel
from softsplit.fitted.profile import ColumnProfile, counted_cells, has_levels
from softsplit.reading.outline import outline
from softsplit.support.arrays import FloatArray, wilson
from softsplit.support.messages import counted, cut, visible
from softsplit.support.numbers import number
from softsplit.support.options import late
from softsplit.variables import Cells, CodedRows, Variable
from softsplit.variables.kinds import OPTIONS as KIND_OPTIONS
from softsplit.variables.kinds import fewest_rows
from softsplit.variables.variable import DATE, ORDERED


@dataclass(frozen=True)
class DriftOptions:
    """Numbers of the tests and of what is printed.

    Attributes
    ----------
    level : float
        Chance of a false alarm over all columns together.
    bins : int
        Of scores and of probabilities said.
    unknown : float
        Part of the level of the classes that is for classes that training did not have.
    unlisted : float
        A level has a cell of its own if the chance that it has too few training rows to be listed,
        given its rows in both samples, is at most this; the others share one.
    printed : int
        Columns that are printed at most.
    """

    level: float = 0.05
    bins: int = 10
    unknown: float = 0.1
    unlisted: float = 1e-4
    printed: int = 20


OPTIONS = DriftOptions()


@dataclass(frozen=True)
class ColumnCheck:
    """One column, or the leaves, classes or answers, of new rows beside the training rows.

    Attributes
    ----------
    name : str
    what : {"column", "leaves", "classes", "worse", "calibrated"}
    p_value : float or None
        None where nothing is known to compare with.
    adjusted : float or None
        After Holm, over all comparisons.
    moved : bool
        Whether the adjusted p-value is at most the level.
    used : bool
        Of a column: whether the tree looks at it.
    said : str
        What is different, in words; empty where nothing is worth saying.
    missing, missing_in_training : float
        Shares of rows without a value; the second is NaN where it is not known.
    outside : int
        New rows outside of the training range, or of a level that no training row has.
    psi : float
        Population stability index, sum (b - a) log(b / a) over shares; NaN where not known.
    """

    name: str
    what: str
    p_value: float | None
    adjusted: float | None = None
    moved: bool = False
    used: bool = False
    said: str = ""
    missing: float = 0.0
    missing_in_training: float = float("nan")
    outside: int = 0
    psi: float = float("nan")

    @property
    def p_text(self) -> str:
        """The adjusted p-value as it is printed."""
        if self.adjusted is None:
            return "-"
        return "< 0.0001" if self.adjusted < 1e-4 else f"{self.adjusted:.4f}"


@dataclass(frozen=True)
class Reliability:
    """Rows of which about the same probability was said.

    Attributes
    ----------
    label : object
        The class.
    said, true : float
        Mean probability, and the share of rows that are of the class.
    low, high : float
        95 % interval of ``true``, by Wilson.
    rows : int
    """

    label: Any
    said: float
    true: float
    low: float
    high: float
    rows: int


@dataclass(frozen=True)
class TableCheck:
    """New rows beside the training rows of a tree: ``print`` it, or use ``to_frame()``.

    Attributes
    ----------
    rows : int
        New rows.
    level : float
        Chance of a false alarm over all comparisons together.
    comparisons : tuple of ColumnCheck
    notes : tuple of str
        What could not be compared, and why.
    labelled : int
        Rows with a known class.
    accuracy : tuple of three floats, optional
        Of the labelled rows, with its 95 % interval.
    reliability : tuple of Reliability
        Of the labelled rows, by class.
    held_out_accuracy : float, optional
        Of two classes: on the held-out rows of training.
    true_class : tuple of two floats, optional
        Mean probability of the true class, here and on the held-out rows of training.
    """

    rows: int
    level: float
    comparisons: tuple[ColumnCheck, ...]
    notes: tuple[str, ...] = ()
    labelled: int = 0
    accuracy: tuple[float, float, float] | None = None
    reliability: tuple[Reliability, ...] = field(default=())
    held_out_accuracy: float | None = None
    true_class: tuple[float, float] | None = None

    @property
    def moved(self) -> tuple[ColumnCheck, ...]:
        """What has moved, the clearest first."""
        found = [one for one in self.comparisons if one.moved]
        return tuple(sorted(found, key=lambda one: (one.adjusted, one.p_value)))

    @property
    def fine(self) -> bool:
        """Whether nothing has moved."""
        return not self.moved

    def to_frame(self) -> pd.DataFrame:
        """One row for each comparison."""
        return pd.DataFrame([asdict(one) for one in self.comparisons])

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists, numbers and strings; what is not known is None."""
        made = asdict(self) | {"fine": self.fine}
        for one in made["comparisons"]:
            one |= {k: None for k, v in one.items() if isinstance(v, float) and np.isnan(v)}
        return made

    def to_html(self) -> str:
        """A page of its own, one file."""
        page: str = late("softsplit.report.check_page", "check_page")(self)
        return page

    @property
    def verdict(self) -> str:
        """One sentence."""
        tests = sum(one.p_value is not None for one in self.comparisons)
        chance = f"{100 * self.level:g} % chance of a false alarm over {counted(tests, 'test')}"
        if self.fine:
            return f"nothing has moved: {counted(self.rows, 'row')}, {chance}"
        parts = [one.name for one in self.moved]
        listed = ", ".join(map(visible, parts[:5]))
        listed += f" and {len(parts) - 5} more" if len(parts) > 5 else ""
        return f"moved: {listed} ({counted(self.rows, 'row')}, {chance})"

    def __str__(self) -> str:
        lines = [self.verdict]
        shown = [(cut(visible(one.name), 30), one) for one in self.moved[: OPTIONS.printed]]
        width = max((len(name) for name, _ in shown), default=0)
        for name, one in shown:
            unused = "" if one.used else " (not used by the tree)"
            lines.append(f"    {name:<{width}}  p {one.p_text}  {one.said}{unused}")
        quiet = [one for one in self.comparisons if not one.moved and one.outside]
        if quiet:
            few = "but in too few rows to count as a change"
            lines.append(f"also outside the training range or new, {few}:")
            named = [(visible(one.name), one.outside) for one in quiet[:8]]
            lines += [f"    {name}: {counted(count, 'row')}" for name, count in named]
        if self.accuracy is not None:
            value, low, high = (f"{100 * v:.1f}" for v in self.accuracy)
            on = counted(self.labelled, "row")
            told = f"accuracy on {on}: {value} % (95 % interval {low} to {high})"
            lines.append(told if self.in_training is None else f"{told}; {self.in_training}")
        return "\n".join([*lines, *self.notes])

    @property
    def in_training(self) -> str | None:
        """What to compare the accuracy with: the same, or the probability of the true class, on
        the held-out rows of training."""
        if self.held_out_accuracy is not None:
            return f"{100 * self.held_out_accuracy:.1f} % on held-out rows of training"
        if self.true_class is not None:
            here, before = (f"{100 * share:.1f} %" for share in self.true_class)
            return f"probability of the true class {here}, {before} on held-out rows of training"
        return None


# --- new rows ------------------------------------------------------------------------------------


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


# --- comparisons ---------------------------------------------------------------------------------


def check_table(
    model: TreeModel,
    rows: CodedRows,
    labels: NDArray[np.int64] | None = None,
    *,
    absent: Sequence[int] = (),
    level: float = OPTIONS.level,
    used_only: bool = False,
) -> TableCheck:
    """New rows beside the training rows of a tree.

    Parameters
    ----------
    model : TreeModel
    rows : CodedRows
        Coded by ``model.table_coding``.
    labels : array of int, shape (n_rows,), optional
        Positions in ``model.classes``; -1 for a class that the tree does not know, -2 for none.
    absent : sequence of int
        Variables that the new table does not have.
    level : float
        Chance of a false alarm over all comparisons together.
    used_only : bool
        Whether only the columns that the tree uses are compared.
    """
    if not len(rows):
        raise ValueError("the table has no rows to compare with the training rows.")
    notes: list[str] = []
    known = model.profile
    before = None if model.walk is None else model.walk.counts
    before = None if before is None or not np.all(np.isfinite(before)) else before
    leaves = None if before is None else before.sum(axis=0)
    classes = None if before is None else before.sum(axis=1)
    if known is not None:
        leaves = known.leaves if leaves is None else known.rows * leaves / max(leaves.sum(), 1e-300)
        classes = known.classes
    if known is None:
        notes.append(
            "the tree has no summary of its training table, as files of before and trees of sparse "
            "or distributed tables: shares of columns are not compared; fit it again to have one"
        )
    n_training = 0.0 if classes is None else float(classes.sum())
    used = set(model.selected_variables.tolist())
    found: list[ColumnCheck] = []
    for i, variable in enumerate(model.table_coding.variables):
        dated = variable.kind == DATE or bool(variable.part)
        if i in absent or (dated and i not in used):  # new rows are of later days
            continue
        if used_only and i not in used:
            continue
        profile = None if known is None else known.columns[i]
        one = _column(model, i, rows.cells[i], profile, n_training)
        found.append(_with(one, used=i in used))
    if absent and not used_only:
        names = [visible(model.table_coding.variables[i].name) for i in absent]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        notes.append(f"not in the table, and not used by the tree: {', '.join(names[:5])}{more}")
    if leaves is not None and len(rows):
        arrived = np.bincount(model.arrive(rows.X), minlength=len(leaves)).astype(float)
        found.append(_leaves(model, leaves, arrived))
    labelled = 0
    accuracy: tuple[float, float, float] | None = None
    true_class: tuple[float, float] | None = None
    reliability: list[Reliability] = []
    if labels is not None and np.any(labels > NO_CLASS) and len(rows):
        asked = labels > NO_CLASS
        labelled = int(np.sum(asked))
        strange = int(np.sum(labels == UNKNOWN_CLASS))
        right = labels >= 0
        proba, predicted = model.predict_proba(rows.X[asked]), model.predict_index(rows.X[asked])
        hits = predicted == labels[asked]
        accuracy = wilson(float(hits.sum()), float(labelled))
        if classes is not None:
            counts = np.bincount(labels[right], minlength=len(model.classes)).astype(float)
            found.append(_classes(model, classes, counts, strange))
        proba, truth = proba[right[asked]], labels[right]
        if len(truth):
            found += _answers(model, proba, truth, n_training)
            reliability = _reliability(model, proba, truth)
            if model.held_out is not None:
                here = float(np.mean(proba[np.arange(len(truth)), truth]))
                true_class = here, 1.0 - _mean_score(model)
    tested = [i for i, one in enumerate(found) if one.p_value is not None]
    p_values = [found[i].p_value or 0.0 for i in tested]
    columns = [found[i].what == "column" for i in tested]
    weights = [1 / columns.count(one) for one in columns]
    for i, adjusted in zip(tested, holm(p_values, weights), strict=True):
        found[i] = _with(found[i], adjusted=float(adjusted), moved=bool(adjusted <= level))
    return TableCheck(
        len(rows), level, tuple(found), tuple(notes), labelled, accuracy, tuple(reliability),
        None if accuracy is None else _held_out_accuracy(model), true_class,
    )  # fmt: skip


def _with(one: ColumnCheck, **changed: Any) -> ColumnCheck:
    return ColumnCheck(**(vars(one) | changed))


def _column(
    model: TreeModel, i: int, cells: Cells, profile: ColumnProfile | None, n_training: float
) -> ColumnCheck:
    """One variable; what is known of it decides which tests there are."""
    variable = model.table_coding.variables[i]
    m = len(cells.numbers)
    known = int(np.sum(~cells.missing))
    n = n_training if profile is None else float(profile.counts.sum())
    tests: dict[str, float] = {}
    said: list[str] = []
    outside, psi, missing_before = 0, float("nan"), float("nan")
    if has_levels(variable):
        unseen = int(np.sum(variable.unseen(cells)))
        outside = unseen
        if unseen:
            said.append(f"{counted(unseen, 'row')} of levels that training did not have")
            if n > 0:
                totals = _level_totals(variable, cells, profile)
                tests["unseen"] = all_of_levels_new(unseen, totals, known, n)
    else:
        low, high = _range(model, i)
        beyond = int(np.sum(cells.numbers > high)), int(np.sum(cells.numbers < low))
        outside = sum(beyond)
        for count, word, end in zip(beyond, ("above", "below"), (high, low), strict=True):
            if count:
                said.append(f"{counted(count, 'row')} {word} {_shown(variable, end)}")
                if n > 0:
                    tests[word] = all_new(count, known, n)
    if profile is not None:
        counts, missing = counted_cells(variable, cells, None, profile.edges)
        missing_before = profile.missing / max(n + profile.missing, 1e-300)
        if missing or profile.missing:
            tests["missing"] = _missing_differs(profile, n, missing, known)
        ordered = not has_levels(variable) or variable.kind == ORDERED
        before, now = profile.counts, counts
        if not ordered and (variable.may_omit_levels or np.any(cells.unlisted)):
            before, now = _frequent(before, now)
        tests["shares"] = shares_differ(before, now, ordered=ordered)
        if ordered:
            tests["location"] = location_differs(profile.counts, counts)
        psi = _stability(profile.counts, counts)
        spread = tests["shares"] <= OPTIONS.level < tests.get("location", 1.0)
        said = [*_moved_words(variable, profile, counts, cells, spread=spread), *said]
        if missing or profile.missing:
            said.append(f"missing {_percent(missing / max(m, 1))}, was {_percent(missing_before)}")
    elif n_training > 0 and np.any(cells.missing) and not variable.has_missing:
        tests["missing"] = all_new(int(cells.missing.sum()), m, n_training)
        said.append(f"missing {_percent(float(cells.missing.mean()))}, as in no training row")
    possible: tuple[str, ...]
    # All tests that there could have been: the number must not depend on what was seen.
    if not has_levels(variable):
        possible = ("shares", "location", "above", "below", "missing")
    elif variable.kind == ORDERED:
        possible = ("shares", "location", "unseen", "missing")
    else:
        possible = ("shares", "unseen", "missing")
    p_value = None
    if m and (tests or n > 0):
        p_value = min(1.0, len(possible) * min(tests.values(), default=1.0))
    return ColumnCheck(
        name=variable.name,
        what="column",
        p_value=p_value,
        said="; ".join(said),
        missing=float(np.mean(cells.missing)) if m else 0.0,
        missing_in_training=missing_before,
        outside=outside,
        psi=psi,
    )


def _frequent(before: FloatArray, now: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Counts of levels, with those in one cell that are rare in both samples together.

    Which levels are listed depends on their training rows, and such a choice looks like a shift.
    Of a frequent level, the training rows are almost never so few that it is not listed.
    """
    share = before.sum() / max(before.sum() + now.sum(), 1.0)
    few = binom.cdf(fewest_rows(before.sum()) - 1, before + now, share) > OPTIONS.unlisted
    few[-1] = True
    return (
        np.append(before[~few], before[few].sum()),
        np.append(now[~few], now[few].sum()),
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
    listed, most, before = np.zeros(0), KIND_OPTIONS.rare_rows - 1, np.ones(n_rare)
    if profile is not None:
        listed = (profile.counts + counted_cells(variable, cells)[0])[: len(variable.levels)]
        before[: max(0, int((profile.counts[-1] - n_rare) // (most - 1)))] = most
    return np.concatenate([new[new > 0], before[::-1] + rare, listed])


def _missing_differs(profile: ColumnProfile, n: float, missing: float, known: int) -> float:
    """p-value that values are missing as often; exact where training lacks none."""
    if profile.missing == 0:
        return all_new(int(missing), known + int(missing), n)
    before, now = np.array([profile.missing, n]), np.array([missing, float(known)])
    return shares_differ(before, now)


def _range(model: TreeModel, i: int) -> tuple[float, float]:
    j = model.table_coding.firsts[i]
    return float(model.summary.low[j]), float(model.summary.high[j])


def _moved_words(
    variable: Variable,
    profile: ColumnProfile,
    counts: FloatArray,
    cells: Cells,
    *,
    spread: bool,
) -> list[str]:
    """Medians of a number, or the level whose share has changed most.

    ``spread``: shares of bins differ and the location does not; then the bin that has changed most
    is named too.
    """
    known = cells.numbers[~cells.missing]
    if not len(known) or not profile.counts.sum() or not counts.sum():
        return []
    before, after = profile.counts / profile.counts.sum(), counts / counts.sum()
    moves = np.abs(after - before)
    k = int(np.argmax(moves))
    if profile.edges is not None:
        middle, now = _middle(profile), float(np.median(known))
        if middle is None:
            return []
        said = [f"median {_shown(variable, now)}, was {_shown(variable, middle)}"]
        if spread:
            ends = [_shown(variable, float(edge)) for edge in profile.edges]
            where = f"{ends[k - 1]} to {ends[k]}" if 0 < k < len(ends) else ""
            where = where or (f"up to {ends[0]}" if k == 0 else f"above {ends[-1]}")
            said.append(f"{_percent(after[k])} of the values {where}, was {_percent(before[k])}")
        return said
    if not variable.other and variable.levels:  # levels that training did not have are told apart
        k = int(np.argmax(moves[: len(variable.levels)]))
    words = ["false", "true"] if not variable.levels else list(variable.levels)
    name = [*words, variable.other_name][k]
    return [f"{visible(name)} {_percent(after[k])}, was {_percent(before[k])}"]


def _middle(profile: ColumnProfile) -> float | None:
    """The training median: the edge below which half of the rows are."""
    assert profile.edges is not None
    reached = np.cumsum(profile.counts) / profile.counts.sum()
    at = int(np.searchsorted(reached, 0.5 - 1e-9))
    return float(profile.edges[at]) if at < len(profile.edges) else None


def _stability(a: FloatArray, b: FloatArray) -> float:
    """Population stability index, with half a row added to every cell."""
    if a.sum() <= 0 or b.sum() <= 0:
        return float("nan")
    p, q = (a + 0.5) / (a + 0.5).sum(), (b + 0.5) / (b + 0.5).sum()
    return float(np.sum((q - p) * np.log(q / p)))


def _leaves(model: TreeModel, before: FloatArray, now: FloatArray) -> ColumnCheck:
    """Where rows arrive."""
    old, new = before / before.sum(), now / now.sum()
    k = int(np.argmax(np.abs(new - old)))
    leaf = outline(model).end_number(k) if model.walk is not None else k + 1
    return ColumnCheck(
        name="leaves",
        what="leaves",
        p_value=shares_differ(before, now),
        used=True,
        said=f"{_percent(new[k])} of the rows arrive at leaf {leaf}, was {_percent(old[k])}",
        psi=_stability(before, now),
    )


def _classes(model: TreeModel, before: FloatArray, now: FloatArray, strange: int) -> ColumnCheck:
    """Shares of the classes, and classes that the tree does not know."""
    # Classes that training did not have are certain to be found by a small part of the level.
    tests = [shares_differ(before, now) / (1 - OPTIONS.unknown)]
    said = []
    if now.sum() > 0:
        old, new = before / before.sum(), now / now.sum()
        k = int(np.argmax(np.abs(new - old)))
        said.append(f"{visible(model.labels[k])} {_percent(new[k])}, was {_percent(old[k])}")
    if strange:
        chance = all_new(strange, int(now.sum()) + strange, float(before.sum()))
        tests.append(chance / OPTIONS.unknown)
        said.append(f"{counted(strange, 'row')} of classes that the tree does not know")
    return ColumnCheck(
        name=f"classes of {model.target}" if model.target else "classes",
        what="classes",
        p_value=min(1.0, *tests),
        used=True,
        said="; ".join(said),
        outside=strange,
        psi=_stability(before, now),
    )


def _answers(
    model: TreeModel, proba: FloatArray, labels: NDArray[np.int64], n_training: float
) -> list[ColumnCheck]:
    """Whether answers are worse than on held-out rows, and whether probabilities are right."""
    rows = np.arange(len(labels))
    found = []
    if model.held_out is not None:
        before, edges = _scores(model)
        now = np.bincount(
            np.searchsorted(edges, 1.0 - proba[rows, labels]), minlength=len(edges) + 1
        ).astype(float)
        old = _mean_score(model)
        new = float(np.mean(1.0 - proba[rows, labels]))
        found.append(
            ColumnCheck(
                name="answers",
                what="worse",
                p_value=location_differs(before, now, larger=True),
                used=True,
                said=f"the tree gives the true class {100 * (1 - new):.1f} % on average; on "
                f"held-out rows it gave {100 * (1 - old):.1f} %",
            )
        )
    if n_training > 0:
        truth = np.eye(proba.shape[1])[labels]
        differences = (truth - proba).mean(axis=0)
        variance = (proba * (1 - proba)).mean(axis=0) * (1 / len(labels) + 1 / n_training)
        z = np.abs(differences) / np.sqrt(np.maximum(variance, 1e-300))
        k, n_tests = int(np.argmax(z)), 1 if len(differences) == 2 else len(differences)
        found.append(
            ColumnCheck(
                name="probabilities",
                what="calibrated",
                p_value=float(min(1.0, n_tests * 2 * norm.sf(z[k]))),
                used=True,
                said=f"the tree gives {visible(model.labels[k])} {100 * proba[:, k].mean():.1f} % "
                f"on average; {100 * truth[:, k].mean():.1f} % of the rows are "
                f"{visible(model.labels[k])}",
            )
        )
    return found


def _scores(model: TreeModel) -> tuple[FloatArray, FloatArray]:
    """Held-out rows in bins of their scores, and the edges of these."""
    assert model.held_out is not None
    scores = np.concatenate(model.held_out.scores)
    each = [np.full(len(s), n / max(len(s), 1)) for s, n in _pairs(model)]
    weight = np.concatenate(each)
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, 2 * OPTIONS.bins + 1)[1:-1]))
    before = np.bincount(np.searchsorted(edges, scores), weight, len(edges) + 1)
    return before.astype(float), edges


def _held_out_accuracy(model: TreeModel) -> float | None:
    """Of two classes, by the threshold of their probability; None where it is not known."""
    if model.held_out is None or len(model.classes) != 2 or model.distributions is not None:
        return None
    hits = sum(
        float(np.mean(scores <= 1.0 - model.decision_threshold(k))) * rows
        for k, (scores, rows) in enumerate(_pairs(model))
        if len(scores)
    )
    return float(hits / model.held_out.rows.sum())


def _mean_score(model: TreeModel) -> float:
    sums = [float(np.mean(s)) * n for s, n in _pairs(model) if len(s)]
    assert model.held_out is not None
    return sum(sums) / float(model.held_out.rows.sum())


def _pairs(model: TreeModel) -> list[tuple[FloatArray, float]]:
    assert model.held_out is not None
    return list(zip(model.held_out.scores, model.held_out.rows.tolist(), strict=True))


def _reliability(
    model: TreeModel, proba: FloatArray, labels: NDArray[np.int64]
) -> list[Reliability]:
    """Predicted and observed frequencies in bins of equal size; of two classes the second."""
    found = []
    asked = [1] if proba.shape[1] == 2 else range(proba.shape[1])
    for k in asked:
        order = np.argsort(proba[:, k], kind="stable")
        for part in np.array_split(order, min(OPTIONS.bins, max(1, len(order) // 20))):
            hits = float(np.sum(labels[part] == k))
            share, low, high = wilson(hits, float(len(part)))
            said = float(proba[part, k].mean())
            found.append(Reliability(model.labels[k], said, share, low, high, len(part)))
    return found


def _shown(variable: Variable, value: float) -> str:
    written = variable.display(value)
    return visible(written) if isinstance(written, str) else number(written)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
