"""Ten words that the page, the texts and the documents use in one sense each."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from softsplit.report.elements import add

GLOSSARY = {
    "question": "What a box of the tree asks of a row: is a weighted sum of some features above "
    "(or below) a number? Where it is, a row goes left, else right. Also called a split.",
    "sure": "An answer is sure if 95 or more of 100 such rows go the same way. In between "
    "a row is unsure and counts on both sides, in parts.",
    "leaf": "Where a row ends. A leaf says how probable each class is there, and which class a row "
    "is called.",
    "feature": "A column of the table that the tree may use. A column of text is one feature, "
    "whatever the number of its levels; a question may weigh each level by itself.",
    "strength": "How much a feature and a coefficient must be worth to be in the tree. Weak keeps "
    "many, strong keeps few.",
    "steepness": "How quickly a question passes from one answer to the other around its number: "
    "the steeper, the fewer rows are unsure.",
    "left out": "Rows that a model has not seen in training. Figures on rows left out are what to "
    "expect of new rows.",
    "interval": "From where to where a figure may lie, given that it was counted on so many rows: "
    "right 95 times in 100.",
    "balanced accuracy": "The share of right answers within each class, and the mean of these: "
    "every class counts the same, however rare it is.",
    "rare": "A class with less than a fifth of an even share of the rows, that is under 10 % of "
    "two classes. Accuracy says little of it.",
}


def add_words(parent: ET.Element) -> None:
    """The glossary as a list."""
    listed = add(parent, "dl", {"class": "story"})
    for word, meaning in GLOSSARY.items():
        pair = add(listed, "div")
        add(pair, "dt", {}, word)
        add(pair, "dd", {}, meaning)
