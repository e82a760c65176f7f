// Refreshes the first page of the app without a reload, and keeps edits in progress.
"use strict";
(function () {
    const SECONDS = 2;
    let busy = false;
    let readAt = Date.now();

    function home() {
        return document.getElementById("tq-home");
    }

    function isEdited(element) {
        const inputs = element.querySelectorAll("input:not([type=hidden])");
        return element.contains(document.activeElement) || Array.from(inputs).some(function (input) {
            return input.type === "checkbox"
                ? input.checked !== input.defaultChecked
                : input.value !== input.defaultValue;
        });
    }

    function showAge() {
        const age = home().querySelector(".tq-age");
        const seconds = Math.round((Date.now() - readAt) / 1000);
        const old = seconds > 5 * SECONDS;
        age.textContent = (old ? home().dataset.old : home().dataset.fresh).replace("%s", seconds);
        age.classList.toggle("tq-late", old);
    }

    async function refresh() {
        if (document.hidden || busy || isEdited(home())) {
            return;
        }
        busy = true;
        try {
            const answer = await fetch(home().dataset.url, {credentials: "same-origin"});
            const text = answer.ok && !answer.redirected ? await answer.text() : "";
            const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("tq-home");
            if (fresh && !isEdited(home())) {
                home().replaceWith(fresh);
                readAt = Date.now();
            }
        } catch (error) {
            // the age says that the page is old
        } finally {
            busy = false;
        }
    }

    if (home()) {
        setInterval(refresh, SECONDS * 1000);
        setInterval(showAge, 1000);
        document.addEventListener("visibilitychange", refresh);
    }
}());
