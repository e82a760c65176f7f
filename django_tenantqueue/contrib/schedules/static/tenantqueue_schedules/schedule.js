// Shows the next runs of a schedule while its times are edited.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const list = document.getElementById("tq-runs");
  const source = document.getElementById("tq-preview");
  const form = list && list.closest("form");
  const names = ["kind", "expression", "time_zone", "starts_at", "ends_at"];
  const inputs = form ? names.map(name => form.elements[name]).filter(Boolean) : [];
  if (!source || !inputs.length) return;

  const PAUSE = 300; // milliseconds after the last key
  let timer = null;
  let newest = 0;

  function show(lines, isError) {
    list.classList.toggle("errornote", isError);
    list.replaceChildren(...lines.map(line => {
      const item = document.createElement("li");
      item.textContent = line;
      return item;
    }));
  }

  async function ask() {
    const own = ++newest;
    if (!form.elements.expression.value.trim()) return show([], false);
    const query = new URLSearchParams(inputs.map(input => [input.name, input.value]));
    const response = await fetch(`${source.dataset.url}?${query}`);
    if (own !== newest || !response.ok) return undefined;
    const { runs, error } = await response.json();
    return error ? show([error], true) : show(runs.length ? runs : [list.dataset.none], false);
  }

  for (const input of inputs) {
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(ask, PAUSE);
    });
  }
  list.setAttribute("aria-live", "polite");
  if (form.elements.expression.value) ask();
});
