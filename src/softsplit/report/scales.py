"""What a question weighs: for each feature a scale in its own units, all to one measure.

Feature j at value v adds steepness a_j (scaled_j(v) - mean_j) / p to the log-odds of yes, counted
from an average row. A scale draws this from left (pulls to yes) to right (pulls to no), with ticks
at round values of the feature, whatever the scaling; so nothing needs to be read in ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softsplit.fitted.model import TreeModel
from softsplit.fitted.summary import BINARY
from softsplit.reading.equations import Split, holds_or_not
from softsplit.reading.outline import answer_words, described_sides, outline
from softsplit.reading.points_text import question_lines
from softsplit.reading.term_curves import term_curves
from softsplit.report.drawing import tall_curve, threshold_text, whatever_the_row
from softsplit.report.pages import Table, capital, render
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import counted, shortened, visible
from softsplit.support.numbers import number

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class ScaleLayout:
    """Sizes of the scales of questions, in units of the drawing."""

    width: float = 640.0
    """Width of a scale."""

    left: float = 190.0
    """Space for names."""

    right: float = 20.0
    """Space at the right."""

    row: float = 44.0
    """Height of a row."""

    head: float = 30.0
    """Height of the head."""

    most_scales: int = 12
    """Scales that a page shows."""

    ticks: int = 5
    """Ticks of a scale, about."""

    nearest: float = 46.0
    """Least distance of two labels."""


LAYOUT = ScaleLayout()


class Scale(NamedTuple):
    """The scale of one feature: a line with ticks, some of them with their values."""

    name: str
    y: float
    left: float
    right: float
    ticks: list[tuple[float, str]]


@dataclass(frozen=True)
class Scales:
    """The scales of a question: pulls to the left of ``middle`` speak for its left side."""

    height: float
    sides: list[str]
    left: float
    middle: float
    right: float
    rows: list[Scale]
    average: tuple[float, float]


@dataclass(frozen=True)
class QuestionDetails:
    """What a question weighs; ``always`` is all that is said of one that weighs nothing, and the
    lines of ``text`` of one in points."""

    name: str
    number: int
    terms: str
    always: str = ""
    curves: tuple[tuple[str, Markup], ...] = ()
    scales: Scales | None = None
    table: Table | None = None
    ranked: bool = False
    condition: str = ""
    threshold: str = ""
    text: str = ""


def question_details(model: TreeModel, anchor: str) -> list[QuestionDetails]:
    """What each question of a tree weighs; ``anchor`` plus its number is its name on the page."""
    words = answer_words(model.labels)
    details, root = [], outline(model)
    for node in root.questions():
        split = node.split
        assert split is not None
        unit = "term" if split.points is None else "column"
        known = f"{anchor}{node.number}", node.number, counted(len(split.features), unit)
        if not split.features:
            always = capital(f"{whatever_the_row(split, words)}.")
            details.append(QuestionDetails(*known, always))
            continue
        if split.points is not None:
            text = "\n".join(question_lines(model, root, node, split.points))
            details.append(QuestionDetails(*known, text=text))
            continue
        curves = tuple((curve.sentence, tall_curve(curve)) for curve in term_curves(model, split))
        details.append(
            QuestionDetails(
                *known, "", curves, _scales(model, split), _terms(model, split), split.ranked,
                split.condition(), capital(threshold_text(split, words[0])),
            )
        )  # fmt: skip
    return details


def questions_html(model: TreeModel, anchor: str) -> Markup:
    """The same, to unfold."""
    questions = question_details(model, anchor)
    yes = answer_words(model.labels)[0]
    return render("questions.html", questions=questions, layout=LAYOUT, yes=yes)


def pulls(model: TreeModel, node: int, feature: int, values: FloatArray) -> FloatArray:
    """What values of a feature add to the log-odds of yes at a question, from an average row."""
    rows = np.zeros((len(values), len(model.feature_names)))
    rows[:, feature] = values
    scaled = model.scaled(rows)[:, feature] - model.summary.scaled_mean[feature]
    weight = model.parameters.weights[feature, node] / model.parameters.n_features
    return model.steepness * weight * scaled


def average_pull(model: TreeModel, node: int) -> float:
    """Log-odds of yes of an average row."""
    parameters = model.parameters
    used = model.used(node)
    mean = model.summary.scaled_mean[used] @ parameters.weights[used, node] / parameters.n_features
    return float(model.steepness * (mean - parameters.thresholds[node]))


def _scales(model: TreeModel, split: Split) -> Scales:
    shown = list(split.features[: LAYOUT.most_scales])
    ends = [_ends(model, split.branch, j) for j in shown]
    base = average_pull(model, split.branch)
    reach = max(abs(base), 1e-9, *(abs(end) for both in ends for end in both))
    half = (LAYOUT.width - LAYOUT.left - LAYOUT.right) / 2
    middle = LAYOUT.left + half

    def across(pull: float) -> float:
        return middle - half * pull / reach

    places = [LAYOUT.head + LAYOUT.row * (i + 0.5) for i in range(len(shown) + 1)]
    return Scales(
        height=LAYOUT.head + LAYOUT.row * len(places),
        sides=[shortened(side, 44) for side in described_sides(model, split.branch)],
        left=LAYOUT.left,
        middle=middle,
        right=LAYOUT.width - LAYOUT.right,
        rows=[
            Scale(model.feature_names[j], y, across(low), across(high),
                  _ticks(model, split.branch, j, across))
            for j, (low, high), y in zip(shown, ends, places, strict=False)
        ],
        average=(across(base), places[-1]),
    )  # fmt: skip


def _ends(model: TreeModel, node: int, feature: int) -> tuple[float, float]:
    low, high = pulls(model, node, feature, np.array(_range(model, feature)))
    return float(low), float(high)


def _range(model: TreeModel, feature: int) -> tuple[float, float]:
    """The smallest and the largest value of a feature in training."""
    return float(model.summary.low[feature]), float(model.summary.high[feature])


def _ticks(
    model: TreeModel, node: int, feature: int, across: Callable[[float], float]
) -> list[tuple[float, str]]:
    """Ticks of one feature; those too near to the one before are not written."""
    ticks: list[tuple[float, str]] = []
    last = -np.inf
    for value in tick_values(model, feature):
        x = across(float(pulls(model, node, feature, np.array([value]))[0]))
        written = abs(x - last) >= LAYOUT.nearest
        ticks.append((x, number(value, 3) if written else ""))
        last = x if written else last
    return ticks


def tick_values(model: TreeModel, feature: int) -> list[float]:
    """Values of a feature at which a scale has ticks: its ends, and round ones between."""
    low, high = _range(model, feature)
    if model.summary.kinds[feature] == BINARY or not low < high:
        return sorted({low, high})
    if not model.scaling.linear:
        ranks = np.linspace(0.0, 1.0, LAYOUT.ticks)
        return sorted({model.scaling.to_original(feature, float(rank)) for rank in ranks})
    step = 10.0 ** np.floor(np.log10((high - low) / LAYOUT.ticks))
    step *= next((m for m in (1, 2, 5, 10) if m * step * LAYOUT.ticks >= high - low), 10)
    inner = np.arange(np.ceil(low / step), np.floor(high / step) + 1)[: 3 * LAYOUT.ticks] * step
    return sorted({low, high, *inner.tolist()})


def _terms(model: TreeModel, split: Split) -> Table:
    """All features of a question, however many."""
    rows, sides = [], described_sides(model, split.branch)
    for j in split.features:
        low, high = _range(model, j)
        at_low, at_high = _ends(model, split.branch, j)
        when = "if so" if holds_or_not(model, j) else "higher values"
        towards = f"{when}: {sides[0] if at_high > at_low else sides[1]}"
        span = f"{number(low)} to {number(high)}"
        size = number(abs(at_high - at_low), 3)
        rows.append([visible(model.feature_names[j]), span, towards, size])
    effect = "effect from smallest to largest value (log-odds)"
    head = ["feature", "training values", "direction", effect]
    return Table("What the question weighs", head, rows, (3,))
