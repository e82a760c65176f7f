// Draws a result as SVG: horizontal bars for categories, lines for a course of time.
"use strict";

/* exported drawChart */
const drawChart = (() => {
  const SPACE = "http://www.w3.org/2000/svg";
  const LETTER = 8.4; // width of a character, about
  const MOST_BARS = 25;

  function element(name, attributes, ...children) {
    const made = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // Round numbers that cover the values, zero among them.
  function ticks(values, count, fromZero = true) {
    let low = Math.min(...values);
    let high = Math.max(...values);
    if (fromZero) [low, high] = [Math.min(0, low), Math.max(0, high)];
    const rough = (high - low || 1) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const size = [1, 2, 5, 10].find((n) => n * power >= rough) * power;
    const first = Math.floor(low / size);
    const last = Math.max(first + 1, Math.ceil(high / size));
    const all = [];
    for (let n = first; n <= last; n += 1) all.push(Number((n * size).toPrecision(12)));
    return all;
  }

  const say = (value, unit) => {
    const number = value.toLocaleString("en");
    return unit === "$" ? `$${number}` : `${number}${unit ? ` ${unit}` : ""}`;
  };

  function bars(points, column, width) {
    const longest = Math.max(...points.map(([label]) => label.length));
    const left = Math.min(width * 0.4, longest * LETTER + 12);
    const right = 56;
    const pitch = 24;
    const height = points.length * pitch + 30;
    const marks = ticks(points.map(([, value]) => value), width < 500 ? 3 : 6);
    const [low, high] = [marks[0], marks[marks.length - 1]];
    const x = (value) => left + ((value - low) / (high - low)) * (width - left - right);
    const axis = element("g", { class: "axis", "aria-hidden": "true" });
    for (const mark of marks) {
      axis.append(
        element("line", { x1: x(mark), x2: x(mark), y1: 0, y2: height - 24 }),
        element("text", { x: x(mark), y: height - 8, "text-anchor": "middle" }, say(mark, "")),
      );
    }
    const drawn = element("g", { class: "series0" });
    points.forEach(([label, value], row) => {
      const y = row * pitch + 4;
      const from = Math.min(x(0), x(value));
      drawn.append(
        element("text", { x: left - 8, y: y + 13, "text-anchor": "end" }, label),
        element(
          "rect",
          {
            class: value < 0 ? "bar below" : "bar",
            x: from, y, width: Math.max(1, Math.abs(x(value) - x(0))), height: pitch - 8, rx: 2,
          },
          element("title", {}, `${label}: ${say(value, column.unit)}`),
        ),
        element("text", { x: Math.max(x(value), x(0)) + 6, y: y + 13 }, say(value, "")),
      );
    });
    const zero = element("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: height - 24 });
    return [height, axis, drawn, zero];
  }

  function lines(labels, series, width) {
    const [left, right, top, bottom] = [44, 16, 30, 28];
    const height = Math.max(240, Math.min(340, width * 0.4));
    const values = series.flatMap(({ values: own }) => own).filter((value) => value !== null);
    const marks = ticks(values, 5, false);
    const [low, high] = [marks[0], marks[marks.length - 1]];
    const step = (width - left - right) / Math.max(1, labels.length - 1);
    const x = (index) => left + index * step;
    const y = (value) => top + ((high - value) / (high - low)) * (height - top - bottom);
    const axis = element("g", { class: "axis", "aria-hidden": "true" });
    for (const mark of marks) {
      axis.append(
        element("line", { x1: left, x2: width - right, y1: y(mark), y2: y(mark) }),
        element("text", { x: left - 8, y: y(mark) + 4, "text-anchor": "end" }, say(mark, "")),
      );
    }
    const every = Math.ceil((labels.length * 34) / (width - left - right));
    labels.forEach((label, index) => {
      if (index % every) return;
      axis.append(element("text", { x: x(index), y: height - 8, "text-anchor": "middle" }, label));
    });
    let legendAt = left;
    const drawn = series.map(({ column, values: own }, number) => {
      const group = element("g", { class: `series${number}` });
      const known = own.map((value, index) => [index, value]).filter(([, value]) => value !== null);
      const points = known.map(([index, value]) => `${x(index)},${y(value)}`).join(" ");
      group.append(element("polyline", { points }));
      for (const [index, value] of known) {
        group.append(element(
          "circle",
          { cx: x(index), cy: y(value), r: 4 },
          element("title", {}, `${labels[index]}, ${column.label}: ${say(value, column.unit)}`),
        ));
      }
      group.append(
        element("circle", { cx: legendAt + 5, cy: 11, r: 5 }),
        element("text", { x: legendAt + 16, y: 15 }, `${column.label} (${column.unit})`),
      );
      legendAt += (column.label.length + column.unit.length + 3) * LETTER + 40;
      return group;
    });
    return [height, axis, ...drawn];
  }

  return (result, room) => {
    const width = Math.max(300, Math.min(1100, room.clientWidth || 800) - 26);
    const { kind, label, series } = result.chart;
    const columns = series.map((index) => result.columns[index]);
    let parts;
    if (kind === "lines") {
      parts = lines(
        result.rows.map((row) => row[label]),
        series.map((index) => ({
          column: result.columns[index],
          values: result.rows.map((row) => row[index]),
        })),
        width,
      );
    } else {
      const points = result.rows
        .map((row) => [String(row[label]), row[series[0]]])
        .filter(([, value]) => value !== null)
        .slice(0, MOST_BARS);
      if (!points.length) points.push(["–", 0]);
      parts = bars(points, columns[0], width);
    }
    const [height, ...children] = parts;
    const what = columns.map(({ label: name, unit }) => `${name}${unit ? ` (${unit})` : ""}`);
    const title = `${what.join(" and ")} by ${result.columns[label].label.toLowerCase()}`;
    return element(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title },
      ...children,
    );
  };
})();
