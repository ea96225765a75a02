"""Other trees as good as the chosen one, and how often its features come back in resamples."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from softsplit.estimators.alternatives import Alternative, Alternatives
from softsplit.estimators.stability import Stability
from softsplit.report.drawing import tree_outline, tree_svg
from softsplit.report.elements import add, add_markup, add_table
from softsplit.report.pages import percent, shortened
from softsplit.support.messages import counted, visible

SHOWN_SHARES = 8
"""Lines of each table of shares."""


def add_alternatives(parent: ET.Element, found: Alternatives) -> None:
    """A line for each tree, to be opened for its drawing and its words."""
    add(
        parent, "p", {},
        "These trees were compared when the tree was chosen. On held-out rows they are within "
        "one standard error of the chosen one, and they use other features or another number of "
        "questions. Take one of them if its features are cheaper to measure "
        "or easier to defend.",
    )  # fmt: skip
    for number, one in enumerate(found, 1):
        box = add(parent, "details", {"class": "alternative"})
        add(box, "summary", {}, f"Alternative {number}: {_title(one)}")
        sheet = {"class": "scroll sheet", "tabindex": "0", "role": "region"}
        label = f"Drawing of alternative {number}"
        drawn = add(box, "div", {**sheet, "aria-label": label})
        add_markup(
            drawn, tree_svg(one.tree.tree_, None, f"{label}; the same in words is below it.")
        )
        add_markup(box, tree_outline(one.tree.tree_))
        said = f"In Python it is tree.alternatives()[{number - 1}].tree, if tree is the search."
        add(box, "p", {"class": "quiet"}, said)


def _title(one: Alternative) -> str:
    names = ", ".join(
        f"{shortened(visible(name), 24)} (new)"
        if name in one.new_features
        else shortened(visible(name), 24)
        for name in one.features
    )
    size = f"{counted(one.n_questions, 'question')}, {counted(one.n_terms, 'term')}"
    return f"{names}; {size}; {one.gap_words}"


def add_stability(parent: ET.Element, found: Stability) -> None:
    """How often features, pairs and questions come back."""
    add(
        parent, "p", {},
        f"Trees with the same settings were trained on {found.n_resamples} resamples of the rows. "
        f"They predict the class of the chosen tree on {percent(found.agreement, 0)} of the rows, "
        f"and two of them agree on {percent(found.agreement_between, 0)}. Features that appear "
        "often are well supported; those that appear half of the time have a substitute.",
    )  # fmt: skip
    for what, title in (
        ("features", "Features that recur"),
        ("pairs", "Pairs of features in one tree"),
        ("questions", "Questions that ask for the same features"),
    ):
        shares: dict[Any, float] = getattr(found, what)
        rows = [
            [
                ", ".join(
                    shortened(visible(name), 30) for name in ([key] if what == "features" else key)
                ),
                percent(share, 0),
                "yes" if found.has(what, key) else "no",
            ]
            for key, share in list(shares.items())[:SHOWN_SHARES]
        ]
        if rows:
            add_table(parent, title, [what, "share", "in the tree"], rows, (1,))
