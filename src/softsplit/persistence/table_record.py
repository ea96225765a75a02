"""The section "table" of a model file: the variables of which the features were made."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, Literal

from msgspec import Meta

from softsplit.persistence.records import (
    Number,
    Part,
    Place,
    Positive,
    Record,
    Text,
    below,
    require,
    table,
)
from softsplit.variables import Coding, Variable
from softsplit.variables.dates import NAMES, UNITS, part_name
from softsplit.variables.dates import PARTS as DATE_PARTS
from softsplit.variables.lookup import Lookup
from softsplit.variables.variable import CATEGORY, DATE, DIGITS, NUMBER, ORDERED

Whole = Annotated[int, Meta(ge=-(10**9), le=10**9)]


class LookupRecord(Record):
    """Whole points for the values of a variable, as in softsplit.variables.lookup.Lookup; keys that
    are left out have their defaults."""

    points: tuple[Whole, ...] = ()
    edges: tuple[Number, ...] = ()
    slopes: tuple[Whole, ...] = ()
    knots: tuple[Number, ...] = ()
    unit: Positive = 1.0
    unknown: Whole | None = None

    def read(self, n_levels: int) -> Lookup | None:
        """The look-up of a variable of so many levels (0: a number); None if it does not fit."""
        bends, values = (self.slopes, self.knots), (self.points, self.edges)
        (given, ends), others = (bends, values) if self.slopes else (values, bends)
        sized = not self.edges and len(given) in (1, n_levels)
        sized = sized if n_levels else len(given) == len(ends) + 1
        if any(others) or not sized or any(a >= b for a, b in pairwise(ends)):
            return None
        return Lookup(**{name: getattr(self, name) for name in self.__struct_fields__})


class VariableRecord(Record):
    """A variable: the place of its column, its kind, and the parameters of its coding as in
    softsplit.variables.Variable; keys that are left out have their defaults."""

    column: Place
    kind: Literal["number", "boolean", "ordered", "category", "date"]
    middle: Number
    has_missing: bool
    levels: tuple[Text, ...] = ()
    other: bool = False
    whole: bool = True
    origin: Annotated[float, Meta(ge=-1e9, le=1e9)] = 0.0
    form: Text = ""
    classes: tuple[Text, ...] = ()
    shares: tuple[tuple[Part, ...], ...] = ()
    rare: Text | None = None
    knots: tuple[Number, ...] = ()
    part: Text = ""
    since: Text = ""
    since_form: Text = ""
    lookups: tuple[LookupRecord, ...] = ()

    @classmethod
    def of(cls, variable: Variable, place: int) -> VariableRecord:
        plain = Variable(variable.name, variable.kind)
        values = {name: getattr(variable, name) for name in CODED}
        changed = {k: v for k, v in values.items() if v != getattr(plain, k)}
        changed["lookups"] = tuple(map(LookupRecord.like, variable.lookups))
        return cls(place, variable.kind, float(variable.middle), variable.has_missing, **changed)  # type: ignore[arg-type]

    def read(self, where: str, names: tuple[str, ...]) -> Variable:
        """The variable, if its parts fit each other."""

        def fits(holds: Any, key: str, what: str) -> None:
            require(holds, f"{where}{key} of the model file {what}.")

        (place,) = below([self.column], len(names), f"{where}.column")
        levels, part, since, rare = self.levels, self.part, self.since, self.rare
        # 1. Levels and their order.
        levelled = self.kind in (CATEGORY, ORDERED)
        distinct = len(set(levels)) == len(levels)
        fits(distinct and bool(levels) == levelled, ".levels", "do not fit its kind")
        fits(not levels or self.middle in range(len(levels)), ".middle", "is no level")
        sums = levels and not len(rare or "") % DIGITS and re.fullmatch("[0-9a-f]*", rare or "")
        fits(rare is None or sums, ".rare", f"must be checksums of {DIGITS} digits")
        n_lines = len(levels) + 1 if self.classes else 0
        table(self.shares, (n_lines, len(self.classes)), f"{where}.shares")
        # 2. Dates and their parts.
        units = UNITS if since else DATE_PARTS[1:]
        kind = CATEGORY if part in NAMES else NUMBER
        known_part = not part or (part in units and self.kind == kind)
        fits(known_part and (not since or since in names), ".part", "is no part of a date")
        fits(part or not (since or self.since_form), ".since", "is of no part of a date")
        dated = self.kind == DATE or not (self.origin or (self.form and not part))
        fits(dated, "", "is no date")
        fits(part not in NAMES or set(levels) <= set(NAMES[part]), ".levels", f"are no {part}s")
        # 3. Knots and look-ups of numbers.
        ascending = all(a < b for a, b in pairwise(self.knots))
        numeric = self.kind == NUMBER or not self.knots
        fits(ascending and numeric, ".knots", "are not those of a number")
        variable = Variable(
            name=part_name(part, names[place], since) if part else names[place],
            kind=self.kind,
            middle=self.middle,
            has_missing=self.has_missing,
            source=names[place] if part else "",
            **{name: getattr(self, name) for name in CODED},
        )
        n_levels = len(levels) + variable.places_others if self.kind == CATEGORY else 0
        lookups = tuple(own for lookup in self.lookups if (own := lookup.read(n_levels)))
        whole = len(lookups) == len(self.lookups) and not (lookups and self.knots)
        fits(whole, ".lookups", "do not fit its kind")
        return replace(variable, lookups=lookups)


# Fields that a record shares with ``Variable``.
CODED = VariableRecord.__struct_fields__[4:-1]


class TableRecord(Record):
    """The target and, if features are more than the columns as they are, the columns of the table
    in order, those left out and why, and the variables."""

    target: Text | None
    named: bool | None = None
    columns: tuple[Text, ...] | None = None
    left_out: list[tuple[Text, Text]] | None = None
    variables: list[VariableRecord] | None = None

    @classmethod
    def of(cls, coding: Coding | None, target: str | None) -> TableRecord:
        if coding is None:
            return cls(target)
        variables = map(VariableRecord.of, coding.variables, coding.places)
        return cls(target, coding.named, coding.names, list(coding.left_out), list(variables))

    def read(self) -> Coding | None:
        """The coding; None if features are columns as they are."""
        parts = {name: getattr(self, name) for name in self.__struct_fields__[1:]}
        lacking = [name for name, part in parts.items() if part is None]
        if len(lacking) == len(parts):
            return None
        require(not lacking, f"table of the model file lacks {' and '.join(lacking)}.")
        assert self.columns is not None and self.variables is not None
        names, listed = self.columns, self.variables
        require(len(set(names)) == len(names), "table of the model file names a column twice.")
        variables = tuple(v.read(f"table.variables[{i}]", names) for i, v in enumerate(listed))
        require(
            listed and len({(v.column, v.part, v.since) for v in listed}) == len(listed),
            "table.variables of the model file must be distinct, at least one.",
        )
        places = tuple(variable.column for variable in listed)
        return Coding(names, variables, places, tuple(self.left_out or ()), bool(self.named))
