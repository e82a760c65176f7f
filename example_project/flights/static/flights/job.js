// Polls the status of one job until it has ended, and shows its result.
"use strict";

(() => {
  const PAUSE = 300;
  const LONGEST_PAUSE = 3000;
  const article = document.getElementById("job");
  const find = (selector) => article.querySelector(selector);

  const WAITING = ["scheduled", "held", "ready"];
  const WORDS = {
    scheduled: "Scheduled for later.",
    held: "Waiting for its turn.",
    ready: "Waiting for a free slot.",
    queued: "About to start.",
    running: "Running.",
    cancelled: "Cancelled.",
  };

  function seconds(from, to) {
    const passed = (new Date(to) - new Date(from)) / 1000;
    return passed < 10 ? `${passed.toFixed(2)} s` : `${Math.round(passed)} s`;
  }

  function showTimeline(job) {
    // A job that waits for its next attempt keeps the times of the last one.
    const waits = WAITING.includes(job.state);
    const steps = [
      ["created", job.created_at],
      ["queued", waits ? null : job.queued_at],
      ["started", waits ? null : job.started_at],
      ["finished", job.finished_at],
    ];
    let before = null;
    find(".timeline").replaceChildren(...steps.map(([name, moment]) => {
      const item = document.createElement("li");
      const label = document.createElement("b");
      label.textContent = name;
      item.append(label);
      if (moment) {
        const clock = new Date(moment).toLocaleTimeString();
        item.append(before ? `after ${seconds(before, moment)}` : clock);
        item.title = new Date(moment).toLocaleString();
        before = moment;
      } else {
        item.className = "ahead";
        item.append("–");
      }
      return item;
    }));
  }

  function messageOf(job) {
    if (job.state === "success") {
      return job.attempt > 1 ? `In attempt ${job.attempt} of ${job.max_attempts}.` : "";
    }
    if (job.state === "scheduled" && job.attempt > 0) {
      return `Attempt ${job.attempt} of ${job.max_attempts} failed, will be retried.`;
    }
    if (job.state === "error") {
      return job.attempt > 1 ? `Failed after ${job.attempt} attempts.` : "Failed.";
    }
    const again = job.attempt > 1 ? ` Attempt ${job.attempt} of ${job.max_attempts}.` : "";
    return (job.progress.message || WORDS[job.state] || "") + again;
  }

  function showProgress(job) {
    const bar = find("progress");
    bar.hidden = job.final || WAITING.includes(job.state) || job.progress.percent === null;
    bar.value = job.progress.percent || 0;
  }

  function format(value, unit, digits) {
    if (value === null || value === undefined) return "–";
    if (unit === "text") return value;
    const number = value.toLocaleString("en", { minimumFractionDigits: digits });
    if (unit === "$") return `$${number}`;
    return unit === "%" ? `${number} %` : number;
  }

  // As many decimals as the most precise number of a column has, so that they stand in line.
  function decimals(result, index) {
    return Math.max(0, ...result.rows.map((row) => {
      const [, fraction = ""] = String(row[index] ?? "").split(".");
      return typeof row[index] === "number" ? fraction.length : 0;
    }));
  }

  function cell(tag, text, unit) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (unit === "text") made.className = "text";
    if (tag === "th") made.scope = "col";
    return made;
  }

  function showTable(result) {
    const head = document.createElement("thead");
    const row = head.insertRow();
    for (const { label, unit } of result.columns) {
      const shown = ["text", "", "%", "$"].includes(unit) ? label : `${label} (${unit})`;
      row.append(cell("th", shown, unit));
    }
    const digits = result.columns.map((_, index) => decimals(result, index));
    const body = document.createElement("tbody");
    for (const values of result.rows) {
      const line = body.insertRow();
      values.forEach((value, index) => {
        const { unit } = result.columns[index];
        line.append(cell("td", format(value, unit, digits[index]), unit));
      });
    }
    find("table").replaceChildren(head, body);
  }

  function showResult(result) {
    find(".summary").textContent = result.rows.length
      ? result.summary
      : "No matching flights.";
    find("figure").hidden = find(".scroll").hidden = !result.rows.length;
    if (result.rows.length) {
      const chart = drawChart(result, article);
      const caption = document.createElement("figcaption");
      caption.className = "quiet";
      caption.textContent = chart.getAttribute("aria-label");
      find("figure").replaceChildren(chart, caption);
      showTable(result);
    }
    find(".result").hidden = false;
  }

  function show(job) {
    const state = find(".state");
    state.textContent = job.state;
    state.className = `state ${job.state}`;
    find(".message").textContent = messageOf(job);
    showTimeline(job);
    showProgress(job);
    const wrong = find("p.wrong");
    wrong.hidden = !job.error;
    wrong.textContent = job.error || "";
    if (job.state !== "success") return;
    if (job.result_missing) find(".message").textContent = "The result is no longer kept.";
    else if (job.result) showResult(job.result);
  }

  async function poll(pause) {
    let next = pause;
    try {
      const answer = await fetch(article.dataset.statusUrl);
      const job = await answer.json();
      if (!answer.ok) {
        find(".message").textContent = job.error;
        return;
      }
      show(job);
      if (job.final) return;
      next = Math.min(LONGEST_PAUSE, pause * 1.05);
    } catch {
      find(".message").textContent = "The site does not answer, retrying.";
      next = LONGEST_PAUSE;
    }
    setTimeout(poll, next, next);
  }

  poll(PAUSE);
})();
