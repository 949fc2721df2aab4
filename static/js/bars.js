// Draws the numbers of a text field as bars: dragged with a pointer, or moved by the keyboard as sliders. The field
// stays the truth: without this script the numbers are typed, or come from a file.
(() => {
  "use strict";

  const TOP = 100;
  const HOLD = 5; // what an arrow key moves; page keys move four times as much

  // The numbers as typed, or null for what cannot be drawn (a sign, a word, another count): the server names it.
  const read = (field, count) => {
    const words = field.value.trim().split(/[\s,;]+/);
    const numbers = words[0] ? words.map(Number) : [];
    if (numbers.some((number) => !Number.isFinite(number) || number < 0)) return null;
    if (numbers.length === count) return numbers;
    const day = Number(field.dataset.barsColumns);
    if (numbers.length === day && count % day === 0) return Array.from({ length: count }, (_, at) => numbers[at % day]);
    return null;
  };

  // What a full bar stands for: typed numbers up to 100 are heights as they are, all others fill the stage.
  const scaleOf = (values) => {
    const most = Math.max(...values, 0);
    return most > 1 && most <= TOP ? TOP : most || TOP;
  };

  const draw = (field) => {
    const columns = Number(field.dataset.barsColumns);
    const names = field.dataset.barsRows ? field.dataset.barsRows.split("|") : [""];
    const heads = field.dataset.barsHeads.split("|");
    const count = columns * names.length;
    let values = Array(count).fill(0);
    let scale = TOP;
    let before = null; // the values when a pointer went down
    let row = names.length > 1 ? -1 : 0; // -1: every day at once

    const box = document.createElement("div");
    box.className = "bars";
    const picker = document.createElement("div");
    picker.className = "bars-rows";
    const stage = document.createElement("div");
    stage.className = "bars-stage";
    box.append(picker, stage);
    field.before(box);

    const shown = (column) => (row < 0 ? Math.max(...names.map((_, at) => values[at * columns + column])) : values[row * columns + column]);

    const write = () => {
      const lines = names.map((_, at) => values.slice(at * columns, (at + 1) * columns).join(" "));
      field.value = values.some((value) => value > 0) ? lines.join("\n") : "";
      field.dispatchEvent(new Event("input", { bubbles: true }));
    };

    const bars = Array.from({ length: columns }, (_, column) => {
      const bar = document.createElement("div");
      bar.className = "bar";
      bar.tabIndex = column ? -1 : 0;
      bar.setAttribute("role", "slider");
      bar.setAttribute("aria-orientation", "vertical");
      bar.setAttribute("aria-valuemin", "0");
      bar.setAttribute("aria-valuemax", String(TOP));
      const fill = document.createElement("div");
      const head = document.createElement("span");
      head.textContent = column % (columns > 12 ? 6 : 1) ? "" : heads[column];
      bar.append(fill, head);
      stage.append(bar);
      return bar;
    });

    const paint = () => {
      bars.forEach((bar, column) => {
        const share = (shown(column) / scale) * TOP;
        bar.firstChild.style.height = `${share}%`;
        bar.setAttribute("aria-valuenow", String(Math.round(share)));
        bar.setAttribute("aria-label", `${row < 0 ? field.dataset.barsAll : names[row]} ${heads[column]}`.trim());
      });
      picker.querySelectorAll("button").forEach((button) => {
        button.setAttribute("aria-pressed", String(Number(button.value) === row));
      });
    };

    // Bars are moved in hundredths of the stage; what was typed in another measure keeps its proportions, and a small
    // number does not become none.
    const toHundredths = () => {
      if (scale !== TOP) values = values.map((value) => Number(((value / scale) * TOP).toPrecision(3)));
      scale = TOP;
    };

    const set = (column, value) => {
      toHundredths();
      const kept = Math.max(0, Math.min(TOP, Math.round(value)));
      names.forEach((_, at) => {
        if (row < 0 || at === row) values[at * columns + column] = kept;
      });
      paint();
    };

    if (names.length > 1) {
      [[-1, field.dataset.barsAll], ...names.map((name, at) => [at, name])].forEach(([at, name]) => {
        const button = document.createElement("button");
        button.type = "button";
        button.className = "button small quiet";
        button.value = String(at);
        button.textContent = name;
        button.addEventListener("click", () => { row = at; paint(); });
        picker.append(button);
      });
    }

    const pull = (event) => {
      const area = stage.getBoundingClientRect();
      const column = Math.floor(((event.clientX - area.left) / area.width) * columns);
      const bar = bars[Math.max(0, Math.min(columns - 1, column))];
      const track = bar.getBoundingClientRect();
      set(bars.indexOf(bar), ((track.bottom - event.clientY) / track.height) * TOP);
    };
    stage.addEventListener("pointerdown", (event) => {
      if (before) return; // a second finger
      event.preventDefault();
      before = { values: [...values], scale };
      stage.setPointerCapture(event.pointerId);
      pull(event);
    });
    stage.addEventListener("pointermove", (event) => { if (stage.hasPointerCapture(event.pointerId)) pull(event); });
    stage.addEventListener("pointerup", (event) => {
      if (!before || !stage.hasPointerCapture(event.pointerId)) return;
      before = null;
      write();
    });
    // The system took the pointer (a gesture, a call): nothing was drawn.
    stage.addEventListener("pointercancel", () => {
      if (!before) return;
      ({ values, scale } = before);
      before = null;
      paint();
    });

    stage.addEventListener("keydown", (event) => {
      const column = bars.indexOf(event.target);
      if (column < 0) return;
      const now = Number(event.target.getAttribute("aria-valuenow"));
      const moves = { ArrowUp: HOLD, ArrowDown: -HOLD, PageUp: 4 * HOLD, PageDown: -4 * HOLD, Home: -TOP, End: TOP };
      const steps = { ArrowLeft: -1, ArrowRight: 1 };
      if (event.key in moves) {
        event.preventDefault();
        set(column, now + moves[event.key]);
        write();
      } else if (event.key in steps) {
        event.preventDefault();
        const next = bars[(column + steps[event.key] + columns) % columns];
        bars.forEach((bar) => { bar.tabIndex = bar === next ? 0 : -1; });
        next.focus();
      }
    });

    // Numbers that are typed or pasted are drawn too; an emptied field is an empty stage.
    const follow = () => {
      const typed = field.value.trim() ? read(field, count) : Array(count).fill(0);
      if (typed) { values = typed; scale = scaleOf(values); paint(); }
    };
    field.addEventListener("change", follow);
    follow();
    paint();
  };

  document.querySelectorAll("textarea[data-bars-columns]").forEach(draw);
})();
