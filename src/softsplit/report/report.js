"use strict";
(() => {
  const points = JSON.parse(document.getElementById("points").textContent);
  const slider = document.getElementById("slider");
  const headline = document.getElementById("headline");
  const panels = Array.from(document.querySelectorAll(".panel"));
  const columns = Array.from(document.querySelectorAll(".chart .column"));
  const back = document.getElementById("back");

  // A sheet that is wider than the screen begins in its middle and says that it can be moved.
  const fitSheet = (panel) => {
    const sheet = panel?.querySelector(".sheet");
    if (!sheet) return;
    const wide = sheet.scrollWidth > sheet.clientWidth;
    sheet.scrollLeft = (sheet.scrollWidth - sheet.clientWidth) / 2;
    panel.querySelector(".more-aside").classList.toggle("needed", wide);
  };

  const show = (point) => {
    panels.forEach((panel, i) => { panel.hidden = i !== point; });
    fitSheet(panels[point]);
    columns.forEach((column, i) => column.classList.toggle("current", i === point));
    headline.textContent = points.said[point];
    if (slider) {
      slider.value = String(point);
      slider.setAttribute("aria-valuetext", points.said[point]);
      back.disabled = point === points.chosen;
    }
  };

  if (slider) {
    // The thumb stands below the middle of its column; it is about 16 pixels wide.
    const count = panels.length;
    slider.style.width = `calc(${100 * (count - 1) / count}% + 16px)`;
    slider.style.marginLeft = `calc(${50 / count}% - 8px)`;
    slider.addEventListener("input", () => show(Number(slider.value)));
    back.addEventListener("click", () => { show(points.chosen); slider.focus(); });
    columns.forEach((column, i) => column.addEventListener("click", () => show(i)));
  }

  // From which probability on a class is predicted: counts on held-out rows, and costs.
  const cut = points.threshold;
  if (cut) {
    const bar = document.getElementById("threshold");
    const field = (id) => Math.max(0, Number(document.getElementById(id).value) || 0);
    const share = (part, all) => (all ? `${(100 * part / all).toFixed(1)} %` : "none");
    const cost = (i) => field("miss-cost") * (cut.rows - cut.found[i])
      + field("alarm-cost") * cut.alarms[i];
    const tell = () => {
      const i = Number(bar.value);
      const [found, alarms] = [cut.found[i], cut.alarms[i]];
      const said = `From ${(100 * cut.at[i]).toFixed(1)} % on: ${found} of ${cut.rows} found `
        + `(${share(found, cut.rows)}), ${alarms} of ${cut.others} others are false positives `
        + `(${share(alarms, cut.others)}), ${share(found, found + alarms)} of the predictions right.`;
      document.getElementById("threshold-said").textContent = said;
      bar.setAttribute("aria-valuetext", said);
      const all = cut.rows + cut.others;
      document.getElementById("cost-said").textContent =
        `Cost of the mistakes: ${(1000 * cost(i) / all).toPrecision(4)} for 1,000 rows.`;
      document.getElementById("threshold-line").textContent =
        `tree.predict_proba(X)[:, ${cut.position}] >= ${cut.at[i]}`;
    };
    bar.addEventListener("input", tell);
    ["miss-cost", "alarm-cost"].forEach((id) => {
      document.getElementById(id).addEventListener("input", tell);
    });
    document.getElementById("cheapest").addEventListener("click", () => {
      const costs = cut.at.map((_, i) => cost(i));
      bar.value = String(costs.indexOf(Math.min(...costs)));
      tell();
    });
    tell();
  }

  // Older browsers, and pages opened from disk in some, have no clipboard to write to.
  const copyBySelection = (text) => {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "off-screen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyBySelection(text);
    }
  };

  document.querySelectorAll("button.copy").forEach((button) => {
    button.addEventListener("click", async () => {
      const line = button.parentElement.querySelector("code").textContent;
      const done = await copy(line);
      button.focus();
      button.textContent = done ? "Copied" : "Press Ctrl+C";
      headline.textContent = done ? "The Python line is copied." : "Copying failed.";
      setTimeout(() => {
        button.textContent = "Copy";
        headline.textContent = points.said[slider ? Number(slider.value) : points.chosen];
      }, 2000);
    });
  });

  // Paper cannot unfold anything.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    opened.forEach((part) => { part.open = true; });
  });
  window.addEventListener("afterprint", () => opened.forEach((part) => { part.open = false; }));

  document.getElementById("explorer")?.addEventListener("toggle", () => {
    fitSheet(panels[slider ? Number(slider.value) : points.chosen]);
  });
  show(points.chosen);
  fitSheet(document.getElementById("tree"));
  document.documentElement.classList.add("ready");
})();
