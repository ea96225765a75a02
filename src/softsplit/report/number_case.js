// Try a case: the number that predict says of a row, its interval, and the formula of its leaf.
(() => {
  const tree = JSON.parse(document.getElementById("points").textContent).case;
  const form = document.getElementById("case");
  if (!tree || !form) return;
  const { dark, light, mistake, node, row, tell } = caseForm(tree);

  const short = (value, digits = 6) => value.toLocaleString("en-US", { maximumSignificantDigits: digits });
  // The score of a row in a leaf, within the ends of its training rows, and the prediction for it.
  const sum = (leaf, x) => leaf.slopes.reduce((s, slope, j) => (slope ? s + slope * x[j] : s), leaf.constant);
  const cut = (leaf, score) => Math.min(Math.max(score, leaf.ends[0]), leaf.ends[1]);
  const value = (leaf, x) => {
    const score = cut(leaf, sum(leaf, x));
    return tree.log ? Math.exp(Math.min(Math.max(score, -30), 30)) : score;
  };

  // The formula with the numbers of the row, and a line for each term.
  const formula = (leaf, x) => {
    const score = sum(leaf, x);
    const told = (number) => short(tree.log ? Math.exp(number) : number);
    const signed = (number, text) => ` ${number < 0 ? "\u2212" : "+"} ${text}`;
    const terms = leaf.terms.map(([j]) => (tree.log ? ` × ${told(leaf.slopes[j] * x[j])}`
      : signed(leaf.slopes[j], `${short(Math.abs(leaf.slopes[j]))} × ${short(x[j])}`)));
    const end = cut(leaf, score) === score ? "" : `, cut at ${told(cut(leaf, score))}, where the training rows of the leaf end`;
    const line = `${tree.target} = ${told(leaf.constant)}${terms.join("")}${terms.length ? ` = ${told(score)}` : ""}${end}`;
    const list = node("ul", undefined, "pulls");
    leaf.terms.forEach(([j, name]) => {
      const part = leaf.slopes[j] * x[j];
      const does = tree.log ? `multiplies by ${told(part)}` : `${part < 0 ? "takes" : "adds"} ${short(Math.abs(part))}`;
      list.append(node("li", `${name}: ${short(x[j])} ${does}`));
    });
    return [node("p", line, "formula"), list];
  };

  // Of a hazard, the time by which half have had the event.
  const median = (hazard) => {
    if (!tree.baseline) return "";
    const place = tree.baseline[1].findIndex((total) => hazard * total >= Math.LN2);
    const unit = tree.unit ? ` ${tree.unit}` : "";
    return place < 0 ? "; fewer than half have the event in the time that is known"
      : `; half have the event by ${short(tree.baseline[0][place])}${unit}`;
  };

  const answers = (found) => tree.questions.map((t, n) => [t, n + 1])
    .filter(([t]) => found.way.includes(t))
    .map(([t, n]) => `question ${n}: ${tree.answers[found.way.includes(2 * t + 1) ? 0 : 1]}`);

  const refresh = (touched) => {
    const wrong = mistake();
    if (wrong) {
      tell("case-answer", [wrong]);
      ["case-leaf", "case-why"].forEach((id) => tell(id, []));
      return;
    }
    const x = row();
    const found = treeAnswer(tree, x);
    const leaf = tree.leaves[found.predicted];
    const predicted = tree.walk ? value(leaf, x)
      : tree.leaves.reduce((s, other, l) => s + found.proba[l] * value(other, x), 0);
    const low = tree.log ? Math.max(predicted - leaf.half, 0) : predicted - leaf.half;
    const ends = leaf.half === null ? ""
      : `; ${100 * tree.level} of 100 such rows are between ${short(low, 4)} and ${short(predicted + leaf.half, 4)}`;
    tell("case-answer", [`The tree says ${short(predicted)}${ends}${median(predicted)}.`]);
    document.getElementById("case-answer").dataset.value = String(predicted);
    const way = [...answers(found), `leaf ${leaf.number}`].join(", ");
    tell("case-leaf", [`${way[0].toUpperCase()}${way.slice(1)}.`]);
    const shares = tree.leaves.map((other, l) => [found.proba[l], other]).filter(([p]) => p >= 0.0005)
      .map(([p, other]) => node("p", `Leaf ${other.number}: ${(100 * p).toFixed(1)} % of ${short(value(other, x))}`));
    tell("case-why", tree.walk ? formula(leaf, x) : [...shares, ...formula(leaf, x)]);
    if (touched) light(found);
  };

  form.addEventListener("input", () => refresh(true));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { refresh(false); dark(); }));
  refresh(false);
})();
