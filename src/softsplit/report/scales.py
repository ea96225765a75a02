"""What a question weighs: for each feature a scale in its own units, all to one measure.

Feature j at value v adds steepness a_j (scaled_j(v) - mean_j) / p to the log-odds of yes, counted
from an average row. A scale draws this from left (pulls to yes) to right (pulls to no), with ticks
at round values of the feature, whatever the scaling; so nothing needs to be read in ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree as ET

import numpy as np

from softsplit.fitted.model import TreeModel
from softsplit.fitted.summary import BINARY
from softsplit.reading.equations import Split, holds_or_not
from softsplit.reading.outline import answer_words, described_sides, outline
from softsplit.reading.term_curves import term_curves
from softsplit.report.drawing import tall_curve, threshold_text, whatever_the_row
from softsplit.report.elements import add, add_table
from softsplit.report.pages import shortened
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import counted, visible
from softsplit.support.numbers import number


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


def add_questions(parent: ET.Element, model: TreeModel, anchor: str) -> None:
    """What each question of a tree weighs, to unfold; ``anchor`` plus its number is its name."""
    words = answer_words(model.labels)
    for found in outline(model).questions():
        split = found.split
        assert split is not None
        name = f"{anchor}{found.number}"
        part = add(parent, "details", {"id": name, "class": "question"})
        said = f"Question {found.number}: {counted(len(split.features), 'term')}"
        add(part, "summary", {}, said)
        if not split.features:
            add(part, "p", {}, f"{whatever_the_row(split, words)}.".capitalize())
            continue
        for curve in term_curves(model, split):
            box = add(part, "figure", {"class": "bent"})
            add(box, "figcaption", {"class": "quiet"}, f"{curve.told}.")
            box.append(tall_curve(curve))
        _scales(part, model, split)
        formula = add(part, "details")
        title = "As a formula (with ranks)" if split.ranked else "As a formula"
        add(formula, "summary", {}, title)
        add(formula, "p", {}).append(_code(split.condition()))
        add(formula, "p", {"class": "quiet"}, f"{threshold_text(split, words[0]).capitalize()}.")


def _code(text: str) -> ET.Element:
    made = ET.Element("code")
    made.text = text
    return made


def pulls(model: TreeModel, node: int, feature: int, values: FloatArray) -> FloatArray:
    """What values of a feature add to the log-odds of yes at a question, from an average row."""
    rows = np.zeros((len(values), len(model.feature_names)))
    rows[:, feature] = values
    scaled = model.scaled(rows)[:, feature] - model.summary.scaled_mean[feature]
    weight = model.parameters.weights[feature, node] / model.parameters.n_features
    made: FloatArray = model.steepness * weight * scaled
    return made


def average_pull(model: TreeModel, node: int) -> float:
    """Log-odds of yes of an average row."""
    parameters = model.parameters
    used = model.used(node)
    mean = model.summary.scaled_mean[used] @ parameters.weights[used, node] / parameters.n_features
    return float(model.steepness * (mean - parameters.thresholds[node]))


def _scales(parent: ET.Element, model: TreeModel, split: Split) -> None:
    shown = list(split.features[: LAYOUT.most_scales])
    ends = {j: _ends(model, split.branch, j) for j in shown}
    base = average_pull(model, split.branch)
    reach = max(max(abs(low), abs(high)) for low, high in ends.values())
    reach = max(reach, abs(base), 1e-9)
    height = LAYOUT.head + LAYOUT.row * (len(shown) + 1)
    box = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": "Scales"}
    svg = add(
        add(parent, "div", box), "svg",
        {
            "class": "scales", "viewBox": f"0 0 {LAYOUT.width:.0f} {height:.0f}", "role": "img",
            "width": f"{LAYOUT.width:.0f}", "height": f"{height:.0f}",
            "aria-label": f"Scales of {counted(len(shown), 'term')}, also as a table below",
        },
    )  # fmt: skip
    sides = [shortened(side, 44) for side in described_sides(model, split.branch)]
    middle = LAYOUT.left + (LAYOUT.width - LAYOUT.left - LAYOUT.right) / 2
    half = (LAYOUT.width - LAYOUT.left - LAYOUT.right) / 2

    def across(pull: float) -> float:
        return middle - half * pull / reach

    add(
        svg,
        "text",
        {"class": "end", "x": f"{LAYOUT.left:.0f}", "y": "16"},
        f"\N{LEFTWARDS ARROW} {sides[0]}",
    )
    place = {"class": "end last", "x": f"{LAYOUT.width - LAYOUT.right:.0f}", "y": "16"}
    add(svg, "text", place, f"{sides[1]} \N{RIGHTWARDS ARROW}")
    foot = f"{height - LAYOUT.row:.0f}"
    line = {"class": "middle", "x1": f"{middle:.1f}", "x2": f"{middle:.1f}", "y1": "22"}
    add(svg, "line", line | {"y2": foot})
    for i, j in enumerate(shown):
        _scale(svg, model, split.branch, j, LAYOUT.head + LAYOUT.row * (i + 0.5), across)
    y = LAYOUT.head + LAYOUT.row * (len(shown) + 0.5)
    add(svg, "text", {"class": "of", "x": "0", "y": f"{y + 4:.1f}"}, "an average row")
    spot = {"class": "average", "cx": f"{across(base):.1f}", "cy": f"{y:.1f}", "r": "5"}
    add(svg, "circle", spot)
    add(
        parent, "p", {"class": "quiet"},
        "Each value of a case pushes to the left or to the right of the line, and so does the "
        "average row: if these distances add up to the left, the answer is "
        f"{answer_words(model.labels)[0]}.",
    )  # fmt: skip
    _as_table(parent, model, split)


def _ends(model: TreeModel, node: int, feature: int) -> tuple[float, float]:
    ends = np.array([model.summary.low[feature], model.summary.high[feature]])
    low, high = pulls(model, node, feature, ends)
    return float(low), float(high)


def _scale(
    svg: ET.Element, model: TreeModel, node: int, feature: int, y: float, across: object
) -> None:
    """One feature: its line from the smallest to the largest training value, and ticks."""
    assert callable(across)
    low, high = _ends(model, node, feature)
    name = model.feature_names[feature]
    label = add(svg, "text", {"class": "of", "x": "0", "y": f"{y + 4:.1f}"}, shortened(name, 24))
    add(label, "title", {}, visible(name))
    line = {"class": "line", "x1": f"{across(low):.1f}", "x2": f"{across(high):.1f}"}
    add(svg, "line", line | {"y1": f"{y:.1f}", "y2": f"{y:.1f}"})
    last = None
    for value in tick_values(model, feature):
        x = across(float(pulls(model, node, feature, np.array([value]))[0]))
        add(
            svg, "line",
            {"class": "line", "x1": f"{x:.1f}", "x2": f"{x:.1f}", "y1": f"{y - 4:.1f}",
             "y2": f"{y + 4:.1f}"},
        )  # fmt: skip
        if last is None or abs(x - last) >= LAYOUT.nearest:
            add(svg, "text", {"class": "tick", "x": f"{x:.1f}", "y": f"{y + 17:.1f}"},
                number(value, 3))  # fmt: skip
            last = x


def tick_values(model: TreeModel, feature: int) -> list[float]:
    """Values of a feature at which a scale has ticks: its ends, and round ones between."""
    low, high = float(model.summary.low[feature]), float(model.summary.high[feature])
    if model.summary.kinds[feature] == BINARY or not low < high:
        return sorted({low, high})
    if not model.scaling.linear:
        ranks = np.linspace(0.0, 1.0, LAYOUT.ticks)
        return sorted({model.scaling.to_original(feature, float(rank)) for rank in ranks})
    step = 10.0 ** np.floor(np.log10((high - low) / LAYOUT.ticks))
    step *= next((m for m in (1, 2, 5, 10) if m * step * LAYOUT.ticks >= high - low), 10)
    inner = np.arange(np.ceil(low / step), np.floor(high / step) + 1)[: 3 * LAYOUT.ticks] * step
    return sorted({low, high, *inner.tolist()})


def _as_table(parent: ET.Element, model: TreeModel, split: Split) -> None:
    """All features of a question, however many."""
    rows, sides = [], described_sides(model, split.branch)
    for j in split.features:
        low, high = model.summary.low[j], model.summary.high[j]
        at_low, at_high = _ends(model, split.branch, j)
        when = "if so" if holds_or_not(model, j) else "higher values"
        towards = f"{when}: {sides[0] if at_high > at_low else sides[1]}"
        size = number(abs(at_high - at_low), 3)
        rows.append([visible(model.feature_names[j]), f"{number(low)} to {number(high)}", towards,
                     size])  # fmt: skip
    part = add(parent, "details")
    add(part, "summary", {}, f"{counted(len(rows), 'term')} of this question as a table")
    effect = "effect from smallest to largest value (log-odds)"
    head = ["feature", "training values", "direction", effect]
    add_table(part, "What the question weighs", head, rows, (3,))
