"""A tree as indented text and as Markdown."""

from __future__ import annotations

import re

from softsplit.reading.answers import answers
from softsplit.reading.equations import (
    Split,
    common_label,
    number,
    rank_places,
    read_split,
    tree_notes,
)
from softsplit.reading.model import TreeModel
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import visible

MARKDOWN = re.compile(r"([\\`*_\[\]|<>~$&])")


def tree_text(
    model: TreeModel, max_terms: int | None = None, precision: int = 4, hard: bool = False
) -> str:
    """Nested "if ... else" lines; ``hard`` leaves out how sure a split is."""
    lines: list[str] = []
    ranked: set[int] = set()

    def write(node: int, indent: str) -> None:
        label = common_label(model, node)
        if label is not None:
            lines.append(f"{indent}class {label}")
            return
        split = read_split(model, node)
        ranked.update(split.ranked_features)
        lines.append(indent + _condition(split, max_terms, precision, hard))
        write(2 * node + 1, indent + "|   ")
        lines.append(f"{indent}else")
        write(2 * node + 2, indent + "|   ")

    write(0, "")
    for j in sorted(ranked):
        places = ", ".join(
            f"{rank:g} at {value}" for rank, value in rank_places(model, j, precision)
        )
        lines.append(f"rank({visible(model.feature_names[j])}): {places}")
    return "\n".join([*lines, *tree_notes(model)])


def _condition(split: Split, max_terms: int | None, precision: int, hard: bool) -> str:
    if not split.features:
        if hard:
            return "if always" if split.left_share >= 0.5 else "if never"
        return f"always: left with probability {split.left_share:.{precision}g}"
    text = f"if {split.condition(precision, max_terms)}"
    return text if hard else f"{text}   ({split.certainty(precision)})"


def tree_markdown(model: TreeModel, max_terms: int | None = None, precision: int = 4) -> str:
    """Nested list of the splits, a table of coefficients, and one of ranks if there are any."""
    items: list[str] = []
    splits: list[Split] = []
    yes, no = answers(model.labels)

    def write(node: int, indent: str, lead: str) -> None:
        label = common_label(model, node)
        if label is not None:
            items.append(f"{indent}- {lead}class **{escape(label)}**")
            return
        split = read_split(model, node)
        if not split.features:
            items.append(
                f"{indent}- {lead}left with probability {split.left_share:.{precision}g}, always"
            )
        else:
            splits.append(split)
            text = escape(split.condition(precision, max_terms))
            sure = split.certainty(precision)
            items.append(f"{indent}- {lead}**split {len(splits)}:** {text} ({sure})?")
        write(2 * node + 1, indent + "  ", f"{yes}: " if split.features else "left: ")
        write(2 * node + 2, indent + "  ", f"{no}: " if split.features else "right: ")

    write(0, "", "")
    parts = ["\n".join(items)]
    if splits:
        parts.append(_coefficient_table(model, splits, model.importances, precision))
    ranked = sorted({j for split in splits for j in split.ranked_features})
    if ranked:
        parts.append(_rank_table(model, ranked, precision))
    if notes := tree_notes(model):
        parts.append("\n".join(f"- {escape(note)}" for note in notes))
    return "\n\n".join(parts) + "\n"


def _coefficient_table(
    model: TreeModel, splits: list[Split], importances: FloatArray | None, precision: int
) -> str:
    found = {j for split in splits for j in split.features}
    order = sorted(found, key=lambda j: (0.0 if importances is None else -importances[j], j))
    head = ["feature", *(f"split {i + 1}" for i in range(len(splits)))]
    if importances is not None:
        head.append("importance")
    rows = []
    for j in order:
        cells = [dict(zip(s.features, s.coefficients, strict=True)).get(j) for s in splits]
        row = [escape(model.feature_names[j])]
        row += ["" if cell is None else number(cell, precision) for cell in cells]
        rows.append(row if importances is None else [*row, f"{importances[j]:.3f}"])
    bounds = [rf"\{split.sign} {number(split.threshold, precision)}" for split in splits]
    rows.append(
        [f"**{answers(model.labels)[0]} if the sum is**", *bounds]
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
