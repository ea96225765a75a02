"""Trees by cost for many problems at once: a race of starts, then descents in turns.

As in solvers/basin_hopping, of the trees that a task may start from, each as it is and led in at
growing steepness, a short descent of all decides which one goes on. That one descends until it
ends; then its leaves take the classes that are best for its routing, multipliers of class rates
that are missed grow, and it goes on, until neither changes anything. Leaves and rates follow from
the mass of each class in each leaf, which every step knows: they take no pass over the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from softsplit.engines.base import samples_of
from softsplit.on_torch.lockstep.cost import CostBatch, Rates
from softsplit.on_torch.lockstep.face_descent import OPTIONS as STEP_OPTIONS
from softsplit.on_torch.lockstep.face_descent import FaceLimits, FaceState, steps_of
from softsplit.on_torch.lockstep.penalty import BatchPenalty, common_surrogate
from softsplit.on_torch.lockstep.tasks import Group, Task
from softsplit.on_torch.pieces import Pieces
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget
from softsplit.support.arrays import FloatArray


@dataclass(frozen=True)
class CostOptions:
    """Numbers of the race and of the descents after it, by cost."""

    lead_in: tuple[float, ...] = (128.0, 256.0)
    """Steepnesses at which trees of several branches are led in."""

    lead_steps: int = 20
    """Steps at each of them."""

    race_steps: int = 20
    """Steps after which the race of a task is decided."""

    max_iter: int = 1500
    """Steps after the race; each is an evaluation, also one that was not taken."""

    turn: int = 25
    """Steps after which leaves and multipliers are looked at, of trees whose descent has ended."""

    most_turns: int = 15
    """Turns of a tree."""

    decrease: float = 1e-6
    """A step that lowers the objective by less than this part counts as stalled."""

    patience: int = 4
    """Stalled steps in a row that end a descent."""

    rate_weight: float = 20.0
    """Weight of the rate terms, in rows times the unit of costs; as in solvers/basin_hopping."""

    margin: float = 2e-5
    """Rates aim this much above their minimum, since sums in single precision are not exact."""

    most_weight: float = 1e4
    """Beyond this weight of the rate terms, in total weight times costs, descents crawl."""

    smaller: float = 0.5
    """The batch is made anew where so few of its trees are left."""


OPTIONS = CostOptions()


def costs_alike(problem: TrainingProblem) -> bool:
    """Whether every error of a class costs the same, and something."""
    if not isinstance(problem.loss, ExpectedCost):
        return False
    costs = problem.loss.costs
    errors = costs[~np.eye(len(costs), dtype=bool)].reshape(len(costs), -1)
    return bool(
        np.all(np.diag(costs) == 0) and np.all(errors == errors[:, :1]) and np.all(errors > 0)
    )


@dataclass(frozen=True)
class CostTrees:
    """The trees of a batch with all that their descents take, of the same length."""

    state: FaceState
    batch: CostBatch
    penalty: BatchPenalty
    metric: torch.Tensor
    limits: FaceLimits

    def of(self, trees: torch.Tensor) -> CostTrees:
        """Some of the trees, by their numbers."""
        return CostTrees(
            self.state.of(trees),
            self.batch.of(trees),
            self.penalty.of(trees),
            self.metric[trees],
            self.limits.of(trees),
        )

    def run(self, steps: int) -> None:
        """So many steps of all of them."""
        play = steps_of(self.state, self.batch, self.penalty, self.metric, self.limits)
        for _ in range(steps // STEP_OPTIONS.recorded):
            play()


def descended_by_cost(tasks: Sequence[Task], device: Any, budget: Budget) -> Group:
    """Trees of one shape."""
    problems = [task.problem for task in tasks]
    setup = _Setup(problems, device)
    trees, leaves = _candidates(tasks)
    racing = setup.trees(trees, leaves, budget)
    winners = _raced(racing, setup, len(tasks))
    ended = _finished(winners, setup, budget)
    return _group(problems, winners, setup, ended, budget)


class _Setup:
    """Rows, costs and strengths of some problems, on a device."""

    def __init__(self, problems: Sequence[TrainingProblem], device: Any) -> None:
        self.device = device
        self.dtype = torch.float64 if device.type == "cpu" else torch.float32
        homes = {id(problem.rows): problem.rows for problem in problems}
        self.folds = [samples_of(rows) for rows in homes.values()]
        places = {name: number for number, name in enumerate(homes)}
        tables = [places[id(problem.rows)] for problem in problems]
        self.problems, self.surrogate = problems, common_surrogate(problems[0])
        self.tables = self._column(tables, torch.int32)
        self.pieces = Pieces.of(self.folds, device, self.dtype)
        self.steepness = float(problems[0].steepness)
        metrics = [rows.metric() for rows in homes.values()]
        wide = len(metrics[0].diagonal)
        inverses = [
            one.inverse if one.inverse.shape[0] == wide else np.diag(one.diagonal)
            for one in metrics
        ]
        self.inverses = self._column(np.array(inverses), self.dtype)
        self.costs = self._column([_costs(problem) for problem in problems], self.dtype)
        self.minimum = self._column([problem.minimum_rates for problem in problems])
        self.totals = self._column([problem.rows.class_totals for problem in problems])
        local = [problem.penalties.local.strength for problem in problems]
        global_ = [problem.penalties.global_.strength for problem in problems]
        self.local, self.global_ = self._column(local), self._column(global_)
        units = [problem.cost_unit for problem in problems]
        rows = [problem.rows.n_rows for problem in problems]
        self.units = self._column(units)
        self.weight = OPTIONS.rate_weight * self.units * self._column(rows)

    def _column(self, values: Any, kind: Any = torch.float64) -> torch.Tensor:
        return torch.as_tensor(np.array(values), dtype=kind, device=self.device)

    def metric(self, tables: torch.Tensor, steepness: float) -> torch.Tensor:
        """Inverse Gram matrices: the curvature of a gate is of the order of its squared
        steepness."""
        return self.inverses[tables.long()] * (16.0 / steepness**2)

    def trees(self, theta: FloatArray, leaves: FloatArray, budget: Budget) -> CostTrees:
        """All trees of all problems, (n_problems, n_each, ...), as a batch."""
        each = theta.shape[1]
        of = torch.arange(len(self.problems), device=self.device).repeat_interleave(each)
        batch = CostBatch(
            self.pieces, self.steepness, self.tables[of], self.costs[of],
            # What is aimed at lies a little above what is asked for.
            torch.where(self.minimum > 0, (self.minimum + OPTIONS.margin).clamp(max=1.0), 0.0)[of],
            self.totals[of],
        )  # fmt: skip
        units = torch.ones((len(of), self.pieces.n_features), dtype=self.dtype, device=self.device)
        penalty = BatchPenalty(self.surrogate, self.local[of], self.global_[of], units)
        zero = torch.zeros_like(batch.totals)
        rated = (self.minimum > 0).any(dim=1)
        weight = torch.where(rated, self.weight, torch.zeros_like(self.weight))[of]
        rates = Rates(self._column(leaves, self.dtype).flatten(0, 1), zero, weight)
        point = self._column(theta, self.dtype).flatten(0, 1)
        state = FaceState.at(batch, penalty, point, rates)
        limits = FaceLimits(
            (budget.tol * self.units)[of].to(self.dtype), OPTIONS.decrease, OPTIONS.patience
        )
        return CostTrees(state, batch, penalty, self.metric(batch.tables, self.steepness), limits)


def _costs(problem: TrainingProblem) -> FloatArray:
    assert isinstance(problem.loss, ExpectedCost)
    return problem.loss.costs


def _candidates(tasks: Sequence[Task]) -> tuple[FloatArray, FloatArray]:
    """Splits and leaves of the trees that each task may start from; fewer are filled up."""
    each = max(1 + len(task.candidates) for task in tasks)
    known: dict[int, tuple[FloatArray, FloatArray]] = {}
    theta, leaves = [], []
    for task in tasks:
        given = (task.start, *task.candidates)
        for number in range(each):
            tree = given[number % len(given)]
            if id(tree) not in known:
                known[id(tree)] = np.clip(tree.splits, -1.0, 1.0), tree.leaf_classes
            theta.append(known[id(tree)][0])
            leaves.append(known[id(tree)][1])
    shape = (len(tasks), each)
    return (
        np.array(theta).reshape(*shape, *theta[0].shape),
        np.array(leaves).reshape(*shape, *leaves[0].shape),
    )


def _raced(racing: CostTrees, setup: _Setup, n_tasks: int) -> CostTrees:
    """The tree of each task that a short descent leads furthest.

    CostTrees of several branches run twice, as they are and led in.
    """
    sides = [racing]
    if racing.state.theta.shape[1] > 1:
        led = racing.of(torch.arange(len(racing.state.theta), device=setup.device))
        for steepness in OPTIONS.lead_in:
            if steepness >= setup.steepness:
                continue
            gentle = replace(led.batch, steepness=steepness)
            metric = setup.metric(led.batch.tables, steepness)
            state = FaceState.at(gentle, led.penalty, led.state.theta, led.state.rates)
            CostTrees(state, gentle, led.penalty, metric, led.limits).run(OPTIONS.lead_steps)
            led = replace(led, state=FaceState.at(led.batch, led.penalty, state.theta, state.rates))
        sides.append(led)
    for side in sides:
        _better_leaves(side, torch.ones_like(side.state.over))
        side.run(OPTIONS.race_steps)
    values = torch.stack([side.state.value.view(n_tasks, -1) for side in sides], dim=1)
    each = values.shape[2]
    best = values.flatten(1).argmin(dim=1)
    first = torch.arange(n_tasks, device=setup.device) * each + best % each
    winners = sides[0].of(first)
    if len(sides) > 1:
        led_on = best >= each
        others = sides[1].state.of(first[led_on])
        winners.state.put(torch.nonzero(led_on).flatten(), others)
    return winners


def _better_leaves(trees: CostTrees, which: torch.Tensor) -> torch.Tensor:
    """Give some trees, by flags, the cheapest leaves where that lowers their objective; which of
    them were changed."""
    state, some = trees.state, torch.nonzero(which).flatten()
    batch, rates, mass = trees.batch.of(some), state.rates.of(some), state.mass[some]
    cheapest = _cheapest(mass, batch.costs).to(state.leaves.dtype)
    now, _ = batch.value_at(mass, rates)
    other, _ = batch.value_at(mass, rates._replace(leaves=cheapest))
    better = other < now * (1.0 - 1e-7)
    state.leaves[some] = torch.where(better[:, None, None], cheapest, rates.leaves)
    changed = torch.zeros_like(which)
    changed[some] = better
    if bool(better.any()):
        state.look(trees.batch, trees.penalty)
        state.begin(changed)
    return changed


def _cheapest(mass: torch.Tensor, costs: torch.Tensor) -> torch.Tensor:
    """Leaves of least cost with a leaf for every class; see problem/leaves.py."""
    prices = torch.matmul(costs.to(torch.float64).transpose(1, 2), mass)
    chosen = prices.argmin(dim=1)  # (n_trees, n_leaves)
    n_classes = mass.shape[1]
    there = torch.nn.functional.one_hot(chosen, n_classes).amax(dim=1).sum(dim=1)
    short = torch.nonzero(there < n_classes).flatten()
    if len(short):
        regrets = (prices - prices.amin(dim=1, keepdim=True))[short].cpu().numpy()
        fixed = chosen[short].cpu().numpy()
        for line, regret in zip(fixed, regrets, strict=True):
            classes, leaves = linear_sum_assignment(regret)
            line[leaves] = classes
        chosen[short] = torch.from_numpy(fixed).to(chosen.device)
    return torch.nn.functional.one_hot(chosen, n_classes).transpose(1, 2)


def _finished(trees: CostTrees, setup: _Setup, budget: Budget) -> torch.Tensor:
    """Descend to the end, in place; whether each tree has ended by itself."""
    every = torch.arange(len(trees.state.theta), device=setup.device)
    done = torch.zeros(len(every), dtype=torch.bool, device=setup.device)
    turns = torch.zeros(len(every), device=setup.device)
    missed = torch.full((len(every),), torch.inf, dtype=torch.float64, device=setup.device)
    alive, left, made = trees, every, 0
    _better_leaves(alive, ~done)
    alive.state.begin(~done)
    play = None
    while made < (budget.max_iter or OPTIONS.max_iter) and not budget.exhausted:
        if play is None:
            play = steps_of(alive.state, alive.batch, alive.penalty, alive.metric, alive.limits)
        for _ in range(OPTIONS.turn // STEP_OPTIONS.recorded):
            play()
        made += OPTIONS.turn
        over = alive.state.over.clone()
        goes_on, missed[left] = _turn(alive, over, missed[left])
        turns[left] += over
        done[left] = over & (~goes_on | (turns[left] >= OPTIONS.most_turns))
        alive.state.over.copy_(done[left])
        stay = torch.nonzero(~done[left]).flatten()
        if len(stay) < OPTIONS.smaller * len(left):
            if alive is not trees:
                trees.state.put(left, alive.state)
            left = left[stay]
            if not len(left):
                return done
            alive, play = trees.of(left), None
    if alive is not trees:
        trees.state.put(left, alive.state)
    return done


def _turn(
    trees: CostTrees, over: torch.Tensor, before: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Better leaves or larger multipliers for trees whose descent is over.

    Which ones go on, and by how much class rates are missed, where ``before`` says by how much
    they were at the turn before.
    """
    state, batch = trees.state, trees.batch
    changed = _better_leaves(trees, over)
    lack = batch.minimum - batch.rates(state.mass, state.leaves)
    short = lack.amax(dim=1)
    lacking = over & ~changed & (short > 0.5 * OPTIONS.margin) & (state.weight > 0)
    raised = (state.multipliers + state.weight[:, None] * lack).clamp(min=0.0)
    state.multipliers.copy_(torch.where(lacking[:, None], raised, state.multipliers))
    slow = lacking & (short > 0.25 * before)
    most = OPTIONS.most_weight * batch.totals.sum(dim=1) * batch.costs.amax(dim=(1, 2))
    state.weight.copy_(torch.where(slow, torch.minimum(4.0 * state.weight, most), state.weight))
    if bool(lacking.any()):
        state.look(batch, trees.penalty)
    state.begin(changed | lacking)
    return changed | lacking, torch.where(lacking, short, before)


def _group(
    problems: Sequence[TrainingProblem], trees: CostTrees, setup: _Setup, ended: torch.Tensor,
    budget: Budget,
) -> Group:  # fmt: skip
    """Where the trees are, measured with rows in double precision."""
    state, batch = trees.state, trees.batch
    theta, leaves = state.theta.to(torch.float64), state.leaves.to(torch.float64)
    pieces = batch.pieces
    if setup.dtype != torch.float64:
        pieces = Pieces.of(setup.folds, setup.device, torch.float64)
    exact = replace(batch, pieces=pieces, costs=batch.costs.to(torch.float64))
    mass = exact.passed(theta, leaves).mass
    costs = (exact.table(leaves) * mass).sum(dim=(1, 2))
    totals = costs + trees.penalty.exact().value(theta[..., :-1])
    splits = theta.cpu().numpy() + 0.0
    return Group(
        problems,
        np.ascontiguousarray(splits[:, :, :-1].transpose(0, 2, 1)),
        np.ascontiguousarray(splits[:, :, -1]),
        leaves.cpu().numpy(),
        costs.cpu().numpy(),
        totals.cpu().numpy(),
        (setup.minimum - exact.rates(mass, leaves)).amax(dim=1).cpu().numpy(),
        ended.tolist(),
        budget.verdict,
    )
