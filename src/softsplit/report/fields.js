// The form of a case: what its fields hold, as columns of the tree, and the way of its row in the drawing.
const caseForm = (tree) => {
  const input = (i) => document.getElementById(`case-${i}`);
  // The points of a number by a look-up.
  const points = (own, value) => {
    if (!own.slopes.length) return own.points[own.edges.filter((edge) => value >= edge).length];
    return own.knots.reduce((sum, knot, n) => sum
      + (own.slopes[n + 1] - own.slopes[n]) * Math.max(value - knot, 0), own.slopes[0] * value) / own.unit;
  };
  // The columns of a field hold a number, what of it lies over its knots, and whether it is missing;
  // or its points.
  const codes = (field, value) => {
    if (field.texts) return field.codes[value];
    if (value === null) return field.missing;
    if (field.lookups) return field.lookups.map((own) => points(own, value));
    return field.at.map((_, n) => {
      if (n >= field.knots.length) return 0;
      return field.knots[n] === null ? value : Math.max(value - field.knots[n], 0);
    });
  };
  const put = (x, field, value) => {
    const moved = x.slice();
    codes(field, value).forEach((code, n) => { moved[field.at[n]] = code; });
    return moved;
  };
  // What a field holds: null is a missing value; changes are counted from what is imputed for it.
  const entered = (i) => (input(i).value === "" ? null : Number(input(i).value));
  const given = (field, i) => entered(i) ?? field.middle;
  const row = () => tree.fields.reduce((x, field, i) => put(x, field, entered(i)),
    new Array(tree.scales.length).fill(0));

  const node = (name, text, cls) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (cls) made.className = cls;
    return made;
  };
  const tell = (id, parts) => document.getElementById(id).replaceChildren(...parts);

  // What is wrong with an entry, if something is; beside the others stands what they count as.
  const mistake = () => {
    const bad = tree.fields.findIndex((field, i) => (entered(i) === null
      ? !field.missing || input(i).validity.badInput : !Number.isFinite(entered(i))));
    if (bad >= 0) return `Give a number for ${tree.fields[bad].name}.`;
    tree.fields.forEach((field, i) => {
      if (field.texts) return;
      const value = entered(i);
      const said = document.getElementById(`case-${i}-said`);
      said.hidden = value !== null && value >= field.least && value <= field.most;
      said.textContent = value === null ? `missing value${field.counts ? `: counts as ${field.counts}` : ""}`
        : "far outside the training range: the tree extrapolates";
    });
    return null;
  };

  // The way of a row lights up in the drawing, or none does.
  const parts = () => document.querySelectorAll("#tree .tree [data-node], #tree .tree [data-child]");
  const light = (found) => {
    const on = new Set(found.way);
    parts().forEach((part) => {
      const t = Number(part.dataset.node ?? part.dataset.child);
      part.style.opacity = String(0.25 + 0.75 * found.reach[t]);
      part.classList.toggle("lit", on.has(t));
    });
  };
  const dark = () => parts().forEach((part) => {
    part.style.opacity = "";
    part.classList.remove("lit");
  });
  return { dark, entered, given, input, light, mistake, node, put, row, tell };
};
