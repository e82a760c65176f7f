// Keeps a part of the page up to date with the content of its address.
"use strict";

(() => {
  const PAUSE = 1000;
  const place = document.querySelector("[data-refresh-from]");

  async function refresh() {
    // Keyboard focus in the list would be lost.
    if (document.hidden || place.contains(document.activeElement)) return;
    const answer = await fetch(place.dataset.refreshFrom);
    if (answer.ok) place.innerHTML = await answer.text();
  }

  async function keepOn() {
    try {
      await refresh();
    } catch {
      // The site may be restarting.
    }
    setTimeout(keepOn, PAUSE);
  }

  setTimeout(keepOn, PAUSE);
})();
