"""Formulations: what "auto" means, units of problems, the solver, and who may ask for the loss."""

from __future__ import annotations

import ast

import pytest

from own_loss import SquaredError
from places import ROOT
from softsplit.formulations import FORMULATIONS, formulation_of
from softsplit.formulations.expected_cost import ExpectedCostFormulation, OwnLossFormulation
from softsplit.formulations.likelihood import LikelihoodFormulation
from softsplit.formulations.model_settings import ModelSettings
from softsplit.solvers import BasinHoppingSolver, EliminationSolver

SOURCE = ROOT / "src" / "softsplit"

MAY_ASK = {
    "problem/problem.py",  # the definition
    "solvers/elimination/solver.py",  # refuses other problems
    "ipopt/solver.py",  # one program for each formulation
}


def test_each_loss_has_its_formulation():
    assert isinstance(formulation_of("log"), LikelihoodFormulation)
    assert type(formulation_of("cost")) is ExpectedCostFormulation
    for other in (SquaredError(), "hinge", None):
        assert isinstance(formulation_of(other), OwnLossFormulation)
    assert isinstance(FORMULATIONS["log"].solver(), EliminationSolver)
    assert isinstance(FORMULATIONS["cost"].solver(), BasinHoppingSolver)


@pytest.mark.parametrize("loss", ["log", "cost"])
def test_every_auto_but_strengths_is_resolved(loss):
    made = formulation_of(loss).resolved(ModelSettings(loss=loss), n_classes=5)
    autos = {name for name, value in made.parameters().items() if value == "auto"}
    absorbed = {"steepness"} if loss == "log" else {"depth"}  # the weights; the least depth
    assert autos == {"local_strength", "global_strength"} | absorbed
    made = formulation_of(loss).with_strengths(made, 100.0, 150.0, 4, 1.0)
    assert made.local_strength >= 0 and made.global_strength >= 0


def test_units_of_problems():
    settings = ModelSettings(steepness=128.0, ridge=2.0)
    cost = formulation_of("cost").units(settings, "minmax", 7, 0.5)
    assert cost.steepness == 128.0 and cost.ridge == 0.0
    log = formulation_of("log").units(settings, "standard", 7, 0.5)
    assert log.steepness == 6.0 * 7 and log.ridge == 1.0


def test_strengths_grow_with_the_rows_as_noise_does():
    assert formulation_of("cost").on_more_rows(0.1, 100, 400) == 0.1
    assert formulation_of("log").on_more_rows(0.1, 100, 400) == pytest.approx(0.05)
    assert formulation_of("log").on_more_rows(0.1, 400, 100) == 0.1


def test_a_steepness_belongs_to_the_cost():
    assert formulation_of("cost").check_steepness("steepness", 64) == 64.0
    with pytest.raises(ValueError, match=r"steepness 64 is part of loss='cost'.*leave it out"):
        formulation_of("log").check_steepness("steepness", 64)
    with pytest.raises(ValueError, match=r"steepnesses are part of loss='cost'.*leave them out"):
        formulation_of("log").check_steepness("steepnesses", 64)


def test_no_other_module_of_the_core_asks_which_loss_it_has():
    """A question that depends on the loss is answered by the formulation."""
    asking = set()
    for path in SOURCE.rglob("*.py"):
        names = {
            getattr(node, "attr", getattr(node, "id", getattr(node, "name", "")))
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute | ast.Name | ast.FunctionDef)
        }
        if "by_likelihood" in names:
            asking.add(path.relative_to(SOURCE).as_posix())
    assert asking == MAY_ASK
