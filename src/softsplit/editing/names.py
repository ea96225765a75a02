"""New names of columns, levels and classes of a tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from softsplit.fitted.model import TreeModel
from softsplit.support.messages import shown


def rename(
    model: TreeModel,
    features: Mapping[str, str] | None = None,
    classes: Mapping[Any, Any] | None = None,
) -> TreeModel:
    """The tree with other names for columns of its table, for classes, or for both."""
    if not features and not classes:
        raise ValueError("rename needs features={'old': 'new'}, classes={'old': 'new'} or both.")
    if features:
        model = _renamed_columns(model, features)
    return _renamed_classes(model, classes) if classes else model


def _renamed_columns(model: TreeModel, features: Mapping[str, str]) -> TreeModel:
    names = model.column_names
    for old, new in features.items():
        if old not in names:
            raise ValueError(f"there is no column {shown(old)} to rename.")
        if not isinstance(new, str) or not new:
            raise ValueError(f"the new name of {shown(old)} must be a text, got {shown(new)}.")
    called = [features.get(name, name) for name in names]
    if len(set(called)) < len(called):
        twice = next(name for name in called if called.count(name) > 1)
        raise ValueError(f"two columns would have the name {shown(twice)}.")
    if model.coding is None:
        return replace(model, feature_names=tuple(called))
    coding = replace(model.coding.renamed(called), named=True)
    return replace(model, coding=coding, feature_names=coding.column_names)


def _renamed_classes(model: TreeModel, names: Mapping[Any, Any]) -> TreeModel:
    for old in names:
        if old not in model.labels:
            raise ValueError(f"there is no class {shown(old)}; the classes are {model.labels}.")
    called = [names.get(label, label) for label in model.labels]
    if len({type(name) for name in called}) > 1:
        raise ValueError("all classes must be of one type; rename all of them or use that type.")
    if len(set(called)) < len(called):
        raise ValueError("two classes would have the same name.")
    order = sorted(range(len(called)), key=called.__getitem__)
    texts = isinstance(called[0], str)
    kind = object if texts and model.classes.dtype.kind == "O" else None
    place = np.argsort(order)
    walk, costs, coding = model.walk, model.call_costs, model.coding
    if walk is not None:
        walk = replace(walk, counts=walk.counts[order], classes=place[walk.classes])
    if coding is not None:
        known = {str(old): str(new) for old, new in zip(model.labels, called, strict=True)}
        variables = tuple(
            replace(v, classes=tuple(known.get(k, k) for k in v.classes)) if v.classes else v
            for v in coding.variables
        )
        coding = replace(coding, variables=variables)
    leaves = model.parameters.leaf_values[order]
    return replace(
        model,
        held_out=None,
        monotone=None,
        profile=None if model.profile is None else model.profile.with_classes(order),
        classes=np.array([called[k] for k in order], dtype=kind),
        parameters=replace(model.parameters, leaf_values=leaves),
        distributions=None if model.distributions is None else model.distributions[order],
        call_costs=None if costs is None else costs[np.ix_(order, order)],
        walk=walk,
        coding=coding,
        feature_names=model.feature_names if coding is None else coding.column_names,
    )
