"""A tree as indented text and as Markdown, with splits in original units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from softsplit.fitted.model import TreeModel, tree_of
from softsplit.reading.case_costs import cost_notes
from softsplit.reading.equations import Split, rank_places
from softsplit.reading.leaf_formulas import leaf_lines, number_lines, tabled
from softsplit.reading.notes import imputation_notes, tree_notes, value_notes
from softsplit.reading.outline import OutlineNode, answer_words, outline
from softsplit.reading.points_text import pointed_lines
from softsplit.reading.term_curves import term_curves
from softsplit.support.arrays import FloatArray
from softsplit.support.lines import wrapped
from softsplit.support.messages import unfit, visible
from softsplit.support.numbers import number, percentage

MARKDOWN = re.compile(r"([\\`*_\[\]|<>~$&])")


def tree_text(
    model: TreeModel,
    max_terms: int | None = None,
    precision: int | None = None,
    detail: bool = False,
) -> str:
    """The tree in points (``points_text``), or nested "if ... else" lines.

    Below the latter, and with ``detail`` below points, stands what is needed to compute
    probabilities.
    """
    root = outline(model)
    pointed = pointed_lines(model, root, detail)
    if pointed is not None:
        recipe = [*probability_lines(model, root), *imputation_notes(model)] if detail else []
        below = [*recipe, *notes_below(model)]
        for line in below:
            said = line.lstrip()
            pointed += wrapped(" " * (len(line) - len(said)), said)
        return "\n".join(pointed)
    lines: list[str] = []
    leaf, walked = 0, model.walk is not None
    leaves = [end.leaf for end in root.ends()]
    in_table = model.numbers is not None and tabled(model, leaves)
    for node in root.walk():
        if node.side == 1:
            lines.append("|   " * (node.depth - 1) + "else")
        indent = "|   " * node.depth
        if node.split is None:
            leaf += 1
            place = f"leaf {leaf}" if walked and root.split else ""
            if model.numbers is not None:
                answer = leaf_lines(model, node.leaf, place, precision, in_table)
            else:
                answer = [f"class {node.label}{f'   [{place}]' if place else ''}"]
            lines += [f"{indent}{line}" for line in answer]
        else:
            text = _condition(node.split, max_terms, precision, walked)
            place = f"   [question {node.number}]" if walked else ""
            lines.append(f"{indent}{text}{place}")
    for j in ranked_features(root):
        places = ", ".join(
            f"{rank:g} at {value}" for rank, value in rank_places(model, j, precision or 4)
        )
        lines.append(f"rank({visible(model.feature_names[j])}): {places}")
    return "\n".join([*lines, *number_lines(model, leaves, precision), *lines_below(model, root)])


def lines_below(model: TreeModel, root: OutlineNode) -> list[str]:
    """What stands under a tree: its curves, how probabilities follow, what unknown values count
    as, what a case costs, what was required of rates, and how it was edited."""
    return [
        *curve_lines(model, root), *probability_lines(model, root),
        *same_class_lines(model, root), *value_notes(model), *notes_below(model),
    ]  # fmt: skip


def notes_below(model: TreeModel) -> list[str]:
    """When which class is predicted, what a case costs, what was required, and all edits."""
    return [
        *tree_notes(model), *cost_notes(model), *rate_notes(model), *edit_lines(model),
    ]  # fmt: skip


def same_class_lines(model: TreeModel, root: OutlineNode) -> list[str]:
    """For questions of a walk above leaves of one class: that they change the probability only."""
    if model.walk is None:
        return []
    lines = []
    for question in root.questions():
        predicted = {end.classes[0][0] for end in question.ends()}
        if len(predicted) == 1:
            label = visible(model.labels[predicted.pop()])
            lines.append(
                f"question {question.number} changes the probability only: "
                f"the class is {label} on both sides"
            )
    return lines


def curve_lines(model: TreeModel, root: OutlineNode) -> list[str]:
    """For numbers with several terms in a question: what each unit of them counts, from knot to
    knot."""
    return [
        f"{name} in question {question.number}: {rises}"
        for question in root.questions()
        for name, rises in ([] if question.split is None else term_curves(model, question.split))
    ]


def _condition(split: Split, max_terms: int | None, precision: int | None, walked: bool) -> str:
    if not split.features:
        return f"always: {split.always(precision or 4)}"
    text = f"if {split.condition(precision, max_terms)}"
    return text if walked else f"{text}   ({split.certainty(precision or 4)})"


FORMULA = (
    'probability: a question is true with p = 1 / (1 + exp(-(sum - centre) / width)), for "<" with '
    "1 - p; P(leaf) is the product along its path, P(class) the sum over leaves of P(leaf) x the "
    "percentage below (not the shares of training rows above):"
)
"""How probabilities follow from what is printed; ``sum`` is the left-hand side of a question."""

FORMULA_OF_POINTS = FORMULA.replace("is true", "has its first answer").replace(
    ', for "<" with 1 - p', ""
)

LOWERED = (
    "lower each {what} above that of the class reached to that value; divide {then}all by their sum"
)
"""The last step, by which no class is more probable than the predicted one."""


def _last_step(labels: Sequence[str], factors: FloatArray) -> str:
    """How the mixture of the leaves becomes consistent with the class reached.

    As ``consistent_with``, from printed numbers alone: ``factors`` are the costs of errors on the
    classes. Of two classes they leave one threshold for one probability.
    """
    names = [visible(label) for label in labels]
    if np.all(factors == factors[0]):
        return LOWERED.format(what="P(class)", then="")
    if len(names) == 2:
        k = int(np.argmax(factors))
        least = percentage(float(factors[1 - k] / factors.sum()))
        return (
            f"where {names[k]} is reached, raise P({names[k]}) to at least {least}; where "
            f"{names[1 - k]} is, lower it to at most that; P({names[1 - k]}) is the rest"
        )
    costs = ", ".join(f"{n} {number(f, None)}" for n, f in zip(names, factors, strict=True))
    step = LOWERED.format(what="product", then="by the costs, then ")
    return f"multiply each P(class) by the cost of an error on that class ({costs}); {step}"


def probability_lines(model: TreeModel, root: OutlineNode) -> list[str]:
    """The gates of all questions and the class probabilities of all leaves of a walk."""
    if model.walk is None or root.split is None or model.numbers is not None:
        return []
    lines = [FORMULA if root.split.points is None else FORMULA_OF_POINTS]
    lines += [
        f"    question {question.number}: {question.split.gate()}"
        for question in root.questions()
        if question.split is not None
    ]
    lines += [
        f"    leaf {i}: {leaf_probabilities(model, end)}" for i, end in enumerate(root.ends(), 1)
    ]
    if model.class_factors is not None:
        lines.append(f"    last: {_last_step(model.labels, model.class_factors)}")
    return lines


def rate_notes(model: TreeModel) -> list[str]:
    """A line for each requirement on rates: what holds on the training rows."""
    return [record.line() for record in model.rates]


def edit_lines(model: TreeModel) -> list[str]:
    """What was changed by hand: a heading and a line for each edit; nothing if nothing was."""
    return ["edits:", *(f"    {line}" for line in model.edits.lines)] if model.edits else []


def leaf_probabilities(model: TreeModel, end: OutlineNode) -> str:
    """Class probabilities of an end of the outline, the largest first."""
    leaves, shares = list(end.leaves), model.leaf_shares[:, end.leaf]
    if len(leaves) > 1:  # below branches without a question, whose gates are those of any row
        reach = model.reach(np.zeros((1, model.parameters.n_features)))[:, 0]
        own = reach[model.topology.n_branches :][leaves]
        shares = model.leaf_shares[:, leaves] @ (own / own.sum()) if own.sum() else shares
    order = np.argsort(-shares, kind="stable")
    return ", ".join(f"{visible(model.labels[k])} {percentage(shares[k])}" for k in order)


def tree_markdown(
    model: TreeModel, max_terms: int | None = None, precision: int | None = None
) -> str:
    """Nested list of the splits, a table of coefficients, and one of ranks if there are any.

    A tree in points, or of a number, is its text, as a block of code.
    """
    if model.numbers is not None:
        text = tree_text(model, max_terms, precision)
        return "".join(f"    {line}\n" if line else "\n" for line in text.split("\n"))
    items: list[str] = []
    root = outline(model)
    if (pointed := pointed_lines(model, root)) is not None:
        return "".join(f"    {line}\n" for line in [*pointed, *notes_below(model)])

    def write(node: OutlineNode, lead: str) -> None:
        start, split = "  " * node.depth + f"- {lead}", node.split
        if split is None:
            items.append(f"{start}class **{escape(node.label)}**")
            return
        if split.features:
            text = escape(split.condition(precision, max_terms))
            sure = "" if model.walk is not None else f" ({split.certainty(precision or 4)})"
            items.append(f"{start}**question {node.number}:** {text}{sure}?")
        else:
            said = split.always(precision or 4)
            items.append(f"{start}**question {node.number}:** {said}, always")
        words = answer_words(model.labels) if split.features else ("left", "right")
        for child, word in zip(node.children, words, strict=True):
            write(child, f"{word}: ")

    write(root, "")
    parts = ["\n".join(items)]
    splits = {q.number: q.split for q in root.questions() if q.split and q.split.features}
    if splits:
        parts.append(_coefficient_table(model, splits, precision))
    if ranked := ranked_features(root):
        parts.append(_rank_table(model, ranked, precision or 4))
    if bent := curve_lines(model, root):
        parts.append("\n".join(f"- {escape(line)}" for line in bent))
    if said := probability_lines(model, root):
        formula, *places = said
        parts.append("\n".join([escape(formula), "", *(f"- {escape(p.strip())}" for p in places)]))
    notes = [*same_class_lines(model, root), *value_notes(model), *tree_notes(model)]
    notes += cost_notes(model)
    if notes := [*notes, *rate_notes(model)]:
        parts.append("\n".join(f"- {escape(note)}" for note in notes))
    if said := edit_lines(model):
        parts.append("\n".join(["Edits:", "", *(f"- {escape(line)}" for line in said[1:])]))
    return "\n\n".join(parts) + "\n"


def ranked_features(root: OutlineNode) -> list[int]:
    """Features of whose ranks the conditions of an outline speak."""
    return sorted({j for node in root.walk() if node.split for j in node.split.ranked_features})


def _coefficient_table(model: TreeModel, splits: dict[int, Split], precision: int | None) -> str:
    """A line per feature and a column per question that looks at features, by its number."""
    importances = model.importances
    used = {j for split in splits.values() for j in split.features}
    order = sorted(used, key=lambda j: (0.0 if importances is None else -importances[j], j))
    digits = precision or next(iter(splits.values())).digits
    head = ["feature", *(f"question {place}" for place in splits)]
    if importances is not None:
        head.append("importance")
    rows = []
    for j in order:
        cells = [dict(zip(s.features, s.coefficients, strict=True)).get(j) for s in splits.values()]
        row = [escape(model.feature_names[j])]
        row += ["" if cell is None else number(cell, digits) for cell in cells]
        rows.append(row if importances is None else [*row, f"{importances[j]:.3f}"])
    bounds = [rf"\{split.sign} {number(split.threshold, digits)}" for split in splits.values()]
    rows.append(
        [f"**{answer_words(model.labels)[0]} if the sum is**", *bounds]
        + ([""] if importances is not None else [])
    )
    return _table(head, rows)


def _rank_table(model: TreeModel, ranked: list[int], precision: int) -> str:
    places = {j: rank_places(model, j, precision) for j in ranked}
    head = ["value at rank", *(f"{rank:g}" for rank, _ in places[ranked[0]])]
    names = model.feature_names
    return _table(head, [[escape(names[j]), *(v for _, v in places[j])] for j in ranked])


def _table(head: list[str], rows: list[list[str]]) -> str:
    align = [":---", *(["---:"] * (len(head) - 1))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, align, *rows])


def escape(text: str) -> str:
    """Text that Markdown shows as it stands."""
    return MARKDOWN.sub(r"\\\1", " ".join(visible(text).split()))


# --- of a fitted estimator -----------------------------------------------------------------------


def export_text(
    classifier: Any,
    feature_names: Sequence[str] | None = None,
    *,
    class_names: Sequence[Any] | None = None,
    max_terms: int | None = None,
    precision: int | None = None,
    detail: bool = False,
) -> str:
    """The tree as text.

    A tree in whole points (``points=True``) is a list of questions. Where points are to be added,
    the line of each column says how many a value has; the line below says where the sum leads.
    The brackets tell how many training rows arrive at a class, and how many of them are of it. The
    chances below a tree of one question are those of ``predict_proba``.

    Any other tree is indented. Follow the questions: where one holds go to the indented lines below
    it, otherwise to "else". The class at which you arrive is that of ``predict``. The brackets of a
    leaf tell how many training rows arrive there, and their classes. The lines below the tree say
    how ``predict_proba`` follows from the same sums. Coefficients are in original units, divided by
    that of the weightiest feature, which stands first.

    A tree that predicts by the mixture of its leaves (``decision="mixture"``, loss "cost") has soft
    splits: a sample on the boundary goes either way with probability one half, and the bracket
    says by how much the left side must differ from the threshold to be 95 % sure. A branch above
    leaves of one class decides nothing and is written as one leaf.

    A leaf of a tree that predicts a number is the formula that ``predict`` computes, with the rows
    that arrive, their mean and by how much new ones differ. More than four terms or leaves make a
    table below the tree.

    Under the quantile scaling a split on one feature is written as a threshold in original units
    too; in a longer one each feature stands for its rank from 0 to 1, and lines below the tree say
    which values have which rank.

    Parameters
    ----------
    classifier : fitted SoftTreeClassifier, or a search that holds one as ``best_estimator_``
    feature_names : sequence of str, optional
        Names to use instead of the fitted ones (``feature_names_in_`` or x0, x1, ...).
    class_names : sequence of str, optional
        Names to use instead of the classes, in the order of ``classes_``.
    max_terms : int, optional
        Most terms written per split; the rest is counted.
    precision : int, optional
        Significant digits. By default numbers are those that ``predict`` compares with; with fewer
        digits the printed tree may answer otherwise. Of a tree that predicts by mixture it is 4.
        Trees in points are always written with all columns and digits.
    detail : bool, default=False
        Of a tree in points, how ``predict_proba`` follows from the points of all questions, and
        what values count as that training did not have.
    """
    model = tree_of(classifier, numbers=True).with_names(feature_names, class_names)
    return tree_text(model, _at_least_one("max_terms", max_terms), _digits(precision), detail)


def export_markdown(
    classifier: Any,
    feature_names: Sequence[str] | None = None,
    *,
    class_names: Sequence[Any] | None = None,
    max_terms: int | None = None,
    precision: int | None = None,
) -> str:
    """The tree as Markdown: a nested list, and a table of all coefficients with importances.

    A tree in points is a block of code with the lines of ``export_text``.

    Parameters are those of ``export_text``. Names are escaped, so that no feature or class can
    break the list or the tables.
    """
    model = tree_of(classifier, numbers=True).with_names(feature_names, class_names)
    return tree_markdown(model, _at_least_one("max_terms", max_terms), _digits(precision))


def _at_least_one(name: str, value: int | None) -> int | None:
    if value is not None and (not isinstance(value, int) or value < 1):
        raise unfit(name, value, "must be an integer >= 1 or None")
    return value


def _digits(precision: int | None) -> int | None:
    if precision is not None and (not isinstance(precision, int) or not 1 <= precision <= 17):
        raise unfit("precision", precision, "must be an integer from 1 to 17 or None")
    return precision
