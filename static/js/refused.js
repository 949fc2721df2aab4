// A refused form: what was typed stands in it again (core/refused.py), and above the page stands a list of all that is
// to be corrected, each with a link to its field. The list takes the focus, so that it is read first and never far off.
(() => {
  "use strict";

  const main = document.getElementById("main");
  if (!main) return;
  const { posts, put } = window.formFields;
  const forms = () => [...main.querySelectorAll("form")].filter((form) => posts(form));
  const named = (form, name) => [...form.elements].filter((field) => field.name === name);

  const reveal = (element) => {
    for (let at = element.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    const dialog = element.closest("dialog");
    if (dialog && !dialog.open) dialog.showModal();
  };

  // Several forms may have one address: it is the one that can hold most of what was sent, and was drawn for the same row.
  const find = (kept) => {
    const fit = (form) => {
      let points = 0;
      for (const [name, list] of Object.entries(kept.values)) {
        const fields = named(form, name);
        if (fields.length) points += 1;
        if (fields.some((field) => field.type === "hidden" && !list.includes(field.value))) points -= 2;
      }
      return points;
    };
    return forms()
      .filter((form) => new URL(form.getAttribute("action") || location.href, location.href).pathname === kept.action)
      .map((form) => [fit(form), form])
      .sort((one, other) => other[0] - one[0])[0]?.[1];
  };

  const fill = (form, values) => {
    for (const [name, list] of Object.entries(values)) {
      const left = [...list];
      for (const field of named(form, name)) {
        if (["file", "submit", "button", "hidden", "password"].includes(field.type)) continue;
        put(field, left);
        if (field.value !== field.defaultValue || field.type === "checkbox" || field.type === "radio") {
          if (field.value && field.type !== "select-one") reveal(field);
        }
      }
    }
    // A box that was not ticked is not sent.
    for (const field of form.elements) if (field.type === "checkbox" && field.name && !(field.name in values)) field.checked = false;
  };

  const mark = (form, errors) => {
    for (const [name, texts] of Object.entries(errors)) {
      const field = named(form, name).find((one) => one.type !== "hidden" && one.type !== "submit");
      if (!field || field.getAttribute("aria-invalid") === "true") continue;
      field.id ||= `refused-${name}`;
      const list = document.createElement("ul");
      list.className = "errors";
      list.id = `${field.id}_error`;
      for (const text of texts) list.append(Object.assign(document.createElement("li"), { textContent: text }));
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", `${field.getAttribute("aria-describedby") || ""} ${list.id}`.trim());
      (field.closest(".field") || field.parentElement).append(list);
      reveal(field);
    }
  };

  const labelOf = (field) => {
    const drawn = field.labels?.[0] || field.closest("fieldset")?.querySelector("legend");
    if (!drawn) return field.getAttribute("aria-label") || "";
    const copy = drawn.cloneNode(true);
    copy.querySelectorAll(".optional, .required, input, select, textarea").forEach((part) => part.remove());
    return copy.textContent.trim();
  };

  const summary = () => {
    const found = [];
    for (const form of forms()) {
      for (const errors of form.querySelectorAll(".errors")) {
        const box = errors.closest(".field, td, fieldset") || errors.parentElement;
        const field = [...box.querySelectorAll("input, select, textarea")].find((one) => one.type !== "hidden");
        if (field) found.push([field, [...(errors.tagName === "UL" ? errors.children : [errors])].map((one) => one.textContent.trim())]);
      }
    }
    const status = performance.getEntriesByType("navigation")[0]?.responseStatus || 0;
    if (!found.length) {
      const alert = status >= 400 && main.querySelector("form .alert.bad, section .alert.bad, .panel .alert.bad");
      if (alert) {
        reveal(alert);
        alert.tabIndex = -1;
        alert.focus();
      }
      return;
    }
    const box = document.getElementById("error-summary").content.firstElementChild.cloneNode(true);
    const list = box.querySelector("ul");
    found.forEach(([field, texts], index) => {
      field.id ||= `refused-at-${index}`;
      const label = labelOf(field);
      for (const text of texts) {
        const link = document.createElement("a");
        link.href = `#${field.id}`;
        link.textContent = label && !text.startsWith(label) ? `${label}: ${text}` : text;
        link.addEventListener("click", (event) => {
          event.preventDefault();
          reveal(field);
          field.focus();
          field.scrollIntoView({ block: "center" });
        });
        list.append(document.createElement("li"));
        list.lastElementChild.append(link);
      }
    });
    // What stands outside the fields of a refused form belongs to the same list.
    for (const text of main.querySelectorAll("form .alert.bad li, form .alert.bad p")) {
      if (found[0][0].form?.contains(text)) list.append(Object.assign(document.createElement("li"), { textContent: text.textContent.trim() }));
    }
    main.querySelectorAll("[data-at-field]").forEach((said) => said.remove());
    reveal(found[0][0]);
    const dialog = found[0][0].closest("dialog");
    if (dialog) found[0][0].form.prepend(box);
    else document.getElementById("problem").after(box);
    box.focus();
  };

  // A panel that checks while one types names what is still wrong: what was mended is cleared at its field and in the list.
  document.addEventListener("htmx:afterSwap", (event) => {
    const told = event.target.querySelector?.("#still-wrong");
    const form = event.target.closest?.("form");
    if (!told || !form) return;
    const wrong = JSON.parse(told.dataset.wrong);
    for (const errors of form.querySelectorAll(".field .errors")) {
      const field = [...errors.closest(".field").querySelectorAll("input, select, textarea")].find((one) => one.name);
      if (!field || wrong.includes(field.name)) continue;
      errors.remove();
      field.removeAttribute("aria-invalid");
      main.querySelectorAll(`.alert a[href="#${CSS.escape(field.id)}"]`).forEach((link) => link.closest("li").remove());
    }
    for (const alert of main.querySelectorAll("[data-error-summary]")) if (!alert.querySelector("li")) alert.remove();
  });

  const told = document.getElementById("refused");
  if (told) {
    const kept = JSON.parse(told.textContent);
    const form = find(kept);
    if (form) {
      fill(form, kept.values);
      mark(form, kept.errors);
      if (!form.querySelector(".errors")) form.scrollIntoView({ block: "center" });
    }
  }
  summary();
})();
