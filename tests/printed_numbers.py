"""A person with a pencil follows a printed tree to a leaf and computes its formula."""

from __future__ import annotations

import re
from fractions import Fraction

from printed_tree import PrintedTree


class PrintedNumbers(PrintedTree):
    """The text of a tree that predicts a number, read line by line."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"\n {8}(?=\S)", " ", text)  # lines that were cut
        text = re.sub(r"(?<=\d),(?=\d{3})", "", text)  # thousands
        # Leaves become lines as those of classes, the place of the leaf in that of the class.
        leaf = r"(?m)^((?:\|   )*)(\S.*) = (.*)\n(?:\|   )*    \((.*)\)(?:   \[leaf (\d+)\])?$"
        self.formulas = {m[5] or "1": m[3] for m in re.finditer(leaf, text)}
        self.facts = {m[5] or "1": m[4] for m in re.finditer(leaf, text)}
        super().__init__(re.sub(leaf, lambda m: f"{m[1]}class {m[5] or 1}   ()", text))
        cut = re.search(r"training rows end: (.*)", text)
        ends = re.findall(r"(?:leaf (\d+) )?(\S+) to (\S+?)(?:,|$)", cut[1]) if cut else []
        self.ends = {place or "1": (Fraction(low), Fraction(high)) for place, low, high in ends}
        table = re.search(r"(?m)^\S.* = (?:product of)? *leaf 1.*\n((?:.+\n)+)", text)
        self.head, *self.lines = table[0].splitlines() if table else [""]

    def terms(self, place: str) -> list[tuple[Fraction, str]]:
        """Slopes and what they multiply; the constant stands first."""
        if self.formulas[place] == "see the table below":
            # Cells end where the head of their column does.
            ends = [found.end() for found in re.finditer(r"leaf \d+", self.head)]
            end = ends[int(place) - 1]
            cells = [(re.split(r" {2,}", line[:end])[-1] if line[:end].strip() and
                      line[end - 1 : end].strip() else "", re.split(r" {2,}", line)[0])
                     for line in self.lines]  # fmt: skip
            as_printed = str if "product of" in self.head else Fraction
            return [(as_printed(cell), name) for cell, name in cells if cell]
        if re.search(r" x \S+ (per|if) ", self.formulas[place]):  # factors
            first, *rest = self.formulas[place].split(" x ")
            parts = [re.match(r"(\S+) (if|per)( [\d.e-]+(?= ))? (.*)$", term) for term in rest]
            named = [m[4] if m[2] == "per" else f"[{m[4]}]" for m in parts]
            sizes = [f"{m[1]} per{m[3] or ' 1'}" for m in parts]
            return [(first, ""), *zip(sizes, named, strict=True)]
        first, *rest = re.split(r" (?=[+-] )(?![^(]*, \S+\))", self.formulas[place])
        terms = [(Fraction(first), "")]
        for term in rest:
            sign, size, name = re.match(r"([+-]) ([\d.e+-]+ )?(.*)$", term).groups()
            terms.append((Fraction((size or "1").strip()) * (-1 if sign == "-" else 1), name))
        return terms

    def predicted(self, row: dict) -> float:
        """The number that the printed tree says."""
        place = self.class_of(row)
        total = 0
        for slope, name in self.terms(place):
            value = self.value(name, row) if name not in ("", "constant") else None
            if isinstance(slope, str):  # a factor to the power of its term, or of a part of it
                size, _, unit = slope.partition(" per ")
                power = float(value) / float(unit or 1) if value is not None else 1.0
                total = (total or 1.0) * float(size) ** power
            else:
                total += slope * (1 if value is None else value)
        low, high = self.ends.get(place, (total, total))
        return float(min(max(total, low), high))
