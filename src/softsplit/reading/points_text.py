"""The text of a tree in whole points.

    question 1: add the points
        glucose   1 for each full 20 above 60, at most 7
        bmi       below 25: 0 | from 25: 1 | from 30: 2
      7 or more: class positive (269 rows, 68 % right)
      fewer: class negative (499 rows, 83 % right)
      points                  0-1  2  3  4   5   6   7
      chance of positive, %     1  2  5  9  20  36  55

A question that needs no points is a statement, with "yes: ..." and "no: ..." below it; a tree that
looks at one column is a table of its values. Chances are those of ``predict_proba``: they stand
below a tree of one question. Lines have at most ``WIDTH`` characters: those that begin with eight
spaces continue the line before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

import numpy as np

from softsplit.fitted.model import TreeModel
from softsplit.reading.equations import Split, right_text
from softsplit.reading.outline import OutlineNode, side_words
from softsplit.reading.point_columns import PointColumn
from softsplit.reading.questions import PointedQuestion
from softsplit.support.arrays import FloatArray
from softsplit.support.lines import WIDTH, aligned, blocks, columns_of_text, wrapped
from softsplit.support.messages import shortened, visible
from softsplit.support.numbers import number
from softsplit.variables.lookup import Lookup
from softsplit.variables.variable import CATEGORY

# Lines of a table of one column at most, and classes of which each has its chance.
MOST_LINES = 12
MOST_CLASSES = 4

# Characters of the name of a class beside its chances.
MOST_LABEL = 40

# A class whose chance is smaller throughout is not listed.
LEAST_CHANCE = 0.01

# Widths of the gate around its centre at which chances of sums that are not whole are printed.
GATE_PLACES = (-4, -3, -2, -1, 0, 1, 2, 3, 4)


@dataclass(frozen=True)
class WrittenQuestion:
    """One question as it is written.

    Attributes
    ----------
    number : int
    head : str
        The statement, or what is done with the entries.
    entries : tuple of (str, str)
        Of a question in points its columns, and the points of their values.
    goals : tuple of (str, str)
        Both answers, and where they lead.
    """

    number: int
    head: str
    entries: tuple[tuple[str, str], ...]
    goals: tuple[tuple[str, str], ...]

    @property
    def lines(self) -> list[str]:
        """The question as text."""
        goals = (wrapped(f"  {word}: " if word else "  ", said) for word, said in self.goals)
        return [
            *wrapped(f"question {self.number}: ", self.head), *aligned(self.entries, 4),
            *chain.from_iterable(goals),
        ]  # fmt: skip


@dataclass(frozen=True)
class WrittenTable:
    """A table that stands below a question, or is all of a tree: its lines, the first its head."""

    rows: tuple[tuple[str, ...], ...]
    below: str = ""


@dataclass(frozen=True)
class WrittenTree:
    """A tree in points as it is written: questions with the chances below them, or one table."""

    questions: tuple[WrittenQuestion, ...]
    chances: WrittenTable | None = None
    table: WrittenTable | None = None

    @property
    def lines(self) -> list[str]:
        """The tree as text."""
        if self.table is not None:
            return [*columns_of_text(self.table.rows), *wrapped("  ", self.table.below)]
        text = [line for question in self.questions for line in question.lines]
        return [*text, *([] if self.chances is None else blocks(self.chances.rows))]


def written_tree(model: TreeModel, root: OutlineNode, numbered: bool = False) -> WrittenTree | None:
    """A tree in points; None if a question is none in points.

    With ``numbered``, leaves have their numbers.
    """
    asked = [node.split.points for node in root.questions() if node.split]
    questions = [question for question in asked if question is not None]
    if not asked or len(questions) < len(asked):
        return None
    table = None if numbered else _table(model, root, questions)
    if table is not None:
        return WrittenTree((), table=table)
    written = [
        _written_question(model, root, node, question, numbered)
        for node, question in zip(root.questions(), questions, strict=True)
    ]
    chances = _chances(model, root.split, questions[0]) if len(questions) == 1 else None
    return WrittenTree(tuple(written), chances)


def pointed_lines(model: TreeModel, root: OutlineNode, numbered: bool = False) -> list[str] | None:
    """The lines of a tree in points; None if a question is none in points."""
    tree = written_tree(model, root, numbered)
    return None if tree is None else tree.lines


def _written_question(
    model: TreeModel, root: OutlineNode, node: OutlineNode, question: PointedQuestion,
    numbered: bool,
) -> WrittenQuestion:  # fmt: skip
    """One question and where its answers lead."""
    said = question.statement if len(root.questions()) > 1 and not numbered else ""
    words = side_words(model, node) if said else question.answers
    goals = [
        (word, goal(model, root, child, numbered))
        for word, child in zip(words, node.children, strict=True)
    ]
    goals = goals[::-1] if said and question.denied else goals
    if len({end.classes[0][0] for end in node.ends()}) == 1 and not numbered:
        goals = [("", f"class {class_text(model, node.ends())} in any case")]
    listed = () if said else tuple((c.name, c.entry) for c in question.columns)
    head = f"{said}?" if said else question.head
    return WrittenQuestion(node.number, head, listed, tuple(goals))


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
    counts = model.walk.counts[:, [end.leaf for end in ends]].sum(axis=1)
    return f"{visible(model.labels[k])} ({right_text(counts, k)})"


# --- chances --------------------------------------------------------------------------------------


def _chances(
    model: TreeModel, split: Split | None, question: PointedQuestion
) -> WrittenTable | None:
    """Probabilities of a tree of one question, by its points.

    Of sums that are not whole only some have their chances; neighbours of equal chances share one.
    """
    # 1. The sums, and the chances of each.
    totals, whole = [*map(float, question.sums)], question.whole
    if not whole:
        assert split is not None
        digits = max(0, -int(np.floor(np.log10(split.gate_width))))
        totals = sorted({round(split.centre + k * split.gate_width, digits) for k in GATE_PLACES})
    X = np.zeros((len(totals), model.parameters.n_features))
    X[:, question.columns[0].column] = totals
    chances = model.predict_proba(X)
    told = [k for k in _told(model) if chances[:, k].max() >= LEAST_CHANCE]
    if not told:
        return None
    fine = {k: bool(chances[:, k].max() < 0.5) for k in told}
    texts = [tuple(chance_text(float(row[k]), fine[k]) for k in told) for row in chances]
    # 2. A column of the table for each run of equal chances.
    columns = []
    for text, run in groupby(range(len(totals)), texts.__getitem__):
        own = [number(totals[i], None) for i in run]
        places = [f"{own[0]}{'-' if totals[0] >= 0 else ' to '}{own[-1]}"]
        places = own if len(own) == 1 or not whole else places
        columns += [(place, *text) for place in places]
    heads = "points", *(f"chance of {shortened(model.labels[k], MOST_LABEL)}, %" for k in told)
    return WrittenTable(tuple(zip(heads, *columns, strict=True)))


def _told(model: TreeModel) -> list[int]:
    """Classes of which chances are printed: of two the second, for which points speak."""
    n = len(model.labels)
    return [1] if n == 2 else list(range(n)) if n <= MOST_CLASSES else []


def chance_text(share: float, fine: bool) -> str:
    """A probability in whole per cent; of a class that nowhere prevails small ones to a tenth."""
    least = 0.001 if fine else 0.01
    if min(share, 1.0 - share) < 0.95 * least:
        return f"<{100 * least:g}" if share < 0.5 else f">{100 - 100 * least:g}"
    return f"{100 * share:.{int(share < 0.0095)}f}"


def _table(
    model: TreeModel, root: OutlineNode, questions: Sequence[PointedQuestion]
) -> WrittenTable | None:
    """A tree on one column as a table of its values; None where it is none, or a long one."""
    columns = [column for question in questions for column in question.columns]
    first = columns[0]
    if any(c.variable != first.variable or c.lookup.slopes for c in columns):
        return None
    # 1. All places of the column, and the class and the chances of each.
    column, numbers, missing = _places(columns)
    X = np.zeros((len(numbers), model.parameters.n_features))
    for c in columns:
        X[:, c.column] = c.lookup.values(numbers, missing)
    classes, chances = model.predict_index(X), model.predict_proba(X)
    told = _told(model)
    labels = [visible(label) for label in model.labels]
    keys = [
        (labels[k], *(chance_text(float(row[j]), bool(chances[:, j].max() < 0.5)) for j in told))
        for k, row in zip(classes, chances, strict=True)
    ]
    # 2. Groups of places of one class and chance.
    groups = list(dict.fromkeys(keys))
    lines = _grouped(column, [groups.index(key) for key in keys], len(missing) - int(missing.sum()))
    if len(lines) > MOST_LINES:
        return None
    # 3. The table, and below it the rows of each class.
    head = (first.name, "class", *(f"chance of {labels[k]}, %" for k in told))
    table = (head, *((words, *groups[i]) for words, i in lines))
    ends = {k: [end for end in root.ends() if end.classes[0][0] == k] for k in sorted(set(classes))}
    counted = "; ".join(f"class {class_text(model, own)}" for own in ends.values() if own)
    fits = max(map(len, columns_of_text(table))) <= WIDTH
    return WrittenTable(table, counted) if fits else None


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
