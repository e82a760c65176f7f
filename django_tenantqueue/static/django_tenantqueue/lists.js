// Refreshes a list of the admin without a reload, and keeps edits in progress.
//
// The rule. The page reads its own address again. While nothing in the table is edited, ticked or
// focused, all rows are replaced, together with the hidden fields of Django's formset. Otherwise
// no row comes or goes, and only cells without inputs are replaced, in the rows that are still
// there. The formset then stays as it was sent: its numbering (form-N), and the old values
// (initial-form-N-…) by which the server notices that another operator has changed the same column.
"use strict";
(function () {
    const SWITCH = "tenantqueue.refresh";
    const PARTS = [".hiddenfields", ".tq-notes", ".paginator"];
    const page = window.tenantqueueRefresh;
    const boxes = [];

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

    function isEdited() {
        const shown = table(document);
        return Boolean(document.querySelector("#content-main .errornote, #changelist-form .errorlist"))
            || Boolean(shown) && (shown.contains(document.activeElement)
                || Array.from(shown.querySelectorAll(page.INPUTS)).some(page.isChanged));
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
                if (!cell.querySelector(page.INPUTS) && !now.querySelector(page.INPUTS)) {
                    page.become(cell, now);
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
        page.isLeft = true;
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

    function box() {
        return document.querySelector("#tq-live input");
    }

    function isOn() {
        return box().checked;
    }

    // While rows are edited their numbers go on; while text is selected nothing is replaced.
    function isInUse() {
        const shown = table(document);
        return Boolean(shown) && page.isTouched(shown);
    }

    function told() {
        const mode = document.querySelector("#tq-live .tq-mode");
        const texts = mode.dataset;
        const text = !isOn() ? texts.off : isEdited() || isInUse() ? texts.edited : texts.on;
        if (mode.textContent !== text) {
            mode.textContent = text;
        }
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

    // An address has no filters that were left empty.
    document.addEventListener("formdata", function (event) {
        if (event.target.id.startsWith("tq-typed-")) {
            for (const [name, value] of Array.from(event.formData)) {
                if (value === "") {
                    event.formData.delete(name);
                }
            }
        }
    });

    if (box()) {
        box().closest("label").hidden = false;
        box().checked = remembered();
        box().addEventListener("change", function () {
            remember();
            page.refresh();
            page.tell();
        });
        Object.assign(page, {isOn, isInUse, show, told});
        page.tell();
    }
}());
