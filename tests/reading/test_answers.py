"""The words for the two answers of a split, where classes have such names themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import partial_dependence

from softsplit import SoftTreeClassifier
from softsplit.reading.outline import answer_words


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["ill", "well"], ("yes", "no")),
        (["Yes", "maybe"], ("true", "false")),
        ([True, False], ("yes", "no")),
        (["no", "true"], ("holds", "fails")),
    ],
)
def test_no_answer_is_called_like_a_class(labels, words):
    assert answer_words(labels) == words


def test_partial_dependence_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "dose": rng.normal(size=90),
            "town": rng.choice(["Bern", "Lyon", "Oslo"], 90),
            "age": rng.integers(20, 80, 90).astype(float),
        }
    )
    y = np.where(
        frame["dose"] + (frame["town"] == "Oslo") + 0.02 * frame["age"] > 1.2, "ill", "well"
    )
    tree = SoftTreeClassifier(n_starts=1, random_state=0).fit(frame, y)
    for columns in (["dose"], ["town"], ["dose", "town"], ["dose", "age"]):
        wanted = partial_dependence(
            tree, frame, columns, grid_resolution=7, categorical_features=["town"], kind="average"
        )
        found = tree.partial_dependence(frame, columns, grid_resolution=7)
        for one, other in zip(found.grid_values, wanted.grid_values, strict=True):
            assert list(one) == (list(other) if one.dtype == object else pytest.approx(list(other)))
        np.testing.assert_allclose(found.average[1], wanted.average[0], rtol=1e-9)
    with pytest.raises(ValueError, match="which is not a column of X; did you mean 'dose'"):
        tree.partial_dependence(frame, "dos")
