"""Why the tree says what it says about one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from softsplit.advice.changes import Change, class_changes
from softsplit.advice.joint_changes import joint_change
from softsplit.advice.leaf_reading import (
    LeafReading,
    leaf_lines,
    leaf_readings,
    number_lines,
    usual_interval,
)
from softsplit.advice.limits import AdviceLimits
from softsplit.fitted.model import TreeModel
from softsplit.fitted.ranges import far_remarks
from softsplit.reading.equations import Split, leaf_label
from softsplit.reading.outline import answer_words, outline, side_classes
from softsplit.reading.points_text import class_text
from softsplit.reading.questions import ADD
from softsplit.support.arrays import FloatArray
from softsplit.support.lines import aligned, wrapped
from softsplit.support.messages import cut, visible
from softsplit.support.numbers import finite, number
from softsplit.support.options import late
from softsplit.variables import Cells
from softsplit.variables.variable import UNKNOWN


@dataclass(frozen=True)
class ExplanationOptions:
    """What an explanation leaves unsaid.

    Attributes
    ----------
    no_pull : float
        Log-odds below this are what rounding leaves.
    mentioned : float
        Probabilities below this are not printed.
    far_beyond : float
        Training ranges after which their number means nothing to a reader.
    """

    no_pull: float = 1e-6
    mentioned: float = 0.0005
    far_beyond: float = 10.0


OPTIONS = ExplanationOptions()


@dataclass(frozen=True)
class Contribution:
    """What one feature does to one split; of a table, one variable with all its columns.

    Attributes
    ----------
    feature : int
        Its place among the columns of X.
    name : str
    value : float or str
        Of this row, in original units; a level, a date, "true", "false" or "unknown" as text.
    amount : float
        The term of the split as it is written: coefficient times value, or times rank.
    log_odds : float
        steepness * (term - the same term of the mean training row): what the feature adds to the
        log-odds of going left. With ``base_log_odds`` of the split they add up to ``log_odds``.
    treated : str
        Of a missing value and of a level that has no place in the coding, what it counts as:
        "counts as 30", "not seen in training: counts as other". Empty for other values.
    """

    feature: int
    name: str
    value: float | str
    amount: float
    log_odds: float
    treated: str = ""

    @property
    def told(self) -> str:
        """The value as text, with what it counts as."""
        value = _value(self.value)
        return f"{value} ({visible(self.treated)})" if self.treated else value


@dataclass(frozen=True)
class BranchReading:
    """One split for one row.

    Attributes
    ----------
    branch : int
    condition : str
        The split in original units as text; where it holds, the row goes left.
    reach : float
        Probability of getting to the branch.
    left : float
        Probability of going left there.
    total, threshold : float
        Left-hand side of the condition, and what it is compared with.
    log_odds, base_log_odds : float
        Of going left: for this row, and for the mean training row.
    contributions : tuple of Contribution
        The largest first.
    holds : bool or None
        Whether the condition holds, if it is one that holds or not and no sum.
    answer : bool
        Whether the row goes left on its way: whether the condition holds for the printed numbers,
        or without a walk whether that is more probable.
    sides : tuple of str
        The classes that the left and the right side make more probable.
    number : int
        Of the question in the printed tree.
    answers : tuple of str
        Of a question in points: what is said where it holds, and else; ``amount`` are points.
    """

    branch: int
    condition: str
    reach: float
    left: float
    total: float
    threshold: float
    log_odds: float
    base_log_odds: float
    contributions: tuple[Contribution, ...]
    holds: bool | None = None
    answer: bool = True
    sides: tuple[str, str] = ("true", "false")
    number: int = 0
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """The answer of a tree for one row, with its reasons. ``print`` it, or use ``to_dict()``.

    Attributes
    ----------
    label : object
        The predicted class, or number.
    probabilities : dict
        Of every class, as ``predict_proba`` has them; empty for a number.
    branches : tuple of BranchReading
        All splits that decide something, from the root down.
    path : tuple of int
        Those of them that lead to the leaf at which the row arrives.
    leaf : int
        That leaf, counted from the left; without a walk the most probable one.
    leaf_label : str
        Its class with the training rows that arrive there, or its classes with their shares.
    leaf_probability : float
        Of all leaves below the end of the path.
    changes : tuple of Change
        The smallest change of each single feature that changes the class, the smallest part of a
        training range first; see ``softsplit.advice.changes``.
    together : tuple of Change
        Where no feature alone changes the class: two that do so together, if such were found; see
        ``softsplit.advice.changes``.
    note : str
        Why another class is predicted than the most probable one; empty where it is that.
    remarks : tuple of str
        Values of the row that training did not have, and what they count as.
    leaf_number : int
        Of the leaf in the printed tree; 0 where leaves have no numbers there: without a walk, or
        without a question.
    limits : tuple of str
        Limits for changes that were given, in words.
    target : str
        Of a number: what is predicted.
    leaves : tuple of LeafReading
        Of a number: the formula of the leaf at which the row arrives, term by term; without a walk
        of all leaves.
    interval : tuple of float, optional
        Of a number: bounds of 90 % of new rows, where held-out rows are known.
    """

    label: Any
    probabilities: dict[Any, float]
    branches: tuple[BranchReading, ...]
    path: tuple[int, ...]
    leaf: int
    leaf_label: str
    leaf_probability: float
    changes: tuple[Change, ...]
    together: tuple[Change, ...] = ()
    note: str = ""
    remarks: tuple[str, ...] = ()
    leaf_number: int = 0
    limits: tuple[str, ...] = ()
    target: str = ""
    leaves: tuple[LeafReading, ...] = ()
    interval: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists, numbers and strings."""
        return asdict(self)

    def _repr_html_(self) -> str:
        return late("softsplit.report.notebook", "explanation_html")(self)

    def __str__(self) -> str:
        shown = sorted(self.probabilities.items(), key=lambda item: -item[1])
        chances = ", ".join(
            f"{visible(k)} {_percent(p)}" for k, p in shown if p >= OPTIONS.mentioned
        )
        lines = [f"class {visible(self.label)}   ({chances})", *([self.note] * bool(self.note))]
        if self.leaves:
            lines = number_lines(self.target, self.label, self.interval)
        lines += [*map(visible, self.remarks), ""]
        by_branch = {reading.branch: reading for reading in self.branches}
        asked = [by_branch[branch] for branch in self.path]
        if asked and all(reading.answers for reading in asked):
            goals = [f"question {reading.number}" for reading in asked[1:]]
            for reading, goal in zip(asked, [*goals, f"class {self.leaf_label}"], strict=True):
                lines += _point_lines(reading, goal)
            return "\n".join([*lines, "", *_change_lines(self)])
        for reading in asked:
            lines += _branch_lines(reading)
        if self.leaves:
            return "\n".join([*lines, *leaf_lines(self.leaves)])
        place = f"   [leaf {self.leaf_number}]" if self.leaf_number else ""
        lines.append(f"leaf: class {self.leaf_label}{place}")
        lines.append(f"    probability of this leaf {_percent(self.leaf_probability)}")
        lines += ["", *_change_lines(self)]
        return "\n".join(lines)


def explain(
    model: TreeModel,
    x: FloatArray,
    cells: Sequence[Cells] = (),
    limits: AdviceLimits | None = None,
) -> Explanation:
    """The explanation of one row, shape (n_features,).

    ``cells`` are those of the row, where it is more than plain numbers; ``limits`` are those of
    changes, if not the training ranges.
    """
    # 1. The values as people write them, and what those without a place in the coding count as.
    variables, none = model.table_coding.variables, np.zeros(1, dtype=bool)
    cells = cells or [Cells(np.array([value]), none, none) for value in x]
    pairs = list(zip(variables, cells, strict=True))
    written = [variable.display_cell(cell, 0) for variable, cell in pairs]
    treated = [variable.treatment(cell, 0) for variable, cell in pairs]
    remarks = [variables[i].remark(cells[i], 0) for i in model.selected_variables]

    # 2. The leaf at which the row arrives, and its way there.
    row, root = x[None, :], outline(model)
    leaf, leaves = int(model.arrive(row)[0]), model.leaf_proba(row)[0]
    steps = {step.branch: step.goes_left for step in model.topology.path(leaf)}
    asked = {node.node: node for node in root.questions() if node.split}
    path = [t for t in steps if t in asked]
    end = 2 * path[-1] + (1 if steps[path[-1]] else 2) if path else 0

    # 3. Every question for this row.
    readings = []
    for t in sorted(asked):
        reading = _reading(model, x, asked[t].split, written, treated)
        answer = steps.get(t, reading.left >= 0.5)
        readings.append(replace(reading, answer=answer, number=asked[t].number))

    # 4. The number, or the class and what would change it.
    known = [*filter(None, remarks), *far_remarks(model, x)]
    place = root.end_number(leaf) if model.walk is not None and root.split else 0
    way: dict[str, Any] = {
        "branches": tuple(readings),
        "path": tuple(path),
        "leaf": leaf,
        "leaf_probability": float(sum(leaves[i] for i in model.topology.leaves_below(end))),
        "remarks": tuple(known),
        "leaf_number": place,
    }
    limits = limits or AdviceLimits()
    if model.numbers is not None:
        if limits != AdviceLimits():
            raise ValueError(
                "limits of changes are for trees that predict classes; leave out fixed, ranges, "
                "only_decrease and only_increase."
            )
        predicted = float(model.calls(row)[0])
        parts = [(leaf, place, 1.0)]
        if model.walk is None:
            parts = [(k, 0, p) for k, p in enumerate(leaves.tolist()) if p > 0]
        return Explanation(
            label=predicted,
            probabilities={},
            leaf_label=leaf_label(model, leaf),
            changes=(),
            target=model.answers[0],
            leaves=leaf_readings(model, x, parts, written, treated),
            interval=usual_interval(model, leaf, predicted),
            **way,
        )
    proba, predicted = model.predict_proba(row)[0], int(model.predict_index(row)[0])
    end_node = next(node for node in root.ends() if leaf in node.leaves)
    pointed = bool(path) and all(asked[t].split.points for t in path)  # type: ignore[union-attr]
    room = limits.room(model, cells)
    changes = class_changes(model, x, written, room, cells)
    return Explanation(
        label=model.labels[predicted],
        probabilities=dict(zip(model.labels, proba.tolist(), strict=True)),
        leaf_label=class_text(model, [end_node]) if pointed else leaf_label(model, leaf),
        changes=tuple(changes),
        together=() if changes else joint_change(model, x, written, room, cells),
        note="" if proba[predicted] == proba.max() else _reason(model),
        limits=limits.sentences(model),
        **way,
    )


def _reason(model: TreeModel) -> str:
    """Why the tree may say another class than the most probable one."""
    if model.distributions is None:
        return "not the most probable class, but the one of least expected cost"
    return "not the most probable class: costs and rates of the training set the classes of leaves"


def _reading(
    model: TreeModel,
    x: FloatArray,
    split: Split | None,
    written: list[float | str],
    treated: list[str],
) -> BranchReading:
    """One split for a row; its number and answer are still to be set."""
    assert split is not None
    branch, coding, row = split.branch, model.table_coding, x[None, :]
    weights = model.parameters.weights[:, branch] / model.parameters.n_features
    scaled, features = model.scaled(row)[0], list(split.features)
    pulls = model.steepness * weights * (scaled - model.summary.scaled_mean)
    # The mean row itself: a difference of log-odds would be lost in rounding for a row far away.
    mean = scaled.copy()
    mean[features] = model.summary.scaled_mean[features]
    at_mean = float(weights @ mean) - float(model.parameters.thresholds[branch])
    seen = scaled if split.ranked else x
    amounts = {
        j: finite(coef * float(seen[j]))
        for j, coef in zip(split.features, split.coefficients, strict=True)
    }
    contributions = []
    points, holds = split.points, None
    asked = features if points is None else [column.column for column in points.columns]
    for i in dict.fromkeys(int(coding.homes[j]) for j in asked):
        own = [j for j in features if coding.homes[j] == i]
        contributions.append(
            Contribution(
                feature=coding.places[i],
                name=coding.variables[i].name,
                value=written[i],
                amount=finite(sum(amounts[j] for j in own)),
                log_odds=float(sum(pulls[j] for j in own)),
                treated=treated[i],
            )
        )
    if points is None:
        contributions.sort(key=lambda term: -abs(term.log_odds))
    total, answers = finite(sum(amounts.values())), tuple[str, ...]()
    if points is not None:
        holds = total > points.limit if points.statement else None
        words = points.sides(answer_words(model.labels))
        answers = words if points.statement else points.answers_in_full
    elif split.lefts is not None:
        holds = bool(x[split.features[0]]) == (split.sign == ">")
    sides = "true", "false"
    if model.numbers is None:
        left, right = side_classes(model, branch)
        sides = visible(model.labels[left]), visible(model.labels[right])
    return BranchReading(
        branch=branch,
        condition=split.condition() if split.features else "always",
        reach=float(model.reach(row)[branch, 0]),
        left=float(model.gates(row)[branch, 0]),
        total=total,
        threshold=split.threshold,
        log_odds=model.steepness * float(model.scores(row)[branch, 0]),
        base_log_odds=model.steepness * at_mean,
        contributions=tuple(contributions),
        holds=holds,
        sides=sides,
        answers=answers,
    )


def _branch_lines(reading: BranchReading) -> list[str]:
    sure = reading.left if reading.answer else 1 - reading.left
    said = f"{'true' if reading.answer else 'false'}, probability {_percent(sure)}"
    lines = [f"question {reading.number}: {reading.condition}"]
    summed = reading.holds is None and reading.contributions
    lines.append(f"    the sum is {number(reading.total, 6)}: {said}" if summed else f"    {said}")
    names = [visible(term.name) for term in reading.contributions]
    width = max(map(len, names), default=0)
    for name, term in zip(names, reading.contributions, strict=True):
        lines.append(f"    {name:<{width}} = {term.told:<10} {_pull(term.log_odds, reading.sides)}")
    if reading.contributions:
        base, sides = reading.base_log_odds, reading.sides
        side = f"{sides[0] if base > 0 else sides[1]} by {abs(base):.3g}"
        said = "neither side" if abs(base) < OPTIONS.no_pull else side
        lines.append(f"    starting point: an average training row favours {said}")
    return lines


def _point_lines(reading: BranchReading, goal: str) -> list[str]:
    """A question in points: what each value counts, their sum, and where it leads."""
    summed = reading.holds is None
    rows = [
        (visible(term.name), f"{_value(term.value)}{f': {number(term.amount, 6)}' * summed}")
        for term in reading.contributions
    ]
    answer = reading.answers[not reading.answer]
    answer = f"{number(reading.total, 6)} points, {answer}" if summed else answer
    head = f"question {reading.number}: "
    return [
        *wrapped(head, ADD if summed else reading.condition),
        *aligned(rows, 4),
        *wrapped("  ", f"{answer}: {goal}"),
    ]


def _value(value: float | str) -> str:
    return cut(visible(value)) if isinstance(value, str) else number(value, 6)


def changed_value(change: Change) -> str:
    """The new value with all its digits: with fewer the class may be another."""
    new = change.new_value
    return visible(new) if isinstance(new, str) else number(new, None)


def _pull(log_odds: float, sides: tuple[str, str]) -> str:
    if abs(log_odds) < OPTIONS.no_pull:
        return "speaks for neither side"
    return f"speaks for {sides[0] if log_odds > 0 else sides[1]} (+{abs(log_odds):.3g})"


def _change_lines(explanation: Explanation) -> list[str]:
    lines = []
    within = "within its limits" if explanation.limits else "within its training range"
    if explanation.limits:
        lines.append(f"limits: {'; '.join(explanation.limits)}")
    if explanation.changes:
        lines.append(f"another class if one feature changes {within}:")
        lines += [
            f"    {_change_text(change)}: class {visible(change.label)}"
            for change in explanation.changes
        ]
    elif explanation.together:
        lines.append(f"no single feature changes the class {within}; two do:")
        written = " and ".join(map(_change_text, explanation.together))
        lines.append(f"    {written}: class {visible(explanation.together[0].label)}")
    else:
        within = "these limits" if explanation.limits else "training ranges"
        lines.append(
            f"no change of one or two features within {within} was found to change the class"
        )
    return lines


def _change_text(change: Change) -> str:
    before, after = _value(change.value), cut(changed_value(change))
    level = isinstance(change.new_value, str) and change.share_of_range == 1.0
    # What is unknown has no distance from a number or a date.
    unplaced = change.value == UNKNOWN or (
        isinstance(change.value, str) and not isinstance(change.new_value, str)
    )
    far = "" if level or unplaced else f" ({_distance(change.share_of_range)})"
    return f"{visible(change.name)} from {before} to {after}{far}"


def _distance(share_of_range: float) -> str:
    if share_of_range > OPTIONS.far_beyond:
        return "from far beyond its range"
    return f"{_percent(share_of_range)} of its range"


def _percent(share: float) -> str:
    """A share without false certainty: 100 % only where it is that to the last digit shown."""
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    if 0 < share < OPTIONS.mentioned:
        return "< 0.1 %"
    return f"{100 * share:.3g} %"
