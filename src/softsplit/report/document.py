"""Pages of one file: the report, a tree from its model file alone, new rows beside old ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softsplit.drift.results import ColumnCheck, TableCheck
from softsplit.fitted.model import TreeModel
from softsplit.reading.notes import decision_notes
from softsplit.reading.point_columns import listed
from softsplit.report import charts, panels, sections
from softsplit.report.case import WAYS, case_values
from softsplit.report.drawing import tree_outline, tree_svg
from softsplit.report.editor import FIGURES, editor_values
from softsplit.report.measures import quality, threshold_values
from softsplit.report.other_trees import other_trees
from softsplit.report.pages import PageTable, capital, page, percent
from softsplit.report.report_data import ReportData
from softsplit.report.requirements import requirements
from softsplit.support.messages import counted, shortened, visible
from softsplit.support.numbers import number
from softsplit.variables import Variable
from softsplit.variables.variable import BOOLEAN, DATE, ORDERED

# Classes that the title of a page names.
NAMED_CLASSES = 4


def render_report(data: ReportData) -> str:
    """The report as HTML."""
    model = data.tree.tree_
    case = case_values(data)
    editor = None if case is None else editor_values(data)
    explorer = sections.explorer(data)
    points = {
        "chosen": data.chosen,
        "said": explorer.headlines,
        "threshold": threshold_values(data),
        "case": case,
        "edit": editor,
    }
    return page(
        "report.html", ("report", "tree"), ("report", "tree", "fields", "case", "edit"),
        title=title(data), lead=lead(data),
        data=data, layout=charts.LAYOUT, shown=panels.SHOWN, open_rows=sections.OPEN_ROWS,
        summary=sections.summary(data), explorer=explorer, case=case,
        notes=decision_notes(model), ways=WAYS, editor=editor, figures=FIGURES,
        quality=quality(data), requirements=requirements(data) if model.rates else None,
        alternatives=other_trees(data.alternatives or ()),
        table_data=sections.table_data(data), provenance=[*data.provenance, *_edits(model)],
        words=sections.glossary(model.labels).items(), points=points,
    )  # fmt: skip


def title(data: ReportData) -> str:
    """What is asked: the target and its classes."""
    names = [shortened(name, 24) for name in data.classes]
    asked = listed(names) if len(names) <= NAMED_CLASSES else f"which of {len(names)} classes"
    return f"{shortened(data.rows.target, 60)}: {asked}?"


def lead(data: ReportData) -> str:
    """What the tree is worth, and what it needs, in one sentence."""
    figure, (most, base) = data.lead(data.metrics(data.chosen)), data.base_rate
    size = f"{shortened(data.name, 60)}, {counted(len(data.y), 'row')}"
    used = f"{len(data.tree.selected_features_)} of {counted(data.n_variables, 'column')}"
    if figure is None or data.edited or data.undertrained or data.rare is not None:
        return f"{size}; the tree uses {used}."
    return (
        f"Right on {100 * figure.value:.0f} of 100 new cases with {used}; always guessing "
        f"{shortened(most, 40)}: {100 * base:.0f} of 100 ({size})."
    )


def _edits(model: TreeModel) -> list[tuple[str, str]]:
    return [("Edit by hand", line) for line in model.edits.lines]


# --- A tree from its model file: no rows are needed -----------------------------------------------


def model_page(model: TreeModel, facts: Sequence[tuple[str, str]] = ()) -> str:
    """The page of a tree; ``facts`` are what else is known of it, by name."""
    target = "" if model.target is None else f" for {shortened(model.target, 60)}"
    used = {int(i) for i in model.selected_variables}
    coding = model.table_coding
    order = sorted(range(len(coding.variables)), key=lambda i: (i not in used, i))
    rows = [
        [shortened(coding.variables[i].name, 60), "yes" if i in used else "no",
         *_trained_values(model, i, coding.variables[i])]
        for i in order
    ]  # fmt: skip
    rows += [[shortened(name, 60), "left out", "", why] for name, why in coding.left_out]
    head = ["column", "used", "kind", "values"]
    return page(
        "model.html", ("report", "tree"),
        title=f"A tree{target}",
        lead=_lead(model),
        drawing=tree_svg(model, None, "Drawing of the tree"),
        outline=tree_outline(model),
        columns=PageTable("Columns of the training table", head, rows),
        provenance=[*facts, *_edits(model)],
        words=sections.glossary(model.labels).items(),
    )  # fmt: skip


def _lead(model: TreeModel) -> str:
    """What the page is made of, and what it does not have."""
    rows = ""
    if model.profile is not None:
        counts = ", ".join(
            f"{shortened(label, 40)} {count:,.6g}"
            for label, count in zip(model.labels, model.profile.classes.tolist(), strict=True)
        )
        rows = f" It was fitted to {counted(round(model.profile.rows), 'row')} ({counts})."
    return (
        f"{len(model.labels)} classes, {len(model.selected_columns)} of "
        f"{model.table_coding.n_candidates} columns used.{rows} This page is made from the model "
        "file alone: figures on rows, other trees and the form to try a case need the training "
        "table (softsplit report MODEL DATA)."
    )


def _trained_values(model: TreeModel, i: int, variable: Variable) -> tuple[str, str]:
    """What a variable is, and the values that it had in training."""
    if variable.levels:
        order = ", in order" if variable.kind == ORDERED else ""
        return f"{len(variable.levels)} levels{order}", ", ".join(map(visible, variable.levels))
    if variable.kind == BOOLEAN:
        return "true or false", ""
    j = model.table_coding.firsts[i]
    ends = [variable.display(float(end[j])) for end in (model.summary.low, model.summary.high)]
    low, high = (end if isinstance(end, str) else number(end) for end in ends)
    return "dates" if variable.kind == DATE else "numbers", f"{low} to {high}"


# --- New rows beside the training rows ------------------------------------------------------------


def check_page(check: TableCheck) -> str:
    """The page of a comparison of new rows with the training rows."""
    head = ["name", "", "p adjusted", "what is different", "missing", "outside", "PSI"]
    parts = []
    for of_columns, name, title in (
        (True, "columns", "Columns"), (False, "others", "Leaves, classes and answers"),
    ):  # fmt: skip
        own = [other for other in check.comparisons if (other.what == "column") == of_columns]
        own.sort(key=lambda other: (not other.moved, other.p_value is None, other.p_value))
        if own:
            parts.append(
                (name, title, PageTable(title, head, list(map(_cells, own)), (2, 4, 5, 6)))
            )
    head = ["class", "probability said", "share that is so", "95 % interval", "rows"]
    rows = [
        [shortened(str(part.label), 40), percent(part.said), percent(part.true),
         f"{percent(part.low)} to {percent(part.high)}", str(part.rows)]
        for part in check.reliability
    ]  # fmt: skip
    return page(
        "check.html", ("report",),
        title="New rows beside the training rows",
        lead=f"{capital(check.verdict)}.",
        check=check, parts=parts,
        reliability=PageTable("Reliability", head, rows, (1, 2, 3, 4)),
    )  # fmt: skip


def _cells(check: ColumnCheck) -> list[str]:
    state = "as in training" if check.p_value is not None else "not known"
    state = ("moved" if check.moved else state) + ("" if check.used else ", not used")
    missing = percent(check.missing)
    if not np.isnan(check.missing_in_training):
        missing += f" (was {percent(check.missing_in_training)})"
    return [
        shortened(check.name, 40), state, check.p_text, check.said,
        missing if check.what == "column" else "", str(check.outside or ""),
        "" if np.isnan(check.psi) else f"{check.psi:.3f}",
    ]  # fmt: skip
