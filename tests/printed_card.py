"""A person with a pencil: follows a printed score card for one row, knowing nothing else."""

from __future__ import annotations

import json
import re
from datetime import datetime

import pandas as pd


class PrintedCard:
    """The text of a score card, read line by line."""

    def __init__(self, text: str) -> None:
        self.questions: dict[int, tuple] = {}
        self.constant = re.match(r"all rows: (.*)", text)
        number, name = 0, ""
        for line in text.splitlines():
            if found := re.match(r"question (\d+): add the points$", line):
                number = int(found[1])
                self.questions[number] = {}, [], []
            elif found := re.match(r"        +(\d+)  (.*)$", line):
                self.questions[number][0][name].append((found[2], int(found[1])))
            elif found := re.match(r"    (\d+) points? or more: (.*)$", line):
                self.questions[number][1].extend([int(found[1]), found[2]])
            elif line.startswith("    fewer: "):
                self.questions[number][1].append(line[len("    fewer: ") :])
            elif found := re.match(r"    (\S.*)$", line):
                name = found[1]
                self.questions[number][0][name] = []
            elif found := re.match(r"chance of .* by points: (.*)$", line):
                for part in found[1].split(", "):
                    sums, risk = re.match(r"(.*): (\d+) %", part).groups()
                    ends = list(map(int, sums.split(" to ")))
                    self.questions[number][2].append((ends[0], ends[-1], int(risk)))

    def total(self, number: int, row: dict) -> int:
        return sum(points(lines, row[name]) for name, lines in self.questions[number][0].items())

    def end(self, row: dict) -> tuple[str, int, int]:
        """Where the card ends, the last question and the sum of points there."""
        goal = self.constant[1] if self.constant else f"go to question {next(iter(self.questions))}"
        number = total = 0
        while found := re.match(r"go to question (\d+)$", goal):
            number = int(found[1])
            limit, high, low = self.questions[number][1]
            total = self.total(number, row)
            goal = high if total >= limit else low
        return goal, number, total

    def class_of(self, row: dict) -> str:
        """The class at which the card ends."""
        return self.end(row)[0].removeprefix("class ").split("   (")[0]

    def risk(self, row: dict) -> int:
        """The chance of the second class, in per cent."""
        _, number, total = self.end(row)
        risks = self.questions[number][2]
        return next(risk for low, high, risk in risks if low <= total <= high)


def points(lines: list[tuple[str, int]], cell: object) -> int:
    """The points of the line that applies."""
    return next(points for text, points in lines if applies(text, cell, lines))


def applies(text: str, cell: object, lines: list[tuple[str, int]]) -> bool:
    or_missing = text.endswith(", or missing")
    if pd.isna(cell):
        return or_missing or text == "missing"
    text = text.removesuffix(", or missing")
    if text in ("missing", "any value"):
        return text == "any value"
    if found := re.match(r"(before|below) (\S+)$", text):
        return value(cell) < value(found[2])
    if found := re.match(r"(\S+) to (?:before|below) (\S+)$", text):
        return value(found[1]) <= value(cell) < value(found[2])
    if found := re.match(r"(\S+) or (?:more|later)$", text):
        return value(found[1]) <= value(cell)
    if isinstance(cell, bool):
        cell = str(cell).lower()
    if str(cell) in levels(text):
        return True
    listed = {level for other, _ in lines for level in levels(other.removesuffix(", or missing"))}
    return re.search(r"(^|, )any other level$", text) is not None and str(cell) not in listed


def value(cell: object) -> float:
    if isinstance(cell, datetime):
        return cell.timestamp()
    if isinstance(cell, str) and re.match(r"\d{4}-\d\d-\d\d", cell):
        return datetime.fromisoformat(cell).timestamp()
    return float(cell)


def levels(text: str) -> list[str]:
    """Levels of a line; those in quotation marks as JSON."""
    found = []
    while text:
        if text.startswith('"'):
            level, end = json.JSONDecoder().raw_decode(text)
            text = text[end:].removeprefix(", ")
        else:
            level, _, text = text.partition(", ")
            if level in ("any other level", "missing"):
                continue
        found.append(level)
    return found
