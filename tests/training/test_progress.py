"""What is shown while training runs, and that looking on changes nothing."""

from __future__ import annotations

import io
import re
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from helpers import random_case
from softsplit import SoftTreeClassifier, strength_path
from softsplit.ipopt.solver import IpoptSolver
from softsplit.solvers import BasinHoppingSolver, Budget, Status
from softsplit.training import progress
from softsplit.training.multistart import multistart, search_around
from softsplit.training.observer import Observer
from softsplit.training.progress import ConsoleProgress
from softsplit.training.regularisation_path import solve_path

START = re.compile(
    r"^start +(\d+) of 4  (?:growth|mixtures|groups) +objective [\d.e+-]+ +(?:optimal|acceptable) +"
    r"[\d.]+ s  best ([\d.e+-]+)$"
)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    """Nothing that makes Rich take a file for a terminal, or a terminal for a file."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def problem():
    return random_case(0, depth=2, steepness=64.0, n_rows=40).problem


@pytest.fixture
def terminal():
    return Console(force_terminal=True, file=io.StringIO(), width=120, highlight=False)


def tree(**parameters):
    settings = {"n_starts": 4, "random_state": 0, "global_strength": 0.2} | parameters
    return SoftTreeClassifier(**settings)


def train(problem, observer, **settings):
    found = multistart(problem, BasinHoppingSolver(), n_starts=3, observer=observer, **settings)
    return search_around(problem, BasinHoppingSolver(), found, observer=observer)


class Recorder(Observer):
    """Notes what it is told; raises at one kind of event if asked to."""

    def __init__(self, interrupt=None):
        self.events, self.interrupt = [], interrupt

    def _note(self, kind, *content):
        self.events.append((kind, *content))
        if kind == self.interrupt:
            raise KeyboardInterrupt

    def starting(self, total):
        self._note("starting", total)

    def start_ended(self, number, rule, solution):
        self._note("start", number, rule, solution.objective)

    def searching(self):
        self._note("searching")

    def hopped(self, done, objective):
        self._note("hop", done, objective)

    def search_ended(self, solution):
        self._note("searched", solution.objective)

    def point_ended(self, problem, solution):
        self._note("point", problem.penalties.global_.strength, solution.objective)


def test_an_observer_is_told_of_every_start_and_every_hop(problem):
    seen = Recorder()
    best = train(problem, seen)
    kinds = [event[0] for event in seen.events]
    hops = best.search.n_hops
    assert hops > 0
    assert kinds == ["starting", *["start"] * 3, "searching", *["hop"] * (hops + 1), "searched"]
    assert [event[1:3] for event in seen.events[1:4]] == [(i, "groups") for i in (1, 2, 3)]
    told = [event for event in seen.events if event[0] == "hop"]
    assert [event[1] for event in told] == list(range(hops + 1))
    assert all(a[2] >= b[2] for a, b in pairwise(told))
    assert seen.events[-1] == ("searched", best.objective)


def test_threads_tell_of_every_start(problem):
    seen = Recorder()
    found = multistart(problem, BasinHoppingSolver(), n_starts=6, n_jobs=2, observer=seen)
    told = sorted(event[1:] for event in seen.events if event[0] == "start")
    assert told == [(i + 1, "groups", s.objective) for i, s in enumerate(found)]


def test_a_terminal_shows_lines_and_a_live_one(problem, terminal):
    with ConsoleProgress(Budget(time_limit=1000.0), console=terminal) as shown:
        train(problem, shown)
    text = terminal.file.getvalue()
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor is given back
    for number in (1, 2, 3):
        assert re.search(rf"start {number} of 3  groups", text)
        assert re.search(rf"starts {number} of 3  best [\d.e-]+  \d+ s  \d+ s left", text)
    assert re.search(r"hops \d+  objective", text)
    assert re.search(r"3 starts and \d+ hops ended in \d+ different trees, \d+ of them in", text)


def test_the_live_line_says_what_runs_now(terminal):
    shown = ConsoleProgress(Budget(), n_points=7, console=terminal)

    def line():
        terminal.file.seek(0)
        terminal.file.truncate()
        terminal.print(shown)
        return terminal.file.getvalue().strip("-\\|/ \n")

    assert line() == "points 0 of 7  0 s"
    shown.starting(5)
    assert line() == "points 0 of 7  starts 0 of 5  0 s"
    shown.searching()
    shown.hopped(12, 3.25)
    assert line() == "points 0 of 7  hops 12  best 3.25  0 s"


@pytest.mark.parametrize("loss", ["log", "cost"])
def test_elsewhere_there_are_plain_lines_on_standard_error(iris, capfd, loss):
    tree(loss=loss, verbose=1).fit(*iris)
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert out == "" and "\x1b" not in err and "\r" not in err
    found = [START.match(line) for line in lines[:4]]
    assert [match and match[1] for match in found] == ["1", "2", "3", "4"]
    best = [float(match[2]) for match in found]
    assert best == sorted(best, reverse=True)
    searched = [r"hops \d+  objective", r"4 starts and \d+ hops ended in "]
    told = [re.match(words, line) for words, line in zip(searched, lines[4:], strict=False)]
    assert len(lines[4:]) == len(told) == 2 * (loss == "cost")
    assert all(told)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_looking_on_changes_no_bit(iris, capfd, n_jobs):
    silent = tree().fit(*iris)
    assert capfd.readouterr() == ("", "")
    shown = tree(verbose=1, n_jobs=n_jobs).fit(*iris)
    err = capfd.readouterr().err
    assert sorted(re.findall(r"^start (\d)", err, re.M)) == ["1", "2", "3", "4"]
    np.testing.assert_array_equal(silent.weights_, shown.weights_)
    np.testing.assert_array_equal(silent.thresholds_, shown.thresholds_)
    assert [s.objective for s in silent.starts_] == [s.objective for s in shown.starts_]


def test_processes_report_as_they_come_back(iris, capfd):
    pytest.importorskip("casadi", reason="needs softsplit[ipopt]")
    settings = {"loss": "cost", "solver": "ipopt", "n_starts": 3, "steepness": 32.0}
    shown = tree(verbose=1, n_jobs=2, **settings).fit(*iris)
    err = capfd.readouterr().err
    assert sorted(re.findall(r"^start (\d) of 3  points", err, re.M)) == ["1", "2", "3"]
    silent = tree(n_jobs=1, **settings).fit(*iris)
    assert [s.objective for s in silent.starts_] == [s.objective for s in shown.starts_]


def test_a_start_that_fails_is_never_the_best(problem, terminal):
    good = multistart(problem, BasinHoppingSolver(), n_starts=1)[0]
    bad = type(good)(**(vars(good) | {"status": Status.INFEASIBLE, "objective": -1.0}))
    shown = ConsoleProgress(Budget(), console=terminal)
    shown.starting(2)
    shown.start_ended(1, "groups", bad)
    shown.start_ended(2, "groups", good)
    first, second = terminal.file.getvalue().splitlines()
    assert "infeasible" in first and "best -" in first
    assert f"best {good.objective:.6g}" in second


def test_a_path_shows_a_line_for_each_point(iris, capfd):
    path = strength_path(*iris, estimator=tree(verbose=1), strengths=[0.1, 0.4, 2.0])
    err = capfd.readouterr().err
    told = re.findall(
        r"^point (\d) of 3  local ([\d.]+) +global ([\d.]+) +objective ([\d.e-]+)", err, re.M
    )
    wanted = [
        (
            str(i + 1),
            f"{p.local_strength:.4g}",
            f"{p.global_strength:.4g}",
            f"{p.solution.objective:.6g}",
        )
        for i, p in enumerate(path.points)
    ]
    assert told == wanted and len(wanted) == 3
    again = strength_path(*iris, estimator=tree(), strengths=[0.1, 0.4, 2.0])
    assert capfd.readouterr() == ("", "")
    for one, two in zip(path.points, again.points, strict=True):
        np.testing.assert_array_equal(one.classifier.weights_, two.classifier.weights_)


@pytest.mark.parametrize("event", ["start", "searching", "hop", "searched"])
def test_an_interruption_while_telling_keeps_what_is_done(problem, event):
    """The moments between two solves are as safe as the solves themselves."""
    budget, seen = Budget(), Recorder(interrupt=event)
    found = multistart(problem, BasinHoppingSolver(), n_starts=3, budget=budget, observer=seen)
    assert len(found) == (1 if event == "start" else 3)
    best = search_around(problem, BasinHoppingSolver(), found, budget=budget, observer=seen)
    assert best.status.usable and best.objective <= min(s.objective for s in found) + 1e-6
    assert budget.stopped


@pytest.mark.slow
def test_an_interruption_while_telling_of_processes_keeps_what_is_done(problem):
    pytest.importorskip("casadi", reason="needs softsplit[ipopt]")
    budget, seen = Budget(), Recorder(interrupt="start")
    found = multistart(problem, IpoptSolver(), n_starts=6, n_jobs=2, budget=budget, observer=seen)
    assert len(found) == 1 and budget.stopped


def test_an_interruption_between_points_keeps_the_path(problem):
    budget = Budget()
    seen = Recorder(interrupt="point")
    found = solve_path(
        [problem] * 3, BasinHoppingSolver(), n_starts=2, budget=budget, observer=seen
    )
    assert len(found) == 1 and budget.stopped


@pytest.mark.parametrize(("loss", "event"), [("log", "start_ended"), ("cost", "hopped")])
def test_an_interrupted_fit_gives_the_terminal_back(iris, monkeypatch, terminal, loss, event):
    def interrupted(verbose, budget, n_points=0):
        shown = ConsoleProgress(budget, n_points, terminal)

        def interrupt(*arguments):
            raise KeyboardInterrupt

        monkeypatch.setattr(shown, event, interrupt)
        return shown

    monkeypatch.setattr("softsplit.estimators.classifier.watched", interrupted)
    made = 1 if event == "start_ended" else 4
    with pytest.warns(ConvergenceWarning, match=f"interrupted; the best of {made} starts"):
        fitted = tree(loss=loss).fit(*iris)
    assert fitted.score(*iris) > 0.9
    assert terminal.file.getvalue().rstrip().endswith("\x1b[2K")
    assert terminal.file.getvalue().count("\x1b[?25h") == 1
    assert not ConsoleProgress._live_in_use.locked()


def test_only_one_of_two_fits_is_live(terminal):
    other = Console(force_terminal=True, file=io.StringIO(), width=120)
    with ConsoleProgress(Budget(), console=terminal), ConsoleProgress(Budget(), console=other):
        pass
    assert "\x1b[?25l" in terminal.file.getvalue()
    assert other.file.getvalue() == ""
    with ConsoleProgress(Budget(), console=other):  # it is free again
        pass
    assert "\x1b[?25l" in other.file.getvalue()


def test_no_live_line_where_it_cannot_be_shown(monkeypatch, terminal):
    notebook = Console(force_jupyter=True)
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    assert not progress._can_be_live(notebook)
    monkeypatch.setattr(progress, "find_spec", lambda name: object())
    assert progress._can_be_live(notebook)
    assert progress._can_be_live(terminal)
    assert not progress._can_be_live(Console(file=io.StringIO()))
    # Several processes share one terminal; each would overwrite the others.
    monkeypatch.setattr(progress.multiprocessing, "parent_process", lambda: object())
    assert not progress._can_be_live(terminal)


def test_starts_are_logged_for_those_who_set_up_logging(iris, caplog, capfd):
    with caplog.at_level("INFO", logger="softsplit"):
        tree().fit(*iris)
    told = [record.message for record in caplog.records if record.message.startswith("start ")]
    assert [message.split(":")[0] for message in told] == [
        f"start {i} ({'mixtures' if i > 1 else 'growth'})" for i in range(1, 5)
    ]
    assert capfd.readouterr() == ("", "")
