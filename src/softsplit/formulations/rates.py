"""Requirements on rates, as users state them, and the training rows that they speak of.

    RateConstraint   low <= expected rate of a class on some rows <= high
    Parity           rates of a class in any two groups differ by at most a bound
    EqualOpportunity the same among the rows of that class
    EqualizedOdds    the same among the rows of each class

All become ``RateRequirement``s on cells of rows (problem/rates.py). With more than two groups the
difference of the largest and the smallest rate is bounded. Missing values are a group of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from softsplit.engines.base import RowEngine
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.problem.rates import RateGroup, RateLimits, RateRequirement, minimum_rate
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown, unfit, visible

MOST_GROUPS = 20
"""Groups of a column: every two are compared."""


class Grouped(NamedTuple):
    """A column by its values: codes (n_rows,), -1 where missing, and the value of each code."""

    codes: NDArray[np.intp]
    values: Sequence[Any]


FindColumn = Callable[[Any], Grouped]
"""Returns a column by its name; raises ValueError if there is none."""

Masks = list[tuple[str, NDArray[np.bool_]]]
"""Names of groups and their rows."""


class Stated(NamedTuple):
    """A requirement whose rows are not cells yet."""

    name: str
    of: int
    groups: Masks
    low: float
    high: float


@dataclass(frozen=True)
class RateConstraint:
    """Bounds of the expected rate of a class on some training rows.

    Parameters
    ----------
    rows : boolean mask, indices, (column, value), (column, "<=" or ">", number), or None
        The rows; None: all. Columns are those of X or of ``sensitive``.
    of : class label
        The rate is the mean probability of this class over the rows.
    at_least, at_most : float, optional
        Bounds, one of them at least.
    given : class label, optional
        Of the rows only those of this class are meant.
    """

    rows: Any
    of: Any
    at_least: float | None = None
    at_most: float | None = None
    given: Any = None

    def __post_init__(self) -> None:
        rows = self.rows.tolist() if hasattr(self.rows, "tolist") else self.rows
        if isinstance(rows, list):
            object.__setattr__(self, "rows", tuple(rows))

    def stated(self, known: RatedTable) -> list[Stated]:
        """The requirement on the training rows; a ValueError in one sentence if it makes none."""
        low = _share("at_least", self.at_least, -np.inf)
        high = _share("at_most", self.at_most, np.inf)
        if not (np.isfinite(low) or np.isfinite(high)):
            raise ValueError("a RateConstraint needs at_least or at_most; give one of them.")
        if low > high:
            raise ValueError(
                f"a RateConstraint has at_least {low:g} above at_most {high:g}; exchange them."
            )
        where, mask = self._rows(known)
        of, name = known.place(self.of), f"rate of {_text(self.of)}"
        name += f" on {where}" if where else ""
        if self.given is not None:
            mask = mask & (known.labels == known.place(self.given))
            name += f" given {_text(self.given)}"
        if not known.counted(mask):
            raise ValueError(f"no training row of positive weight counts for the {name}.")
        return [Stated(name, of, [("", mask)], low, high)]

    def _rows(self, known: RatedTable) -> tuple[str, NDArray[np.bool_]]:
        """What the rows are called, and a mask of them."""
        n_rows, rows = len(known.labels), self.rows
        if rows is None:
            return "", np.ones(n_rows, dtype=bool)
        if not isinstance(rows, tuple):
            raise ValueError(
                f"rows of a RateConstraint must be a mask, indices or (column, value), got "
                f"{shown(rows)}."
            )
        if _names_value(rows):
            column = known.column(rows[0])
            places = [n for n, value in enumerate(column.values) if _same(value, rows[1])]
            if not places:
                held = ", ".join(_text(value) for value in column.values[:8])
                raise ValueError(
                    f"column {shown(rows[0])} has no value {shown(rows[1])} in the training rows; "
                    f"it holds {held}."
                )
            return f"{_text(rows[0])} = {_text(rows[1])}", np.isin(column.codes, places)
        if _names_side(rows):
            parted = known.parted(rows[0], rows[2])
            side = int(rows[1] == ">")
            return str(parted.values[side]), parted.codes == side
        if rows and all(isinstance(one, bool) for one in rows):
            if len(rows) != n_rows:
                raise ValueError(
                    f"the mask of a RateConstraint has {len(rows)} entries for {n_rows} rows."
                )
            return f"{sum(rows):,} chosen rows", np.array(rows, dtype=bool)
        if not rows or not all(_is_index(one) and 0 <= one < n_rows for one in rows):
            raise ValueError(
                f"rows of a RateConstraint must be indices from 0 to {n_rows - 1}, got "
                f"{shown(rows)}."
            )
        mask = np.zeros(n_rows, dtype=bool)
        mask[list(rows)] = True
        return f"{int(mask.sum()):,} chosen rows", mask


@dataclass(frozen=True)
class GroupFairness(ABC):
    """Base of the requirements that compare groups of a column.

    Parameters
    ----------
    column : str
        The sensitive column: one of X, or of what ``fit`` gets as ``sensitive``.
    bound : float
        Largest difference of the rates of any two groups.
    of : class label, optional
        The favourable class: the second of two classes, if not given. Of several classes all are
        meant.
    cut : float, optional
        Groups of a column of numbers: values up to this one, and values above it.
    """

    column: Any
    bound: float
    of: Any = None
    cut: float | None = None

    word: ClassVar[str] = ""

    @abstractmethod
    def conditions(self, of: int, n_classes: int) -> list[int | None]:
        """Classes of the rows among which the rates of class ``of`` are compared; None: all."""

    def stated(self, known: RatedTable) -> list[Stated]:
        """The requirements on the training rows; a ValueError in one sentence if they make none."""
        bound = _share("bound", self.bound, np.inf)
        if not bound < 1:
            raise ValueError(
                f"bound of {type(self).__name__} must be a number in [0, 1), got "
                f"{shown(self.bound)}."
            )
        groups, n_classes = known.groups(self.column, self.cut), len(known.classes)
        if self.of is not None:
            favoured = [known.place(self.of)]
        else:
            favoured = [1] if n_classes == 2 else list(range(n_classes))
        return [
            self._stated(known, groups, bound, of, given)
            for of in favoured
            for given in self.conditions(of, n_classes)
        ]

    def _stated(
        self, known: RatedTable, groups: Masks, bound: float, of: int, given: int | None
    ) -> Stated:
        """The requirement on the rates of class ``of`` among the rows of class ``given``."""
        name = f"{self.word} of {_text(self.column)}: rate of {_text(known.classes[of])}"
        if given is not None:
            groups = [(group, mask & (known.labels == given)) for group, mask in groups]
            if self.word != EqualOpportunity.word:
                name += f" given {_text(known.classes[given])}"
            empty = next((group for group, mask in groups if not known.counted(mask)), None)
            if empty is not None:
                raise ValueError(
                    f"{type(self).__name__} cannot compare rates of class "
                    f"{shown(known.classes[given].item())} in the group {empty} of column "
                    f"{shown(self.column)}, which has no training row of that class; merge "
                    "the group with another, or use Parity."
                )
        return Stated(name, of, groups, -np.inf, bound)


@dataclass(frozen=True)
class Parity(GroupFairness):
    """Demographic parity: a class is equally frequent in the answers for all groups, to a bound."""

    word: ClassVar[str] = "parity"

    def conditions(self, of: int, n_classes: int) -> list[int | None]:
        return [None]


@dataclass(frozen=True)
class EqualOpportunity(GroupFairness):
    """Among rows of the favourable class, it is equally frequent in the answers for all groups."""

    word: ClassVar[str] = "equal opportunity"

    def conditions(self, of: int, n_classes: int) -> list[int | None]:
        return [of]


@dataclass(frozen=True)
class EqualizedOdds(GroupFairness):
    """Among the rows of each class, answers are equally frequent for all groups, to a bound."""

    word: ClassVar[str] = "equalised odds"

    def conditions(self, of: int, n_classes: int) -> list[int | None]:
        return list(range(n_classes))


Requirement = RateConstraint | GroupFairness
KINDS = {one.__name__: one for one in (RateConstraint, Parity, EqualOpportunity, EqualizedOdds)}


def as_plain(requirement: Requirement) -> dict[str, Any]:
    """A requirement as plain values, for files."""
    values = {one.name: getattr(requirement, one.name) for one in fields(requirement)}
    return {"kind": type(requirement).__name__} | values


def from_plain(values: Mapping[str, Any]) -> Requirement:
    """The requirement that ``as_plain`` has written; a ValueError if it is none."""
    given = dict(values)
    kind = KINDS.get(str(given.pop("kind", None)))
    names = set() if kind is None else {one.name for one in fields(kind)}
    if kind is None or not set(given) <= names:
        raise ValueError(f"{shown(dict(values))} is no requirement on rates.")
    return kind(**given)


@dataclass(frozen=True)
class RatedTable:
    """Training rows, as requirements are stated on them."""

    labels: NDArray[np.int64]
    classes: NDArray[Any]
    weight: FloatArray
    column: FindColumn

    def place(self, label: Any) -> int:
        """Position of a class."""
        known = self.classes.tolist()
        places = [n for n, known_label in enumerate(known) if _same(known_label, label)]
        if not places:
            raise ValueError(
                f"a requirement on rates names the class {shown(label)}, which y does not have; "
                f"its classes are {', '.join(map(_text, known[:8]))}."
            )
        return places[0]

    def counted(self, mask: NDArray[np.bool_]) -> bool:
        """Whether any row of the mask has a positive weight."""
        return bool(np.any(self.weight[mask] > 0))

    def parted(self, column: Any, cut: Any) -> Grouped:
        """A column of numbers in two: values up to ``cut``, and values above it."""
        codes, values = self.column(column)
        numbers, name = [_number(value) for value in values], shown(column)
        if _number(cut) is None:
            raise ValueError(f"column {name} cannot be cut at {shown(cut)}; give a number.")
        if any(value is None for value in numbers):
            raise ValueError(f"column {name} holds no numbers to cut; leave cut out.")
        above = np.array([value > cut for value in numbers], dtype=np.intp)
        parts = np.where(codes < 0, -1, above[codes] if len(above) else -1)
        return Grouped(parts, [f"{_text(column)} <= {cut:g}", f"{_text(column)} > {cut:g}"])

    def groups(self, column: Any, cut: float | None) -> Masks:
        """The groups of a column and their rows."""
        name = shown(column)
        codes, values = self.column(column) if cut is None else self.parted(column, cut)
        masks = [(_text(value), codes == n) for n, value in enumerate(values)]
        masks = [pair for pair in [*masks, ("missing", codes < 0)] if self.counted(pair[1])]
        if len(masks) < 2:
            held = f"only the value {masks[0][0]}" if masks else "no value"
            raise ValueError(
                f"column {name} has {held} in the training rows, so that there are no two groups "
                "to compare; name another column."
            )
        if len(masks) > MOST_GROUPS:
            raise ValueError(
                f"column {name} has {len(masks)} values, too many groups to compare; give cut=..., "
                f"or a column of at most {MOST_GROUPS} values."
            )
        return masks


@dataclass(frozen=True)
class RatedRows:
    """Cells of the training rows, and the requirements on them.

    Attributes
    ----------
    cells : array of int, shape (n_rows,)
    labels : array of int, shape (n_cells,)
        Class of each cell.
    requirements : tuple of RateRequirement
    """

    cells: NDArray[np.intp]
    labels: NDArray[np.intp]
    requirements: tuple[RateRequirement, ...]

    def part(self, rows: NDArray[Any]) -> Self:
        """Return some of the rows; requirements stay as they are."""
        return replace(self, cells=self.cells[rows])

    def of_classes(self, present: NDArray[np.bool_]) -> Self:
        """Return the rows with the classes that are present; rates of others are not required."""
        places = np.cumsum(present) - 1
        kept = tuple(
            replace(requirement, of=int(places[requirement.of]))
            for requirement in self.requirements
            if present[requirement.of]
        )
        return replace(self, labels=places[self.labels], requirements=kept)

    def limits(
        self, n_classes: int, placed: Callable[[NDArray[np.intp], int], RowEngine]
    ) -> RateLimits | None:
        """Return the limits on these rows of positive weight; None if nothing is left to require.

        ``placed`` makes an engine of the cells of the rows and their number. Requirements on groups
        without rows, in a fold say, are left out.
        """
        held, cells = np.unique(self.cells, return_inverse=True)
        kept = [requirement.among(held.tolist()) for requirement in self.requirements]
        requirements = tuple(requirement for requirement in kept if requirement is not None)
        if not requirements:
            return None
        return RateLimits(placed(cells, len(held)), self.labels[held], requirements, n_classes)


def named_columns(constraints: Any, fairness: Any) -> list[Any]:
    """The columns that requirements name, each once."""
    columns = []
    for one in as_requirements(constraints, fairness):
        if isinstance(one, GroupFairness):
            columns.append(one.column)
        elif isinstance(one.rows, tuple) and one.rows and isinstance(one.rows[0], str):
            columns.append(one.rows[0])
    return list(dict.fromkeys(columns))


def asked_columns(requirements: Sequence[Requirement]) -> dict[Any, tuple[float, ...] | None]:
    """The columns that requirements speak of, with where they are cut; None: all values count.

    Raises ValueError, in one sentence, for rows that are named by their positions.
    """
    columns: dict[Any, tuple[float, ...] | None] = {}
    for one in requirements:
        if isinstance(one, GroupFairness):
            name, cut = one.column, one.cut
        elif one.rows is None or not isinstance(one.rows, tuple):  # the latter is refused as such
            continue
        elif _names_value(one.rows) or _names_side(one.rows):
            name, cut = one.rows[0], one.rows[2] if _names_side(one.rows) else None
        else:
            raise ValueError(
                "constraints name rows by a mask or by indices, which rows on Dask do not have; "
                "name a column, as in RateConstraint(('sex', 'F'), ...)."
            )
        known = columns.get(name, ())
        number = _number(cut)
        columns[name] = None if known is None or number is None else (*known, number)
    return columns


def _names_value(rows: tuple[Any, ...]) -> bool:
    """Whether rows of a ``RateConstraint`` are (column, value)."""
    return len(rows) == 2 and not all(_is_index(one) or isinstance(one, bool) for one in rows)


def _names_side(rows: tuple[Any, ...]) -> bool:
    """Whether they are (column, "<=" or ">", number)."""
    return len(rows) == 3 and rows[1] in ("<=", ">")


def as_requirements(constraints: Any, fairness: Any) -> list[Requirement]:
    """Check the parameters ``constraints`` and ``fairness`` and return what they hold."""
    requirements: list[Requirement] = []
    names = "Parity(...), EqualOpportunity(...) or EqualizedOdds(...)"
    for name, given, kind, wanted in (
        ("constraints", constraints, RateConstraint, "RateConstraint(...)"),
        ("fairness", fairness, GroupFairness, names),
    ):
        listed = given if isinstance(given, list | tuple) else [given]
        if not listed:
            raise ValueError(f"{name} is empty; state a requirement, or leave it out.")
        for requirement in () if given is None else listed:
            if not isinstance(requirement, kind) or type(requirement) is GroupFairness:
                raise unfit(name, requirement, f"must be {wanted} or a list of them")
            requirements.append(requirement)
    return requirements


def rated_rows(
    requirements: Sequence[Requirement], known: RatedTable, minimum: FloatArray
) -> RatedRows | None:
    """Return cells of the rows and the requirements on them; None if there are none.

    ``minimum`` are the minimum rates of the classes, which must be possible together with them.
    Raises ValueError, in one sentence, for what cannot be required.
    """
    stated = [one for requirement in requirements for one in requirement.stated(known)]
    if not stated:
        return None
    # 1. Cells: rows of one class that no group of any requirement tells apart.
    codes = known.labels.astype(np.intp)
    for one in stated:
        for _, mask in one.groups:
            codes = np.unique(2 * codes + mask, return_inverse=True)[1]
    # 2. Each group as the cells that it consists of.
    first = np.unique(codes, return_index=True)[1]
    required = tuple(
        RateRequirement(
            one.name,
            one.of,
            tuple(RateGroup(name, tuple(np.unique(codes[m]).tolist())) for name, m in one.groups),
            one.low,
            one.high,
        )
        for one in stated
    )
    rows = RatedRows(codes, known.labels[first].astype(np.intp), required)
    _refuse_contradictions(rows, known, minimum)
    return rows


def _refuse_contradictions(rows: RatedRows, known: RatedTable, minimum: FloatArray) -> None:
    """Raise if no class probabilities of the cells at all meet the requirements together.

    A linear program over the probabilities of each class in each cell: what no table of
    probabilities meets, no tree does.
    """
    held, cells = np.unique(rows.cells[known.weight > 0], return_inverse=True)
    totals = np.bincount(cells, known.weight[known.weight > 0]).astype(float)
    labels, n_classes = rows.labels[held], len(known.classes)
    kept = [one.among(held.tolist()) for one in rows.requirements]
    requirements = tuple(one for one in kept if one is not None)
    own = tuple(minimum_rate(k, labels, float(minimum[k])) for k in np.flatnonzero(minimum))
    one_each = np.kron(np.eye(len(totals)), np.ones(n_classes))
    engine = Samples(np.zeros((0, len(totals))), np.arange(len(totals) + 1), totals, totals)

    def possible(wanted: tuple[RateRequirement, ...]) -> bool:
        limits = RateLimits(CompiledRows(engine), labels, wanted, n_classes)
        lines = limits.coefficients.reshape(len(limits), -1)
        solved = linprog(
            np.zeros(one_each.shape[1]), A_ub=-lines, b_ub=-limits.least + 1e-9,
            A_eq=one_each, b_eq=totals, bounds=(0, None),
        )  # fmt: skip
        return bool(solved.status == 0)

    if possible((*own, *requirements)):
        return
    # Some contradict one another: leave out whatever the rest contradicts without.
    against = [*own, *requirements]
    for one in tuple(against):  # what is left without a requirement that it does not need
        fewer = [other for other in against if other is not one]
        if fewer and not possible(tuple(fewer)):
            against = fewer
    names = list(dict.fromkeys(_rate_name(one, known.classes) for one in against))
    both = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    verb = "cannot hold together" if len(against) > 1 else "cannot hold"
    raise ValueError(f"{both} {verb}: no probabilities at all meet them; widen a bound.")


def _rate_name(one: RateRequirement, classes: NDArray[Any]) -> str:
    """What a requirement is called in a sentence."""
    if one.name == "min_class_rate":
        return f"min_class_rate of {_text(classes[one.of])}"
    return one.name.partition(":")[0] if one.compares else f"the bound of the {one.name}"


def _share(name: str, value: Any, default: float) -> float:
    """A number in [0, 1]; the default for None."""
    if value is None:
        return default
    number = _number(value)
    if number is None or not 0 <= number <= 1:
        raise unfit(name, value, "must be a number in [0, 1]")
    return number


def _number(value: Any) -> float | None:
    try:
        return None if isinstance(value, str | bool) else float(value)
    except (TypeError, ValueError):
        return None


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _same(value: Any, asked: Any) -> bool:
    """Whether a value is the one asked for; 1 is not True, but may be the text "1"."""
    if isinstance(value, bool) != isinstance(asked, bool):
        return str(value) == asked
    return bool(value == asked) or (isinstance(asked, str) and _text(value) == asked)


def _text(value: Any) -> str:
    """A value in a name."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return visible(value)
