/* Draws the data of the report page.  SPDX-License-Identifier: MIT
 *
 * Names come from files: they are only ever set as text. */
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const ROWS = 100; // datasets that are shown, and added, at a time
  const NARROW = 480; // pixels: a chart below has fewer labels
  const FAMILIES = {
    cast: ["cast", "circle"], mx: ["MX", "square"], nvfp4: ["NVFP4", "diamond"],
    per_tensor: ["per tensor", "up"], per_row: ["per row", "down"],
    per_column: ["per column", "cross"], pow2_row: ["power-of-two rows", "hexagon"],
    pow2_column: ["power-of-two columns", "star"],
  };
  const [BITS, BYTES, SQNR, WORST, OVERFLOW, UNDERFLOW, LOST] = [0, 1, 2, 3, 4, 5, 6];

  // ------------------------------------------------------------------ elements

  const byId = (id) => document.getElementById(id);

  function element(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    return fill(node, attributes, children);
  }

  function svg(name, attributes = {}, ...children) {
    return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
  }

  function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "click") node.addEventListener("click", value);
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  }

  // ------------------------------------------------------------------ numbers

  const count = (n) => n.toLocaleString("en");

  function number(x) {
    if (x === null) return "–";
    const size = Math.abs(x);
    if (x !== 0 && (size < 1e-3 || size >= 1e6)) return x.toExponential(2).replace("-", "−").replace("e+", "e");
    return String(Number(x.toPrecision(4))).replace("-", "−");
  }

  function share(x) {
    if (x === null) return "–";
    if (x === 0) return "0 %";
    const percent = 100 * x;
    return percent < 0.01 ? "<0.01 %" : `${Number(percent.toPrecision(3))} %`;
  }

  function decibels(x) {
    return typeof x === "number" ? x.toFixed(2) : x ?? "–";
  }

  function bytes(n) {
    let unit = 0;
    for (; n >= 1024 && unit < 4; unit++) n /= 1024;
    return `${unit ? n.toFixed(1) : n} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
  }

  // "exact" is more than any number, nothing is less.
  function order(x) {
    if (x === "exact") return Infinity;
    return x ?? -Infinity;
  }

  function compare(a, b) {
    if (typeof a === "string" && typeof b === "string" && a !== "exact" && b !== "exact")
      return a.localeCompare(b, "en", { numeric: true });
    return order(a) === order(b) ? 0 : order(a) - order(b);
  }

  // ------------------------------------------------------------------ tables

  /* A table that its header's buttons sort.  `columns`: title, the value to sort by, the cell's
   * content (text or node), whether it is text.  A second click turns the order. */
  class SortedTable {
    constructor(table, columns, rowClass, limit) {
      Object.assign(this, { table, columns, rowClass, limit, rows: [], column: null, sign: 1 });
      this.headers = columns.map((column, i) => element("th",
        { scope: "col", class: column.isText ? "text" : "" },
        element("button", { type: "button", click: () => this.sortBy(i) }, column.title)));
      table.tHead.replaceChildren(element("tr", {}, ...this.headers));
    }

    show(rows) {
      this.rows = rows;
      this.draw();
    }

    sortBy(i) {
      // Numbers begin with the largest, as that is what one looks for.
      this.sign = this.column === i ? -this.sign : this.columns[i].isText ? 1 : -1;
      this.column = i;
      this.headers.forEach((header, j) => {
        if (i === j) header.setAttribute("aria-sort", this.sign > 0 ? "ascending" : "descending");
        else header.removeAttribute("aria-sort");
      });
      this.draw();
    }

    draw() {
      const rows = [...this.rows];
      if (this.column !== null) {
        const { value } = this.columns[this.column];
        rows.sort((a, b) => this.sign * compare(value(a), value(b)));
      }
      this.table.tBodies[0].replaceChildren(...rows.slice(0, this.limit).map((row) =>
        element("tr", { class: this.rowClass(row) }, ...this.columns.map((column) =>
          element("td", { class: column.isText ? "text" : "" }, column.cell(row))))));
    }
  }

  // ------------------------------------------------------------------ charts

  function text(x, y, content, attributes = {}) {
    return svg("text", { x, y, ...attributes }, content);
  }

  /* A round step of about a `parts`th of the span. */
  function niceStep(span, parts) {
    const raw = span / parts;
    const power = 10 ** Math.floor(Math.log10(raw));
    return power * [1, 2, 5, 10].find((m) => m * power >= raw * 0.999);
  }

  function superscript(n) {
    return `2${String(n).replace(/[-\d]/g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]))}`;
  }

  const exponentOf = (x) => Math.floor(Math.log2(x));

  /* Exponents of the values as bars, and below them the range of each format. */
  function exponentChart(place, item) {
    const width = Math.max(280, place.clientWidth), left = 46, right = 12, top = 12;
    const plotHeight = 170, rowHeight = 17;
    const formats = data.formats.filter((f) => f.name !== "f64");
    const { first, counts } = item.exponents;
    const total = counts.reduce((a, b) => a + b, 0);
    if (!total) {
      place.replaceChildren(element("p", { class: "note" }, "There is no finite value but zero."));
      return;
    }
    // The values, and as much around them as the 8-bit formats hold, but no desert of zeros.
    const low = Math.max(Math.min(first, -18), first - 24);
    const high = Math.min(Math.max(first + counts.length, 17), first + counts.length + 24);
    const x = (exponent) => left + ((exponent - low) / (high - low)) * (width - left - right);
    const highest = Math.max(...counts) / total;
    const step = niceStep(100 * highest, 4);
    const ceiling = Math.ceil((100 * highest) / step) * step;
    const y = (percent) => top + plotHeight * (1 - percent / ceiling);
    const axisTop = top + plotHeight;
    const rangesTop = axisTop + 48;
    const height = rangesTop + formats.length * rowHeight + 22;
    const parts = [];
    for (let p = 0; p <= ceiling + step / 2; p += step) {
      parts.push(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(p), y2: y(p) }),
        text(left - 5, y(p) + 4, `${Number(p.toPrecision(3))} %`, { "text-anchor": "end" }));
    }
    const gap = x(1) - x(0) > 4 ? 1 : 0;
    const bars = svg("g", { class: "bars" });
    counts.forEach((n, i) => {
      if (!n) return;
      const e = first + i, barTop = Math.min(y((100 * n) / total), axisTop - 1);
      bars.append(svg("rect", { x: x(e), y: barTop, width: Math.max(x(e + 1) - x(e) - gap, 0.5), height: axisTop - barTop },
        svg("title", {}, `${superscript(e)} to ${superscript(e + 1)}: ${count(n)} values, ${share(n / total)}`)));
    });
    parts.push(bars, svg("line", { class: "axis", x1: left, x2: width - right, y1: axisTop, y2: axisTop }));
    const tick = Math.max(1, [1, 2, 5, 10, 20, 50, 100, 200, 500].find((s) => (x(s) - x(0)) > 42) ?? 500);
    for (let e = Math.ceil(low / tick) * tick; e <= high; e += tick) {
      parts.push(svg("line", { class: "axis", x1: x(e), x2: x(e), y1: axisTop, y2: axisTop + 4 }),
        svg("line", { class: "grid", x1: x(e), x2: x(e), y1: rangesTop - 8, y2: height - 24 }),
        text(x(e), axisTop + 16, superscript(e), { "text-anchor": "middle" }));
    }
    parts.push(text((left + width - right) / 2, axisTop + 32,
      "magnitude |x|; bars: share of the values that are not 0", { "text-anchor": "middle" }));
    const clip = (e) => x(Math.min(Math.max(e, low), high));
    formats.forEach((f, i) => {
      const middle = rangesTop + i * rowHeight + 4;
      const [tiny, normal, end] = [f.smallest_subnormal, f.smallest_normal, f.max].map(exponentOf);
      const range = svg("g", {}, svg("title", {},
        `${f.name}: ${number(f.smallest_subnormal)} to ${number(f.max)}, normal from ${number(f.smallest_normal)}`));
      range.append(svg("line", { class: "subnormal", x1: clip(tiny), x2: clip(normal), y1: middle, y2: middle }),
        svg("line", { class: "normal", x1: clip(normal), x2: clip(end + 1), y1: middle, y2: middle }));
      parts.push(range, text(left - 5, middle + 4, f.name, { "text-anchor": "end", class: "label" }));
    });
    parts.push(text((left + width - right) / 2, height - 4,
      "what formats hold: thick normal, thin subnormal", { "text-anchor": "middle" }));
    const peak = first + counts.indexOf(Math.max(...counts));
    place.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `Histogram of exponents from 2^${first} to 2^${first + counts.length - 1}, most values near 2^${peak}; below it the range of each format` },
      ...parts));
  }

  function shape(kind, x, y, r) {
    const polygon = (points) => svg("polygon", { points: points.map(([a, b]) => `${x + a * r},${y + b * r}`).join(" "), fill: "currentColor" });
    switch (kind) {
      case "square": return polygon([[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]]);
      case "diamond": return polygon([[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]]);
      case "up": return polygon([[0, -1.2], [1.15, 0.9], [-1.15, 0.9]]);
      case "down": return polygon([[0, 1.2], [1.15, -0.9], [-1.15, -0.9]]);
      case "hexagon": return polygon([[-1.1, 0], [-0.55, -1], [0.55, -1], [1.1, 0], [0.55, 1], [-0.55, 1]]);
      case "star": return polygon([...Array(10).keys()].map((i) => {
        const angle = (i * Math.PI) / 5 - Math.PI / 2, length = i % 2 ? 0.55 : 1.35;
        return [length * Math.cos(angle), length * Math.sin(angle)];
      }));
      case "cross": return svg("path", { d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}`, stroke: "currentColor", "stroke-width": 2.4 });
      default: return svg("circle", { cx: x, cy: y, r, fill: "currentColor" });
    }
  }

  /* The points of a chart: targets with a finite SQNR.  A packed format stands for its plain form,
   * which keeps the same in more bits. */
  function pointsOf(item) {
    const points = [];
    data.targets.forEach((target, i) => {
      const result = item.results[i];
      const isOutdone = data.targets.some((t) => t.name === `${target.name}_packed`);
      if (result && typeof result[SQNR] === "number" && !isOutdone)
        points.push({ target, bits: result[BITS], sqnr: result[SQNR], lost: result[LOST] });
    });
    return points;
  }

  /* Those that nothing in as few bits outdoes, by bits. */
  function frontOf(points) {
    let best = -Infinity;
    return [...points].sort((a, b) => a.bits - b.bits || b.sqnr - a.sqnr)
      .filter((p) => p.sqnr > best && ((best = p.sqnr), true));
  }

  /* Puts labels beside their points, where they cover neither each other nor a point. */
  function placeLabels(labels, points, reserved, bounds) {
    const taken = [...points.map((p) => [p.x - 6, p.y - 6, p.x + 6, p.y + 6]), ...reserved];
    const overlaps = (a) => taken.some((b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]);
    const placed = [];
    for (const p of labels) {
      const width = 6.2 * p.target.name.length + 2, height = 12;
      const places = [[9, -6, "start"], [-9, -6, "end"], [0, -20, "middle"], [0, 8, "middle"],
        [8, -17, "start"], [8, 5, "start"], [-8, -17, "end"], [-8, 5, "end"]];
      for (const [dx, dy, anchor] of places) {
        const x = p.x + dx - { start: 0, end: width, middle: width / 2 }[anchor], y = p.y + dy;
        const box = [x, y, x + width, y + height];
        if (box[0] < bounds[0] || box[2] > bounds[2] || box[1] < bounds[1] || box[3] > bounds[3] || overlaps(box)) continue;
        taken.push(box);
        placed.push(text(p.x + dx, y + 10, p.target.name, { class: "label", "text-anchor": anchor }));
        break;
      }
    }
    return placed;
  }

  function sqnrChart(place, legend, item) {
    const points = pointsOf(item);
    legend.replaceChildren();
    if (!points.length) {
      place.replaceChildren(element("p", { class: "note" }, "There is no target that changes a finite value."));
      return;
    }
    const width = Math.max(280, place.clientWidth), height = 400;
    const left = 46, right = 12, top = 12, bottom = 40;
    const bits = points.map((p) => p.bits);
    // Logarithmic: half the bits are half the file, wherever one begins.
    const least = Math.log2(Math.min(...bits) * 0.93), most = Math.log2(Math.max(...bits) * 1.1);
    const levels = points.map((p) => p.sqnr);
    const budget = data.budget;
    if (budget && budget.decibels !== null) levels.push(budget.decibels);
    const step = niceStep(Math.max(...levels) - Math.min(0, ...levels) || 1, 6);
    const low = Math.floor(Math.min(0, ...levels) / step) * step;
    const high = Math.ceil((Math.max(...levels) * 1.04) / step) * step || step;
    const x = (b) => left + ((Math.log2(b) - least) / (most - least)) * (width - left - right);
    const y = (d) => top + ((high - d) / (high - low)) * (height - top - bottom);
    const parts = [];
    for (let d = low; d <= high + step / 2; d += step) {
      parts.push(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(d), y2: y(d) }),
        text(left - 6, y(d) + 4, Number(d.toPrecision(6)), { "text-anchor": "end" }));
    }
    for (const b of [0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64]) {
      if (Math.log2(b) < least || Math.log2(b) > most) continue;
      parts.push(svg("line", { class: "grid", x1: x(b), x2: x(b), y1: top, y2: height - bottom }),
        text(x(b), height - bottom + 16, b, { "text-anchor": "middle" }));
    }
    parts.push(svg("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
      svg("line", { class: "axis", x1: left, x2: left, y1: top, y2: height - bottom }),
      text((left + width - right) / 2, height - 6, "bits a value, scales included", { "text-anchor": "middle" }),
      text(0, 0, "SQNR, dB", { "text-anchor": "middle", transform: `translate(12 ${(top + height - bottom) / 2}) rotate(-90)` }));
    const reserved = [];
    if (budget && budget.decibels !== null && budget.decibels <= high) {
      const at = y(budget.decibels);
      parts.push(svg("line", { class: "budget", x1: left, x2: width - right, y1: at, y2: at }),
        text(left + 6, at - 4, `budget ${budget.decibels} dB`, { class: "budget-text" }));
      reserved.push([left, at - 16, left + 90, at]);
    } else if (budget && budget.bits > 0 && Math.log2(budget.bits) >= least && Math.log2(budget.bits) <= most) {
      const at = x(budget.bits);
      parts.push(svg("line", { class: "budget", x1: at, x2: at, y1: top, y2: height - bottom }),
        text(at + 4, top + 10, `budget ${budget.bits} bits`, { class: "budget-text" }));
      reserved.push([at, top, at + 95, top + 14]);
    }
    const front = frontOf(points.filter((p) => !p.lost));
    if (front.length) {
      let path = "";
      front.forEach((p, i) => { path += i ? `H${x(p.bits)}V${y(p.sqnr)}` : `M${x(p.bits)} ${y(p.sqnr)}`; });
      parts.push(svg("path", { class: "front", d: `${path}H${width - right}` }));
    }
    const chosen = item.recommendation && item.recommendation.target;
    for (const p of points) {
      Object.assign(p, { x: x(p.bits), y: y(p.sqnr) });
      const mark = svg("g", { class: p.target.family }, shape(FAMILIES[p.target.family][1], p.x, p.y, 4.5),
        svg("title", {}, `${p.target.name}: ${decibels(p.sqnr)} dB at ${number(p.bits)} bits`));
      if (p.target.name === chosen) mark.append(svg("circle", { class: "halo", cx: p.x, cy: p.y, r: 9.5 }));
      parts.push(mark);
    }
    const isFront = new Set(front);
    const labels = [...points].sort((a, b) => (b.target.name === chosen) - (a.target.name === chosen) || isFront.has(b) - isFront.has(a) || b.sqnr - a.sqnr);
    parts.push(...placeLabels(width < NARROW ? labels.filter((p) => isFront.has(p) || p.target.name === chosen) : labels, points, reserved, [left, top, width - 2, height - bottom]));
    place.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `SQNR against bits a value of ${points.length} formats and schemes; the table below has the numbers` }, ...parts));
    const used = Object.keys(FAMILIES).filter((name) => points.some((p) => p.target.family === name));
    legend.replaceChildren(...used.map((name) => element("li", { class: name },
      svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, shape(FAMILIES[name][1], 7, 7, 5)),
      element("span", {}, FAMILIES[name][0]))),
    element("li", {}, svg("svg", { width: 22, height: 14, class: "chart", "aria-hidden": "true" },
      svg("path", { class: "front", d: "M1 12H11V3H21", stroke: "currentColor", fill: "none", "stroke-dasharray": "2 3" })),
    element("span", {}, "best in as many bits")));
  }

  // ------------------------------------------------------------------ one view

  const targetTable = new SortedTable(byId("targets"), [
    { title: "target", isText: true, value: (r) => r.target.name, cell: (r) => targetCell(r) },
    { title: "bits", value: (r) => r.result[BITS], cell: (r) => number(r.result[BITS]) },
    { title: "bytes", value: (r) => r.result[BYTES], cell: (r) => count(r.result[BYTES]) },
    { title: "SQNR, dB", value: (r) => r.result[SQNR], cell: (r) => decibels(r.result[SQNR]) },
    { title: "worst rel. error", value: (r) => r.result[WORST], cell: (r) => number(r.result[WORST]) },
    { title: "overflow", value: (r) => r.result[OVERFLOW], cell: (r) => share(r.result[OVERFLOW]) },
    { title: "underflow", value: (r) => r.result[UNDERFLOW], cell: (r) => share(r.result[UNDERFLOW]) },
    { title: "lost", value: (r) => r.result[LOST], cell: (r) => count(r.result[LOST]) },
  ], (r) => (r.isChosen ? "chosen" : ""), Infinity);

  function targetCell(row) {
    const cell = element("span", {}, row.target.name);
    if (row.target.rule === "ceil") cell.append(" (ceil)");
    if (row.isChosen) cell.append(" ", element("span", { class: "badge" }, "recommended"));
    return cell;
  }

  function facts(item) {
    const pairs = item === data.whole ? [] // the head of the page has them
      : [["shape", item.shape.join(" × ") || "scalar"], ["stored as", item.stored], ["values", count(item.values)],
        ["takes", `${bytes(item.bytes)}, ${number(item.bits)} bits a value`],
        ["minimum", number(item.range[0])], ["maximum", number(item.range[1])],
        ["smallest magnitude above 0", number(item.range[2])],
        ["zeros", share(item.shares[0])], ["subnormals", share(item.shares[1])],
        ["NaN", share(item.shares[2])], ["Inf", share(item.shares[3])]];
    if (item.seen !== undefined && item.seen !== item.values)
      pairs.push(["looked at", `a sample of ${count(item.seen)} values`]);
    return pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  }

  function setNote(note, content) {
    note.textContent = content;
    note.hidden = !content;
  }

  let shown = data.whole;

  function drawCharts() {
    if (!shown.results) return;
    exponentChart(byId("exponent-chart"), shown);
    sqnrChart(byId("sqnr-chart"), byId("sqnr-legend"), shown);
  }

  function show(item) {
    shown = item;
    const isWhole = item === data.whole;
    const chosen = item.recommendation;
    byId("view-title").textContent = isWhole ? "The whole file" : item.name;
    byId("show-whole").hidden = isWhole;
    byId("view-facts").replaceChildren(...facts(item));
    let note = "";
    if (chosen && !isWhole) note = `Recommended: ${chosen.target === "keep" ? "keep it as it is" : chosen.target}; ${chosen.reason}.`;
    if (!item.results) note += " The page has charts and results of the largest datasets only; this one is not among them.";
    setNote(byId("view-note"), note.trim());
    byId("view-details").hidden = !item.results;
    if (!item.results) return;
    targetTable.show(data.targets.map((target, i) => ({ target, result: item.results[i], isChosen: chosen && chosen.target === target.name }))
      .filter((row) => row.result));
    const reasons = new Map();
    for (const [name, reason] of Object.entries(item.impossible ?? {}))
      reasons.set(reason, [...(reasons.get(reason) ?? []), name]);
    setNote(byId("targets-note"), [...reasons].map(([reason, names]) => `Not ${names.join(", ")}: ${reason}.`).join(" "));
    drawCharts();
  }

  function choose(item) {
    show(item);
    byId("view").scrollIntoView({ block: "start" });
    byId("view-title").focus({ preventScroll: true });
  }

  // ------------------------------------------------------------------ datasets

  const hasBudget = data.budget !== null;
  const datasetTable = new SortedTable(byId("datasets"), [
    { title: "dataset", isText: true, value: (d) => d.name, cell: (d) => element("button", { type: "button", title: d.name, click: () => choose(d) }, d.name) },
    { title: "shape", isText: true, value: (d) => d.shape.join("×"), cell: (d) => d.shape.join(" × ") || "scalar" },
    { title: "stored", isText: true, value: (d) => d.stored, cell: (d) => d.stored },
    { title: "size", value: (d) => d.bytes, cell: (d) => bytes(d.bytes) },
    ...(hasBudget ? [
      { title: "recommended", isText: true, value: (d) => d.recommendation.target, cell: (d) => d.recommendation.target },
      { title: "SQNR, dB", value: (d) => (d.best ? d.best[SQNR] : "exact"), cell: (d) => (d.best ? decibels(d.best[SQNR]) : "as it is") },
      { title: "bits", value: (d) => (d.best ? d.best[BITS] : d.bits), cell: (d) => number(d.best ? d.best[BITS] : d.bits) },
    ] : []),
    { title: "minimum", value: (d) => d.range[0], cell: (d) => number(d.range[0]) },
    { title: "maximum", value: (d) => d.range[1], cell: (d) => number(d.range[1]) },
    { title: "zeros", value: (d) => d.shares[0], cell: (d) => share(d.shares[0]) },
    { title: "NaN, Inf", value: (d) => d.shares[2] + d.shares[3], cell: (d) => share(d.shares[2] + d.shares[3]) },
  ], () => "", ROWS);

  function filterDatasets() {
    const wanted = byId("filter").value.toLowerCase();
    const rows = data.datasets.filter((d) => d.name.toLowerCase().includes(wanted));
    datasetTable.show(rows);
    const visible = Math.min(rows.length, datasetTable.limit);
    byId("datasets-count").textContent = `${count(visible)} of ${count(rows.length)} shown`
      + (data.unlisted ? `; ${count(data.unlisted)} smaller ones are only in the totals` : "");
    byId("more").hidden = visible === rows.length;
  }

  byId("filter").addEventListener("input", () => {
    datasetTable.limit = ROWS;
    filterDatasets();
  });
  byId("more").addEventListener("click", () => {
    datasetTable.limit += ROWS;
    filterDatasets();
  });
  byId("show-whole").addEventListener("click", () => choose(data.whole));

  show(data.whole);
  filterDatasets();

  // Charts are drawn for the width that there is.
  let drawnWidth = byId("sqnr-chart").clientWidth;
  new ResizeObserver(() => {
    const width = byId("sqnr-chart").clientWidth;
    if (width && width !== drawnWidth) {
      drawnWidth = width;
      drawCharts();
    }
  }).observe(byId("view"));
})();
