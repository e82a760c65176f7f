// Follows the jobs that {% job_progress %} and {% jobs_progress %} show: one request for the page.
// Each answer is announced by the event "tenantqueue:status", whose detail is the job's status.
"use strict";

(() => {
  const NAME = "tenantqueue-progress";
  if (customElements.get(NAME)) return; // a page may load this file more than once

  const MOST_TOKENS = 100; // of one request
  const SHORTEST = 1000; // milliseconds between two requests, while something changes
  const LONGEST = 10000; // while nothing changes
  const FAILING = 60000; // while the site does not answer

  const live = new Set();
  let timer = null;
  let pause = SHORTEST;
  let busy = false;

  function plan(wait) {
    clearTimeout(timer);
    if (live.size && !document.hidden && !busy) timer = setTimeout(poll, wait);
  }

  async function ask(elements) {
    const tokens = new Set(elements.map(element => element.dataset.token));
    const response = await fetch(elements[0].dataset.url, {
      method: "POST",
      headers: { Accept: "application/json" },
      body: new URLSearchParams([...tokens].map(token => ["token", token])),
    });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const { jobs } = await response.json();
    return new Map(jobs.filter(entry => !entry.retry).map(entry => [entry.token, entry.job]));
  }

  async function poll() {
    busy = true;
    let changed = false;
    try {
      const elements = [...live];
      for (let start = 0; start < elements.length; start += MOST_TOKENS) {
        const part = elements.slice(start, start + MOST_TOKENS);
        const jobs = await ask(part);
        for (const element of part) {
          const job = jobs.get(element.dataset.token); // undefined: it cannot be read now
          if (job !== undefined && element.show(job)) changed = true;
        }
      }
      pause = changed ? SHORTEST : Math.min(LONGEST, pause * 1.5);
    } catch {
      pause = Math.min(FAILING, pause * 2);
    }
    busy = false;
    plan(pause);
  }

  document.addEventListener("visibilitychange", () => {
    pause = SHORTEST;
    plan(0);
  });

  customElements.define(NAME, class extends HTMLElement {
    connectedCallback() {
      if (!this.dataset.token) return; // it had ended when the page was made
      live.add(this);
      pause = SHORTEST;
      plan(pause);
    }

    disconnectedCallback() {
      live.delete(this);
    }

    // Show a status; null: there is no such job any more. Return whether it is a new one.
    show(job) {
      const text = JSON.stringify(job);
      if (text === this.shown) return false;
      this.shown = text;
      const labels = JSON.parse(this.dataset.labels);
      if (!job) {
        live.delete(this);
        this.dataset.state = "unknown";
        this.write("state", labels.unknown);
        return true;
      }
      const retried = job.state === "scheduled" && job.attempt > 0;
      // the callback of a monitor is held while details run
      const fed = job.state === "held" && job.progress.done;
      const told = retried ? "retry" : fed ? "running" : job.state;
      this.dataset.state = fed ? "running" : job.state;
      this.write("state", labels[told] || job.state);
      const failure = job.state === "error" && "errors" in this.dataset && job.error;
      const message = failure || (job.final ? "" : job.progress.message) || "";
      this.write("message", message);
      this.fill(job, message);
      if (job.final) live.delete(this);
      this.dispatchEvent(new CustomEvent("tenantqueue:status", { bubbles: true, detail: job }));
      if (job.final && "reload" in this.dataset) location.reload();
      return true;
    }

    fill(job, message) {
      const bar = this.querySelector("progress");
      let percent = job.state === "success" ? 100 : job.progress.percent;
      if (percent === null && job.state !== "running") percent = 0;
      if (percent !== null) percent = Math.floor(percent);
      for (const name of ["value", "aria-valuenow"]) {
        if (percent === null) bar.removeAttribute(name);
        else bar.setAttribute(name, percent);
      }
      const share = percent === null ? "" : `${percent} %`;
      bar.setAttribute("aria-valuetext", [share, message].filter(Boolean).join(", "));
      this.write("percent", percent && job.state !== "success" ? share : "");
    }

    // A text that stays the same is not written, so that screen readers do not repeat it.
    write(part, text) {
      const place = this.querySelector(`.tenantqueue-${part}`);
      if (place && place.textContent !== text) place.textContent = text;
    }
  });
})();
