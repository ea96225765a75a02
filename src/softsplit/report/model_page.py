"""A tree as a page of its own, made from its model file alone: no rows are needed."""

from __future__ import annotations

from collections.abc import Sequence

from softsplit.fitted.model import TreeModel
from softsplit.report.document import add_head, asset
from softsplit.report.drawing import tree_outline, tree_svg
from softsplit.report.elements import add, add_table, element, rendered, shortened
from softsplit.report.sections import add_provenance, add_words, section
from softsplit.support.messages import counted, visible
from softsplit.support.numbers import number
from softsplit.variables import Variable
from softsplit.variables.variable import BOOLEAN, DATE, ORDERED


def model_page(model: TreeModel, facts: Sequence[tuple[str, str]] = ()) -> str:
    """The page as HTML; ``facts`` are what else is known of the tree, by name."""
    target = "" if model.target is None else f" for {shortened(model.target, 60)}"
    html = element("html", {"lang": "en"})
    add_head(html, f"A tree{target}", asset("report.css") + asset("tree.css"))
    body = add(html, "body")
    header = add(body, "header")
    add(header, "h1", {}, f"A tree{target}")
    add(header, "p", {"class": "lead"}, _lead(model))
    main = add(body, "main")
    part = section(main, "tree", "The tree")
    label = "Drawing of the tree"
    box = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": label}
    add(part, "div", box).append(tree_svg(model, None, label))
    add(part, "h3", {}, "In words")
    part.append(tree_outline(model))
    part = section(main, "columns", "The columns")
    used = {int(i) for i in model.selected_variables}
    coding = model.table_coding
    order = sorted(range(len(coding.variables)), key=lambda i: (i not in used, i))
    rows = [_line(model, i, used=i in used) for i in order]
    rows += [[shortened(name, 60), "left out", "", why] for name, why in coding.left_out]
    add_table(part, "Columns of the training table", ["column", "used", "kind", "values"], rows)
    edits = [("Edit by hand", line) for line in model.edits.lines]
    add_provenance(main, [*facts, *edits])
    add_words(section(main, "words", "Words"), model.labels)
    said = "Made by softsplit. This page is one file and needs no internet connection."
    add(add(body, "footer"), "p", {"class": "quiet"}, said)
    return "<!doctype html>\n" + rendered(html) + "\n"


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


def _line(model: TreeModel, i: int, *, used: bool) -> list[str]:
    variable = model.table_coding.variables[i]
    kind, values = _described(model, i, variable)
    return [shortened(variable.name, 60), "yes" if used else "no", kind, values]


def _described(model: TreeModel, i: int, variable: Variable) -> tuple[str, str]:
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
