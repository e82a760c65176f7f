// Keeps what a page shows up to date without a reload, and keeps edits in progress.
//
// The page has a note, .tq-refresh: it names what is read (data-url), every how many seconds
// (data-every), and says how old the page is. Each [data-live] of an answer replaces the part of
// the same name, and with it the note: without data-url there is nothing more to read. Nothing is
// read while the tab is hidden or the page is in use: an input has the focus or was edited, text is
// selected, a button is pressed, a form shows errors.
"use strict";
window.tenantqueueRefresh = (function () {
    const INPUTS = "input:not([type=hidden], [type=submit]), select, textarea";
    let busy = false;
    let pressed = false;
    let readAt = Date.now();

    // A page with rules of its own, as a list, replaces functions of this object.
    const page = {
        INPUTS, isChanged, isTouched, become, refresh, tell,
        isLeft: false, isOn: () => true, isInUse, show, told: () => {},
    };

    function all(root, selector) {
        return Array.from(root.querySelectorAll(selector));
    }

    function note() {
        return document.querySelector(".tq-refresh");
    }

    function isChanged(input) {
        if (input.type === "checkbox") {
            return input.checked !== input.defaultChecked;
        }
        if (input.options) {
            return Array.from(input.options).some((one) => one.selected !== one.defaultSelected);
        }
        const unchanged = input.cloneNode(); // browsers leave out the seconds of a time that are 0
        unchanged.value = input.defaultValue;
        return input.value !== unchanged.value;
    }

    function isTouched(element) {
        const selection = document.getSelection();
        return pressed || (!selection.isCollapsed && selection.containsNode(element, true));
    }

    function isInUse() {
        return all(document, "[data-live]").some(function (part) {
            const inputs = all(part.closest("form") || part, INPUTS);
            return isTouched(part) || part.querySelector(".errorlist") !== null
                || inputs.some((input) => input === document.activeElement || isChanged(input));
        });
    }

    function keyOf(node) {
        return (node.dataset && node.dataset.key) || "";
    }

    // Make a node what another one is, in its place: focus and scroll positions stay, and what the
    // user has opened or closed. Nodes with a data-key are moved, others are told by their order.
    function become(old, now) {
        if (old.nodeType !== Node.ELEMENT_NODE) {
            if (old.data !== now.data) {
                old.data = now.data;
            }
            return;
        }
        const names = new Set([...old.getAttributeNames(), ...now.getAttributeNames()]);
        for (const name of names) {
            const value = now.getAttribute(name);
            if (value === old.getAttribute(name) || (name === "open" && keyOf(old))) {
                continue;
            }
            if (value === null) {
                old.removeAttribute(name);
            } else {
                old.setAttribute(name, value);
            }
        }
        const nodes = Array.from(old.childNodes);
        const keyed = new Map(nodes.filter(keyOf).map((node) => [keyOf(node), node]));
        const others = nodes.filter((node) => !keyOf(node));
        const wanted = Array.from(now.childNodes);
        wanted.forEach(function (next, at) {
            const same = keyOf(next) ? keyed.get(keyOf(next)) : others.shift();
            const isSame = Boolean(same) && same.nodeName === next.nodeName;
            if (isSame) {
                become(same, next);
            }
            if (old.childNodes[at] !== (isSame ? same : next)) {
                old.insertBefore(isSame ? same : next, old.childNodes[at] || null);
            }
        });
        Array.from(old.childNodes).slice(wanted.length).forEach((node) => node.remove());
        if (old.matches(INPUTS)) {
            [old.value, old.checked] = [now.value, now.checked];
        }
    }

    function show(fresh) {
        const focused = document.activeElement;
        for (const now of all(fresh, "[data-live]")) {
            const old = document.querySelector(`[data-live="${now.dataset.live}"]`);
            if (old) {
                become(old, now);
            }
        }
        if (focused && focused.isConnected && focused !== document.activeElement) {
            focused.focus({preventScroll: true});
        }
    }

    function tell() {
        const texts = note().dataset;
        if (!texts.url || document.hidden) {
            return;
        }
        const seconds = Math.round((Date.now() - readAt) / 1000);
        const isUsed = page.isOn() && page.isInUse();
        const isOld = page.isOn() && !isUsed && seconds > 5 * texts.every;
        const age = note().querySelector(".tq-age");
        age.textContent = (isUsed ? texts.edited : isOld ? texts.old : texts.fresh).replace("%s", seconds);
        age.classList.toggle("tq-late", isOld);
        page.told();
    }

    function isWaiting() {
        return document.hidden || page.isLeft || !page.isOn() || page.isInUse();
    }

    async function refresh() {
        const url = note().dataset.url;
        if (!url || busy || isWaiting()) {
            return;
        }
        busy = true;
        try {
            const askedAt = Date.now();
            const answer = await fetch(url, {
                cache: "no-store", credentials: "same-origin", headers: {"X-Tenantqueue-Refresh": "1"},
            });
            const text = answer.ok && !answer.redirected ? await answer.text() : "";
            const fresh = new DOMParser().parseFromString(text, "text/html");
            if (fresh.querySelector(".tq-refresh") && !isWaiting()) {
                page.show(fresh);
                readAt = askedAt;
            }
        } catch (error) {
            // the note says that the page is old
        } finally {
            busy = false;
        }
        tell();
    }

    if (note()) {
        document.addEventListener("submit", () => { page.isLeft = true; });
        window.addEventListener("pageshow", () => { page.isLeft = false; });
        document.addEventListener("pointerdown", () => { pressed = true; });
        for (const end of ["pointerup", "pointercancel"]) {
            document.addEventListener(end, () => setTimeout(() => { pressed = false; }));
        }
        document.addEventListener("visibilitychange", refresh);
        setInterval(refresh, note().dataset.every * 1000);
        setInterval(tell, 1000);
        tell();
    }
    return page;
}());
