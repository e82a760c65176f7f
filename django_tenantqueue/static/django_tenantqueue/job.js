// Keeps the page of an unfinished job up to date without a reload, until the job has ended.
"use strict";
(function () {
    const SECONDS = 2;
    let busy = false;
    let readAt = Date.now();
    let timer = null;

    function part(name) {
        return document.querySelector(`[data-live="${name}"]`);
    }

    function isEdited() {
        const inputs = document.querySelectorAll("[data-live] :is(input:not([type=hidden]), textarea)");
        return !document.getSelection().isCollapsed || Array.from(inputs).some(function (input) {
            return input === document.activeElement || input.value !== input.defaultValue;
        }) || document.querySelector("[data-live] .errorlist") !== null;
    }

    function textOf(element) {
        const copy = element.cloneNode(true);
        copy.querySelectorAll("[name=csrfmiddlewaretoken]").forEach(input => input.remove());
        copy.querySelectorAll("details").forEach(details => details.removeAttribute("open"));
        return copy.innerHTML + Object.values(element.dataset).join(" ");
    }

    // Put the new part in the place of the old one. What was opened or closed in it stays so.
    function replace(old, fresh) {
        if (textOf(old) === textOf(fresh)) {
            return;
        }
        const wasOpen = new Map();
        old.querySelectorAll("details[data-key]").forEach(function (details) {
            wasOpen.set(details.dataset.key, details.open);
        });
        fresh.querySelectorAll("details[data-key]").forEach(function (details) {
            if (wasOpen.has(details.dataset.key)) {
                details.open = wasOpen.get(details.dataset.key);
            }
        });
        old.replaceWith(fresh);
    }

    function showAge() {
        const age = document.querySelector("[data-live] .tq-late");
        const seconds = Math.round((Date.now() - readAt) / 1000);
        if (age) {
            age.hidden = seconds <= 5 * SECONDS || document.hidden;
            age.textContent = age.hidden ? "" : age.dataset.text.replace("%s", seconds);
        }
    }

    async function refresh() {
        const url = part("head").dataset.url;
        if (!url) {
            clearInterval(timer);
            return;
        }
        if (document.hidden || busy || isEdited()) {
            return;
        }
        busy = true;
        try {
            const answer = await fetch(url, {credentials: "same-origin"});
            const text = answer.ok && !answer.redirected ? await answer.text() : "";
            const fresh = new DOMParser().parseFromString(text, "text/html");
            if (fresh.querySelector("[data-live=head]") && !isEdited()) {
                fresh.querySelectorAll("[data-live]").forEach(function (element) {
                    replace(part(element.dataset.live), element);
                });
                readAt = Date.now();
            }
        } catch (error) {
            // the page says how old it is
        } finally {
            busy = false;
        }
        showAge();
    }

    if (part("head") && part("head").dataset.url) {
        document.documentElement.classList.add("tq-live"); // the link to refresh is not needed
        timer = setInterval(refresh, SECONDS * 1000);
        document.addEventListener("visibilitychange", refresh);
    }
}());
