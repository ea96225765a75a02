"""What is shown while training runs, and that looking on changes nothing."""

from __future__ import annotations

import io
import re
import sys
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from clocks import Clock
from helpers import random_case
from softsplit import SoftTreeClassifier
from softsplit.solvers import BasinHoppingSolver, Budget
from softsplit.support import status_line
from softsplit.training.multistart import multistart, search_around
from softsplit.training.observer import Observer
from softsplit.training.progress import ConsoleProgress

START = re.compile(r"^start (\d) of 4: objective [\d.e+-]+, best ([\d.e+-]+), [\d.]+ s$", re.M)


class Kept(status_line.StatusLine):
    """A status line that keeps what it is shown."""

    def __init__(self):
        super().__init__()
        self.lines, self.stopped = [], 0

    def finish(self, line):
        self.lines.append(line)

    def stop(self):
        self.stopped += 1


@pytest.fixture
def seen(monkeypatch):
    """What is shown."""
    kept = Kept()
    monkeypatch.setattr(status_line, "usual_line", lambda: kept)
    return kept


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def problem():
    return random_case(0, depth=2, steepness=64.0, n_rows=40).problem


@pytest.fixture
def clock(monkeypatch):
    hands = Clock()
    monkeypatch.setattr(Budget, "now", staticmethod(hands))
    return hands


def tree(**parameters):
    settings = {"n_starts": 4, "random_state": 0, "global_strength": 0.2, "points": False}
    settings |= parameters
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


def test_the_status_says_what_runs_how_far_and_how_long_still(clock):
    progress = ConsoleProgress(Budget(), n_points=7)
    assert str(progress.status()) == "softsplit: training, 0 of 7 trees of the path, 0 s"
    progress.working("comparing depth 2", 5)
    clock.advance(20.0)
    progress.part_ended()
    words = "comparing depth 2, 1 of 5 done, 0 of 7 trees of the path, 20 s"
    assert str(progress.status()) == f"softsplit: {words}, this step about 1 min 20 s more"
    assert progress.status().part == 0.2
    limited = ConsoleProgress(Budget(time_limit=90.0))
    limited.searching()
    limited.hopped(12, 3.25)
    clock.advance(70.0)
    words = "searching around the best trees, 12 tries, best objective 3.25, 1 min 10 s"
    assert str(limited.status()) == f"softsplit: {words}, at most 20 s more"


@pytest.mark.parametrize("columns", [100, 50])
def test_a_terminal_has_one_line_that_keeps_the_time_that_is_left(columns, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    console = Console(file=stream, force_terminal=True, width=columns, color_system=None)
    line = status_line.LiveLine(console)
    text = "softsplit: comparing [depth 6], standard scaling, ridge 1"
    line.running.append(lambda: status_line.Activity(text, "12 s, at most 8 s more", 0.5))
    line.start()
    line.finish("depth 1: done")
    print("said by another", file=sys.stderr)
    line.stop()
    rows = re.split(r"\r|\n", re.sub(r"\x1b\[[?\d]*[a-zA-Z]", "", stream.getvalue()))
    drawn = [row for row in rows if row.startswith("softsplit: ")]
    assert drawn and all(row.endswith("12 s, at most 8 s more") for row in drawn)
    assert all(len(row) <= columns and (text in row) == (columns == 100) for row in drawn)
    assert {"depth 1: done", "said by another"} <= set(rows) and sys.stderr is stream


def test_elsewhere_there_are_plain_lines(monkeypatch, capsys):
    with status_line.status_line(lambda: status_line.Activity("reading", "9 s")):
        line = status_line.line_in_use()
        line.tell()
        status_line.finish_line("depth 1")
        status_line.finish_line("depth 2")
        line.tell()
        line.tell()
    assert status_line.SILENCE == 10.0
    told = ["reading, 9 s", "reading, 9 s; last depth 2", "reading, 9 s"]
    assert capsys.readouterr().err.splitlines() == told


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_looking_on_changes_no_bit(iris, seen, n_jobs):
    silent = tree().fit(*iris)
    assert not seen.lines
    shown = tree(verbose=1, n_jobs=n_jobs).fit(*iris)
    found = [START.match(line) for line in seen.lines]
    assert sorted(match[1] for match in found) == ["1", "2", "3", "4"]
    best = [float(match[2]) for match in found]
    assert best == sorted(best, reverse=True)
    np.testing.assert_array_equal(silent.weights_, shown.weights_)
    np.testing.assert_array_equal(silent.thresholds_, shown.thresholds_)
    assert [s.objective for s in silent.starts_] == [s.objective for s in shown.starts_]


@pytest.mark.parametrize("event", ["start", "searching", "hop", "searched"])
def test_an_interruption_while_telling_keeps_what_is_done(problem, event):
    """The moments between two solves are as safe as the solves themselves."""
    budget, seen = Budget(), Recorder(interrupt=event)
    found = multistart(problem, BasinHoppingSolver(), n_starts=3, budget=budget, observer=seen)
    assert len(found) == (1 if event == "start" else 3)
    best = search_around(problem, BasinHoppingSolver(), found, budget=budget, observer=seen)
    assert best.status.usable and best.objective <= min(s.objective for s in found) + 1e-6
    assert budget.stopped


@pytest.mark.parametrize(("loss", "event"), [("log", "start_ended"), ("cost", "hopped")])
def test_an_interrupted_fit_gives_the_terminal_back(iris, monkeypatch, seen, loss, event):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(ConsoleProgress, event, interrupt)
    made = 1 if event == "start_ended" else 4
    with pytest.warns(ConvergenceWarning, match=f"interrupted; the best of {made} starts"):
        fitted = tree(loss=loss, verbose=1).fit(*iris)
    assert fitted.score(*iris) > 0.9
    assert seen.stopped == 1 and status_line.line_in_use() is None
