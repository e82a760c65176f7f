// Keeps a part of the page up to date: what its address answers replaces it.
"use strict";

(() => {
  const PAUSE = 1000;
  const place = document.querySelector("[data-refresh-from]");

  async function refresh() {
    // A list that somebody moves through with the keyboard stays as it is.
    if (document.hidden || place.contains(document.activeElement)) return;
    const answer = await fetch(place.dataset.refreshFrom);
    if (answer.ok) place.innerHTML = await answer.text();
  }

  async function keepOn() {
    try {
      await refresh();
    } catch {
      // The site is being restarted: look again later.
    }
    setTimeout(keepOn, PAUSE);
  }

  setTimeout(keepOn, PAUSE);
})();
