// What neither HTML nor htmx can do: open dialogs, drop files, submit a filter on change, copy text, show a slider's value.
(() => {
  "use strict";

  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (!target) return;

    const opener = target.closest("[data-dialog]");
    if (opener) {
      const dialog = document.getElementById(opener.dataset.dialog);
      if (dialog instanceof HTMLDialogElement) {
        event.preventDefault();
        dialog.showModal();
      }
      return;
    }
    const closer = target.closest("[data-dialog-close]");
    if (closer) {
      event.preventDefault();
      closer.closest("dialog")?.close();
      return;
    }
    const copier = target.closest("[data-copy]");
    if (copier) {
      const source = document.getElementById(copier.dataset.copy);
      if (source) navigator.clipboard?.writeText(source.value ?? source.textContent.trim());
      return;
    }
    // A click on the backdrop closes the dialog.
    if (target instanceof HTMLDialogElement && target.matches(".dialog")) target.close();
  });

  document.addEventListener("change", (event) => {
    const form = event.target.closest?.("form[data-autosubmit]");
    if (form) form.requestSubmit();
  });

  // The value of a slider stands beside it.
  document.addEventListener("input", (event) => {
    const shown = document.querySelector(`output[data-mirror="${CSS.escape(event.target.id || "-")}"]`);
    if (shown) shown.textContent = event.target.value;
  });

  // A form that was sent is not sent twice by an impatient second click.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || !window.formFields.posts(form) || form.hasAttribute("hx-post")) return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => {
    document.querySelectorAll("form[data-sent]").forEach((form) => delete form.dataset.sent);
  });

  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      const zone = event.target.closest?.(".upload");
      if (!zone) return;
      event.preventDefault();
      zone.classList.toggle("over", kind === "dragover");
      const input = zone.querySelector('input[type="file"]');
      if (kind === "drop" && input && event.dataTransfer.files.length) {
        input.files = event.dataTransfer.files;
        input.dispatchEvent(new Event("change", { bubbles: true }));
      }
    });
  }
})();
