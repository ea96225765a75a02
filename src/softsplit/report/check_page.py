"""New rows beside the training rows as a page of its own, one file."""

from __future__ import annotations

from softsplit.drift.results import ColumnCheck, TableCheck
from softsplit.report.document import add_head, asset
from softsplit.report.elements import add, add_table, element, percent, rendered, shortened
from softsplit.report.sections import section
from softsplit.support.messages import counted


def check_page(found: TableCheck) -> str:
    """The page as HTML."""
    html = element("html", {"lang": "en"})
    add_head(html, "New rows beside the training rows", asset("report.css"))
    body = add(html, "body")
    header = add(body, "header")
    add(header, "h1", {}, "Are the new rows like the training rows?")
    said = found.verdict
    add(header, "p", {"class": "lead"}, f"{said[0].upper()}{said[1:]}.")
    main = add(body, "main")
    kinds = [(True, "columns", "Columns"), (False, "others", "Leaves, classes and answers")]
    for of_columns, name, title in kinds:
        own = [one for one in found.comparisons if (one.what == "column") == of_columns]
        if not own:
            continue
        part = section(main, name, title)
        own.sort(key=lambda one: (not one.moved, one.p_value is None, one.p_value))
        head = ["name", "", "p adjusted", "what is different", "missing", "outside", "PSI"]
        add_table(part, title, head, [_cells(one) for one in own], (2, 4, 5, 6))
    if found.accuracy is not None:
        part = section(main, "quality", "Answers on rows with a known class")
        value, low, high = found.accuracy
        on = counted(found.labelled, "row")
        ends = f"{percent(low)} to {percent(high)}"
        beside = "" if found.in_training is None else f"; {found.in_training}"
        add(part, "p", {}, f"{percent(value)} of {on} are right ({ends}){beside}.")
        lines = [
            [shortened(str(one.label), 40), percent(one.said), percent(one.true),
             f"{percent(one.low)} to {percent(one.high)}", str(one.rows)]
            for one in found.reliability
        ]  # fmt: skip
        head = ["class", "probability said", "share that is so", "95 % interval", "rows"]
        add_table(part, "Reliability", head, lines, (1, 2, 3, 4))
    how = section(main, "how", "How to read this")
    add(
        how, "p", {},
        "p-values are adjusted after Holm over all tests of the page: if nothing has moved, any of "
        f"them is at most {found.level:g} with a chance of at most {percent(found.level, 0)}. "
        "Outside: rows outside of the training range or of levels that training did not have. PSI: "
        "population stability index; values above 0.25 are usually called a large shift. A column "
        "that the tree does not use changes no answer.",
    )  # fmt: skip
    for note in found.notes:
        add(how, "p", {"class": "quiet"}, f"{note[0].upper()}{note[1:]}.")
    return "<!doctype html>\n" + rendered(html) + "\n"


def _cells(one: ColumnCheck) -> list[str]:
    state = "moved" if one.moved else "as in training" if one.p_value is not None else "not known"
    state += "" if one.used else ", not used"
    known = one.missing_in_training == one.missing_in_training
    missing = f"{percent(one.missing)}" + (f" (was {percent(one.missing_in_training)})" * known)
    return [
        shortened(one.name, 40), state, one.p_text, one.said,
        missing if one.what == "column" else "", str(one.outside or ""),
        f"{one.psi:.3f}" if one.psi == one.psi else "",
    ]  # fmt: skip
