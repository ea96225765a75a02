"""The text of a tree in whole points.

    question 1: add the points
        glucose   1 for each full 20 above 60, at most 7
        bmi       below 25: 0 | from 25: 1 | from 30: 2
      7 or more: class positive (269 rows, 68 % right); fewer: class negative (499 rows, 83 % right)
      chance of positive in %, by points: 0 to 1: 1, 2: 2, 3: 5, 4: 9

A question that needs no points is a statement, with "yes: ...; no: ..." below it; a tree that looks
at one column is a table of its values. Chances are those of ``predict_proba``: they stand below a
tree of one question. Lines have at most ``WIDTH`` characters: those that begin with eight spaces
continue the line before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from softsplit.fitted.model import TreeModel
from softsplit.reading.equations import UNCOUNTED
from softsplit.reading.outline import OutlineNode, answer_words
from softsplit.reading.point_columns import PointColumn
from softsplit.reading.questions import PointedQuestion
from softsplit.support.arrays import FloatArray
from softsplit.support.lines import WIDTH, aligned, wrapped
from softsplit.support.messages import visible
from softsplit.support.numbers import number, whole_percentage
from softsplit.variables.lookup import Lookup
from softsplit.variables.variable import CATEGORY

# Lines of a table of one column at most, and classes of which each has its chance.
MOST_LINES = 12
MOST_CLASSES = 4

# A class whose chance is smaller throughout is not listed.
LEAST_CHANCE = 0.01

# Smaller chances are "under 0.1" per cent.
LEAST_TOLD = 0.00095

# Widths of the gate around its centre at which chances of sums that are not whole are printed.
GATE_PLACES = (-4, -3, -2, -1, 0, 1, 2, 3, 4)


def pointed_lines(model: TreeModel, root: OutlineNode, numbered: bool = False) -> list[str] | None:
    """The lines of a tree in points; None if a question is none in points.

    With ``numbered``, leaves have their numbers.
    """
    asked = [node.split.points for node in root.questions() if node.split]
    questions = [question for question in asked if question is not None]
    if not asked or len(questions) < len(asked):
        return None
    table = [] if numbered else _table(model, root, questions)
    if table:
        return table
    lines = []
    for node, question in zip(root.questions(), questions, strict=True):
        lines += question_lines(model, root, node, question, numbered)
    return [*lines, *(chance_lines(model, root, questions[0]) if len(questions) == 1 else [])]


def question_lines(
    model: TreeModel,
    root: OutlineNode,
    node: OutlineNode,
    question: PointedQuestion,
    numbered: bool = False,
) -> list[str]:
    """One question and where its answers lead."""
    said = question.statement if len(root.questions()) > 1 and not numbered else ""
    head = wrapped(f"question {node.number}: ", said or question.head)
    words = answer_words(model.labels) if said else question.answers
    goals = [
        f"{word}: {goal(model, root, child, numbered)}"
        for word, child in zip(words, node.children, strict=True)
    ]
    if len({end.classes[0][0] for end in node.ends()}) == 1 and not numbered:
        goals = [f"class {class_text(model, node.ends())} in any case"]
    listed = [] if said else aligned([(c.name, c.entry) for c in question.columns], 4)
    return [*head, *listed, *wrapped("  ", "; ".join(goals))]


def goal(model: TreeModel, root: OutlineNode, node: OutlineNode, numbered: bool = False) -> str:
    """Where an answer leads: the next question, or a class with the training rows there."""
    if node.split is not None:
        return f"question {node.number}"
    place = f" [leaf {root.end_number(node.leaf)}]" if numbered else ""
    return f"class {class_text(model, [node])}{place}"


def class_text(model: TreeModel, ends: Sequence[OutlineNode]) -> str:
    """A class, how many training rows arrive at its ends, and how many of them are of it."""
    assert model.walk is not None
    k = ends[0].classes[0][0]
    label = visible(model.labels[k])
    counts = model.walk.counts[:, [end.leaf for end in ends]].sum(axis=1)
    total = float(counts.sum())
    if np.isnan(total):
        return f"{label} ({UNCOUNTED})"
    if total == 0:
        return f"{label} (no training row)"
    rows = number(total, None if total == round(total) else 4)
    right = whole_percentage(float(counts[k]) / total)
    return f"{label} ({rows} row{'' if total == 1 else 's'}, {right} % right)"


# --- chances --------------------------------------------------------------------------------------


def chance_lines(model: TreeModel, root: OutlineNode, question: PointedQuestion) -> list[str]:
    """Probabilities of a tree of one question, by its points."""
    split = root.split
    assert split is not None
    totals: list[float] = [*question.sums]
    word = "by"
    if totals:
        totals = [*map(float, range(int(totals[0]), int(totals[-1]) + 1))]
    else:
        digits = max(0, -int(np.floor(np.log10(split.gate_width))))
        steps = [round(split.centre + k * split.gate_width, digits) for k in GATE_PLACES]
        totals, word = sorted(set(steps)), "at"
    X = np.zeros((len(totals), model.parameters.n_features))
    X[:, question.columns[0].column] = totals
    chances = model.predict_proba(X)
    lines = []
    for k in _told(model):
        if chances[:, k].max() < LEAST_CHANCE:
            continue
        texts = [chance_text(float(p)) for p in chances[:, k]]
        runs = []
        for text, run in groupby(range(len(totals)), texts.__getitem__):
            own = [number(totals[i], None) for i in run]
            places = [f"{own[0]} to {own[-1]}"] if len(own) > 1 and word == "by" else own[:1]
            runs += [f"{place}: {text}" for place in places]
        said = f"chance of {visible(model.labels[k])} in %, {word} points: {', '.join(runs)}"
        lines += wrapped("  ", said)
    return lines


def _told(model: TreeModel) -> list[int]:
    """Classes of which chances are printed: of two the second, for which points speak."""
    n = len(model.labels)
    return [1] if n == 2 else list(range(n)) if n <= MOST_CLASSES else []


def chance_text(share: float) -> str:
    """A probability in whole per cent, near 0 and 1 to a tenth."""
    if share > 0.5:
        rest = chance_text(1.0 - share).replace("under", "over")
        word, _, size = rest.rpartition(" ")
        places = len(size.partition(".")[2])
        return f"{word} {100 - float(size):.{places}f}".lstrip()
    if share < LEAST_TOLD:
        return "under 0.1"
    return f"{100 * share:.0f}" if share >= 0.0095 else f"{100 * share:.1f}"


def _table(model: TreeModel, root: OutlineNode, questions: Sequence[PointedQuestion]) -> list[str]:
    """A tree on one column as a table of its values; empty where it is none, or a long one."""
    columns = [column for question in questions for column in question.columns]
    first = columns[0]
    if any(c.variable != first.variable or c.lookup.slopes for c in columns):
        return []
    # 1. All places of the column, and the class and the chances of each.
    column, numbers, missing = _places(columns)
    assert model.coding is not None
    X = np.zeros((len(numbers), model.parameters.n_features))
    for c in columns:
        X[:, c.column] = c.lookup.values(numbers, missing)
    classes, chances = model.predict_index(X), model.predict_proba(X)
    told = _told(model)
    keys = [
        (int(k), " / ".join(chance_text(float(row[k])) for k in told))
        for k, row in zip(classes, chances, strict=True)
    ]
    # 2. Groups of places of one class and chance.
    groups = list(dict.fromkeys(keys))
    ids = [groups.index(key) for key in keys]
    lines = _grouped(column, ids, len(missing) - int(missing.sum()))
    if len(lines) > MOST_LINES:
        return []
    # 3. The table, and below it the rows of each class.
    labels = [visible(label) for label in model.labels]
    named = " / ".join(labels[k] for k in told)
    head = (f"by {first.name}", "class", f"chance of {named} in %" if told else "")
    body = [(f"    {words}", labels[groups[i][0]], groups[i][1]) for words, i in lines]
    widths = [max(len(line[n]) for line in (head, *body)) for n in (0, 1)]
    text = [f"{a:<{widths[0]}}   {b:<{widths[1]}}   {c}".rstrip() for a, b, c in (head, *body)]
    ends = {k: [end for end in root.ends() if end.classes[0][0] == k] for k in sorted(set(classes))}
    counted = [f"class {class_text(model, own)}" for own in ends.values() if own]
    return [*text, *wrapped("  ", "; ".join(counted))] if max(map(len, text)) <= WIDTH else []


def _places(columns: Sequence[PointColumn]) -> tuple[PointColumn, FloatArray, np.ndarray]:
    """A column with all ranges or levels of several look-ups, and a cell of each place."""
    first, variable = columns[0], columns[0].variable
    edges: tuple[float, ...] = ()
    if first.ranged:
        edges = tuple(sorted({edge for c in columns for edge in c.lookup.edges}))
        below = [np.nextafter(edges[0], -np.inf)] if edges else [variable.middle]
        numbers = np.array([*below, *edges])
    else:
        numbers = np.arange(float(first.n_values + variable.places_others))
        edges = () if variable.kind == CATEGORY else tuple(numbers[1:].tolist())
    unknown = first.lookup.unknown
    missing = np.zeros(len(numbers) + (unknown is not None), dtype=bool)
    missing[len(numbers) :] = True
    numbers = np.append(numbers, [variable.middle] * (len(missing) - len(numbers)))
    return replace(first, lookup=Lookup((0,), edges)), numbers, missing


def _grouped(column: PointColumn, ids: Sequence[int], n_known: int) -> list[tuple[str, int]]:
    """Words for the places of each group, by neighbours of ranges or by levels."""
    known, unknown = tuple(ids[:n_known]), ids[n_known] if len(ids) > n_known else None
    own = replace(column, lookup=Lookup(known, column.lookup.edges, unknown=unknown))
    if not own.ranged:
        return own.parts
    lines = []
    for i, run in groupby(range(n_known), known.__getitem__):
        lines.append((own.values_text(set(run)), i))
    return lines if unknown is None else [*lines, own.parts[-1]]
