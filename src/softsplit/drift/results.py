"""What a comparison of new rows with the training rows of a tree has shown, and its print-out."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from softsplit.fitted.profile import ColumnProfile
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import counted, cut, visible
from softsplit.support.numbers import number
from softsplit.support.options import late
from softsplit.variables import Cells, Variable

PRINTED = 20
"""Columns that are printed at most."""


@dataclass(frozen=True)
class ColumnCheck:
    """One column, or the leaves, classes or answers, of new rows beside the training rows.

    Attributes
    ----------
    name : str
    what : {"column", "leaves", "classes", "worse", "calibrated", "target"}
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
    error : tuple of two floats, optional
        Of a number: root mean squared error on the labelled rows, and on the training rows.
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
    error: tuple[float, float] | None = None

    @property
    def moved(self) -> tuple[ColumnCheck, ...]:
        """What has moved, the clearest first."""
        comparisons = [check for check in self.comparisons if check.moved]
        return tuple(sorted(comparisons, key=lambda check: (check.adjusted, check.p_value)))

    @property
    def fine(self) -> bool:
        """Whether nothing has moved."""
        return not self.moved

    def to_frame(self) -> pd.DataFrame:
        """One row for each comparison."""
        return pd.DataFrame([asdict(check) for check in self.comparisons])

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists, numbers and strings; what is not known is None."""
        record = asdict(self) | {"fine": self.fine}
        for check in record["comparisons"]:
            check |= {k: None for k, v in check.items() if isinstance(v, float) and np.isnan(v)}
        return record

    def to_html(self) -> str:
        """A page of its own, one file."""
        return late("softsplit.report.document", "check_page")(self)

    @property
    def verdict(self) -> str:
        """One sentence."""
        tests = sum(check.p_value is not None for check in self.comparisons)
        chance = f"{100 * self.level:g} % chance of a false alarm over {counted(tests, 'test')}"
        if self.fine:
            return f"nothing has moved: {counted(self.rows, 'row')}, {chance}"
        parts = [check.name for check in self.moved]
        listed = ", ".join(map(visible, parts[:5]))
        listed += f" and {len(parts) - 5} more" if len(parts) > 5 else ""
        return f"moved: {listed} ({counted(self.rows, 'row')}, {chance})"

    def __str__(self) -> str:
        lines = [self.verdict]
        shown = [(cut(visible(check.name), 30), check) for check in self.moved[:PRINTED]]
        width = max((len(name) for name, _ in shown), default=0)
        for name, check in shown:
            unused = "" if check.used else " (not used by the tree)"
            lines.append(f"    {name:<{width}}  p {check.p_text}  {check.said}{unused}")
        quiet = [check for check in self.comparisons if not check.moved and check.outside]
        if quiet:
            few = "but in too few rows to count as a change"
            lines.append(f"also outside the training range or new, {few}:")
            named = [(visible(check.name), check.outside) for check in quiet[:8]]
            lines += [f"    {name}: {counted(count, 'row')}" for name, count in named]
        if self.accuracy is not None:
            value, low, high = (f"{100 * v:.1f}" for v in self.accuracy)
            on = counted(self.labelled, "row")
            line = f"accuracy on {on}: {value} % (95 % interval {low} to {high})"
            beside = "" if self.in_training is None else f"; {self.in_training}"
            lines.append(line + beside)
        return "\n".join([*lines, *filter(None, [self.error_text]), *self.notes])

    @property
    def error_text(self) -> str:
        """Of a number: the typical errors, of these rows and in training; else nothing."""
        if self.error is None:
            return ""
        here, before = (number(error, 4) for error in self.error)
        return f"typical error on {counted(self.labelled, 'row')}: {here}; {before} in training"

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


# --- words ----------------------------------------------------------------------------------------


def moved_words(
    variable: Variable, profile: ColumnProfile, counts: FloatArray, cells: Cells, *, spread: bool
) -> list[str]:
    """Medians of a number, or the level whose share has changed most.

    ``spread``: shares of bins differ and the location does not; then the bin that has changed most
    is named too.
    """
    values = cells.numbers[~cells.missing]
    if not len(values) or not profile.counts.sum() or not counts.sum():
        return []
    before, after = profile.counts / profile.counts.sum(), counts / counts.sum()
    moves = np.abs(after - before)
    k, edges = int(np.argmax(moves)), profile.edges
    if edges is None:
        if not variable.other and variable.levels:  # unseen levels have words of their own
            k = int(np.argmax(moves[: len(variable.levels)]))
        name = [*(variable.levels or ["false", "true"]), variable.other_name][k]
        return [f"{visible(name)} {percent(after[k])}, was {percent(before[k])}"]
    # The training median is the edge below which half of the rows are.
    half = int(np.searchsorted(np.cumsum(before), 0.5 - 1e-9))
    if half >= len(edges):
        return []
    middle, now = float(edges[half]), float(np.median(values))
    said = [f"median {shown_value(variable, now)}, was {shown_value(variable, middle)}"]
    if spread:
        ends = [shown_value(variable, float(edge)) for edge in edges]
        where = f"{ends[k - 1]} to {ends[k]}" if 0 < k < len(ends) else ""
        where = where or (f"up to {ends[0]}" if k == 0 else f"above {ends[-1]}")
        said.append(f"{percent(after[k])} of the values {where}, was {percent(before[k])}")
    return said


def shown_value(variable: Variable, value: float) -> str:
    written = variable.display(value)
    return visible(written) if isinstance(written, str) else number(written)


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"
