// Refreshes a list of the admin without a reload, and keeps edits in progress.
//
// The rule. The page reads its own address again. While nothing in the table is edited, ticked or
// focused, all rows are replaced, together with the hidden fields of Django's formset. Otherwise
// no row comes or goes, and only cells without inputs are replaced, in the rows that are still
// there. The formset then stays as it was sent: its numbering (form-N), and the old values
// (initial-form-N-…) by which the server notices that another operator has changed the same column.
"use strict";
(function () {
    const SECONDS = 5;
    const SWITCH = "tenantqueue.refresh";
    const INPUTS = "input:not([type=hidden]), select, textarea";
    const PARTS = [".hiddenfields", ".tq-notes", ".paginator"];
    const boxes = [];
    let busy = false;
    let leaving = false;
    let pressed = false;
    let readAt = Date.now();

    // Django's script keeps the boxes that it is given: it is given a list that can change.
    const start = window.Actions;
    if (start) {
        window.Actions = function (given, options) {
            boxes.splice(0, boxes.length, ...given);
            start(boxes, options);
        };
    }

    function table(root) {
        return root.querySelector("#changelist-form #result_list");
    }

    function isChanged(input) {
        if (input.type === "checkbox") {
            return input.checked !== input.defaultChecked;
        }
        if (input.options) {
            return Array.from(input.options).some((one) => one.selected !== one.defaultSelected);
        }
        return input.value !== input.defaultValue;
    }

    function isEdited() {
        const shown = table(document);
        return Boolean(document.querySelector("#content-main .errornote, #changelist-form .errorlist"))
            || Boolean(shown) && (shown.contains(document.activeElement)
                || Array.from(shown.querySelectorAll(INPUTS)).some(isChanged));
    }

    function isTouched() {
        const selection = document.getSelection();
        const shown = table(document);
        return pressed || Boolean(shown) && !selection.isCollapsed && selection.containsNode(shown, true);
    }

    function rowId(row) {
        const link = row.querySelector("th a");
        return link && link.getAttribute("href");
    }

    function updateCells(shown, fresh) {
        const rows = new Map(Array.from(fresh.tBodies[0].rows, (row) => [rowId(row), row]));
        for (const row of shown.tBodies[0].rows) {
            const other = rowId(row) && rows.get(rowId(row));
            if (!other || other.cells.length !== row.cells.length) {
                continue;
            }
            Array.from(row.cells).forEach(function (cell, at) {
                const now = other.cells[at];
                const isKept = cell.querySelector(INPUTS) || now.querySelector(INPUTS)
                    || cell.contains(document.activeElement);
                if (!isKept && cell.innerHTML !== now.innerHTML) {
                    cell.replaceChildren(...now.childNodes);
                }
            });
        }
    }

    function replaceRows(shown, fresh) {
        const form = shown.closest("form");
        const freshForm = fresh.closest("form");
        const pairs = PARTS.map((part) => [form.querySelector(part), freshForm.querySelector(part)]);
        const isAlike = shown.tHead.rows[0].cells.length === fresh.tHead.rows[0].cells.length
            && pairs.every(([old, now]) => Boolean(old) === Boolean(now));
        if (!isAlike) {
            reload();
            return;
        }
        for (const [old, now] of pairs.filter(([part]) => part)) {
            // Django 5.2 has the button to save in the paginator, with a listener of its script.
            const [save, other] = [old, now].map((part) => part.querySelector("input[name=_save]"));
            if (save && other) {
                other.replaceWith(save);
            }
            old.replaceWith(now);
        }
        for (const field of freshForm.querySelectorAll("input[name^=form-][name$=_FORMS]")) {
            form.querySelector(`input[name=${field.name}]`).value = field.value;
        }
        shown.tBodies[0].replaceChildren(...fresh.tBodies[0].rows);
        boxes.splice(0, boxes.length, ...shown.querySelectorAll("input.action-select"));
        const counter = form.querySelector(".action-counter");
        const freshCounter = freshForm.querySelector(".action-counter");
        if (counter && freshCounter) {
            counter.dataset.actionsIcnt = freshCounter.dataset.actionsIcnt;
            counter.textContent = freshCounter.textContent;
        }
        for (const part of [".actions .all", ".actions .question a"]) {
            const [old, now] = [form.querySelector(part), freshForm.querySelector(part)];
            if (old && now) {
                old.textContent = now.textContent;
            }
        }
    }

    function updateCounts(fresh) {
        for (const count of document.querySelectorAll(".tq-count[data-of]")) {
            const now = fresh.querySelector(`.tq-count[data-of="${count.dataset.of}"]`);
            count.textContent = now ? now.textContent : "";
        }
    }

    function reload() {
        leaving = true;
        window.location.replace(window.location.pathname + window.location.search);
    }

    function show(fresh) {
        const [shown, now] = [table(document), table(fresh)];
        updateCounts(fresh);
        if (isEdited()) {
            if (shown && now) {
                updateCells(shown, now);
            }
        } else if (shown && now) {
            replaceRows(shown, now);
        } else if (shown || now) {
            reload();
        }
    }

    function isOn() {
        return note().querySelector("input").checked;
    }

    function note() {
        return document.getElementById("tq-live");
    }

    function showNote() {
        const texts = note().dataset;
        const seconds = Math.round((Date.now() - readAt) / 1000);
        const old = seconds > 3 * SECONDS;
        const mode = !isOn() ? texts.off : isEdited() || isTouched() ? texts.edited : texts.live;
        const shownMode = note().querySelector(".tq-mode");
        if (shownMode.textContent !== mode) {
            shownMode.textContent = mode;
        }
        const age = note().querySelector(".tq-age");
        age.textContent = (old ? texts.old : texts.fresh).replace("%s", seconds);
        age.classList.toggle("tq-late", old && isOn());
    }

    async function refresh() {
        if (document.hidden || busy || leaving || !isOn() || isTouched()) {
            return;
        }
        busy = true;
        try {
            const answer = await fetch(window.location.pathname + window.location.search, {
                cache: "no-store", credentials: "same-origin", headers: {"X-Tenantqueue-Refresh": "1"},
            });
            const text = answer.ok && !answer.redirected ? await answer.text() : "";
            const fresh = new DOMParser().parseFromString(text, "text/html");
            if (fresh.getElementById("tq-live") && isOn() && !leaving && !isTouched()) {
                show(fresh);
                readAt = Date.now();
            }
        } catch (error) {
            // the age says that the list is old
        } finally {
            busy = false;
        }
        showNote();
    }

    function remember() {
        try {
            window.localStorage.setItem(SWITCH, isOn() ? "on" : "off");
        } catch (error) {
            // the switch holds for this page
        }
    }

    function remembered() {
        try {
            return window.localStorage.getItem(SWITCH) !== "off";
        } catch (error) {
            return true;
        }
    }

    if (note()) {
        note().hidden = false;
        note().querySelector("input").checked = remembered();
        note().querySelector("input").addEventListener("change", function () {
            remember();
            refresh();
            showNote();
        });
        document.addEventListener("submit", () => { leaving = true; });
        window.addEventListener("pageshow", () => { leaving = false; });
        document.addEventListener("pointerdown", () => { pressed = true; });
        for (const end of ["pointerup", "pointercancel"]) {
            document.addEventListener(end, () => setTimeout(() => { pressed = false; }));
        }
        document.addEventListener("visibilitychange", refresh);
        setInterval(refresh, SECONDS * 1000);
        setInterval(showNote, 1000);
        showNote();
    }
}());
