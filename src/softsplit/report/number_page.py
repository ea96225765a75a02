"""The page of a tree that predicts a number: drawing, form, how far it is off and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softsplit.estimators.exposures import Exposures
from softsplit.estimators.row_reading import read_rows
from softsplit.estimators.survival import Times
from softsplit.fitted.leaf_numbers import LeafNumbers
from softsplit.reading.leaf_formulas import INTERVAL, leaf_terms, target_name, term_name
from softsplit.reading.leaf_formulas import grouped as written
from softsplit.reading.outline import outline
from softsplit.reading.text import export_text
from softsplit.report import charts
from softsplit.report.case import (
    MOST_FIELDS,
    case_fields,
    tree_values,
    typical_row,
    walk_values,
)
from softsplit.report.drawing import tree_svg
from softsplit.report.number_figures import FOLDS, NumberReport, judged_rows
from softsplit.report.pages import PageTable, page, percent
from softsplit.report.rate_figures import curve_charts, rate_chart, rate_table, risk_table
from softsplit.report.same_tree import training_line, tree_line
from softsplit.support.arrays import FloatArray
from softsplit.support.inputs import number_targets, refuse_lengths
from softsplit.support.messages import shortened
from softsplit.variables import CodedRows

MOST_DOTS = 2000
"""Rows in a chart; of more every n-th."""

UNITS = {0: "", 1: ", in thousands", 2: ", in millions", 3: ", in billions"}


def number_report(
    model: Any, tree: Any, X: Any, y: Any, name: str, exposure: Any = None
) -> NumberReport:
    """The figures of a fitted tree on rows.

    Parameters
    ----------
    model : fitted SoftTreeRegressorCV, or any that holds a tree
        Its predictions of held-out rows are taken where X are its training rows.
    tree : SoftTreeRegressor
        The tree in it.
    X, y : rows and their numbers; of a survival tree times and events, as for ``fit``
    name : str
        That of the data.
    exposure : array of shape (n_rows,), or name of a column of X
        For a tree that was trained with it.
    """
    numbers: LeafNumbers = tree.tree_.numbers
    X, exposure = Exposures.apart(X, exposure)
    rows = read_rows(tree, X, whole=True)
    if not isinstance(rows, CodedRows):  # numbers as they are
        coding = replace(tree.tree_.table_coding, named=hasattr(tree, "feature_names_in_"))
        rows = coding.code(rows.astype(np.float64, copy=False))
    refuse_lengths(X, y)
    times, matrix = None, np.asarray(rows.X, dtype=float)
    predicted = tree.tree_.calls(matrix)
    if numbers.baseline is not None:
        known = Times.of(y)
        targets, times, units = known.events, known.times, numbers.baseline.at(known.times)
    else:
        targets = number_targets(np.asarray(y), np.ones(len(rows)))
        units = Exposures.of(exposure, len(rows)).known_to(numbers)
        predicted = predicted * units
    held_out = getattr(model, "held_out_predictions_", None)
    judged = judged_rows(tree.tree_, matrix, targets, held_out, units)
    predicted = np.asarray(held_out) if judged == FOLDS else predicted
    return NumberReport(name, tree, rows, targets, predicted, judged, units, times)


def render_number_report(report: NumberReport) -> str:
    """The page as HTML."""
    model, survival = report.model, report.times is not None
    rates = report.numbers.totals is not None
    case = case_values(report)
    visits = model.visits(np.asarray(report.rows.X, dtype=float)).sum(axis=1)
    return page(
        "number_report.html", ("report", "tree"), ("report", "tree", "fields", "number_case"),
        title=f"{shortened(model.answers[0], 60)}: how much?", lead=report.lead,
        drawing=tree_svg(model, None, "Drawing of the tree; the same in words is below.",
                         visits=visits),
        text=export_text(report.tree), case=case, report=report, layout=charts.LAYOUT,
        charts=(curve_charts if survival else rate_chart if rates else error_charts)(report),
        leaves=(risk_table if survival else rate_table if rates else leaf_table)(report),
        kind="hazards" if survival else "rates" if rates else "numbers", confidence=INTERVAL,
        columns=_column_shares(report), tree_line=tree_line(report.tree),
        training_line=training_line(report.tree), figures=report.figures,
        points={"chosen": 0, "said": [""], "case": case},
    )  # fmt: skip


def case_values(report: NumberReport) -> dict[str, Any] | None:
    """What the form of a case and its script need; None if the tree asks for no column.

    To the script each leaf is a class of its own, so that the class of a row is its leaf.
    """
    model, numbers, baseline = report.model, report.numbers, report.numbers.baseline
    used = np.flatnonzero(model.columns_in_use).tolist()
    if not used:
        return None
    X = np.asarray(report.rows.X, dtype=float)
    typical = typical_row(model, X, used, np.ones(len(X), dtype=bool))
    fields = case_fields(model, report.rows, used, typical)
    if len(fields) > MOST_FIELDS:
        return None
    functions, half = numbers.functions, report.half_widths
    every, walk = np.eye(functions.n_leaves).tolist(), walk_values(model, used)
    if walk is not None:
        walk |= {"classes": list(range(functions.n_leaves))}
    numbered = {leaf: n for n, end in enumerate(outline(model).ends(), 1) for leaf in end.leaves}
    leaves = [
        {
            "number": numbered[leaf],
            "constant": float(functions.constants[leaf]),
            "slopes": functions.slopes[used, leaf].tolist(),
            "terms": [
                [used.index(j), shortened(term_name(model, j), 60)] for j in leaf_terms(model, leaf)
            ],
            "ends": [float(functions.low[leaf]), float(functions.high[leaf])],
            "half": None if half is None else float(half[leaf]),
        }
        for leaf in range(functions.n_leaves)
    ]
    return tree_values(model, used) | {
        "fields": fields, "walk": walk, "shares": every, "votes": every, "factors": None,
        "leaves": leaves, "target": shortened(target_name(model), 60), "level": INTERVAL,
        "log": numbers.family.log_link,
        "baseline": baseline and [baseline.times.tolist(), baseline.hazards.tolist()],
        "unit": "" if numbers.per is None else shortened(numbers.per, 60),
    }  # fmt: skip


def error_charts(report: NumberReport) -> list[charts.Chart]:
    """Observed over predicted, and residuals over predicted."""
    kept = slice(None, None, -(-len(report.known) // MOST_DOTS))
    said, true = report.predicted[report.known][kept], report.y[report.known][kept]
    both, residuals = np.concatenate([said, true]), true - said
    largest = float(np.abs(both).max())
    power = max(int(np.floor(np.log10(largest) / 3)), 0) if largest > 0 else 0
    unit, word = 1000.0**power, UNITS.get(power, f", in 1e{3 * power}")
    low, high = _ends(both / unit)
    reach = max(map(abs, _ends(residuals / unit)))
    across = f"predicted{word}"
    plain = [
        replace(axis, percent=False)
        for axis in (*charts.square_axes((low, high), (low, high)),
                     charts.square_axes(y=(-reach, reach))[1])
    ]  # fmt: skip
    level = charts.ChartLine("diagonal", np.array([low, high]), np.zeros(2))
    return [
        charts.Chart(
            "Predicted against observed", across, f"observed{word}", plain[0], plain[1],
            [level._replace(y=level.x)], dots=charts.ChartLine("dots", said / unit, true / unit),
        ),
        charts.Chart(
            "Residuals: observed minus predicted", across, f"residual{word}", plain[0], plain[2],
            [level], dots=charts.ChartLine("dots", said / unit, residuals / unit),
        ),
    ]  # fmt: skip


def _ends(values: FloatArray) -> tuple[float, float]:
    """The range of values, to two digits of its width outwards."""
    low, high = float(values.min()), float(values.max())
    step = 10.0 ** np.floor(np.log10(high - low) - 1) if high > low else max(abs(high), 1.0)
    return float(np.floor(low / step) * step), float(np.ceil(high / step) * step) or step


def leaf_table(report: NumberReport) -> PageTable:
    """Error by leaf."""
    head = ["leaf", "rows", "mean", "typically off by", "mean residual"]
    if report.half_widths is not None:
        head += [f"{percent(INTERVAL, 0)} interval", "rows within"]
    rows = []
    for leaf in report.leaf_errors:
        cells = [str(leaf.number), f"{leaf.rows:,}", written(leaf.mean, 4), written(leaf.off, 2),
                 written(leaf.bias, 2)]  # fmt: skip
        if leaf.half is not None and leaf.within is not None:
            cells += [f"\N{PLUS-MINUS SIGN} {written(leaf.half, 2)}", percent(leaf.within, 0)]
        rows.append(cells)
    return PageTable("Error by leaf", head, rows, range(1, len(head)))


def _column_shares(report: NumberReport) -> Sequence[tuple[str, float]]:
    """The columns in use with their importances, the most important first."""
    shares = report.tree.feature_importances_
    used = sorted(report.tree.selected_features_.tolist(), key=lambda j: (-shares[j], j))
    return [(report.model.column_names[j], float(shares[j])) for j in used]
