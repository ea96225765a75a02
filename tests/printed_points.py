"""A person with a pencil: follows the printed text of a tree in whole points, and nothing else."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from math import ceil, exp, floor

import pandas as pd

from printed_tree import DAY, MILLISECOND, PrintedTree

QUOTED = r'"(?:[^"\\]|\\.)*"'
DATE = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d(\.\d+)?)?)?")


def parted(text: str, separator: str) -> list[str]:
    """Parts of a text between separators that stand outside of quotation marks."""
    kept = re.sub(QUOTED, lambda found: found[0].replace(separator, "\0"), text)
    return [part.replace("\0", separator) for part in kept.split(separator)]


class PrintedPoints:
    """The text of ``export_text``, read line by line.

    Sums are made of fractions: decimal numbers are added as a person adds them, without rounding.
    """

    def __init__(self, text: str, columns: list[str]) -> None:
        parts = "(?:hour|weekday|month|day of year) of "
        times = [rf"(?:days|hours|minutes|seconds) from {re.escape(c)} to " for c in columns]
        named = "|".join(re.escape(c) for c in sorted(columns, key=len, reverse=True))
        self.name = rf"(?:{'|'.join([parts, *times])})?(?:{named})"
        lines: list[str] = []
        for line in text.splitlines():
            assert len(line) <= 100, line
            if re.match(r" {8}", line):
                lines[-1] += f" {line.strip()}"
            else:
                lines.append(line)
        recipe = next(
            (i for i, s in enumerate(lines) if s.startswith(("probability:", "edits:"))), len(lines)
        )
        lines, self.recipe = lines[:recipe], [line.strip() for line in lines[recipe:]]
        counted = (
            re.match(rf"({self.name}): (.*) counts as (.*?)(?:; levels of training: (.*))?$", line)
            for line in self.recipe
        )
        self.imputed = {
            found[1]: (
                json.loads(found[3]) if found[3].startswith('"') else found[3],
                parted(found[4], ", ") if found[4] else [],
                "unknown" in found[2],
            )
            for found in counted
            if found
        }
        self.lines, self.questions = lines, {}
        self.chances: dict[str, list[tuple[Fraction, Fraction, str]]] = {}
        self.table: list[list[str]] = []
        places: list[tuple[Fraction, Fraction]] = []
        for i, line in enumerate(lines):
            if found := re.match(r"question (\d+): (.*)", line):
                at = int(found[1])
                self.questions[at] = (found[2].removesuffix("?"), [], [])
            elif not self.questions and re.match(rf"  {self.name} +class\b", line):
                end = next(k for k in range(i + 1, len(lines)) if lines[k].startswith("  class "))
                self.table = [re.split(r" {3,}", row.strip()) for row in lines[i:end]]
            elif line.startswith("    ") and self.questions:
                self.questions[at][1].append(
                    re.match(rf" {{4}}({self.name}) {{3,}}(.*)", line).groups()
                )
            elif line.startswith("  points  "):
                places = [self._place(cell) for cell in line.split("  ")[2:] if cell]
            elif found := re.match(r"  chance of (.*), %  (.*)", line):
                own = [(*ends, c) for ends, c in zip(places, found[2].split(), strict=True)]
                self.chances.setdefault(found[1], []).extend(own)
            elif found := re.match(r"  class (.*) \(.*\) in any case$", line):
                self.questions[at] = (*self.questions[at][:2], found[1])
            elif line.startswith("  ") and self.questions:
                self.questions[at][2].append(re.match(r"  (.*?): (.*)", line).groups())

    @staticmethod
    def _place(text: str) -> tuple[Fraction, Fraction]:
        low, _, high = (
            text.strip().replace(" to ", "~").replace("-", "~", text[0] != "-").partition("~")
        )
        return Fraction(low), Fraction(high or low)

    # --- the walk ---------------------------------------------------------------------------------

    def class_of(self, row: dict) -> str:
        """The class at which the printed questions lead."""
        if self.table:
            return self._line(row)[1]
        if not self.questions:
            return re.match(r"class (.*?)   \(", self.lines[0])[1]
        at = 1
        while True:
            said, listed, goals = self.questions[at]
            if isinstance(goals, str):
                return goals
            (word, yes), (_, no) = goals
            if listed:
                total, limit = self.total(at, row), Fraction(re.search(r"-?\d[\d.e+-]*", word)[0])
                holds = total >= limit if word.endswith(" or more") else total > limit
            else:
                holds = self.holds(said, row)
            goal = yes if holds else no
            if not goal.startswith("question "):
                counted = r"\S+ rows?, .* right|no training row|rows not counted .*"
                return re.match(rf"class (.*) \(({counted})\)( \[leaf \d+\])?$", goal)[1]
            at = int(goal.split(" ")[1])

    def total(self, at: int, row: dict) -> Fraction:
        return sum(
            (self.points(name, entry, row) for name, entry in self.questions[at][1]), Fraction(0)
        )

    def chance_of(self, row: dict) -> dict[str, str]:
        """Printed per cents of classes for a row."""
        if self.table:
            names = [re.match(r"chance of (.*), %", head)[1] for head in self.table[0][2:]]
            return dict(zip(names, self._line(row)[2:], strict=True))
        total = self.total(1, row)
        return {
            name: next((c for low, high, c in places if low <= total <= high), "")
            for name, places in self.chances.items()
        }

    def _line(self, row: dict) -> list[str]:
        cell = self.cell(self.table[0][0], row)
        lines = {words: line for line in self.table[1:] for words in [line[0]]}
        ranged = any(re.match(r"(.* to )?(below|before) |.* or (more|later)$", w) for w in lines)
        for words, line in lines.items():
            if self.within(words, cell) if ranged else self.listed(words, cell):
                return line
        return lines["other"]

    # --- statements -------------------------------------------------------------------------------

    def holds(self, said: str, row: dict) -> bool:
        if found := re.match(rf"({self.name}) by ({self.name}): (.*)", said):
            own, by = self.cell(found[1], row), self.cell(found[2], row)
            for case in parted(found[3], "; "):
                words, _, condition = case.rpartition(" if ")
                if self.within(condition, by):
                    return words == "always" or (words != "never" and self.within(words, own))
            raise AssertionError(f"no case of {by}: {said}")
        for word, many in ((" and ", all), (" or ", any)):
            parts = re.split(rf",?{word}(?={self.name} is )", said)
            if len(parts) > 1:
                return many(self.holds(part, row) for part in parts)
        name, words = re.match(rf"({self.name}) is (.*)", said).groups()
        return self.within(words, self.cell(name, row))

    def within(self, words: str, cell: object) -> bool:
        """Whether a cell is "30 or more", "male or unknown", "not male", "none of a, b or c"."""
        if words.startswith(("not ", "none of ")):
            return not self.within(words.removeprefix("not ").removeprefix("none of "), cell)
        words = words.replace(" or more", " or+more").replace(" or later", " or+later")
        return any(
            self._one(one, cell) for part in parted(words, ", ") for one in parted(part, " or ")
        )

    def _one(self, word: str, cell: object) -> bool:
        if word in ("unknown", "known"):
            return bool(pd.isna(cell)) == (word == "unknown")
        if pd.isna(cell):
            return False
        if found := re.fullmatch(r"(\S+) or\+(?:more|later)|above (\S+)", word):
            value = self.number(cell, found[1] or found[2])
            return value >= self.mark(found[1]) if found[1] else value > self.mark(found[2])
        if found := re.fullmatch(r"(\S+ \d\d:\S+) or\+later", word):
            return self.number(cell, found[1]) >= self.mark(found[1])
        if found := re.fullmatch(
            r"(?:(\S+(?: \d\d:\S+)?) to )?(?:below|before) (\S+(?: \d\d:\S+)?)", word
        ):
            value = self.number(cell, found[2])
            return (not found[1] or value >= self.mark(found[1])) and value < self.mark(found[2])
        return self.listed(word, cell)

    # --- points -----------------------------------------------------------------------------------

    def points(self, name: str, entry: str, row: dict) -> Fraction:
        """The points of a row by one line of a table."""
        cell, parts = self.cell(name, row), parted(entry, " | ")
        if parts[-1].startswith("unknown: "):
            if pd.isna(cell):
                return Fraction(parts[-1].removeprefix("unknown: "))
            parts = parts[:-1]
        if found := re.match(
            r"(\d+) for each full (\S+)(?: days)? (?:above|after) (.*), at most (\d+)", parts[0]
        ):
            steps = floor((self.number(cell, found[3]) - self.mark(found[3])) / self.unit(found[2]))
            return Fraction(max(0, min(int(found[1]) * steps, int(found[4]))))
        if found := re.match(
            r"(\d+) for each (\S+)(?: days)? or part (?:below|before) (.*), at most (\d+)", parts[0]
        ):
            steps = ceil((self.mark(found[3]) - self.number(cell, found[3])) / self.unit(found[2]))
            return Fraction(max(0, min(int(found[1]) * steps, int(found[4]))))
        if re.match(r"(from \S+( \d\d:\S+)?: )?\S+ per ", parts[0]):
            return self.slopes(parts[0], cell)
        if re.match(r"(below|before|known)\b", parts[0]):
            points = Fraction(0)
            for part in parts:
                words, n = part.rsplit(": ", 1)
                edge = re.sub(r"^(from|below|before) ", "", words)
                if not words.startswith("from") or self.number(cell, edge) >= self.mark(edge):
                    points = Fraction(n)
            return points
        for part in parts:
            levels, n = re.match(r"(.*): (\S+)$", part).groups()
            if self.listed(levels, cell):
                return Fraction(n)
        other = re.match(r"(other|another level|any level): (.*)", parts[-1])
        assert other, f"no points of {cell!r}: {entry}"
        return Fraction(other[2])

    def slopes(self, said: str, cell: object) -> Fraction:
        """The area below steps of "points per unit"."""
        bends = []
        for part in said.split("; "):
            edge, slope, width, since = re.match(
                r"(?:from (.*?): )?(\S+) per (\S+)(?: days)?(?: since (.*))?$", part
            ).groups()
            bends.append((edge or since, Fraction(slope) / self.unit(width), bool(edge)))
        total, before = Fraction(0), Fraction(0)
        for edge, slope, bent in bends:
            value = self.number(cell, edge or "0")
            beyond = value - (self.mark(edge) if edge else 0)
            total += (slope - before) * (max(beyond, Fraction(0)) if bent else beyond)
            before = slope
        return total

    # --- cells ------------------------------------------------------------------------------------

    def cell(self, name: str, row: dict) -> object:
        """The cell of a column; blank texts are missing, others may count as a value."""
        cell = PrintedTree.cell(name, row)
        cell = None if isinstance(cell, str) and not cell.strip() else cell
        value, levels, missing = self.imputed.get(name, (None, [], False))
        if pd.isna(cell):
            return value if missing else None
        return value if levels and not self.listed(", ".join(levels), cell) else cell

    @staticmethod
    def mark(text: str) -> Fraction:
        """A printed number, or a printed date in days."""
        if DATE.fullmatch(text):
            return Fraction(pd.Timestamp(text).value // 1_000_000, DAY)
        return Fraction(text)

    @staticmethod
    def unit(text: str) -> Fraction:
        """A width in numbers or days."""
        return Fraction(1 if text in ("unit", "day") else text)

    @staticmethod
    def number(cell: object, beside: str) -> Fraction:
        """A cell as what it is compared with: a number, or a date in days."""
        if DATE.fullmatch(beside):
            if isinstance(cell, str) and re.fullmatch(r"\d\d\.\d\d\.\d{4}", cell):
                cell = pd.Timestamp(f"{cell[6:]}-{cell[3:5]}-{cell[:2]}")
            return Fraction((pd.Timestamp(cell) - pd.Timestamp(0)) // MILLISECOND, DAY)
        return Fraction(repr(float(cell)))

    @staticmethod
    def listed(levels: str, cell: object) -> bool:
        """Whether a cell is one of some levels."""
        if pd.isna(cell):
            return levels == "unknown"
        named = [json.loads(n) if n.startswith('"') else n for n in parted(levels, ", ")]
        text = str(cell).strip()
        if levels in ("0", "1", "0, 1"):
            return any(float(cell) == float(n) for n in named)
        return text in named or (text.casefold() in ("true", "false") and text.casefold() in named)

    # --- probabilities ----------------------------------------------------------------------------

    def probabilities(self, row: dict) -> dict[str, float]:
        """Class probabilities by the recipe of the full text."""
        gates, leaves, last = {}, {}, ""
        for line in self.recipe:
            if found := re.match(r"question (\d+): centre (\S+), width (\S+)", line):
                gates[int(found[1])] = float(found[2]), float(found[3])
            elif found := re.match(r"leaf (\d+): (.*)", line):
                pairs = (part.rsplit(" ", 2) for part in found[2].split(", "))
                leaves[int(found[1])] = {name: float(p) / 100 for name, p, _ in pairs}
            elif line.startswith("last: "):
                last = line.removeprefix("last: ")
        found: dict[str, float] = {}

        def visit(goal: str, reach: float) -> None:
            if leaf := re.search(r" \[leaf (\d+)\]$", goal):
                for name, share in leaves[int(leaf[1])].items():
                    found[name] = found.get(name, 0.0) + reach * share
                return
            at = int(goal.removeprefix("question "))
            centre, width = gates[at]
            yes = 1 / (1 + exp(-(float(self.total(at, row)) - centre) / width))
            (_, left), (_, right) = self.questions[at][2]
            visit(left, reach * yes)
            visit(right, reach * (1 - yes))

        visit("question 1", 1.0)
        steps = PrintedTree("")
        steps.last = last
        return steps.last_step(found, self.class_of(row))


def printed_text(text: str, columns: list[str]) -> PrintedPoints | PrintedTree:
    """The reader of a text, whatever its form."""
    pointed = text.startswith(("question ", "by "))
    return PrintedPoints(text, columns) if pointed else PrintedTree(text)
