"""Monotone effects that a user asks for: columns, signs, and an order of the classes.

With levels lev_k of the classes, an effect of sign + says that for all rows

    P(level >= i | x)    never falls when x_j rises and all else is equal,      i = 1, 2, ...

which is first-order stochastic dominance of the levels. For two classes the second has level 1 and
the first level 0; ``{"age": {"malignant": "+"}}`` gives one class level 1 and all others level 0;
``{"age": "+"}`` with several classes takes their order for the levels. A sign - says never rises.
All effects of a tree speak of the same levels, or of the same in reverse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import ParameterError, shown
from softsplit.variables.coding import Coding
from softsplit.variables.columns import Columns
from softsplit.variables.variable import CATEGORY, DATE

SIGNS = {"+": 1, "-": -1}


@dataclass(frozen=True)
class MonotoneEffects:
    """Signs of effects, and the levels of the classes they speak of.

    Attributes
    ----------
    signs : tuple of (int, int)
        Place of a column among those of the table, and 1 or -1.
    levels : tuple of int
        Level of each class, from 0; every level has a class.
    columns : tuple of tuple of int
        Features of the problem by which each column acts: its value, then its hinges; or its
        look-ups.
    turned : tuple of int
        Columns whose effect was asked for with the first of two classes, of which texts then speak;
        ``signs`` are those of the second.
    changes : tuple of tuple of (int, int)
        Of columns that act by look-ups: ``Lookup.changes`` of each; empty for others.
    """

    signs: tuple[tuple[int, int], ...]
    levels: tuple[int, ...]
    columns: tuple[tuple[int, ...], ...]
    turned: tuple[int, ...] = ()
    changes: tuple[tuple[tuple[int, int], ...], ...] = ()

    def on(self, coding: Coding) -> MonotoneEffects:
        """Return the effects on a coding of the same table."""
        places = [place for place, _ in self.signs]
        columns = tuple(tuple(effect_columns(coding, place).tolist()) for place in places)
        return replace(
            self, columns=columns, changes=tuple(effect_changes(coding, p) for p in places)
        )

    @property
    def features(self) -> list[tuple[int, NDArray[np.intp], tuple[tuple[int, int], ...]]]:
        """Sign, features and changes of each column."""
        changes = self.changes or ((),) * len(self.signs)
        parts = zip(self.signs, self.columns, changes, strict=True)
        return [(sign, np.array(own, dtype=np.intp), step) for (_, sign), own, step in parts]

    def of_classes(self, present: NDArray[np.bool_]) -> MonotoneEffects | None:
        """Return the effects on some of the classes; None where these have one level only."""
        kept = np.array(self.levels)[present]
        levels = np.unique(kept, return_inverse=True)[1]
        if levels.max() == 0:
            return None
        return replace(self, levels=tuple(levels.tolist()))

    @property
    def thresholds(self) -> NDArray[np.bool_]:
        """Which classes have at least level 1, 2, ...: (n_levels - 1, n_classes)."""
        levels = np.array(self.levels)
        return levels >= np.arange(1, levels.max() + 1)[:, None]

    def at_least(self, shares: FloatArray) -> FloatArray:
        """P(level >= i) of class shares (n_classes, ...), i from 1: (n_levels - 1, ...)."""
        return np.tensordot(self.thresholds.astype(float), shares, 1)

    def outcome(self, place: int, sign: int, labels: Sequence[Any]) -> str:
        """What never happens under an effect of this sign when the column rises, in words."""
        levels, classes = np.array(self.levels), np.array(list(map(str, labels)))
        verb = "falls" if sign > 0 else "rises"
        if levels.max() == 1:
            high = classes[levels == 1].tolist()
            low = classes[levels == 0].tolist()
            if len(low) == 1 and (len(high) > 1 or place in self.turned):
                return f"probability of {low[0]} never {'rises' if sign > 0 else 'falls'}"
            return f"probability of {' or '.join(high)} never {verb}"
        if levels.max() == 2 and len(levels) > 3:
            ends = [classes[levels == at][0] for at in (2, 0)]
            ends = ends if sign > 0 else ends[::-1]
            return f"probability of {ends[0]} never falls, and that of {ends[1]} never rises,"
        order = " < ".join(classes[np.argsort(levels, kind="stable")].tolist())
        return f"probability of the classes ({order}) never moves {'down' if sign > 0 else 'up'}"


def effect_columns(coding: Coding | None, place: int) -> NDArray[np.intp]:
    """Columns of a problem by which a column of the table acts: its value, then its hinges; or its
    look-ups."""
    if coding is None:
        return np.array([place])
    homes = [i for i, at in enumerate(coding.places) if at == place]
    if not homes:
        return np.zeros(0, dtype=np.intp)
    columns = coding.columns_of(homes[0])
    variable = coding.variables[homes[0]]
    return columns if variable.lookups else columns[: 1 + variable.n_hinges]


def effect_changes(coding: Coding | None, place: int) -> tuple[tuple[int, int], ...]:
    """``Lookup.changes`` of the look-ups by which a column of the table acts; none of others."""
    if coding is None or place not in coding.places:
        return ()
    lookups = coding.variables[coding.places.index(place)].lookups
    return tuple(lookup.changes for lookup in lookups)


def monotone_effects(
    given: Any, coding: Coding | None, names: Sequence[str], classes: NDArray[Any]
) -> MonotoneEffects | None:
    """Return the effects that ``monotone`` asks for, checked; None if there are none.

    Raises
    ------
    ValueError
        In one sentence, for what is no column, no sign or no class, for a column without an order,
        and for classes in several orders.
    """
    if given is None:
        return None
    table = Columns(names, {} if coding is None else dict(coding.left_out))
    pairs = table.filled(
        "monotone", table.mapped("monotone", given, "'+' or '-', as in {'age': '+'}")
    )
    # All columns must speak of the same levels of classes, or of the same in reverse: a tree has
    # one order of its classes.
    signs: list[tuple[int, int]] = []
    turned: list[int] = []
    levels: tuple[int, ...] | None = None
    first: Any = None
    for place, (column, wanted) in pairs.items():
        # 1. The column has an order, and the effect a sign.
        table.refuse_left_out("monotone", place)
        _refuse_unordered(coding, place, names)
        sign, own = _wanted(column, wanted, classes.tolist())
        # 2. The levels are those of the first column, or of the same in reverse.
        if levels is None:
            levels, first = own, column
        elif own != levels:
            reverse = tuple(max(levels) - level for level in levels)
            if own != reverse:
                raise _refused(
                    column,
                    f"speaks of other classes for {shown(column)} than for "
                    f"{shown(first)}; name the same classes for all columns.",
                )
            sign = -sign
        signs.append((place, sign))
        # 3. Texts speak of the class that the user named.
        if len(classes) == 2 and isinstance(wanted, Mapping) and _names_first(wanted, classes):
            turned.append(place)
    assert levels is not None
    columns = tuple(tuple(effect_columns(coding, place).tolist()) for place, _ in signs)
    return MonotoneEffects(tuple(signs), levels, columns, tuple(turned))


# The error for a value that ``monotone`` cannot have, of the value and the sentence.
_refused = partial(ParameterError, "monotone")


def _names_first(wanted: Mapping[Any, Any], classes: NDArray[Any]) -> bool:
    """Whether the first of two classes is the one that an effect names, or names first."""
    label = next(iter(wanted))
    return bool(label == classes[0] or label == str(classes[0]))


def _refuse_unordered(coding: Coding | None, place: int, names: Sequence[str]) -> None:
    if coding is None:
        return
    name = shown(names[place])
    kinds = {v.kind for v, at in zip(coding.variables, coding.places, strict=True) if at == place}
    if CATEGORY in kinds and DATE not in kinds:
        raise _refused(
            names[place],
            f"names column {name}, a category without an order; name a number, or give "
            f"its order, such as feature_types={{{names[place]!r}: 'ordered: low < mid < high'}}.",
        )
    if DATE in kinds or len(kinds) != 1:
        raise _refused(
            names[place], f"names column {name}, a date; make a column of the number of days of it."
        )


def _wanted(column: Any, wanted: Any, classes: list[Any]) -> tuple[int, tuple[int, ...]]:
    """Sign of an effect and the levels of the classes."""
    if isinstance(wanted, str) and wanted in SIGNS:
        return SIGNS[wanted], tuple(range(len(classes)))
    if not isinstance(wanted, Mapping) or not wanted:
        raise _refused(
            wanted,
            f"says {shown(wanted)} for column {shown(column)}; say '+', '-' or a class, "
            f"as in {{{classes[-1]!r}: '+'}}.",
        )
    # 1. The classes that are named, each with its sign.
    named: dict[int, int] = {}
    for label, sign in wanted.items():
        places = [k for k, known in enumerate(classes) if known == label or str(known) == label]
        if not places:
            raise _refused(
                label,
                f"names {shown(label)} for column {shown(column)}, which is not a class "
                f"of y; the classes are {', '.join(map(shown, classes[:8]))}.",
            )
        if not (isinstance(sign, str) and sign in SIGNS):
            raise _refused(
                sign,
                f"says {shown(sign)} for class {shown(label)} and column "
                f"{shown(column)}; say '+' or '-'.",
            )
        named[places[0]] = SIGNS[sign]
    # 2. Their levels: one above or below all others, or one at either end.
    rising, falling = ([k for k, sign in named.items() if sign == one] for one in (1, -1))
    if len(classes) == 2:
        if len(named) == 2 and len(rising) != 1:
            raise _refused(
                column,
                f"lets both classes go the same way with column {shown(column)}; the "
                "probabilities of two classes add up to one, so name one of them.",
            )
        second = named.get(1, -named.get(0, 0))
        return second, (0, 1)
    if len(rising) > 1 or len(falling) > 1:
        raise _refused(
            wanted,
            f"names several classes that go the same way with column {shown(column)}; "
            "name at most one class with '+' and one with '-'.",
        )
    if len(rising) + len(falling) == 1:
        one = (rising or falling)[0]
        return (1 if rising else -1), tuple(int(k == one) for k in range(len(classes)))
    levels = tuple(2 if k in rising else 0 if k in falling else 1 for k in range(len(classes)))
    return 1, levels
