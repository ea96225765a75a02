// Try a case: what predict and predict_proba say of a row, from the numbers of the chosen tree.
(() => {
  const tree = JSON.parse(document.getElementById("points").textContent).case;
  const form = document.getElementById("case");
  if (!tree || !form) return;

  const answer = (x) => treeAnswer(tree, x);

  const { given, entered, input, light, dark, mistake, node, put, row, tell } = caseForm(tree);

  // The shortest number a little further away from now, with the same answer.
  const rounded = (value, now, low, high, holds) => {
    for (let digits = 3; digits < 16; digits += 1) {
      const step = 10 ** (Math.floor(Math.log10(Math.abs(value) || 1)) - digits + 1);
      const whole = value > now ? Math.ceil(value / step) : Math.floor(value / step);
      const short = Number((whole * step).toPrecision(digits + 1));
      if (short >= low && short <= high && holds(short)) return short;
    }
    return value;
  };

  // Where a field may move: what the limits for advice leave of its training range; null if it stays.
  const limit = (name, i) => document.getElementById(`limit-${name}${i}`);
  const room = (i) => {
    const field = tree.fields[i];
    const way = limit("", i).value;
    if (way === "fixed") return null;
    if (field.texts) return { low: 0, high: field.texts.length - 1 };
    const end = (name, usual) => {
      const text = limit(name, i).value;
      return text === "" || !Number.isFinite(Number(text)) ? usual : Number(text);
    };
    let low = Math.max(field.low, end("low-", field.low));
    let high = Math.min(field.high, end("high-", field.high));
    if (entered(i) === null && way !== "free") return null; // nothing is below or above it
    if (way === "less") high = Math.min(high, given(field, i));
    if (way === "more") low = Math.max(low, given(field, i));
    if (field.whole) { low = Math.ceil(low); high = Math.floor(high); }
    return low <= high ? { low, high } : null;
  };

  // The nearest value of one variable at which another class is predicted.
  const nearest = (x, field, i, predicted) => {
    const differs = (value) => answer(put(x, field, value)).predicted !== predicted;
    const within = room(i);
    if (!within) return [];
    if (field.texts) {
      const found = field.texts.map((_, n) => n).filter((n) => n !== given(field, i) && differs(n));
      return found.map((n) => ({ i, value: n, text: field.texts[n], far: 0.5 }));
    }
    const now = Math.min(Math.max(given(field, i), within.low), within.high);
    const span = field.high - field.low;
    const whole = field.whole && span <= 2000;
    const steps = whole ? span : 400;
    let best = null;
    [-1, 1].forEach((side) => {
      const left = side < 0 ? now - within.low : within.high - now;
      const step = whole ? 1 : left / steps;
      for (let n = 0; n <= steps && n * step <= left; n += 1) {
        const value = now + side * n * step;
        if (!differs(value)) continue;
        let [near, far] = [n ? value - side * step : now, value];
        for (let k = 0; k < 60 && !whole; k += 1) {
          const middle = (near + far) / 2;
          if (differs(middle)) far = middle; else near = middle;
        }
        const distance = Math.abs(far - given(field, i));
        if (!best || distance < best.distance) {
          const short = whole ? far : rounded(far, now, within.low, within.high, differs);
          best = { i, value: short, distance };
        }
        break;
      }
    });
    if (!best) return [];
    return [{ ...best, text: String(best.value), far: best.distance / (span || 1) }];
  };

  // Values of one feature that are tried beside those of another, and how far away they are.
  const tried = (i) => {
    const field = tree.fields[i];
    const within = room(i);
    if (field.texts) {
      return field.texts.map((_, n) => ({ i, value: n, far: n === given(field, i) ? 0 : 1 }));
    }
    const span = field.high - field.low;
    return Array.from({ length: 13 }, (_, n) => {
      const at = within.low + (n / 12) * (within.high - within.low);
      const value = field.whole ? Math.round(at) : at;
      return { i, value, far: Math.abs(value - given(field, i)) / (span || 1) };
    });
  };

  // Two features that change the answer together, where none does alone: the nearest pair of the
  // values that are tried; then each goes back as far as it can.
  const paired = (x, predicted) => {
    const size = (i) => Math.max(...tree.fields[i].at.flatMap(
      (j) => tree.weights.map((w) => Math.abs(w[j]))));
    const order = tree.fields.map((_, i) => i).filter(room)
      .sort((a, b) => size(b) - size(a)).slice(0, 12);
    let best = null;
    order.forEach((i, n) => order.slice(n + 1).forEach((k) => tried(i).forEach((one) => {
      const moved = put(x, tree.fields[i], one.value);
      tried(k).forEach((other) => {
        const far = one.far + other.far;
        if (best && far >= best.far) return;
        if (answer(put(moved, tree.fields[k], other.value)).predicted !== predicted) {
          best = { far, parts: [one, other] };
        }
      });
    })));
    if (!best) return null;
    best.parts.forEach((part, n) => {
      const other = best.parts[1 - n];
      const field = tree.fields[part.i];
      if (field.texts) return;
      const [near] = nearest(put(x, tree.fields[other.i], other.value), field, part.i, predicted);
      if (near) part.value = near.value;
    });
    return best.parts;
  };

  const percent = (p) => (p > 0.9995 && p < 1 ? "> 99.9 %" : `${(100 * p).toFixed(1)} %`);

  const probabilities = (proba) => proba.map((p, k) => [p, k]).sort((a, b) => b[0] - a[0])
    .slice(0, 8).map(([p, k]) => {
      const item = node("li");
      const bar = node("meter");
      bar.value = p;
      bar.setAttribute("aria-hidden", "true");
      const share = node("span", percent(p), "number");
      share.dataset.class = String(k);
      share.dataset.value = String(p);
      item.append(node("span", tree.classes[k]), bar, share);
      return item;
    });

  // The number of a variable, of which the row may hold what lies over its knots alone.
  const shown = (x, j) => {
    const i = tree.fields.findIndex((field) => (field.pointed || !field.texts) && field.at.includes(j));
    if (i < 0) return Number(x[j].toPrecision(6));
    const value = entered(i);
    if (tree.fields[i].texts) return tree.fields[i].texts[value];
    const counts = tree.fields[i].counts ? ` (counts as ${tree.fields[i].counts})` : "";
    return value === null ? `unknown${counts}` : Number(value.toPrecision(6));
  };

  // What the values of a row count at a question in points.
  const added = (x, own, name, left) => {
    const short = (number) => Number(number.toPrecision(6));
    const total = short(own.columns.reduce((sum, [j]) => sum + x[j], 0));
    const said = own.said[left ? 0 : 1];
    const head = own.statement ? `${own.statement}: ${said}` : `${total} ${total === 1 ? "point" : "points"}, ${said}`;
    const list = node("ul", undefined, "pulls");
    own.columns.forEach(([j, column]) => {
      const points = own.statement ? "" : `: ${short(x[j])}`;
      list.append(node("li", `${column} ${shown(x, j)}${points}`));
    });
    return [node("p", `${name}: ${head}`, "head"), list];
  };

  // Questions on the way of the row, with what each variable speaks for.
  const reasons = (x, found) => {
    const parts = [];
    for (let n = 0; n < found.way.length - 1; n += 1) {
      const t = found.way[n];
      const left = found.way[n + 1] === 2 * t + 1;
      const place = tree.questions.indexOf(t);
      if (tree.pointed[t]) {
        parts.push(...added(x, tree.pointed[t], `Question ${place + 1}`, left));
      } else if (place >= 0) {
        const sure = found.reach[2 * t + (left ? 1 : 2)] / found.reach[t];
        parts.push(node("p", `Question ${place + 1}: ${tree.answers[left ? 0 : 1]}, ${percent(sure)} sure${sure < 0.95 ? "; close to the limit" : ""}`, "head"));
        const list = node("ul", undefined, "pulls");
        const pulls = new Array(tree.names.length).fill(0);
        tree.weights[t].forEach((w, j) => {
          pulls[tree.homes[j]] += tree.steepness * w * (found.z[j] - tree.means[j]);
        });
        pulls.map((pull, j) => [pull, j])
          .filter(([pull]) => pull !== 0).sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]))
          .forEach(([pull, j]) => {
            const side = tree.sides[t][pull > 0 ? 0 : 1];
            const level = tree.opposites[j] !== tree.names[j];
            const value = level ? "" : ` = ${shown(x, j)}`;
            const name = level && x[j] === 0 ? tree.opposites[j] : tree.names[j];
            list.append(node("li", `${name}${value} speaks for ${side} (${Math.abs(pull).toPrecision(3)})`));
          });
        parts.push(list);
      }
    }
    return parts;
  };

  // A change of one feature, or of two, with a button that makes it.
  const told = (x, parts) => {
    const after = parts.reduce((row_, { i, value }) => put(row_, tree.fields[i], value), x);
    const words = parts.map(({ i, value }) => {
      const field = tree.fields[i];
      return `${field.name}: ${field.texts ? field.texts[value] : value}`;
    });
    const then = tree.classes[answer(after).predicted];
    const item = node("li", `${words.join(", and ")} instead: ${then} `);
    const button = node("button", "Try it");
    button.type = "button";
    button.setAttribute("aria-label", `Try ${words.join(" and ").replaceAll(": ", " ")}`);
    button.addEventListener("click", () => {
      parts.forEach(({ i, value }) => { input(i).value = String(value); });
      refresh(true);
      input(parts[0].i).focus();
    });
    item.append(button);
    return item;
  };

  // The prediction set: the predicted class alone is a sure answer, all else is for a person.
  const sureness = ({ proba, predicted }) => {
    if (!tree.sure) return [];
    const held = tree.classes.filter((_, k) => 1 - proba[k] <= tree.sure.limits[k] + 1e-12);
    const level = `At ${Number((100 * tree.sure.level).toPrecision(4))} % confidence`;
    if (held.length === 1 && held[0] === tree.classes[predicted]) return [`${level}: ${held[0]}.`];
    if (!held.length) return [`${level} no class fits well: a case for a person.`];
    return [`${level} it may be ${held.join(" or ")}: a case for a person.`];
  };

  const refresh = (touched) => {
    const wrong = mistake();
    if (wrong) {
      tell("case-answer", [wrong]);
      ["case-sure", "case-proba", "case-why", "case-changes"].forEach((id) => tell(id, []));
      return;
    }
    const x = row();
    const found = answer(x);
    tell("case-answer", [`The tree says ${tree.classes[found.predicted]}.`]);
    tell("case-sure", sureness(found));
    tell("case-proba", probabilities(found.proba));
    tell("case-why", reasons(x, found));
    const changes = tree.fields.flatMap((field, i) => nearest(x, field, i, found.predicted))
      .sort((a, b) => a.far - b.far).slice(0, 6).map((change) => [change]);
    const both = changes.length ? null : paired(x, found.predicted);
    const said = (both ? [both] : changes).map((parts) => told(x, parts));
    if (!changes.length) {
      said.unshift(node("li", `No change of one feature alone, within the training values${
        both ? "; two together:" : ", and none of two that was tried."}`));
    }
    tell("case-changes", said);
    if (touched) light(found);
  };

  form.addEventListener("input", () => refresh(true));
  document.getElementById("case-limits").addEventListener("input", () => refresh(false));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { refresh(false); dark(); }));
  refresh(false);
})();
