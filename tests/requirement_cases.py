"""What must hold: small tables, and requirements that cannot hold.

A hostile case is a dict of parameters of ``SoftTreeClassifier`` and words of the sentence by which
they are refused. They are for ``hostile_table()``; each is tested alone, and
``benchmarks/requirements.py hostile`` combines them at random.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from softsplit import EqualizedOdds, EqualOpportunity, Parity, RateConstraint

NAMES = list("abcdef")


def rows(seed=0, n=120, n_features=6):
    """Numbers of which the first three say most, the first two of these nearly the same."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    X[:, 1] = X[:, 0] + 0.3 * rng.normal(size=n)
    y = (X[:, 0] + X[:, 2] + 0.7 * rng.normal(size=n) > 0).astype(int)
    return X, y


def table(seed=0, n=120):
    """The same with names, a category that says something, and a gap."""
    X, y = rows(seed, n)
    frame = pd.DataFrame(X, columns=NAMES)
    frame["town"] = np.where(X[:, 3] > 0.5, "ulm", np.where(X[:, 4] > 0, "bonn", "köln"))
    frame.loc[3, "b"] = np.nan
    return frame, y


def hostile_table():
    """The same with a column of one value, one that is dropped, and a group of one class."""
    frame, y = table()
    frame["still"], frame["dropped"] = 1.0, np.arange(len(y)) % 7
    frame["lone"] = np.where((y == 1) | (frame["a"] > 0), "p", "q")
    return frame, y


HOSTILE = [
    ({"required": ["nope"]}, "required names 'nope', which is not a column of X"),
    ({"required": ["towns"]}, "did you mean 'town'"),
    ({"required": [99]}, "required names 99"),
    ({"required": [True]}, "required names True"),
    ({"required": "a"}, "required must list columns"),
    ({"required": []}, "required is empty"),
    ({"required": ["a", "a"]}, "required names 'a' twice"),
    ({"required": ["a", 0]}, "required names 'a' twice"),
    ({"required": ["still"]}, "required names 'still'"),
    ({"required": ["dropped"]}, "required names 'dropped', which is not used in training"),
    ({"required": ["a", "b"], "forbidden_together": [["b", "a"]]}, "does not allow in one tree"),
    ({"required": ["a", "c"], "at_most_one": [["a", "b", "c"]]}, "does not allow in one tree"),
    ({"required": ["a", "b"], "max_features": 1}, "max_features=1 allows fewer"),
    ({"required": list("abcd"), "max_terms": 1, "depth": 1}, "have no room"),
    ({"required": list("abc"), "max_terms": 1, "max_questions": 2}, "have no room"),
    ({"forbidden_together": [["a"]]}, "a set of one column"),
    ({"forbidden_together": [["a", "b", "c"]]}, "give sets to at_most_one"),
    ({"forbidden_together": ["ab"]}, "must hold lists of columns"),
    ({"forbidden_together": "ab"}, "must list sets of columns"),
    ({"forbidden_together": []}, "forbidden_together is empty"),
    ({"at_most_one": [[]]}, "at_most_one is empty"),
    ({"at_most_one": [["a", "a"]]}, "at_most_one names 'a' twice"),
    ({"at_most_one": [["a", "z"]]}, "at_most_one names 'z'"),
    ({"groups": [["a", "b"]], "forbidden_together": [["a", "b"]]}, "groups selects 'a' and 'b'"),
    ({"at_most_one": {"a": "b"}}, "must list sets of columns"),
    ({"feature_costs": {"nope": 1.0}}, "feature_costs names 'nope'"),
    ({"feature_costs": {"a": -1.0}}, "a cost is a number from 0"),
    ({"feature_costs": {"a": float("nan")}}, "a cost is a number from 0"),
    ({"feature_costs": {"a": float("inf")}}, "a cost is a number from 0"),
    ({"feature_costs": {"a": "dear"}}, "a cost is a number from 0"),
    ({"feature_costs": {"a": True}}, "a cost is a number from 0"),
    ({"feature_costs": {"a": None}}, "a cost is a number from 0"),
    ({"feature_costs": {}}, "feature_costs is empty"),
    ({"feature_costs": [1.0, 2.0]}, "feature_costs must map columns"),
    ({"feature_costs": {"a": 1.0, 0: 2.0}}, "feature_costs names 'a' twice"),
    (
        {"required": ["a"], "loss": "cost", "solver": "decomposition", "penalty": "l0"},
        "use solver='native'",
    ),
    ({"monotone": {"nope": "+"}}, "monotone names 'nope', which is not a column of X"),
    ({"monotone": {99: "+"}}, "monotone names 99"),
    ({"monotone": {"a": "up"}}, "monotone says 'up' for column 'a'"),
    ({"monotone": {"a": 1}}, "monotone says 1 for column 'a'"),
    ({"monotone": {"a": {}}}, "monotone says {} for column 'a'"),
    ({"monotone": {"a": {7: "+"}}}, "which is not a class of y"),
    ({"monotone": {"a": {0: "x"}}}, "monotone says 'x' for class 0"),
    ({"monotone": {"a": {0: "+", 1: "+"}}}, "both classes go the same way"),
    ({"monotone": {"a": "+", 0: "-"}}, "monotone names 'a' twice"),
    ({"monotone": {"town": "+"}}, "a category without an order"),
    ({"monotone": {"still": "+"}}, "monotone names 'still'"),
    ({"monotone": {"dropped": "+"}}, "monotone names 'dropped'"),
    ({"monotone": {}}, "monotone is empty"),
    ({"monotone": "a"}, "monotone must map columns"),
    ({"monotone": {"a": "+"}, "penalty": "l1", "loss": "log"}, "leave penalty at 'auto'"),
    ({"fairness": Parity("sex", 0.1)}, "'sex', which is not a column of X"),
    ({"fairness": Parity("town", 0.1, of=7)}, "the class 7, which y does not have"),
    ({"fairness": Parity("a", 0.1)}, "too many groups"),
    ({"fairness": Parity("a", 0.1, cut="x")}, "cannot be cut at 'x'"),
    ({"fairness": Parity("a", 0.1, cut=1e9)}, "no two groups to compare"),
    ({"fairness": Parity("town", 0.1, cut=2)}, "holds no numbers"),
    ({"fairness": Parity("still", 0.1)}, "only the value 1"),
    ({"fairness": Parity("town", -0.1)}, "bound must be a number in"),
    ({"fairness": Parity("town", 1.0)}, "bound of Parity must be a number in"),
    ({"fairness": Parity("town", float("nan"))}, "bound must be a number in"),
    ({"fairness": "town"}, "fairness must be Parity"),
    ({"fairness": []}, "fairness is empty"),
    ({"fairness": EqualizedOdds("lone", 0.1)}, "no training row of that class"),
    ({"fairness": EqualOpportunity("lone", 0.1, of=1)}, "no training row of that class"),
    ({"constraints": Parity("town", 0.1)}, "constraints must be RateConstraint"),
    ({"constraints": RateConstraint(None, 1)}, "at_least or at_most"),
    ({"constraints": RateConstraint(None, 1, 0.8, 0.2)}, "exchange them"),
    ({"constraints": RateConstraint(None, 1, 1.5)}, "at_least must be a number in"),
    ({"constraints": RateConstraint(("town", "Q"), 1, 0.5)}, "no value 'Q'"),
    ({"constraints": RateConstraint(("a", ">", 1e9), 1, 0.5)}, "no training row of positive"),
    ({"constraints": RateConstraint([True, False], 1, 0.5)}, "2 entries for 120 rows"),
    ({"constraints": RateConstraint([500], 1, 0.5)}, "indices from 0 to 119"),
    (
        {"constraints": [RateConstraint(None, k, at_least=0.9) for k in (0, 1)]},
        "cannot hold together",
    ),
    (
        {"constraints": RateConstraint(None, 1, at_most=0.1), "min_class_rate": 0.6},
        "min_class_rate of 1 and the bound of the rate of 1 cannot hold together",
    ),
]
