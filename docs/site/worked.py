"""Worked examples of the documents: probabilities of one row step by step, a short model file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from softsplit.persistence import dumps_model
from softsplit.reading.outline import OutlineNode, outline
from softsplit.support.numbers import number


def by_hand(tree: Any, row: Any) -> str:
    """What a person writes who computes ``predict_proba`` of a row from the printed tree."""
    model, found = tree.tree_, {split.branch: split for split in tree.explain(row).branches}
    lines: list[str] = []
    ends: list[tuple[float, np.ndarray]] = []

    def visit(place: OutlineNode, factors: list[str], reach: float) -> None:
        if place.split is None:
            product = " x ".join(factors) if len(factors) > 1 else factors[0].strip("()")
            lines.append(f"leaf {len(ends) + 1}: {product} = {reach:.4f}")
            ends.append((reach, model.leaf_shares[:, place.leaf]))
            return
        left = found[place.node].left
        for child, share, text in zip(
            place.children, (left, 1 - left), (f"{left:.4f}", f"(1 - {left:.4f})"), strict=True
        ):
            visit(child, [*factors, text], reach * share)

    root = outline(model)
    for question in root.questions():
        split, here = question.split, found[question.node]
        assert split is not None
        total, centre = number(here.total, 6), number(split.centre, split.digits)
        term = f"({total} - {centre})".replace("- -", "+ ")
        power = (
            f"{'-' if split.sign == '>' else ''}{term} / {number(split.gate_width, split.digits)}"
        )
        condition = f"{total} {split.sign} {number(split.threshold, split.digits)}"
        answer = "yes" if here.answer else "no"
        lines.append(
            f"question {question.number}: {condition}? {answer}; "
            f"true with 1 / (1 + exp({power})) = {here.left:.4f}"
        )
    visit(root, [], 1.0)
    for k, label in enumerate(model.labels):
        terms = " + ".join(f"{reach:.4f} x {100 * shares[k]:.4g} %" for reach, shares in ends)
        total = sum(reach * shares[k] for reach, shares in ends)
        lines.append(f"{label}: {terms} = {100 * total:.2f} %")
    return "\n".join(lines)


def model_file(tree: Any) -> str:
    """The model file of a tree with four digits and two of its parameters, a part per line."""
    document = json.loads(dumps_model(tree), parse_float=lambda text: float(f"{float(text):.4g}"))
    known = document["training"]["parameters"]
    document["training"]["parameters"] = {name: known[name] for name in ("loss", "ridge")}
    lines = []
    for key, value in document.items():
        inside = json.dumps(value)
        if key in ("features", "tree"):
            parts = [f'    "{name}": {json.dumps(part)}' for name, part in value.items()]
            inside = "{\n" + ",\n".join(parts) + "\n  }"
        lines.append(f'  "{key}": {inside}')
    return "{\n" + ",\n".join(lines) + "\n}"
