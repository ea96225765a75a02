"""Rows on a device, on the one that every machine has: sums against the compiled engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch (softsplit[gpu]) is not installed")

from softsplit import SoftTreeClassifier, strength_path  # noqa: E402
from softsplit.engines.compiled import CompiledRows  # noqa: E402
from softsplit.engines.outer import IDENTITY, OUTERS  # noqa: E402
from softsplit.engines.samples import Samples  # noqa: E402
from softsplit.experiments.cells import chains_of  # noqa: E402
from softsplit.experiments.runner import run_experiment  # noqa: E402
from softsplit.experiments.spec import parse_spec  # noqa: E402
from softsplit.experiments.store import Store  # noqa: E402
from softsplit.fitted.summary import FeatureSummary  # noqa: E402
from softsplit.on_torch.arrival import arrive  # noqa: E402
from softsplit.on_torch.backend import find_device  # noqa: E402
from softsplit.on_torch.grouping import grouped_samples  # noqa: E402
from softsplit.on_torch.lockstep.cost import CostBatch, Rates  # noqa: E402
from softsplit.on_torch.lockstep.faces import Faces  # noqa: E402
from softsplit.on_torch.lockstep.penalty import BatchPenalty  # noqa: E402
from softsplit.on_torch.lockstep.solver import Task, solve_together  # noqa: E402
from softsplit.on_torch.rows import DeviceRows  # noqa: E402
from softsplit.problem.bounds import Bounds  # noqa: E402
from softsplit.problem.loss import ExpectedCost, LogLoss  # noqa: E402
from softsplit.problem.penalties import (  # noqa: E402
    Groups,
    PenaltyPair,
    counting,
    exponential,
    linear,
    logarithmic,
    power,
)
from softsplit.problem.problem import TrainingProblem  # noqa: E402
from softsplit.solvers.base import (  # noqa: E402
    Budget,
    Start,
    UnsupportedProblem,
)
from softsplit.solvers.basin_hopping import BasinHoppingSolver  # noqa: E402
from softsplit.solvers.elimination.descents import RowDescents  # noqa: E402
from softsplit.solvers.elimination.penalised import Penalised  # noqa: E402
from softsplit.solvers.elimination.support_tree import SupportTree  # noqa: E402
from softsplit.solvers.starts.rules import draw_start  # noqa: E402
from softsplit.tree.parameters import Topology, TreeParameters  # noqa: E402
from softsplit.tree.scaling import fit_scaling  # noqa: E402

CPU = torch.device("cpu")


def draw(seed, n_rows=500, n_features=5, n_classes=3, depth=2):
    """Samples, splits and a table."""
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(size=(n_rows, n_features)), rng.integers(0, n_classes, n_rows)
    samples = Samples.from_arrays(X, y, n_classes, rng.uniform(0.5, 2.0, n_rows))
    splits = rng.normal(size=(2**depth - 1, n_features + 1))
    return samples, splits, rng.dirichlet(np.ones(n_classes), 2**depth).T.copy()


def close(found, expected, tol):
    for part in ("value", "splits", "mass", "table"):
        a, b = np.asarray(getattr(found, part)), np.asarray(getattr(expected, part))
        assert np.max(np.abs(a - b)) <= tol * np.max(np.abs(b)), part


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("outer", OUTERS)
def test_sums_in_single_precision_are_close_to_those_of_the_compiled_engine(depth, outer):
    """Those in double precision are in contracts/test_engines.py."""
    samples, splits, table = draw(0, depth=depth)
    expected = CompiledRows(samples).evaluate(splits, table, outer, 20.0)
    close(
        DeviceRows.of(samples, CPU, single=True).evaluate(splits, table, outer, 20.0),
        expected,
        1e-4,
    )


def test_slabs_make_no_difference():
    samples, splits, table = draw(2, n_rows=6000)
    whole = DeviceRows.of(samples, CPU)
    parts = DeviceRows.of(samples, CPU, room=200_000)
    assert len(whole.slabs) == 1 and len(parts.slabs) > 2
    for one, other in (
        (parts, whole),
        (parts.of_class(1), whole.of_class(1)),
        (parts.reweighed(3, 0.5), CompiledRows(samples).reweighed(3, 0.5)),
    ):
        close(
            one.evaluate(splits, table, IDENTITY, 9.0),
            other.evaluate(splits, table, IDENTITY, 9.0),
            1e-12,
        )


@pytest.mark.parametrize("weighted", [False, True])
def test_samples_made_on_a_device_are_the_same_to_the_bit(weighted):
    rng = np.random.default_rng(5)
    X = rng.integers(-2, 3, size=(25_000, 4)).astype(np.float32) * 0.37
    X[::2] += rng.normal(size=(12_500, 4)).astype(np.float32)
    X[::7] = -0.0
    y = rng.integers(0, 3, len(X))
    weight = rng.choice([0.0, 0.5, 1.0, 0.3], len(X)) if weighted else np.ones(len(X))
    scaling = fit_scaling("standard", X[weight > 0], weight[weight > 0])
    expected = Samples.from_arrays(X, y, 3, weight, scaling.transform, stay_single=True)
    found = grouped_samples(X, y, 3, weight, scaling, CPU, stay_single=True)
    assert found.features.dtype == np.float32 and found.n_rows < np.sum(weight > 0)
    for part in ("features", "starts", "weights", "class_totals"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_rows_that_arrive_are_measured_and_scaled_to_the_bit(kind, weighted):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60_000, 4)).astype(np.float32)
    X[:, 1], X[:, 2], X[:, 3] = rng.integers(0, 9, len(X)), X[:, 2] > 0, 7.0
    X[:100] = X[100:200]
    y, weight = rng.integers(0, 3, len(X)), np.ones(len(X))
    if weighted:
        weight = rng.choice([0.5, 1.0, 0.3], len(X))
    found = arrive(X, y, 3, weight, kind, CPU, counts=weight)
    scaling = fit_scaling(kind, X, weight)
    expected = Samples.from_arrays(X, y, 3, weight, scaling.transform, stay_single=True)
    for part in ("low", "span"):
        np.testing.assert_array_equal(getattr(found.scaling, part), getattr(scaling, part))
    few, some = found.rows.sample(1000), expected.stratified(1000)
    assert "features" not in vars(found.rows.samples)  # nothing else came back
    for one, other in ((few, some), (found.rows.samples, expected)):
        for part in ("features", "starts", "weights", "class_totals"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    summary = FeatureSummary.of(X, weight, expected.mean)
    told = FeatureSummary.known(found.low, found.high, found.scaled_mean, found.whole)
    for part in ("low", "high", "kinds"):
        np.testing.assert_array_equal(getattr(told, part), getattr(summary, part))
    np.testing.assert_allclose(told.scaled_mean, summary.scaled_mean, rtol=1e-6)


def test_metric_is_that_of_the_compiled_engine():
    samples, _, _ = draw(3)
    found, expected = DeviceRows.of(samples, CPU).metric(), CompiledRows(samples).metric()
    np.testing.assert_allclose(found.inverse, expected.inverse, rtol=1e-8)
    np.testing.assert_allclose(found.diagonal, expected.diagonal, rtol=1e-8)


@pytest.mark.parametrize("name", ["tpu", 3, "", "cuda:99"])
def test_devices_that_are_not_there(name):
    with pytest.raises((ValueError, RuntimeError), match="device") as said:
        find_device(name)
    assert str(said.value).endswith(".") and "\n" not in str(said.value)


def problem(samples, local=0.0, global_=0.0, surrogate=None):
    """Log-loss of a tree of two levels."""
    rows = CompiledRows(samples)
    return TrainingProblem(
        rows=rows,
        topology=Topology(2),
        loss=LogLoss.counted(rows.class_totals),
        penalties=PenaltyPair.of(surrogate or linear(), local, global_),
        minimum_rates=np.zeros(rows.n_classes),
        steepness=3.0 * rows.n_features,
        bounds=Bounds.free(rows.n_features, 3),
        ridge=1.0,
    )


def learnable(seed, n_rows=200):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rows, 5))
    y = np.argmax(X[:, :3] + 0.1 * rng.gumbel(size=(n_rows, 3)), axis=1)
    return Samples.from_arrays(X, y, 3)


def starts(one, count):
    rng = np.random.default_rng(0)
    return [
        TreeParameters(
            rng.normal(size=(5, 3)), rng.uniform(size=3), rng.dirichlet(np.ones(3), 4).T.copy()
        )
        for _ in range(count)
    ]


def test_trees_in_lockstep_end_where_the_compiled_solver_does():
    folds = [learnable(0), learnable(1, 150)]
    strengths = [(0.0, 0.0), (0.5, 0.0), (0.0, 2.0), (1.0, 1.0)]
    tasks = [
        Task(problem(samples, *pair), start)
        for samples in folds
        for start in starts(samples, 2)
        for pair in strengths
    ]
    ends = solve_together(tasks, "cpu", Budget())
    ratios = []
    for task, end, objective in zip(tasks, ends, ends.objectives, strict=True):
        assert end.objective == pytest.approx(task.problem.objective(end.parameters), rel=1e-9)
        assert objective == pytest.approx(end.objective, rel=1e-9)
        descents = RowDescents(task.problem, Budget(), task.problem.samples)
        steps = Penalised(
            descents,
            SupportTree.of(task.start, task.problem),
            task.problem.penalties,
            task.problem.ridge,
        )
        fitted, _ = steps.descend(None, 1e-6, tight=False)
        ratios.append(end.objective / task.problem.objective(fitted.parameters(task.problem)))
    assert np.median(ratios) <= 1.0005


def test_strong_penalties_in_lockstep_leave_no_feature():
    strong = problem(learnable(2), 0.0, 1e3)
    end = solve_together([Task(strong, starts(strong, 1)[0])], "cpu", Budget())[0]
    assert not np.any(end.parameters.weights)
    assert end.cost == pytest.approx(strong.cost(end.parameters), rel=1e-9)


@pytest.mark.parametrize("surrogate", [exponential(5.0), logarithmic(0.1), power(0.5, 0.1)])
def test_steps_of_concave_penalties_descend(surrogate):
    one = problem(learnable(3), 0.5, 0.5, surrogate)
    start = starts(one, 1)[0]
    end = solve_together([Task(one, start)], "cpu", Budget(max_iter=50))[0]
    assert one.objective(end.parameters) < one.objective(start)


def test_lockstep_refuses_what_it_cannot_do():
    counted = problem(learnable(4), 1.0, 1.0, counting())
    with pytest.raises(UnsupportedProblem, match="needs a penalty with a slope"):
        solve_together([Task(counted, starts(counted, 1)[0])], "cpu", Budget())


def by_cost(samples, local=0.0, global_=0.0, surrogate=None, rate=0.1):
    """The paper's problem, of two levels."""
    rows = CompiledRows(samples)
    return TrainingProblem(
        rows=rows,
        topology=Topology(2),
        loss=ExpectedCost.uniform(rows.n_classes),
        penalties=PenaltyPair.of(surrogate or linear(), local, global_),
        minimum_rates=np.full(rows.n_classes, rate),
    )


def test_gradient_of_the_cost_with_binding_rates_is_that_of_finite_differences():
    samples, rng = learnable(5), np.random.default_rng(5)
    rows = DeviceRows.of(samples, CPU)
    batch = CostBatch(
        rows.slabs[0],
        6.0,
        torch.zeros(2, dtype=torch.int32),
        torch.tensor(np.array([0.5, 2.0])[:, None, None] * (1.0 - np.eye(3))),
        torch.full((2, 3), 0.8, dtype=torch.float64),
        torch.tensor(np.tile(samples.class_totals, (2, 1))),
    )
    theta = torch.tensor(rng.normal(size=(2, 3, 6)))
    leaves = torch.eye(3, dtype=torch.float64)[:, [0, 1, 2, 0]].expand(2, -1, -1)
    rates = Rates(leaves, torch.full((2, 3), 4.0).double(), torch.tensor([50.0, 900.0]).double())
    _, gradient, _ = batch.value_and_gradient(theta, rates)
    step = 1e-6
    for t, j in np.ndindex(3, 6):
        shift = torch.zeros_like(theta)
        shift[:, t, j] = step
        ends = [batch.value_and_gradient(theta + sign * shift, rates)[0] for sign in (1, -1)]
        found = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(found, gradient[:, t, j], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("surrogate", [linear(), exponential(5.0)])
def test_the_least_subgradient_is_the_slope_along_itself(surrogate):
    rng, n = np.random.default_rng(7), 200
    local, global_ = (torch.tensor(rng.choice([0.0, 0.7, 2.0], n)) for _ in range(2))
    penalty = BatchPenalty(surrogate, local, global_, torch.ones((n, 5), dtype=torch.float64))
    theta = rng.uniform(-0.9, 0.9, (n, 3, 6))
    theta[rng.random(theta.shape) < 0.3] = 0.0
    theta[:, :, 1] = 0.0
    theta[:, :, 2] = 0.4 * np.sign(theta[:, :, 2])  # ties, and zeros below the maximum
    theta, gradient = torch.tensor(theta), torch.tensor(rng.normal(size=theta.shape))
    slope = Faces.at(theta, gradient, penalty).slope
    step = 1e-7
    moved = penalty.value((theta - step * slope)[..., :-1])
    rise = (moved - penalty.value(theta[..., :-1])) / step
    along = rise - (gradient * slope).sum(dim=(1, 2))
    np.testing.assert_allclose(along, -(slope**2).sum(dim=(1, 2)), rtol=1e-4, atol=1e-4)


def test_trees_by_cost_in_lockstep_end_where_the_compiled_solver_does():
    whole = by_cost(learnable(0))
    starts = [draw_start("groups", whole, np.random.default_rng(i), 1) for i in range(3)]
    strengths = [(0.0, 0.0), (0.5, 0.0), (0.0, 2.0), (1.0, 1.0), (0.0, 50.0)]
    pairs = [(by_cost(learnable(0), *pair), start) for pair in strengths for start in starts]
    tasks = [Task(problem, start.parameters, start.candidates) for problem, start in pairs]
    ends = solve_together(tasks, "cpu", Budget(max_iter=400))
    assert np.all(np.isfinite(ends.comparable))
    ratios = []
    for (problem, start), end in zip(pairs, ends, strict=True):
        assert problem.violation(end.parameters).largest <= 1e-6
        assert end.objective == pytest.approx(problem.objective(end.parameters), rel=1e-9)
        given = Start(start.parameters, "groups", start.candidates)
        ratios.append(
            end.objective / BasinHoppingSolver().solve(problem, given, Budget()).objective
        )
    assert np.median(ratios) <= 1.005 and np.mean(ratios) <= 1.02


def test_lockstep_says_which_problems_it_does_not_know():
    one = by_cost(learnable(4))
    dear = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    grouped = one.penalties.of_groups(Groups(np.array([0, 0, 1, 2, 2])))
    for problem, said in (
        (replace(one, loss=ExpectedCost(dear)), "every error of a class costs the same"),
        (one.with_penalties(grouped), "knows no groups of features"),
    ):
        with pytest.raises(UnsupportedProblem, match=said):
            solve_together([Task(problem, starts(one, 1)[0])], "cpu", Budget())


def table(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    return X, np.argmax(X[:, :3] + 0.3 * rng.gumbel(size=(n_rows, 3)), axis=1)


def test_estimators_on_a_device():
    X, y = table()
    known = {"n_starts": 1, "random_state": 0, "depth": 2}
    here = SoftTreeClassifier(**known).fit(X, y)
    there = SoftTreeClassifier(**known, device="cpu").fit(torch.tensor(X), torch.tensor(y))
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-9)
    np.testing.assert_allclose(
        there.predict_proba(torch.tensor(X)), here.predict_proba(X), atol=1e-6
    )
    with pytest.raises(ValueError, match="give one of them"):
        SoftTreeClassifier(device="cpu", engine=CompiledRows).fit(X, y)


def test_tensors_of_many_rows_are_taken_where_they_lie(monkeypatch):
    X, y = table(120_000)
    X = X.astype(np.float32)
    known = {"n_starts": 1, "random_state": 0, "depth": 2, "time_limit": 60, "device": "cpu"}
    here = SoftTreeClassifier(**known, curves=False).fit(X, y)  # tensors do not bend
    tensor = torch.tensor(X)
    monkeypatch.setattr("softsplit.training.rows.on_host", None)  # no whole table
    there = SoftTreeClassifier(**known).fit(tensor, y)
    assert there.n_features_in_ == 4
    assert there.objective_ == here.objective_
    np.testing.assert_array_equal(there.tree_.summary.low, X.min(axis=0))


def test_a_path_in_lockstep_is_no_worse_than_a_walk():
    X, y = table()
    tree = SoftTreeClassifier(depth=2, penalty="l1", n_starts=3, random_state=0)
    grid = [1.0, 4.0, 16.0]
    walked = strength_path(X, y, estimator=tree, strengths=grid).to_frame()
    made = strength_path(X, y, estimator=tree, strengths=grid, device="cpu").to_frame()
    assert np.all(made["objective"] <= 1.02 * walked["objective"])
    assert list(made["global_strength"]) == grid


def test_a_path_by_cost_in_lockstep_keeps_the_class_rates():
    X, y = table(150)
    tree = SoftTreeClassifier(loss="cost", penalty="l1", n_starts=2, random_state=0, max_iter=200)
    made = strength_path(X, y, estimator=tree, strengths=[1.0, 1e3], device="cpu")
    assert [len(point.selected_features) for point in made.points][1] == 0
    assert all(point.solution.violation <= 1e-6 for point in made.points)


SPEC = """
name = "device"
title = "All trees at once"
datasets = ["iris"]
models = ["L1+Linf", "L0glob"]
starts = 2
only_folds = [0, 1]

[grid]
strengths = [0.5, 4.0]
walk = "fresh"

[training]
loss = "log"
depth = 2
device = "cpu"
"""


def test_an_experiment_in_lockstep(tmp_path):
    spec = parse_spec(SPEC, "device.toml")
    with Store(tmp_path / "device.sqlite") as store:
        done = run_experiment(spec, store)
        assert done.n_done == done.n_cells == 2 * 2 * (4 + 2)
        frame = store.frame({chain.protocol for chain in chains_of(spec)})
    assert set(frame["status"]) <= {"OPTIMAL", "ACCEPTABLE"}
    assert np.all(frame["test_accuracy"] > 0.8)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('walk = "fresh"', 'walk = "warm"', "needs grid.walk"),
        ("depth = 2", "min_class_rate = 0.2", "needs min_class_rate = 0"),
    ],
)
def test_specs_that_no_device_can_run(old, new, said):
    with pytest.raises(ValueError, match=said):
        parse_spec(SPEC.replace(old, new), "device.toml")
