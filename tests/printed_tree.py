"""A person with a pencil: follows a printed tree for one row of a table, knowing nothing else."""

from __future__ import annotations

import re
from fractions import Fraction
from math import exp

import pandas as pd

PLAIN = "lower each P(class) above that of the class reached to that value; divide all by their sum"
TWO_CLASSES = (
    r"where (?P<name>.*) is reached, raise P\((?P=name)\) to at least (?P<least>\S+) %; "
    r"where (?P<other>.*) is, lower it to at most that; P\((?P=other)\) is the rest"
)
SEVERAL_CLASSES = (
    r"multiply each P\(class\) by the cost of an error on that class \((?P<costs>.*)\); "
    r"lower each product above that of the class reached to that value; "
    r"divide by the costs, then all by their sum"
)

MILLISECOND, DAY = pd.Timedelta(1, "ms"), 86_400_000


class PrintedTree:
    """The text of ``export_text``, read line by line.

    Sums are made of fractions: decimal numbers are added as a person adds them, without rounding.
    """

    def __init__(self, text: str) -> None:
        lines = text.splitlines()
        split = next((i for i, s in enumerate(lines) if s.startswith("probability:")), len(lines))
        self.tree = [line for line in lines[:split] if re.match(r"(\|   )*(if |else|class )", line)]
        notes = [line for line in lines if line not in self.tree]
        unknown = [
            found.groups()
            for line in notes
            if (
                found := re.match(
                    r"(.*): unknown(?: or new| or a level other than (.*))? counts as ([^;]*)", line
                )
            )
        ]
        self.imputed = {name: counts for name, _, counts in unknown}
        self.two = {name: levels.split(" and ") for name, levels, _ in unknown if levels}
        self.steps = {
            name: {level: int(n) for n, level in (s.split(" ", 1) for s in steps.split(", "))}
            | {None: other}
            for name, steps, other in (
                re.match(r"(.*) counts as (0 .*); any other level counts as (.*)", line).groups()
                for line in notes
                if re.match(r".*[^:] counts as 0 ", line) and ": unknown" not in line
            )
        }
        self.others = {
            name: levels.split(", ")
            for name, levels in (
                re.match(r"(.*) is (?:other|another level): none of (.*)", line).groups()
                for line in notes
                if re.match(r".* is (other|another level): none of ", line)
            )
        }
        self.last = next((s.split("last: ")[1] for s in notes if s.startswith("    last: ")), "")
        self.gates, self.leaves = {}, {}
        for line in notes:
            if found := re.match(r"    question (\d+): (.*)", line):
                self.gates[int(found[1])] = found[2]
            elif found := re.match(r"    leaf (\d+): (.*)", line):
                pairs = (part.rsplit(" ", 2) for part in found[2].split(", "))
                self.leaves[int(found[1])] = {name: float(p) / 100 for name, p, _ in pairs}

    def class_of(self, row: dict) -> str:
        """The class at which the printed questions lead."""
        at = 0
        while not (line := self.tree[at].replace("|   ", "")).startswith("class "):
            depth = self.tree[at].count("|   ")
            condition = re.match(r"if (.*?)   \[question \d+\]", line)[1]
            at += 1
            if not self.holds(condition, row):
                while self.tree[at] != "|   " * depth + "else":
                    at += 1
                at += 1
        return re.match(r"class (.*?)   \(", line)[1]

    def probabilities(self, row: dict) -> dict[str, float]:
        """Class probabilities by the lines under the tree."""
        found: dict[str, float] = {}

        def visit(at: int, reach: float) -> int:
            line = self.tree[at].replace("|   ", "")
            if line.startswith("class "):
                for name, share in self.leaves[int(re.search(r"\[leaf (\d+)\]", line)[1])].items():
                    found[name] = found.get(name, 0.0) + reach * share
                return at + 1
            condition, number = re.match(r"if (.*?)   \[question (\d+)\]", line).groups()
            left = self.gate(condition, self.gates[int(number)], row)
            following = visit(at + 1, reach * left)
            return visit(following + 1, reach * (1 - left))

        visit(0, 1.0)
        return self.last_step(found, self.class_of(row))

    def last_step(self, found: dict[str, float], reached: str) -> dict[str, float]:
        """What the line "last: ..." says, in one of three forms; nothing without that line."""
        own = found.setdefault(reached, 0.0)
        if self.last == PLAIN:
            found = {name: min(p, own) for name, p in found.items()}
        elif two := re.fullmatch(TWO_CLASSES, self.last):
            name, least, other = two["name"], float(two["least"]) / 100, two["other"]
            assert reached in (name, other)
            p = max(found[name], least) if reached == name else min(found[name], least)
            return {name: p, other: 1 - p}
        elif several := re.fullmatch(SEVERAL_CLASSES, self.last):
            pairs = (part.rsplit(" ", 1) for part in several["costs"].split(", "))
            costs = {name: float(cost) for name, cost in pairs}
            product = own * costs[reached]
            found = {name: min(p * costs[name], product) / costs[name] for name, p in found.items()}
        else:
            assert not self.last, f"nobody can follow: {self.last}"
        return {name: p / sum(found.values()) for name, p in found.items()}

    def gate(self, condition: str, gate: str, row: dict) -> float:
        if found := re.match(r"p = (\S+) % where it holds, (\S+) % elsewhere", gate):
            return float(found[1 if self.holds(condition, row) else 2]) / 100
        centre, width = map(float, re.match(r"centre (\S+), width (\S+)", gate).groups())
        total, sign, _ = self.parts(condition, row)
        odds = (float(total) - centre) / width * (1 if sign == ">" else -1)
        return 1 / (1 + exp(-odds)) if odds > -700 else 0.0

    def holds(self, condition: str, row: dict) -> bool:
        if not re.search(r" [<>] \S+$", condition):
            return self.statement(condition, row)
        total, sign, threshold = self.parts(condition, row)
        return total > threshold if sign == ">" else total < threshold

    def parts(self, condition: str, row: dict) -> tuple[Fraction, str, Fraction]:
        body, sign, threshold = re.match(r"(.*) ([<>]) (\S+)$", condition).groups()
        total = Fraction(0)
        for term in re.split(r" (?=[+-] )(?![^(]*, \S+\))", body):
            minus, size, name = re.match(r"([+-] )?([\d.e+-]+ )?(.*)$", term).groups()
            factor = Fraction((size or "1").strip()) * (-1 if minus == "- " else 1)
            total += factor * self.value(name, row)
        return total, sign, Fraction(threshold)

    def value(self, name: str, row: dict) -> Fraction:
        if name.startswith("["):
            return Fraction(int(self.statement(name[1:-1], row)))
        if bent := re.match(r"max\((.*) ([+-]) (\S+), 0\)$", name):
            knot = Fraction(bent[3]) * (-1 if bent[2] == "+" else 1)
            return max(self.value(bent[1], row) - knot, Fraction(0))
        if bent := re.match(r"(min|max)\((.*), (\S+)\)$", name):
            return (min if bent[1] == "min" else max)(self.value(bent[2], row), Fraction(bent[3]))
        if days := re.match(r"(.*) \(days since (\d{4}-\d\d-\d\d)\)$", name):
            moment = self.moment(row[days[1]], self.imputed.get(days[1]))
            return Fraction((moment - pd.Timestamp(days[2])) // MILLISECOND, DAY)
        if order := re.match(r"(.*) \(0 .* to \d+ .*\)$", name):
            cell = row[order[1]]
            level = self.imputed[order[1]] if pd.isna(cell) else str(cell)
            if order[1] in self.two:
                low, high = self.two[order[1]]
                return Fraction(
                    [low, high].index(level if level in (low, high) else self.imputed[order[1]])
                )
            steps = self.steps[order[1]]
            return Fraction(steps[level if level in steps else steps[None]])
        cell = self.cell(name, row)
        return Fraction(self.imputed[name]) if pd.isna(cell) else Fraction(repr(float(cell)))

    @staticmethod
    def moment(cell: object, imputed: str | None) -> pd.Timestamp:
        """A date, or the one that an unknown date counts as."""
        return pd.Timestamp(imputed if pd.isna(cell) else cell)

    @staticmethod
    def cell(name: str, row: dict) -> object:
        """The cell of a column, or what a clock or a calendar says of the date there."""
        if name in row:
            return row[name]
        if between := re.match(r"(days|hours|minutes|seconds) from (.*) to (.*)$", name):
            passed = pd.Timestamp(row[between[3]]) - pd.Timestamp(row[between[2]])
            return None if pd.isna(passed) else passed / pd.Timedelta(1, between[1])
        part, column = re.match(r"(hour|weekday|month|day of year) of (.*)$", name).groups()
        if pd.isna(row[column]):
            return None
        date = pd.Timestamp(row[column])
        if part in ("weekday", "month"):
            return date.day_name() if part == "weekday" else date.month_name()
        return date.hour if part == "hour" else date.day_of_year

    def statement(self, text: str, row: dict) -> bool:
        """Whether "job is nurse", "job is not nurse", "age is unknown", "ok is true" holds."""
        name, negated, level = re.match(r"(.*?) is (not )?(.*)$", text).groups()
        cell = self.cell(name, row)
        if level in ("unknown", "known"):
            return bool(pd.isna(cell)) == (level == "unknown")
        if level in ("true", "false"):
            cell = self.imputed.get(name) == "true" if pd.isna(cell) else bool(cell)
            return cell == (level == "true")
        if name in self.others and level in ("other", "another level"):
            return (not pd.isna(cell) and str(cell) not in self.others[name]) != bool(negated)
        if pd.isna(cell) or str(cell) not in self.two.get(name, [str(cell)]):
            cell = self.imputed[name]
        return (str(cell) == level) != bool(negated)
