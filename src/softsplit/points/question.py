"""Search for the whole points of one question.

1. Starts: the effects of the soft tree's question in tables and in slopes, for several numbers of
   points between the lowest and the highest sum; the points that the question has already.
2. Improve every look-up in turn: the best table of each form under the quadratic model (terms.py),
   accepted if f, with centre and slope refitted, and prices fall.
3. Drop look-ups, those of fewest points first; add the first that pays of the four further ones
   that promise most.
4. Repeat 2 and 3 until little is gained; the best of all starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from softsplit.points.cells import CellColumn
from softsplit.points.likelihood import Gate, Rows, derivatives, fit_gate
from softsplit.points.terms import Prices, Term, slope_term, table_terms
from softsplit.support.arrays import FloatArray
from softsplit.variables.lookup import Lookup

NONE: FloatArray = np.zeros(0)


class Effect(NamedTuple):
    """What a variable adds to the score of a question of the soft tree.

    Attributes
    ----------
    cells : array of shape (n_cells + 1,)
    knots, coefficients, unknown
        Of a number: as of ``terms.slope_term``; no coefficients for others.
    """

    cells: FloatArray
    knots: tuple[float, ...] = ()
    coefficients: FloatArray = NONE
    unknown: float = 0.0


@dataclass(frozen=True)
class SearchOptions:
    """How a question is searched.

    Attributes
    ----------
    prices : Prices
    spans : tuple of int
        Numbers of points of the widest effect, for starts.
    ridge, steepest : float
        The prior of the gate's slope, and its largest value: log-odds per point.
    rounds, gain : int, float
        Rounds at most, and what a round must gain.
    """

    prices: Prices = field(default_factory=Prices)
    spans: tuple[int, ...] = (4, 10, 20)
    ridge: float = 0.1
    steepest: float = 1.0
    rounds: int = 6
    gain: float = 0.05


DEFAULTS = SearchOptions()

# Newton steps of a gate at a start, and after a change; candidates to add that are tried.
STEPS_AT_START, STEPS, TRIED = 12, 6, 4

# A change must gain more than rounding errors.
LEAST_GAIN = 1e-6


@dataclass(frozen=True)
class Question:
    """The look-ups of a question by variable, and the gate on the sum of their points."""

    terms: Mapping[int, Term]
    gate: Gate

    @property
    def lookups(self) -> dict[int, Lookup]:
        return {variable: term.lookup for variable, term in self.terms.items()}

    @property
    def sums(self) -> FloatArray:
        """Points of every row, (n_rows,); 0 without look-ups."""
        return np.sum([term.points for term in self.terms.values()], axis=0)

    @property
    def scores(self) -> FloatArray:
        """Scores of the gate, (n_rows,)."""
        return self.gate.centre + self.gate.slope * self.sums

    @property
    def objective(self) -> float:
        """f and the prices of the terms."""
        return self.gate.value + sum(term.price for term in self.terms.values())


class QuestionSearch:
    """The search for one question; see the module."""

    def __init__(
        self, columns: Sequence[CellColumn], rows: Rows, options: SearchOptions = DEFAULTS
    ) -> None:
        self.columns, self.rows, self.options = columns, rows, options

    def best(
        self, effects: Mapping[int, Effect], centre: float, known: Question | None = None
    ) -> Question | None:
        """Return the best question, from ``known`` alone if that is given; None without a start."""
        if known is None:
            starts = self._starts(effects, centre)
        else:
            starts = [self._fitted(known.terms, known.gate, STEPS_AT_START)]
        searched = [self._climb(start, effects) for start in starts]
        return min(searched, key=lambda question: question.objective, default=None)

    def _starts(self, effects: Mapping[int, Effect], centre: float) -> list[Question]:
        """Return the effects in points: in tables, and slopes where the soft tree has them."""
        widest = max((float(np.ptp(effect.cells)) for effect in effects.values()), default=0.0)
        if widest == 0.0:
            return []
        soft = np.sum([e.cells[self.columns[v].codes] for v, e in effects.items()], axis=0)
        _, second = derivatives(self.rows, soft, Gate(centre, 1.0, np.inf))
        starts = []
        for sloped in (False, True):
            for span in self.options.spans[sloped:]:
                slope, terms = widest / span, {}
                for variable, effect in effects.items():
                    term = self._nearest(variable, effect, slope, second, sloped=sloped)
                    if np.ptp(term.points) > 0:
                        terms[variable] = term
                if not terms or (sloped and not any(t.lookup.slopes for t in terms.values())):
                    continue
                sums = np.sum([term.points for term in terms.values()], axis=0)
                moved = centre + float(np.average(soft - slope * sums, weights=second + 1e-9))
                starts.append(self._fitted(terms, Gate(moved, slope, np.inf), STEPS_AT_START))
        return starts

    def _nearest(
        self, variable: int, effect: Effect, slope: float, second: FloatArray, *, sloped: bool
    ) -> Term:
        """Return the points that are nearest to an effect."""
        column = self.columns[variable]
        if sloped and len(effect.coefficients):
            term = self._sloped(variable, effect, slope, second)
            if term is not None:
                return term
        zero = np.zeros(column.n_cells + 1)
        tables = table_terms(
            column, zero, column.sums(second), effect.cells / slope, slope, self.options.prices
        )
        return tables[0][1]

    def _sloped(
        self, variable: int, effect: Effect, slope: float, second: FloatArray
    ) -> Term | None:
        return slope_term(
            self.columns[variable], effect.knots, effect.coefficients, effect.unknown, slope,
            second, self.options.prices,
        )  # fmt: skip

    def _fitted(self, terms: Mapping[int, Term], gate: Gate, steps: int = STEPS) -> Question:
        """Return the question of some terms with centre and slope refitted from ``gate``."""
        points = [term.points for term in terms.values()]
        ridge = self.options.ridge * float(np.sum(np.var(points, axis=1)))
        sums = np.sum(points, axis=0)
        fitted = fit_gate(self.rows, sums, gate, ridge, self.options.steepest, steps)
        return Question(dict(terms), fitted)

    def _changed(
        self, question: Question, variable: int, term: Term | None, weights: FloatArray
    ) -> Question | None:
        """Return the question with another term of a variable if it is better, else None."""
        terms = dict(question.terms)
        old = terms.pop(variable, None)
        if term is not None:
            terms[variable] = term
        if not terms:
            return None
        moved = (0.0 if old is None else old.points) - (0.0 if term is None else term.points)
        shift = question.gate.slope * float(np.average(moved, weights=weights))
        gate = question.gate._replace(centre=question.gate.centre + shift)
        changed = self._fitted(terms, gate)
        return changed if changed.objective < question.objective - LEAST_GAIN else None

    def _climb(self, question: Question, effects: Mapping[int, Effect]) -> Question:
        """Return the question after rounds of steps 2 to 4 of the module."""
        for n in range(self.options.rounds):
            before = question.objective
            for variable in list(question.terms):
                question = self._improved(question, variable, effects if n == 0 else {})
            question = self._dropped(question)
            question = self._extended(question)
            if question.objective > before - self.options.gain:
                break
        return question

    def _improved(
        self, question: Question, variable: int, effects: Mapping[int, Effect]
    ) -> Question:
        """Return the question with the first better look-up for a variable."""
        column, old = self.columns[variable], question.terms[variable]
        first, second = derivatives(self.rows, question.sums, question.gate)
        slope = question.gate.slope
        sums = column.sums(first), column.sums(second)
        terms = [t for _, t in table_terms(column, *sums, old.cells, slope, self.options.prices)]
        effect = effects.get(variable)
        if effect is not None and len(effect.coefficients) and not old.lookup.slopes:
            sloped = self._sloped(variable, effect, slope, second)
            terms += [] if sloped is None else [sloped]
        for term in terms:
            if np.ptp(term.points - old.points) == 0.0:
                continue
            kept = term if np.ptp(term.points) > 0 else None
            better = self._changed(question, variable, kept, second + 1e-12)
            if better is not None:
                return better
        return question

    def _dropped(self, question: Question) -> Question:
        """Return the question without look-ups that are not worth their price."""
        narrow = sorted(question.terms, key=lambda v: float(np.ptp(question.terms[v].points)))
        for variable in narrow:
            better = self._changed(question, variable, None, self.rows.weights)
            question = question if better is None else better
        return question

    def _extended(self, question: Question) -> Question:
        """Return the question with the first further look-up that is worth its price."""
        if len(question.terms) >= self.options.prices.most_terms:
            return question
        first, second = derivatives(self.rows, question.sums, question.gate)
        candidates = []
        for variable, column in enumerate(self.columns):
            if variable in question.terms:
                continue
            g, h = column.sums(first), column.sums(second)
            # f without the variable, in the terms of the quadratic model
            without = 0.5 * float(np.sum(g**2 / np.maximum(h, 1e-12), where=h > 1e-12))
            zero = np.zeros(column.n_cells + 1)
            tables = table_terms(column, g, h, zero, question.gate.slope, self.options.prices)
            candidates += [
                (cost - without, variable, term) for cost, term in tables if np.ptp(term.points) > 0
            ]
        candidates.sort(key=lambda candidate: candidate[0])
        for cost, variable, term in candidates[:TRIED]:
            better = None
            if cost < 0:
                better = self._changed(question, variable, term, self.rows.weights)
            if better is not None:
                return better
        return question
