"""One table of class probabilities for Python, compiled or not, ONNX and the page's script."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from case_pages import filled, opened, shown_proba, unjudged_page  # noqa: F401
from golden_probabilities import CASES, golden_cases
from softsplit import export_onnx
from softsplit.fitted import row_pass
from softsplit.tree.routing import mixed_values

every_case = pytest.mark.parametrize("case", golden_cases(), ids=list(CASES))


@every_case
def test_predict_proba_has_the_bits_of_the_table(case):
    assert_array_equal(case.model.predict_proba(case.rows), case.probabilities)
    assert_array_equal(case.classifier.predict(case.rows), case.predicted)


@every_case
def test_the_compiled_pass_has_the_bits_of_the_table(case):
    times = 1 + row_pass.OPTIONS.few // len(case.rows)
    assert_array_equal(
        case.model.predict_proba(np.tile(case.rows, (times, 1))),
        np.tile(case.probabilities, (times, 1)),
    )


@every_case
def test_the_definition_agrees_with_the_table(case):
    """Where mixtures of class shares are not made consistent with the predicted class."""
    model = case.model
    tree = replace(model.parameters, leaf_values=model.leaf_shares)
    found = mixed_values(tree, model.scaled(case.rows).T, model.steepness).T
    kept = np.full(len(found), True)
    if model.class_factors is not None:
        kept = model.classes[np.argmax(found * model.class_factors, axis=1)] == case.predicted
        assert not kept.all()
    assert_allclose(found[kept], case.probabilities[kept], rtol=0, atol=1e-12)


@every_case
def test_the_graph_agrees_with_the_table(case):
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        export_onnx(case.classifier).SerializeToString(), options,
        providers=["CPUExecutionProvider"],
    )  # fmt: skip
    predicted, found = session.run(["label", "probabilities"], {"X": case.rows})
    assert_allclose(found, case.probabilities, rtol=0, atol=1e-9)
    assert_array_equal(predicted, case.predicted)


FEW_PAGES = ("one question", "cost matrix", "walk over ranks", "walk", "class shares")
"""Of the others, opened by ``make test-all``, each differs from one of these in one setting."""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=[] if name in FEW_PAGES else pytest.mark.slow)
        for name, case in zip(CASES, golden_cases(), strict=True)
    ],
)
def test_the_page_agrees_with_the_table(opened, case):  # noqa: F811
    from softsplit.data.learning import LabelledRows

    y = case.model.classes[np.arange(len(case.rows)) % len(case.model.classes)]
    coding = replace(case.model.table_coding, named=False)
    rows = LabelledRows(coding.code(case.rows), y, "y")
    page = opened(unjudged_page(case.classifier, rows))
    # All rows are in the tests of the other readers; typing them in takes seconds.
    answers = zip(case.rows, case.probabilities, case.predicted, strict=True)
    for x, probabilities, label in islice(answers, 4):
        filled(page, x, case.model.feature_names)
        assert_allclose(shown_proba(page), probabilities, rtol=0, atol=1e-9)
        assert page.locator("#case-answer").inner_text() == f"The tree says {label}."
