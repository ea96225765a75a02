// What predict and predict_proba say of a row, from the numbers of a tree; scaledValue is one of them
// in scaled units.
const [treeAnswer, scaledValue] = (() => {
  const interpolated = (x, knots, ranks) => {
    if (x <= knots[0]) return ranks[0];
    const last = knots.length - 1;
    if (x >= knots[last]) return ranks[last];
    let [low, high] = [0, last];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (knots[middle] <= x) low = middle; else high = middle;
    }
    const part = (x - knots[low]) / (knots[high] - knots[low]);
    return ranks[low] + part * (ranks[high] - ranks[low]);
  };

  const scaled = (tree, x, j) => {
    const scale = tree.scales[j];
    if (scale.knots) return interpolated(x, scale.knots, scale.ranks);
    if (scale.span === null) return 0;
    return Math.min(Math.max((x - scale.low) / scale.span, -tree.far), tree.far);
  };

  const mixed = (reach, leaves) => {
    const sums = leaves[0].map((_, k) => leaves.reduce((s, leaf, l) => s + reach[l] * leaf[k], 0));
    const all = sums.reduce((a, b) => a + b, 0);
    return all > 0 ? sums.map((s) => s / all) : sums;
  };
  const largest = (values) => values.indexOf(Math.max(...values));

  // Reach of every node, probabilities, and the predicted class, as in the Python library.
  const answer = (tree, x) => {
    const count = tree.thresholds.length;
    const z = x.map((value, j) => scaled(tree, value, j));
    const odds = tree.weights.map((w, t) => tree.steepness
      * (w.reduce((sum, a, j) => sum + a * z[j], 0) - tree.thresholds[t]));
    const reach = new Array(2 * count + 1).fill(1);
    odds.forEach((v, t) => {
      const left = v >= 0 ? 1 / (1 + Math.exp(-v)) : Math.exp(v) / (1 + Math.exp(v));
      const right = v >= 0 ? Math.exp(-v) / (1 + Math.exp(-v)) : 1 / (1 + Math.exp(v));
      reach[2 * t + 1] = reach[t] * left;
      reach[2 * t + 2] = reach[t] * right;
    });
    const ends = reach.slice(count);
    const way = walked(tree, x, z, odds);
    const leaf = way[way.length - 1] - count;
    const predicted = tree.walk ? tree.walk.classes[leaf] : largest(mixed(ends, tree.votes));
    let proba = mixed(ends, tree.shares);
    if (tree.factors !== null) {
      const weighed = proba.map((p, k) => p * tree.factors[k]);
      if (largest(weighed) !== predicted) {
        const own = Math.max(weighed[predicted], Number.MIN_VALUE);
        proba = weighed.map((p, k) => (k === predicted ? own : Math.min(p, tree.below * own)) / tree.factors[k]);
        const all = proba.reduce((a, b) => a + b, 0);
        proba = proba.map((p) => p / all);
      }
    }
    return { z, odds, reach, way, predicted, proba };
  };

  // Nodes on the way of a row: yes or no at each question, or the more probable side.
  const walked = (tree, x, z, odds) => {
    const way = [0];
    for (let t = 0; t < tree.thresholds.length;) {
      const left = tree.walk ? holds(tree, t, tree.walk.ranked[t] ? z : x) : odds[t] >= 0;
      t = 2 * t + (left ? 1 : 2);
      way.push(t);
    }
    return way;
  };
  const holds = (tree, t, values) => {
    const { coefficients, thresholds, upwards, tie } = tree.walk;
    let [total, size] = [0, Math.abs(thresholds[t])];
    coefficients[t].forEach((c, j) => { total += c * values[j]; size += Math.abs(c * values[j]); });
    const above = total - thresholds[t];
    return (upwards[t] ? above : -above) > tie * size;
  };
  return [answer, scaled];
})();
