// What scripts need that put back what was typed (typed.js, refused.js), and app.js: which forms send, and how a field
// is filled.
(() => {
  "use strict";

  // Not form.method: that may be a field of the name.
  const posts = (form) => form.getAttribute("method")?.toLowerCase() === "post";

  // Puts of `left` into the field what it can hold, takes that out of the list, and tells whoever listens.
  const put = (field, left) => {
    const take = (value) => {
      const at = left.indexOf(value);
      if (at >= 0) left.splice(at, 1);
      return at >= 0;
    };
    if (field.type === "checkbox" || field.type === "radio") field.checked = take(field.value);
    else if (field.multiple && field.options) for (const option of field.options) option.selected = take(option.value);
    else if (left.length && (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === left[0]))) field.value = left.shift();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };

  window.formFields = { posts, put };
})();
