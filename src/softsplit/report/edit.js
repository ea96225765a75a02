// Change the tree: its numbers as softsplit.editing.edit changes them, figures on the rows of the
// page before and after, and the lines of Python that repeat it.
(() => {
  const points = JSON.parse(document.getElementById("points").textContent);
  const [tree, held, form] = [points.case, points.edit, document.getElementById("edit")];
  if (!tree || !held || !form) return;
  const twoClasses = tree.classes.length === 2;

  const field = (n, what) => document.getElementById(`edit-${n}-${what}`);
  const number = (n, what, old) => {
    const input = field(n, what);
    if (!input) return old;
    const value = Number(input.value);
    return input.value.trim() === "" || !Number.isFinite(value) ? NaN : value;
  };

  // What the form says of every question, and whether that is a question at all.
  const asked = () => held.questions.map((question, n) => ({
    question,
    n,
    terms: question.terms.map((term, i) => number(n, i, term.value)),
    threshold: question.threshold === null ? null : number(n, "threshold", question.threshold),
  }));
  const wrong = ({ question, terms, threshold }) => {
    if (terms.some(Number.isNaN) || Number.isNaN(threshold)) return "needs a number in every field";
    if (question.terms.length && terms.every((c) => c === 0)) return "needs a term that is not 0";
    return "";
  };
  const moved = ({ question, terms, threshold }) => threshold !== question.threshold
    || terms.some((c, i) => c !== question.terms[i].value);

  // The tree with the changed questions; others keep their numbers to the last bit.
  const changed = (list) => {
    const made = { ...tree, weights: tree.weights.slice(), thresholds: tree.thresholds.slice() };
    if (tree.walk) {
      made.walk = { ...tree.walk, coefficients: tree.walk.coefficients.slice(), thresholds: tree.walk.thresholds.slice() };
    }
    list.filter(moved).forEach(({ question, terms, threshold }) => {
      const t = question.node;
      const ranks = Boolean(tree.scales[0].knots);
      const one = tree.weights[t].findIndex((w) => w !== 0);
      // A question on one rank is printed in the units of the data, its gate is one of ranks.
      const place = (value) => (ranks && !question.ranked ? scaledValue(tree, value, one) : value);
      let centre = place(threshold);
      if (tree.walk) {
        const shifted = question.centre + place(threshold) - place(question.threshold);
        centre = threshold === question.threshold ? question.centre : Number(shifted.toPrecision(12));
        made.walk.thresholds[t] = threshold - question.offset;
      }
      if (!question.terms.length) {
        // Only the threshold: the weights stay, and the gate is half open at another sum.
        made.thresholds[t] = tree.thresholds[t] + question.slope * (centre - question.centre);
        return;
      }
      const c = new Array(tree.scales.length).fill(0);
      question.terms.forEach((term, i) => { c[term.at] = terms[i]; });
      const low = (j) => (ranks ? 0 : tree.scales[j].low);
      const span = (j) => (ranks ? 1 : tree.scales[j].span);
      made.weights[t] = c.map((value, j) => (value === 0 ? 0 : question.slope * value * span(j)));
      made.thresholds[t] = question.slope
        * (centre - c.reduce((sum, value, j) => sum + (value === 0 ? 0 : value * low(j)), 0));
      made.walk.coefficients[t] = c;
    });
    return made;
  };

  // The area under the ROC curve: how often a row of the second class has the higher probability.
  const area = (scores) => {
    const order = scores.map((_, i) => i).sort((a, b) => scores[a] - scores[b]);
    let [ranks, ones] = [0, 0];
    for (let i = 0; i < order.length;) {
      let j = i;
      while (j < order.length && scores[order[j]] === scores[order[i]]) j += 1;
      for (let k = i; k < j; k += 1) {
        if (held.labels[order[k]] === 1) { ranks += (i + j + 1) / 2; ones += 1; }
      }
      i = j;
    }
    const others = order.length - ones;
    return ones && others ? (ranks - ones * (ones + 1) / 2) / (ones * others) : NaN;
  };

  const figures = (one) => {
    const found = held.rows.map((x) => treeAnswer(one, x));
    const hits = found.map(({ predicted }, i) => Number(predicted === held.labels[i]));
    const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
    const there = [...new Set(held.labels)];
    return {
      calls: found.map(({ predicted }) => predicted),
      accuracy: mean(hits),
      balanced: mean(there.map((k) => mean(hits.filter((_, i) => held.labels[i] === k)))),
      loss: mean(found.map(({ proba }, i) => -Math.log(Math.max(proba[held.labels[i]], Number.MIN_VALUE)))),
      area: twoClasses ? area(found.map(({ proba }) => proba[1])) : NaN,
    };
  };

  const show = (when, found) => form.parentElement
    .querySelectorAll(`[data-when="${when}"]`).forEach((cell) => {
      const value = found[cell.dataset.figure];
      const share = cell.dataset.figure === "accuracy" || cell.dataset.figure === "balanced";
      cell.dataset.value = String(value);
      cell.textContent = share ? `${(100 * value).toFixed(1)} %` : value.toFixed(4);
    });

  const code = (list) => {
    const lines = list.filter(moved).flatMap(({ question, terms, threshold }) => [
      ...question.terms.flatMap((term, i) => (terms[i] === term.value ? []
        : [`    .set_weight(${question.number}, ${JSON.stringify(term.feature)}, ${terms[i]})`])),
      ...(threshold === question.threshold ? []
        : [`    .set_threshold(${question.number}, ${threshold})`]),
    ]);
    return ["edited = (", "    tree.edit()", ...lines, ")"].join("\n");
  };

  const before = figures(tree);
  const told = document.getElementById("edit-changed");
  const refresh = () => {
    const list = asked();
    const bad = list.find((one) => wrong(one));
    if (bad) {
      told.textContent = `Question ${bad.question.number} ${wrong(bad)}.`;
      return;
    }
    const after = list.some(moved) ? figures(changed(list)) : before;
    show("after", after);
    const count = after.calls.filter((call, i) => call !== before.calls[i]).length;
    told.textContent = list.some(moved)
      ? `${count} of ${held.rows.length} rows change class.` : "Nothing is changed yet.";
    told.dataset.value = String(count);
    document.getElementById("edit-code").textContent = code(list);
  };

  show("before", before);
  form.addEventListener("input", refresh);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(refresh));
  refresh();
})();
