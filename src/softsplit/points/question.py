"""Search for the whole points of one question.

1. Starts: the effects of the soft tree's question in tables and in slopes, for several numbers of
   points of the widest; the best of each of both kinds goes on. Or the points that the question
   has already.
2. Improve every look-up in turn: the best table of each form under the quadratic model (terms.py),
   or none, accepted if f, with centre and slope refitted, and prices fall.
3. Add the first that pays of the further look-ups that promise most.
4. Repeat 2 and 3 until little is gained; the best of all starts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from softsplit.points.cells import CellColumn
from softsplit.points.likelihood import FEW, Gate, GateRows, derivatives, fit_gate
from softsplit.points.terms import Prices, Target, Term, slope_term, table_terms, target_of
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
    shrinkage : float
        Part of the ridge of training that is the prior here.
    distilled : float
        Share of the soft tree's probabilities in the classes that points are fitted to.
    prior_rows : float
        Rows of the class shares of all rows that a leaf has beside its own.
    rounds, gain : int, float
        Rounds at most, and what a round must gain, for each ``FEW`` rows by weight.
    closed : bool
        Whether look-ups only change: none is added, and none goes.
    """

    prices: Prices = field(default_factory=Prices)
    spans: tuple[int, ...] = (4, 10, 20)
    ridge: float = 0.03
    steepest: float = 1.0
    shrinkage: float = 0.25
    distilled: float = 0.5
    prior_rows: float = 0.05
    rounds: int = 6
    gain: float = 0.05
    closed: bool = False


DEFAULTS = SearchOptions()

# Points as near to the soft tree as they get, whose priors have shrunk it already: for few rows,
# where half of the classes are noise, and for trees that short tables do not hold.
FINE = SearchOptions(
    prices=DEFAULTS.prices.times(0.1), shrinkage=0.02, distilled=1.0, prior_rows=0.01
)

# Log-odds between which the effects of a variable differ: beyond, answers are sure.
WIDEST = 10.0

# Newton steps of a gate; candidates to add that are tried.
STEPS, TRIED = 8, 4

# A change must gain more than rounding errors.
LEAST_GAIN = 1e-6

LEAST_WEIGHT = 1e-12

# A change is tried that loses at most so much under the quadratic model.
SLACK = 1.0


@dataclass(frozen=True)
class Question:
    """The look-ups of a question by variable with their price, the gate, and the sums of points
    (n_rows,)."""

    terms: Mapping[int, Term]
    gate: Gate
    sums: FloatArray
    price: float = 0.0

    @property
    def lookups(self) -> dict[int, Lookup]:
        return {variable: term.lookup for variable, term in self.terms.items()}

    @property
    def scores(self) -> FloatArray:
        """Scores of the gate, (n_rows,)."""
        return self.gate.centre + self.gate.slope * self.sums

    @property
    def objective(self) -> float:
        """f and the price of the terms."""
        return self.gate.value + self.price


def sums_of(terms: Mapping[int, Term]) -> FloatArray:
    """Return the points of every row, (n_rows,)."""
    return np.sum([term.points for term in terms.values()], axis=0)


class QuestionSearch:
    """The search for one question; see the module.

    ``directions`` says of variables whose points may only grow (1) or fall (-1) with the value. A
    look-up of a variable that is not among its ``own`` costs more, log p nats if there are p
    variables: the best of so many fits noise as well (risk inflation, Foster and George 1994). The
    question is left as it is where ``stop`` says so.
    """

    def __init__(
        self,
        columns: Sequence[CellColumn],
        rows: GateRows,
        options: SearchOptions = DEFAULTS,
        directions: Mapping[int, int] = MappingProxyType({}),
        own: Collection[int] = (),
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.columns, self.options, self.stop = columns, options, stop
        self.rows = GateRows(*map(np.asfortranarray, rows))
        self.gain = options.gain * max(1.0, float(rows.weights.sum()) / FEW)
        self._last: tuple[Question, FloatArray, FloatArray] | None = None
        self.directions = directions
        self.own = own

    def best(
        self, effects: Mapping[int, Effect], centre: float, known: Question | None = None
    ) -> Question | None:
        """Return the best question, from ``known`` alone if that is given; None without a start."""
        if known is None:
            starts = self._starts(effects, centre)
        else:
            starts = [self._fitted(known.terms, known.sums, known.gate)]
        searched = [self._climb(start, effects) for start in starts]
        return min(searched, key=lambda question: question.objective, default=None)

    def _starts(self, effects: Mapping[int, Effect], centre: float) -> list[Question]:
        """Return the effects in points: in tables, and slopes where the soft tree has them."""
        widest = max((float(np.ptp(effect.cells)) for effect in effects.values()), default=0.0)
        if widest == 0.0:
            return []
        widest = min(widest, WIDEST)
        soft = np.sum([e.cells[self.columns[v].codes] for v, e in effects.items()], axis=0)
        _, second = derivatives(self.rows, soft, Gate(centre, 1.0, np.inf))
        curvature = {v: self.columns[v].sums(second) for v in effects}
        starts = []
        for sloped in (False, True):
            questions = []
            for span in self.options.spans[sloped:]:
                slope = min(widest / span, self.options.steepest)
                nearest = {
                    v: self._nearest(v, effect, slope, curvature[v], sloped=sloped)
                    for v, effect in effects.items()
                }
                terms = {v: term for v, term in nearest.items() if term.varies}
                if not terms or (sloped and not any(term.slopes for term in terms.values())):
                    continue
                sums = sums_of(terms)
                moved = float((soft - slope * sums) @ second) / float(second.sum() + LEAST_WEIGHT)
                questions.append(self._fitted(terms, sums, Gate(centre + moved, slope, np.inf)))
            starts += sorted(questions, key=lambda question: question.objective)[:1]
        return starts

    def _nearest(
        self, variable: int, effect: Effect, slope: float, second: FloatArray, *, sloped: bool
    ) -> Term:
        """Return the points that are nearest to an effect; ``second`` are sums by cell."""
        term = self._sloped(variable, effect, slope, second) if sloped else None
        if term is not None:
            return term
        target = target_of(np.zeros(len(second)), second, effect.cells / slope, slope)
        return min(self._tables(variable, target), key=lambda t: target.cost(t.cells) + t.price)

    def _sloped(
        self, variable: int, effect: Effect, slope: float, second: FloatArray
    ) -> Term | None:
        if not len(effect.coefficients):
            return None
        return slope_term(
            self.columns[variable], effect.knots, effect.coefficients, effect.unknown, slope,
            second, self.options.prices, self.directions.get(variable, 0),
        )  # fmt: skip

    def _tables(self, variable: int, target: Target) -> list[Term]:
        direction, prices = self.directions.get(variable, 0), self.options.prices
        if variable not in self.own:
            prices = prices._replace(look_up=prices.look_up + log(len(self.columns)))
        return table_terms(self.columns[variable], target, prices, direction)

    def _derivatives(self, question: Question) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of every row at a question; those of the last are known."""
        if self._last is None or self._last[0] is not question:
            at = derivatives(self.rows, question.sums, question.gate)
            self._last = question, *at
        return self._last[1:]

    def _fitted(
        self, terms: Mapping[int, Term], sums: FloatArray, gate: Gate, needed: float = np.inf
    ) -> Question:
        """Return the question of some terms with centre and slope refitted from ``gate``.

        ``needed`` is the objective that the question must fall below to be of use.
        """
        ridge = self.options.ridge * sum(term.variance for term in terms.values())
        price = sum(term.price for term in terms.values())
        price += self.options.prices.of_length(len(terms))
        needed -= price
        fitted = fit_gate(self.rows, sums, gate, ridge, self.options.steepest, STEPS, needed)
        return Question(terms, fitted, sums, price)

    def _dearer(self, n_terms: int) -> float:
        """Return what one more than so many look-ups costs, beside its own price."""
        prices = self.options.prices
        return prices.of_length(n_terms + 1) - prices.of_length(n_terms)

    def _changed(
        self, question: Question, variable: int, term: Term | None, second: FloatArray
    ) -> Question | None:
        """Return the question with another term of a variable if it is better, else None."""
        if term is None and len(question.terms) == 1:
            return None
        needed = question.objective - LEAST_GAIN
        changed = self._with(question, variable, term, second, needed)
        return changed if changed.objective < needed else None

    def _with(
        self,
        question: Question,
        variable: int,
        term: Term | None,
        second: FloatArray,
        needed: float = np.inf,
    ) -> Question:
        """Return the question with another term of a variable, or none.

        ``second`` (n_rows,) weighs the rows: their mean score stays.
        """
        terms = {v: t for v, t in question.terms.items() if v != variable}
        added = -question.terms[variable].points if variable in question.terms else 0.0
        if term is not None:
            terms[variable] = term
            added = added + term.points
        shift = question.gate.slope * float(added @ second) / float(second.sum() + LEAST_WEIGHT)
        gate = question.gate._replace(centre=question.gate.centre - shift)
        return self._fitted(terms, question.sums + added, gate, needed)

    def _climb(self, question: Question, effects: Mapping[int, Effect]) -> Question:
        """Return the question after rounds of steps 2 to 4 of the module."""
        for n in range(self.options.rounds):
            before = question.objective
            for variable in list(question.terms):
                if self.stop():
                    return question
                question = self._improved(question, variable, effects if n == 0 else {})
            question = question if self.options.closed else self._extended(question)
            if question.objective > before - self.gain:
                break
        return question

    def _improved(
        self, question: Question, variable: int, effects: Mapping[int, Effect]
    ) -> Question:
        """Return the question with the first better look-up for a variable, or without it."""
        old, slope = question.terms[variable], question.gate.slope
        first, second = self._derivatives(question)
        sums = old.column.sums(first), old.column.sums(second)
        target = target_of(*sums, old.cells, slope)
        terms = self._tables(variable, target)
        if variable in effects and old.slopes is None:
            sloped = self._sloped(variable, effects[variable], slope, sums[1])
            terms += [] if sloped is None else [sloped]
        costs = [(target.cost(term.cells) + term.price, term) for term in terms if term.varies]
        saved = self._dearer(len(question.terms) - 1)
        none: list[tuple[float, Term | None]] = []
        if not self.options.closed:
            none = [(target.cost(np.zeros(len(old.cells))) - saved, None)]
        least = target.cost(old.cells) + old.price + SLACK
        for cost, term in sorted([*costs, *none], key=lambda pair: pair[0]):
            same = term is not None and np.ptp(term.cells - old.cells) == 0.0
            if cost < least and not same:
                better = self._changed(question, variable, term, second)
                if better is not None:
                    return better
        return question

    def _extended(self, question: Question) -> Question:
        """Return the question with the first further look-up that is worth its price."""
        if len(question.terms) >= self.options.prices.most_terms:
            return question
        first, second = self._derivatives(question)
        dearer, candidates = self._dearer(len(question.terms)), []
        for variable, column in enumerate(self.columns):
            if variable in question.terms:
                continue
            zero = np.zeros(column.n_cells + 1)
            target = target_of(column.sums(first), column.sums(second), zero, question.gate.slope)
            without = target.cost(zero)
            for term in self._tables(variable, target):
                cost = target.cost(term.cells) + term.price + dearer - without
                if cost < 0 and term.varies:
                    candidates.append((cost, variable, term))
        for _, variable, term in sorted(candidates, key=lambda candidate: candidate[:2])[:TRIED]:
            better = self._changed(question, variable, term, second)
            if better is not None:
                return better
        return question
