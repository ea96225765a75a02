"""What is shown while training runs, and that looking on changes nothing."""

from __future__ import annotations

import io
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from clocks import Clock
from helpers import random_case
from softsplit import SoftTreeClassifier, strength_path
from softsplit.ipopt.solver import IpoptSolver
from softsplit.solvers import BasinHoppingSolver, Budget, Status
from softsplit.support import status_line
from softsplit.training.multistart import multistart, search_around
from softsplit.training.observer import JudgedCandidate, Observer
from softsplit.training.progress import ConsoleProgress
from softsplit.training.regularisation_path import solve_path

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


def test_threads_tell_of_every_start(problem):
    seen = Recorder()
    found = multistart(problem, BasinHoppingSolver(), n_starts=6, n_jobs=2, observer=seen)
    told = sorted(event[1:] for event in seen.events if event[0] == "start")
    assert told == [(i + 1, "groups", s.objective) for i, s in enumerate(found)]


def test_every_start_and_the_search_are_told_in_words(problem, seen):
    progress = ConsoleProgress(Budget())
    with progress.shown():
        train(problem, progress)
    assert [line.split(":")[0] for line in seen.lines[:3]] == [f"start {i} of 3" for i in (1, 2, 3)]
    assert re.match(r"search: \d+ tries, objective [\d.e-]+, \d+ s", seen.lines[3])
    assert re.match(r"3 starts and \d+ hops ended in \d+ different trees", seen.lines[4])
    assert seen.stopped == 1 and status_line.line_in_use() is None


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


def test_candidates_are_told_in_words(seen):
    progress = ConsoleProgress(Budget())
    judged = JudgedCandidate("depth 2", 0.8592, True, 4.5, None, 2, 5, dropped=True)
    with progress.shown():
        progress.candidate_judged(judged)
        judged = replace(judged, dropped=False)
        progress.candidate_judged(replace(judged, unfinished=True))
        progress.candidate_judged(replace(judged, folds=5, accuracy=False, log_loss=(0.3, 0.35)))
        progress.candidate_judged(replace(judged, folds=5, n_features=1.0, chosen=True))
    assert seen.lines == [
        "depth 2: accuracy 85.9 %, 4.5 features, on 2 of 5 folds, dropped",
        "depth 2: accuracy 85.9 %, 4.5 features, on 2 of 5 folds, not finished",
        "depth 2: score 0.8592, log-loss 0.3000 (0.3500 with the penalty for size), 4.5 features",
        "chosen: depth 2: accuracy 85.9 %, 1 feature",
    ]


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


def test_plain_lines_come_by_themselves(monkeypatch):
    told = threading.Event()
    monkeypatch.setattr(status_line, "SILENCE", 0.001)
    monkeypatch.setattr(status_line.PlainLines, "tell", lambda line: told.set())
    with status_line.status_line(lambda: status_line.Activity("reading", "9 s")):
        assert told.wait(60)


def test_work_inside_of_work_is_shown_in_its_line(seen):
    texts = []
    with status_line.status_line(lambda: status_line.Activity("outer", "")):
        texts.append(seen.now().text)
        inner = ConsoleProgress(Budget(time_limit=9.0))
        with inner.shown():
            inner.working("inner")
            texts.append(seen.now().text)
        with ThreadPoolExecutor(1) as pool:  # a fit in another thread has no place there
            pool.submit(lambda: ConsoleProgress(Budget()).shown().__enter__()).result()
        texts.append(seen.now().text)
    assert texts == ["outer", "softsplit: inner", "outer"]


@pytest.mark.parametrize("loss", ["log", "cost"])
def test_a_pipe_has_plain_lines_on_standard_error_at_most(iris, capfd, loss):
    tree(loss=loss, verbose=1).fit(*iris)
    out, err = capfd.readouterr()
    assert out == "" and "\x1b" not in err and "\r" not in err


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


def test_processes_report_as_they_come_back(iris, seen):
    pytest.importorskip("casadi", reason="needs softsplit[ipopt]")
    settings = {"loss": "cost", "solver": "ipopt", "n_starts": 3, "steepness": 32.0}
    shown = tree(verbose=1, n_jobs=2, **settings).fit(*iris)
    assert sorted(line[:12] for line in seen.lines) == [f"start {i} of 3" for i in (1, 2, 3)]
    silent = tree(n_jobs=1, **settings).fit(*iris)
    assert [s.objective for s in silent.starts_] == [s.objective for s in shown.starts_]


def test_a_start_that_fails_is_never_the_best(problem, seen):
    good = multistart(problem, BasinHoppingSolver(), n_starts=1)[0]
    bad = type(good)(**(vars(good) | {"status": Status.INFEASIBLE, "objective": -1.0}))
    progress = ConsoleProgress(Budget())
    with progress.shown():
        progress.starting(2)
        progress.start_ended(1, "groups", bad)
        progress.start_ended(2, "groups", good)
    first, second = seen.lines
    assert first.startswith("start 1 of 2: no tree, best none yet, ")
    assert f"best {good.objective:.6g}" in second


def test_a_path_shows_a_line_for_each_point(iris, seen):
    path = strength_path(*iris, estimator=tree(verbose=1), strengths=[0.1, 0.4, 2.0])
    told = [line.split(", objective")[0] for line in seen.lines]
    assert told == [
        f"tree {i} of 3: local strength {p.local_strength:.4g}, global strength "
        f"{p.global_strength:.4g}, {n} feature{'s' * (n != 1)}"
        for i, p in enumerate(path.points, 1)
        for n in [len(p.selected_features)]
    ]
    again = strength_path(*iris, estimator=tree(), strengths=[0.1, 0.4, 2.0])
    assert len(seen.lines) == len(told) == 3
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
def test_an_interrupted_fit_gives_the_terminal_back(iris, monkeypatch, seen, loss, event):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(ConsoleProgress, event, interrupt)
    made = 1 if event == "start_ended" else 4
    with pytest.warns(ConvergenceWarning, match=f"interrupted; the best of {made} starts"):
        fitted = tree(loss=loss, verbose=1).fit(*iris)
    assert fitted.score(*iris) > 0.9
    assert seen.stopped == 1 and status_line.line_in_use() is None


def test_starts_are_logged_for_those_who_set_up_logging(iris, caplog, capfd):
    with caplog.at_level("INFO", logger="softsplit"):
        tree().fit(*iris)
    told = [record.message for record in caplog.records if record.message.startswith("start ")]
    assert [message.split(":")[0] for message in told] == [
        f"start {i} ({'mixtures' if i > 1 else 'growth'})" for i in range(1, 5)
    ]
    assert capfd.readouterr() == ("", "")
