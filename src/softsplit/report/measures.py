"""The section "How good it is": all figures beside plain methods, curves, and the threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softsplit.fitted.conformal import told_decisions
from softsplit.report.charts import (
    BY_CHANCE,
    Chart,
    precision_line,
    reliability_bins,
    reliability_chart,
    roc_line,
    square_axes,
)
from softsplit.report.groups import group_rows
from softsplit.report.metrics import Interval, MethodMetrics, positive_class
from softsplit.report.pages import PageTable, percent, with_interval
from softsplit.report.report_data import ReportData
from softsplit.selection.baselines import BASELINES, TITLES
from softsplit.support.messages import counted, shortened
from softsplit.support.numbers import number


@dataclass(frozen=True)
class MeasureOptions:
    """How long the tables of figures are."""

    thresholds: int = 200
    """Points of the threshold slider: steps of half a percent."""

    listed: int = 5
    """Classes whose shares are listed in a sentence."""


OPTIONS = MeasureOptions()


@dataclass(frozen=True)
class Quality:
    """The part "How good it is"; parts that cannot be made are None."""

    figures: PageTable
    missing: list[str]
    curves: Curves | None
    threshold: Threshold | None
    referral: Referral | None
    groups: PageTable | None


def quality(data: ReportData) -> Quality:
    """All figures on held-out rows."""
    missing = [TITLES[name] for name in BASELINES if data.baseline_metrics(name) is None]
    return Quality(
        _figures(data), missing, _curves(data), _threshold(data), _referral(data), _groups(data)
    )


def _figures(data: ReportData) -> PageTable:
    """The table of all methods."""
    rows = [[data.own_title, *_cells(data.metrics(data.chosen), "")]]
    for name in BASELINES:
        ahead = _points(data.against(name))
        rows.append([TITLES[name], *_cells(data.baseline_metrics(name), ahead)])
    head = [
        "method", data.measure, f"{data.own_title} is ahead by", "features",
        "accuracy" if data.rare is not None else "balanced accuracy",
        "ROC area", "precision-recall area", "log-loss",
    ]  # fmt: skip
    if data.rare is not None:  # what the page leads with comes first
        rows = [[row[0], row[4], row[2], row[3], row[1], *row[5:]] for row in rows]
    parts = data.assessment.n_folds
    where = f"{len(data.assessment.labels):,} held-out rows"
    where += f", in {parts} parts" if parts > 1 else ""
    return PageTable(f"On {where}, with 95 % intervals", head, rows, range(1, 8))


def _cells(metrics: MethodMetrics | None, ahead: str) -> list[str]:
    if metrics is None:
        return ["not judged", ahead, "", "", "", "", ""]
    return [
        with_interval(metrics.accuracy), ahead, number(metrics.features, 3),
        with_interval(metrics.balanced), _plain(metrics.roc), _plain(metrics.precision_recall),
        _plain(metrics.log_loss),
    ]  # fmt: skip


def _plain(area: Interval) -> str:
    return f"{area.value:.3f}"


def _points(difference: Interval | None) -> str:
    if difference is None:
        return ""
    value, low, high = (100 * x for x in (difference.value, difference.low, difference.high))
    text = f"{value:+.1f} ({low:+.1f} to {high:+.1f})"
    return text.replace("-", "\N{MINUS SIGN}")


def class_sentence(data: ReportData, point: int) -> str | None:
    """The base rate, what share of each class is found, and how many such predictions are right."""
    k = data.watched
    metrics = None if k is None else data.class_metrics(point, k)
    if k is None or metrics is None or metrics.found is None:
        return None
    recall = metrics.found
    name, (most, base) = shortened(data.classes[k], 60), data.base_rate
    share = percent(metrics.rows / len(data.assessment.labels), 1)
    text = f"Class {name} is {'rare (' if k == data.rare else ''}{share} of the held-out rows"
    text += ")" if k == data.rare else ""
    text += (
        f", and predicting {shortened(most, 60)} for all rows is right on {percent(base)}. The "
        f"tree finds {round(metrics.rows * recall.value):,} of "
        f"{counted(metrics.rows, 'row')} of class {name} ({percent(recall.value, 0)}, "
        f"between {percent(recall.low, 0)} and "
        f"{percent(recall.high, 0)})"
    )
    if metrics.trusted is None or metrics.alarms is None:
        return text + (
            ": it predicts this class for no row. Trained with class_weight='balanced' "
            "(--class-weight balanced), or with a higher cost of missing the class (--cost), a "
            "tree does."
        )
    text += (
        f"; its only prediction of {name} is {'right' if metrics.trusted.value > 0.5 else 'wrong'}"
        if metrics.predicted == 1
        else f"; of its {metrics.predicted:,} predictions of {name} "
        f"{percent(metrics.trusted.value, 0)} are right"
    )
    alarms = percent(metrics.alarms.value, 0 if metrics.alarms.value >= 0.01 else 2)
    text += f", and {alarms} of the other rows are false positives."
    others = [(i, data.class_metrics(point, i)) for i in range(len(data.classes)) if i != k]
    listed = [
        f"{percent(other.found.value, 0)} of class {shortened(data.classes[i], 40)}"
        for i, other in others
        if other is not None and other.found is not None
    ]
    return text + (
        f" It finds {', '.join(listed)}." if listed and len(listed) <= OPTIONS.listed else ""
    )


def verdict(data: ReportData) -> str:
    """What the comparison says, without more certainty than there is."""
    plain, logistic = data.against("majority"), data.against("logistic")
    if data.edited:
        asked = (
            "For its own accuracy give held-out rows."
            if data.held_out_rows is None
            else "Its own accuracy on the rows given as held out is above."
        )
        return (
            "This tree was edited or refitted. The figures below are those of trees that were "
            f"trained with the same settings. {asked}"
        )
    if data.undertrained:
        return (
            "This tree is worse on its own training rows than trees that were trained in the same "
            "way on fewer rows are on held-out rows: its training was probably cut short. Fit it "
            "again with a longer time limit; the figures below are of those other trees."
        )
    if plain is None or logistic is None:
        return "The comparison was cut short; make the report again with more time to see it."
    if plain.low <= 0:
        said = "The tree is not clearly better than always guessing the most frequent class"
        own = data.metrics(data.chosen)
        if own is None or own.roc.low <= 0.5:
            return f"{said}: these columns may not separate the classes, or there are too few rows."
        return (
            f"{said} by {data.measure}; its probabilities do separate the classes (ROC area "
            f"{_plain(own.roc)}), so costs or another threshold find more of the rarer class."
        )
    most, what = (
        shortened(data.base_rate[0], 40),
        "" if data.rare is None else f", by {data.measure}",
    )
    said = f"Clearly better than always guessing {most}{what}; {_beside(logistic)}."
    ceiling = data.against("boosting")
    if ceiling is not None and ceiling.high < 0:
        said += (
            " Gradient boosting, which is not interpretable, is "
            f"{-100 * ceiling.value:.1f} points ahead."
        )
    return said


def _beside(difference: Interval) -> str:
    if difference.low > 0:
        return "L1 logistic regression is worse"
    if difference.high < 0:
        return f"L1 logistic regression is {-100 * difference.value:.1f} points better"
    return "L1 logistic regression does as well"


@dataclass(frozen=True)
class Curves:
    """Charts with their titles, the last of them of reliability, and the keys of their lines."""

    charts: list[tuple[str, Chart]]
    keys: list[tuple[str, str]]
    bins: PageTable


def _curves(data: ReportData) -> Curves | None:
    """ROC, precision over recall and reliability on held-out rows."""
    assessment = data.assessment
    if not assessment.judged(data.chosen):
        return None
    own, labels = assessment.trees[data.chosen], assessment.labels
    charts, keys = [], []
    if len(data.classes) == len(np.unique(labels)) == 2:
        k = positive_class(data.labels)
        positive, name = labels == k, shortened(data.classes[k], 30)
        others = {n: j for n, j in assessment.baselines.items() if n != "majority" and j.complete}
        scores = [*((n, j.proba[:, k]) for n, j in others.items()), ("own", own.proba[:, k])]
        roc = Chart(
            f"ROC curve of class {name}", "false positive rate", "found", *square_axes(),
            [BY_CHANCE, *(roc_line(n, values, positive) for n, values in scores)],
        )  # fmt: skip
        precision = Chart(
            f"Precision over recall of class {name}", "recall", "precision", *square_axes(),
            [precision_line(n, values, positive) for n, values in scores],
        )  # fmt: skip
        charts += [("Recall against false alarms (ROC)", roc), ("Precision and recall", precision)]
        keys = [("own", data.own_title), *((n, TITLES[n]) for n in others)]
        proba, true, what = own.proba[:, k], positive, f"probability of {name}"
    else:
        best = np.argmax(own.proba, axis=1)
        proba, true = own.proba[np.arange(len(labels)), best], best == labels
        what = "probability of the most probable class"
    bins = reliability_bins(proba, true)
    charts.append((f"Is the {what} calibrated?", reliability_chart("Reliability", bins)))
    rows = [
        [percent(b.said), f"{b.rows:,}",
         f"{percent(b.true)} ({100 * b.low:.0f} to {100 * b.high:.0f})"]
        for b in bins
    ]  # fmt: skip
    head = ["predicted", "rows", "observed"]
    return Curves(charts, keys, PageTable("Predicted and observed frequencies", head, rows, (1, 2)))


# --- cases for a person, groups -----------------------------------------------------------------

LEVELS = (0.8, 0.9, 0.95, 0.99)
"""Confidences that the page compares."""


class Referral(NamedTuple):
    """Which cases go to a person, at the asked confidence and at others."""

    sentence: str
    levels: PageTable


def refer_sentence(data: ReportData, confidence: float) -> str | None:
    """How many held-out rows go to a person, and how good the tree is on the rest."""
    referred = data.referred(confidence)
    if referred is None:
        return None
    passed, rows, right = referred
    if right is None:
        return f"{told_decisions('case', passed, rows, None)}."
    ends = f" ({100 * right.low:.0f} to {100 * right.high:.0f})"
    return f"{told_decisions('case', passed, rows, percent(right.value, 0), ends)}."


def _referral(data: ReportData) -> Referral | None:
    sentence = refer_sentence(data, data.refer)
    if sentence is None or data.edited:  # the cases of other trees
        return None
    lines = []
    for level in sorted({*LEVELS, data.refer}):
        passed, rows, right = data.referred(level) or (0, 1, None)
        figures = [f"{passed:,}", percent(passed / rows), with_interval(right)]
        lines.append([percent(level, 0), *figures])
    head = ["confidence", "cases for a person", "of all", "right among the rest"]
    table = PageTable("Cases for a person on held-out rows", head, lines, range(1, 4))
    return Referral(sentence, table)


def _groups(data: ReportData) -> PageTable | None:
    """Figures by group on held-out rows."""
    figures = data.by_group
    if figures is None or data.by is None:
        return None
    k = data.watched if data.watched is not None else positive_class(data.labels)
    head, lines = group_rows(figures, data.classes[k])
    lines = [[shortened(line[0], 40), *line[1:]] for line in lines]
    head = [shortened(title, 60) for title in head]
    return PageTable(f"By {shortened(data.by[0], 40)}, on held-out rows", head, lines, range(1, 8))


# --- threshold ----------------------------------------------------------------------------------


def threshold_values(data: ReportData) -> dict[str, Any] | None:
    """Counts at each threshold of the chosen tree, for two classes; the script reads them."""
    assessment = data.assessment
    if len(data.classes) != 2 or not assessment.judged(data.chosen):
        return None
    k = positive_class(data.labels)
    scores, positive = assessment.trees[data.chosen].proba[:, k], assessment.labels == k
    # Thresholds where something changes: even steps, and between scores where they are dense.
    own = data.tree.tree_.decision_threshold(k)
    dense = np.quantile(scores, np.linspace(0, 1, OPTIONS.thresholds))
    grid = np.unique(np.round(np.concatenate([np.linspace(0, 1, 101), dense, [own]]), 4))
    hits = [int(np.sum(positive & (scores >= t))) for t in grid]
    alarms = [int(np.sum(~positive & (scores >= t))) for t in grid]
    start = int(np.argmin(np.abs(grid - own)))
    return {
        "at": [float(t) for t in grid], "found": hits, "alarms": alarms, "start": start,
        "rows": int(positive.sum()), "others": int((~positive).sum()),
        "name": shortened(data.classes[k], 40), "position": k,
    }  # fmt: skip


class Threshold(NamedTuple):
    """The slider of the threshold, and what the costs of the tree come to."""

    name: str
    last: int
    start: int
    miss: str
    alarm: str


def _threshold(data: ReportData) -> Threshold | None:
    values = threshold_values(data)
    if values is None:
        return None
    own = data.tree.tree_.decision_threshold(values["position"])
    miss = (1.0 - own) / own if own > 0 else 1.0
    prices = f"{max(miss, 1.0):.4g}", f"{max(1.0 / miss, 1.0):.4g}"
    return Threshold(values["name"], len(values["at"]) - 1, values["start"], *prices)
