"""The parts of the report that do not depend on the slider, and the glossary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softsplit.reading.outline import answer_words, outline
from softsplit.report.charts import PathChart, path_chart
from softsplit.report.measures import class_sentence, verdict
from softsplit.report.metrics import Interval
from softsplit.report.pages import PageTable, percent, with_interval
from softsplit.report.panels import Panel, headline, panel, strength_text
from softsplit.report.report_data import ReportData
from softsplit.support.messages import counted, shortened
from softsplit.support.numbers import number
from softsplit.variables import Cells, Variable
from softsplit.variables.variable import BOOLEAN, DATE, ORDERED

OPEN_ROWS = 20
"""Tables up to this length are shown open."""


class Card(NamedTuple):
    """A figure in large type."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class SummaryPart:
    """The part "In short"."""

    cards: list[Card]
    classes: str | None
    verdict: str


def summary(data: ReportData) -> SummaryPart:
    """What the page says first."""
    cards = []
    if data.watched is not None:
        most, base = data.base_rate
        always = f"accuracy of always predicting {shortened(most, 40)}"
        cards.append(Card("base rate", percent(base), always))
    of_others = data.undertrained or data.edited
    if of_others:  # what others reach is no figure of this tree
        name = f"{data.measure} on its own training rows"
        more = "more cannot be expected on new rows"
        cards.append(Card(name, percent(data.in_training), more))
    else:
        figure = data.lead(data.metrics(data.chosen))
        cards.append(_share_card(f"{data.measure} on held-out rows", figure))
    unseen = data.in_held_out_rows
    if unseen is not None and data.held_out_rows is not None:
        rows = f"{len(data.held_out_rows.y):,}"
        cards.append(_share_card(f"accuracy on the {rows} rows given as held out", unseen))
    if data.watched is not None and not of_others:
        metrics = data.class_metrics(data.chosen, data.watched)
        name = shortened(data.classes[data.watched], 40)
        for figure, what in (
            (metrics and metrics.found, f"of class {name} are found (recall)"),
            (metrics and metrics.trusted, f"of predicted {name} are right (precision)"),
        ):
            if figure is not None:
                cards.append(_share_card(what, figure, 0))
    questions = len(outline(data.tree.tree_).questions())
    used = f"{len(data.tree.selected_features_)} of {data.n_variables}"
    cards.append(Card("features used", used, f"in {counted(questions, 'question')}"))
    classes = None if data.edited else class_sentence(data, data.chosen)
    return SummaryPart(cards, classes, verdict(data))


def _share_card(name: str, share: Interval | None, digits: int = 1) -> Card:
    if share is None:
        return Card(name, "not judged")
    ends = f"between {percent(share.low, digits)} and {percent(share.high, digits)}"
    return Card(name, percent(share.value, digits), ends)


@dataclass(frozen=True)
class Explorer:
    """The trees of the path with what is said of each; without a chart there is one tree."""

    headlines: list[str]
    rule: str
    panels: list[Panel]
    chart: PathChart | None
    path: PageTable


def explorer(data: ReportData) -> Explorer:
    """The part with the slider."""
    points = range(len(data.trees))
    headlines, panels = [headline(data, i) for i in points], [panel(data, i) for i in points]
    return Explorer(headlines, rule_sentence(data), panels, path_chart(data), _path_table(data))


def rule_sentence(data: ReportData) -> str:
    """Why this tree and no other, and what the others are."""
    why = dict(data.provenance).get("Settings")
    sentence = f"Why this tree: {why}." if why else ""
    if len(data.trees) == 1:
        return sentence
    figures = [data.lead(data.metrics(i)) for i in range(len(data.trees))]
    own = None if data.edited else figures[data.chosen]
    sizes = [len(t.selected_features_) for t in data.trees]
    simpler = [
        i
        for i, value in enumerate(figures)
        if own is not None
        and value is not None
        and i != data.chosen
        and 0 < sizes[i] < sizes[data.chosen]
        and value.value >= own.value
    ]
    if simpler:
        i = max(simpler, key=lambda i: (figures[i] or own, -sizes[i]))
        sentence += (
            f" On the held-out rows tree {i + 1}, with {counted(sizes[i], 'feature')}, has no "
            f"lower {data.measure}: it may serve as well."
        )
    return (
        f"{sentence} The other stops of the slider are the best trees for their number of columns."
    )


def _path_table(data: ReportData) -> PageTable:
    rows = []
    for i, tree in enumerate(data.trees):
        mark = " (chosen)" if i == data.chosen else ""
        if mark and data.edited:
            mark = f" (chosen; {data.measure} of {data.own_title})"
        rows.append(
            [
                f"{i + 1}{mark}", strength_text(tree), with_interval(data.lead(data.metrics(i))),
                str(len(tree.selected_features_)), str(np.count_nonzero(tree.weights_)),
            ]
        )  # fmt: skip
    head = ["tree", "strength", data.measure, "features", "coefficients"]
    return PageTable("Trees from weak to strong penalty", head, rows, (1, 2, 3, 4))


class TableData(NamedTuple):
    """Classes with their rows and shares, and the columns of a table."""

    classes: list[tuple[str, int, float]]
    columns: PageTable


def table_data(data: ReportData) -> TableData:
    """The part about the data."""
    counts = np.bincount(data.labels, minlength=len(data.classes)).tolist()
    classes = [
        (name, count, count / len(data.y))
        for name, count in zip(data.classes[:OPEN_ROWS], counts, strict=False)
    ]
    head = ["column", "kind", "values", "missing"]
    return TableData(classes, PageTable("Columns of the table", head, _column_rows(data), (3,)))


def _column_rows(data: ReportData) -> list[list[str]]:
    """Columns in the order of the table: what they are, what they hold, how often nothing."""
    coding = data.rows.coding
    known: dict[int, list[tuple[Variable, Cells]]] = {}
    for i, place in enumerate(coding.places):
        known.setdefault(place, []).append((coding.variables[i], data.rows.rows.cells[i]))
    reasons = dict(coding.left_out)
    rows = []
    for place, name in enumerate(coding.names):
        if place not in known and name not in reasons:
            continue  # of a wide sparse matrix: it took no part
        if place not in known:
            rows.append([shortened(name, 60), "left out", reasons.get(name, ""), ""])
            continue
        variable, cells = known[place][0]
        kind, said = _described(variable, cells)
        parts = [shortened(part.name, 60) for part, _ in known[place] if part.part]
        if parts:  # of a date
            kind, said = "dates", "; ".join([*([said] if not variable.part else []), *parts])
        rows.append([shortened(name, 60), kind, said, f"{int(cells.missing.sum()):,}"])
    return rows


def _described(variable: Variable, cells: Cells) -> tuple[str, str]:
    """What a variable is, and its values."""
    if variable.levels:
        shown = ", ".join(shortened(level, 24) for level in variable.levels[:6])
        more = f" and {len(variable.levels) - 6} more" if len(variable.levels) > 6 else ""
        order = ", in order" if variable.kind == ORDERED else ""
        return f"{len(variable.levels)} levels{order}", shown + more
    numbers = cells.numbers[~cells.missing]
    if not len(numbers):
        return "no values", ""
    if variable.kind == BOOLEAN:
        return "true or false", f"{percent(float(numbers.mean()), 0)} true"
    ends = [variable.display(float(value)) for value in np.quantile(numbers, [0, 0.5, 1])]
    low, middle, high = (e if isinstance(e, str) else number(e) for e in ends)
    kind = "dates" if variable.kind == DATE else "numbers"
    return kind, f"{low} to {high}, median {middle}"


# --- Words that the page, the texts and the documents use in one sense each ----------------------


GLOSSARY = {
    "question": "What a box of the tree asks of a row: is a sum of points, or a weighted sum of "
    "some features, above (or below) a number? If it is, the answer is {yes} and the row goes "
    "left, otherwise right. A sum equal to the number is {no}.",
    "walk": "The way of one row through the tree: {yes} or {no} at every question, down to a leaf. "
    "The class of that leaf is predicted.",
    "leaf": "Where a walk ends. It has a class, a number of training rows, and their shares by "
    "class.",
    "mixture": "The class probabilities of all leaves, each weighted by the probability of "
    "reaching it. Class probabilities are computed in this way.",
    "sure": "Of a tree that predicts by the mixture: an answer is sure if it has a probability of "
    "95 % or more.",
    "feature": "A column of the table that the tree may use. A column of text is one feature, "
    "whatever the number of its levels; a question may weigh each level by itself.",
    "term": "One summand of a question. A feature that bends or has levels has several; limits of "
    "terms count features.",
    "strength": "How much a feature and a coefficient must improve the fit to stay in the tree. "
    "A weak penalty keeps many, a strong one few.",
    "steepness": "How quickly a question passes from one answer to the other.",
    "held out": "Rows that a model has not seen in training. Figures on held-out rows estimate "
    "those on new rows.",
    "interval": "The range of a figure, given the number of rows: such an interval contains the "
    "true figure 95 times in 100.",
    "balanced accuracy": "The mean over the classes of the share of correct predictions in each.",
    "rare": "A class with less than a fifth of an even share of the rows, that is under 10 % of "
    "two classes.",
}


def glossary(labels: Iterable[Any] = ()) -> dict[str, str]:
    """The glossary with the words for answers that a tree of these classes uses."""
    yes, no = answer_words(labels)
    return {word: meaning.format(yes=yes, no=no) for word, meaning in GLOSSARY.items()}
