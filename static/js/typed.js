// What was typed into a form is kept in this tab until the form has reached the server with a session; where the session
// had ended in between, it is put back on its page after the sign-in. Nothing is kept of passwords, files, tokens, nor
// for another person: the key holds who typed, and a page of somebody else, or a log-out, forgets it.
(() => {
  "use strict";

  const store = window.sessionStorage;
  const user = document.body.dataset.user || "";
  const PREFIX = "typed:";
  const UNSENT = "typed-unsent"; // the key of a form that was sent
  const LOST = "typed-lost"; // the key of a form that was refused for want of a session
  const here = `${PREFIX}${user}:${location.pathname}`;
  // Of hidden fields only what says on which state the form was filled in: the server then tells what changed since.
  const SEEN = new Set(["version", "seen_hash"]);

  const forget = (but) => {
    for (const key of Object.keys(store)) if (key.startsWith(PREFIX) && !(but && key.startsWith(but))) store.removeItem(key);
  };
  const { posts, put } = window.formFields;
  const forms = () => [...document.querySelectorAll("main form")].filter((form) => posts(form) && !form.querySelector("[type=password]"));
  // A form is known by its address and its place among those of the same address.
  const nameOf = (form) => {
    const action = form.getAttribute("action") || "";
    return `${action}#${forms().filter((other) => (other.getAttribute("action") || "") === action).indexOf(form)}`;
  };
  const UNKEPT = ["file", "submit", "button", "image", "reset", "hidden"];
  const kept = (field) => field.name && !field.disabled && (!UNKEPT.includes(field.type) || SEEN.has(field.name));
  const changed = (field) => {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.options) return [...field.options].some((option) => option.selected !== option.defaultSelected);
    return field.value !== field.defaultValue;
  };

  // Only what was changed: a field left alone shows what is true after the sign-in. In a form that was refused and shown
  // again every field is somebody's.
  const read = (form) => {
    const all = [...form.elements].filter(kept);
    const refused = form.querySelector(".errors, [aria-invalid=true]");
    const names = new Set(all.filter((field) => refused || SEEN.has(field.name) || changed(field)).map((field) => field.name));
    const fields = all.filter((field) => names.has(field.name));
    const values = {};
    for (const field of fields) {
      const list = (values[field.name] ??= []);
      if (field.type === "checkbox" || field.type === "radio") {
        if (field.checked) list.push(field.value);
      } else if (field.multiple) list.push(...[...field.selectedOptions].map((option) => option.value));
      else list.push(field.value);
    }
    return { values, files: [...form.elements].some((field) => field.type === "file" && field.files?.length) };
  };
  const fill = (form, values) => {
    const left = structuredClone(values);
    for (const field of [...form.elements].filter(kept)) if (left[field.name]) put(field, left[field.name]);
    return Object.entries(left).filter(([name]) => !SEEN.has(name)).flatMap(([name, list]) => list.filter(Boolean).map((value) => `${name}: ${value}`));
  };
  const text = (id) => document.getElementById(id)?.content.textContent.trim() || "";

  const keep = (form) => {
    const all = JSON.parse(store.getItem(here) || "{}");
    all[nameOf(form)] = read(form);
    try {
      store.setItem(here, JSON.stringify(all));
    } catch {
      store.removeItem(here); // too large for the browser's store: nothing is kept rather than a part
    }
  };

  const putBack = () => {
    const all = JSON.parse(store.getItem(here) || "{}");
    const notes = [];
    let found = false;
    for (const form of forms()) {
      const was = all[nameOf(form)];
      if (!was || !(was.files || Object.keys(was.values).some((name) => !SEEN.has(name)))) continue;
      found = true;
      const left = fill(form, was.values);
      form.closest("details")?.setAttribute("open", "");
      const dialog = form.closest("dialog");
      if (dialog && !dialog.open) dialog.showModal();
      if (was.files) notes.push(text("typed-files"));
      if (left.length) notes.push(`${text("typed-elsewhere")} ${left.join(" · ")}`);
    }
    const shown = document.getElementById("typed-again")?.content.cloneNode(true);
    if (!found || !shown) return;
    for (const note of notes) {
      const line = document.createElement("p");
      line.textContent = note;
      shown.querySelector("div div")?.append(line);
    }
    document.getElementById("problem")?.after(shown);
  };

  const mark = () => store.getItem(here) && store.setItem(UNSENT, here);

  if (!user || document.querySelector("[data-unsent]")) {
    // The sign-in, or a form that had expired: was something on its way here?
    const sent = store.getItem(UNSENT);
    store.removeItem(UNSENT);
    if (sent) store.setItem(LOST, sent);
    else if (!user && !store.getItem(LOST)) forget();
  } else {
    const sent = store.getItem(UNSENT);
    store.removeItem(UNSENT);
    if (sent) store.removeItem(sent); // it reached the server, which showed it again or took it
    forget(`${PREFIX}${user}:`);
    if (store.getItem(LOST) === here) {
      store.removeItem(LOST);
      putBack();
    } else if (store.getItem(LOST) && !store.getItem(LOST).startsWith(`${PREFIX}${user}:`)) store.removeItem(LOST);
  }

  const typed = (event) => {
    const form = event.target.form;
    if (user && form && forms().includes(form)) keep(form);
  };
  document.addEventListener("input", typed);
  document.addEventListener("change", typed);
  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-sign-out]")) {
      forget();
      store.removeItem(LOST);
      store.removeItem(UNSENT);
    }
    if (!event.defaultPrevented && forms().includes(event.target)) {
      keep(event.target);
      mark();
    }
  });
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 401) mark();
  });
})();
