"""The section "How good it is": all figures beside plain methods, curves, and the threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from softsplit.fitted.conformal import told_decisions
from softsplit.report.charts import (
    Line,
    chart,
    precision_line,
    reliability_bins,
    reliability_chart,
    roc_line,
)
from softsplit.report.elements import add, add_table
from softsplit.report.groups import group_rows
from softsplit.report.metrics import Interval, MethodMetrics, positive_class
from softsplit.report.pages import percent, shortened, with_interval
from softsplit.report.report_data import ReportData
from softsplit.selection.baselines import BASELINES, TITLES
from softsplit.support.messages import counted
from softsplit.support.numbers import number


@dataclass(frozen=True)
class MeasureOptions:
    """How long the tables of figures are."""

    thresholds: int = 200
    """Points of the threshold slider: steps of half a percent."""

    listed: int = 5
    """Classes whose shares are listed in a sentence."""


OPTIONS = MeasureOptions()


def add_figures(parent: ET.Element, data: ReportData) -> None:
    """The table of all methods, and what it says in one sentence."""
    own = data.metrics(data.chosen)
    rows = [[data.own_title, *_cells(own, "")]]
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
    found = data.assessment
    where = f"{len(found.labels):,} held-out rows"
    where += f", in {found.n_folds} parts" if found.n_folds > 1 else ""
    add_table(parent, f"On {where}, with 95 % intervals", head, rows, range(1, 8))
    missing = [TITLES[name] for name in BASELINES if data.baseline_metrics(name) is None]
    if missing:
        add(
            parent, "p", {"class": "missing"},
            f"Not judged: {', '.join(missing)}. {data.cut_by[0].upper()}{data.cut_by[1:]} before; "
            f"{data.more('all methods')}.",
        )  # fmt: skip
    add(
        parent, "p", {"class": "quiet"},
        "Accuracy: share of correct predictions. Balanced accuracy: the mean of the accuracies "
        "within each class. Areas: 1 is perfect; by chance the ROC area is 0.5, the "
        "precision-recall area the share of the class. Log-loss: 0 is perfect, small is good. "
        "Gradient boosting is not interpretable; it shows what a large model reaches here.",
    )  # fmt: skip


def _cells(found: MethodMetrics | None, ahead: str) -> list[str]:
    if found is None:
        return ["not judged", ahead, "", "", "", "", ""]
    return [
        with_interval(found.accuracy), ahead, number(found.features, 3),
        with_interval(found.balanced), _plain(found.roc), _plain(found.precision_recall),
        _plain(found.log_loss),
    ]  # fmt: skip


def _plain(found: Interval) -> str:
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def _points(difference: Interval | None) -> str:
    if difference is None:
        return ""
    value, low, high = (100 * x for x in (difference.value, difference.low, difference.high))
    text = f"{value:+.1f} ({low:+.1f} to {high:+.1f})"
    return text.replace("-", "\N{MINUS SIGN}")


def class_sentence(data: ReportData, point: int) -> str | None:
    """The base rate, what share of each class is found, and how many such predictions are right."""
    k = data.watched
    found = None if k is None else data.class_metrics(point, k)
    if k is None or found is None or found.found is None:
        return None
    name, (most, base) = shortened(data.classes[k], 60), data.base_rate
    share = percent(found.rows / len(data.assessment.labels), 1)
    text = f"Class {name} is {'rare (' if k == data.rare else ''}{share} of the held-out rows"
    text += ")" if k == data.rare else ""
    text += (
        f", and predicting {shortened(most, 60)} for all rows is right on {percent(base)}. The "
        f"tree finds {round(found.rows * found.found.value):,} of "
        f"{counted(found.rows, 'row')} of class {name} ({percent(found.found.value, 0)}, "
        f"between {percent(found.found.low, 0)} and "
        f"{percent(found.found.high, 0)})"
    )
    if found.trusted is None or found.alarms is None:
        return text + (
            ": it predicts this class for no row. Trained with class_weight='balanced' "
            "(--class-weight balanced), or with a higher cost of missing the class (--cost), a "
            "tree does."
        )
    text += (
        f"; its only prediction of {name} is {'right' if found.trusted.value > 0.5 else 'wrong'}"
        if found.predicted == 1
        else f"; of its {found.predicted:,} predictions of {name} "
        f"{percent(found.trusted.value, 0)} are right"
    )
    alarms = percent(found.alarms.value, 0 if found.alarms.value >= 0.01 else 2)
    text += f", and {alarms} of the other rows are false positives."
    others = [(i, data.class_metrics(point, i)) for i in range(len(data.classes)) if i != k]
    listed = [
        f"{percent(one.found.value, 0)} of class {shortened(data.classes[i], 40)}"
        for i, one in others
        if one is not None and one.found is not None
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
        said = "The tree is not clearly better than predicting the most frequent class for all rows"
        own = data.metrics(data.chosen)
        if own is None or own.roc.low <= 0.5:
            return f"{said}: these columns may not separate the classes, or there are too few rows."
        return (
            f"{said} by {data.measure}; its probabilities do separate the classes (ROC area "
            f"{_plain(own.roc)}), so costs or another threshold find more of the rarer class."
        )
    what = f"by {data.measure}"
    said = (
        "The tree is clearly better than predicting the most frequent class for all rows and "
        f"{_beside(logistic, what)}."
    )
    ceiling = data.against("boosting")
    if ceiling is not None and ceiling.high < 0:
        said += (
            " Gradient boosting, which is not interpretable, is "
            f"{-100 * ceiling.value:.1f} points ahead."
        )
    return said


def _beside(difference: Interval, what: str) -> str:
    if difference.low > 0:
        return f"better than L1 logistic regression {what}"
    if difference.high < 0:
        return f"{-100 * difference.value:.1f} points behind L1 logistic regression {what}"
    return f"not distinguishable from L1 logistic regression on this many rows {what}"


def add_curves(parent: ET.Element, data: ReportData) -> None:
    """ROC, precision over recall and reliability on held-out rows."""
    found = data.assessment
    if not found.judged(data.chosen):
        return
    own, labels = found.trees[data.chosen], found.labels
    two = len(data.classes) == 2
    row = add(parent, "div", {"class": "curves"})
    if two:
        k = positive_class(data.labels)
        positive, name = labels == k, shortened(data.classes[k], 30)
        others = {n: j for n, j in found.baselines.items() if n != "majority" and j.complete}
        pairs = [*((n, j.proba[:, k]) for n, j in others.items()), ("own", own.proba[:, k])]
        by_chance = np.array([0.0, 1.0])
        _curve(
            row, "Recall against false alarms (ROC)",
            chart(
                f"ROC curve of class {name}", "false positive rate", "found",
                [Line("diagonal", by_chance, by_chance),
                 *(roc_line(n, scores, positive) for n, scores in pairs)],
            ),
        )  # fmt: skip
        _curve(
            row, "Precision and recall",
            chart(
                f"Precision over recall of class {name}", "recall", "precision",
                [precision_line(n, scores, positive) for n, scores in pairs],
            ),
        )  # fmt: skip
        said, true, what = own.proba[:, k], positive, f"probability of {name}"
    else:
        best = np.argmax(own.proba, axis=1)
        said, true = own.proba[np.arange(len(labels)), best], best == labels
        what = "probability of the most probable class"
    bins = reliability_bins(said, true)
    figure = _curve(row, f"Is the {what} calibrated?", reliability_chart("Reliability", bins))
    add(
        figure, "p", {"class": "quiet"},
        "Points on the line: of rows with a predicted probability of 70 %, 70 % are of the "
        "class. Bars are 95 % intervals.",
    )  # fmt: skip
    if two:
        legend = add(parent, "p", {"class": "quiet keys"})
        for kind, title in [("own", data.own_title), *((n, TITLES[n]) for n in others)]:
            key = add(legend, "span", {"class": f"key {kind}"})
            add(key, "span", {}, title)
    details = add(parent, "details")
    add(details, "summary", {}, "Reliability as a table")
    rows = [
        [percent(b.said), f"{b.rows:,}", f"{percent(b.true)} ({100 * b.low:.0f} to "
         f"{100 * b.high:.0f})"] for b in bins
    ]  # fmt: skip
    add_table(
        details,
        "Predicted and observed frequencies",
        ["predicted", "rows", "observed"],
        rows,
        (1, 2),
    )


def _curve(parent: ET.Element, title: str, drawn: ET.Element) -> ET.Element:
    figure = add(parent, "figure")
    add(figure, "figcaption", {}, title)
    figure.append(drawn)
    return figure


# --- cases for a person, groups -----------------------------------------------------------------

LEVELS = (0.8, 0.9, 0.95, 0.99)
"""Confidences that the page compares."""


def refer_sentence(data: ReportData, confidence: float) -> str | None:
    """How many held-out rows go to a person, and how good the tree is on the rest."""
    found = data.referred(confidence)
    if found is None:
        return None
    passed, rows, right = found
    if right is None:
        return f"{told_decisions('case', passed, rows, None)}."
    ends = f" ({100 * right.low:.0f} to {100 * right.high:.0f})"
    return f"{told_decisions('case', passed, rows, percent(right.value, 0), ends)}."


def add_referral(parent: ET.Element, data: ReportData) -> None:
    """Which cases go to a person, at the asked confidence and at others."""
    said = refer_sentence(data, data.refer)
    if said is None or data.edited:  # the cases of other trees
        return
    box = add(parent, "div", {"id": "refer"})
    add(box, "h3", {}, "Which cases go to a person")
    add(box, "p", {"id": "refer-said"}, f"At {percent(data.refer, 0)} confidence {said}")
    lines = []
    for level in sorted({*LEVELS, data.refer}):
        passed, rows, right = data.referred(level) or (0, 1, None)
        figures = [f"{passed:,}", percent(passed / rows), with_interval(right)]
        lines.append([percent(level, 0), *figures])
    add_table(
        box, "Cases for a person on held-out rows",
        ["confidence", "cases for a person", "of all", "right among the rest"], lines, range(1, 4),
    )  # fmt: skip
    add(
        box, "p", {"class": "quiet"},
        "A case goes to a person if its prediction set (the classes that hold the true one with "
        "this confidence) is not exactly the predicted class: others are possible, or none fits.",
    )  # fmt: skip


def add_groups(parent: ET.Element, data: ReportData) -> None:
    """Figures by group on held-out rows."""
    found = data.by_group
    if found is None or data.by is None:
        return
    k = data.watched if data.watched is not None else positive_class(data.labels)
    head, lines = group_rows(found, data.classes[k])
    lines = [[shortened(line[0], 40), *line[1:]] for line in lines]
    head = [shortened(title, 60) for title in head]
    add_table(parent, f"By {shortened(data.by[0], 40)}, on held-out rows", head, lines, range(1, 8))
    add(
        parent, "p", {"class": "quiet"},
        "With 95 % intervals. Found: rows of the class that are predicted as such (recall); "
        "false alarms: other rows that are predicted as the class; the last column is 0 where the "
        "mean probability equals the observed share. Among many groups some differ by chance.",
    )  # fmt: skip


# --- threshold ----------------------------------------------------------------------------------


def threshold_values(data: ReportData) -> dict[str, Any] | None:
    """Counts at each threshold of the chosen tree, for two classes; the script reads them."""
    found = data.assessment
    if len(data.classes) != 2 or not found.judged(data.chosen):
        return None
    k = positive_class(data.labels)
    scores, positive = found.trees[data.chosen].proba[:, k], found.labels == k
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


def add_threshold(parent: ET.Element, data: ReportData) -> None:
    """From which probability on to predict the class one looks for, with costs."""
    values = threshold_values(data)
    if values is None:
        return
    name = values["name"]
    box = add(parent, "div", {"id": "threshold-box"})
    add(box, "h3", {}, f"When to predict {name}")
    add(
        box, "label", {"for": "threshold"}, f"Predict {name} from this probability on",
    )  # fmt: skip
    slider = {
        "type": "range", "id": "threshold", "min": "0", "step": "1", "autocomplete": "off",
        "max": str(len(values["at"]) - 1), "value": str(values["start"]),
    }  # fmt: skip
    add(box, "input", slider)
    add(box, "p", {"id": "threshold-said", "role": "status", "class": "headline"}, "")
    costs = add(box, "div", {"class": "costs"})
    own = data.tree.tree_.decision_threshold(values["position"])  # what its costs come to
    miss = (1.0 - own) / own if own > 0 else 1.0
    for key, text, price in (
        ("miss-cost", f"A missed {name} costs", max(miss, 1.0)),
        ("alarm-cost", "A false alarm costs", max(1.0 / miss, 1.0)),
    ):
        field = add(costs, "div")
        add(field, "label", {"for": key}, text)
        given = {"type": "number", "id": key, "min": "0", "step": "any", "value": f"{price:.4g}"}
        add(field, "input", given | {"inputmode": "decimal", "autocomplete": "off"})
    add(costs, "button", {"type": "button", "id": "cheapest"}, "Go to the cheapest")
    add(box, "p", {"id": "cost-said"}, "")
    code = add(box, "div", {"class": "code"})
    shown = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": "In Python"}
    add(add(code, "pre", shown), "code", {"id": "threshold-line"}, "")
    add(code, "button", {"type": "button", "class": "copy"}, "Copy")
