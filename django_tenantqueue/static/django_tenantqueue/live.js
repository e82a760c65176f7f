// Refreshes the parts of a page that show what happens, beside a form, until there is no more.
"use strict";
(function () {
    const SECONDS = 2;
    let busy = false;
    let readAt = Date.now();

    function main() {
        return document.getElementById("tq-live");
    }

    function isEdited() {
        const form = main().closest("form");
        const inputs = form ? form.querySelectorAll("input:not([type=hidden]):not([type=submit])") : [];
        const parts = Array.from(document.querySelectorAll(".tq-live"));
        return Array.from(inputs).some(function (input) {
            return input === document.activeElement || (input.type === "checkbox"
                ? input.checked !== input.defaultChecked
                : input.value !== input.defaultValue);
        }) || parts.some(function (part) {
            return part.contains(document.activeElement);
        });
    }

    function showAge() {
        const page = main();
        if (page.dataset.over) {
            return;
        }
        const age = page.querySelector(".tq-age");
        const seconds = Math.round((Date.now() - readAt) / 1000);
        const old = seconds > 5 * SECONDS;
        const told = isEdited() ? page.dataset.edited : old ? page.dataset.old : page.dataset.fresh;
        age.textContent = told.replace("%s", seconds);
        age.classList.toggle("tq-late", old && !isEdited());
    }

    async function refresh() {
        if (document.hidden || busy || main().dataset.over || isEdited()) {
            return;
        }
        busy = true;
        try {
            const answer = await fetch(main().dataset.url, {credentials: "same-origin"});
            const text = answer.ok && !answer.redirected ? await answer.text() : "";
            const fresh = new DOMParser().parseFromString(text, "text/html");
            if (fresh.getElementById("tq-live") && !isEdited()) {
                for (const part of document.querySelectorAll(".tq-live")) {
                    const next = fresh.getElementById(part.id);
                    if (next) {
                        part.replaceWith(next);
                    }
                }
                readAt = Date.now();
                showAge();
            }
        } catch (error) {
            // the age says that the page is old
        } finally {
            busy = false;
        }
    }

    if (main()) {
        setInterval(refresh, SECONDS * 1000);
        setInterval(showAge, 1000);
        document.addEventListener("visibilitychange", refresh);
    }
}());
