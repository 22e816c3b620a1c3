// Sorting, searching, meanings and colours. The page is whole without it.
"use strict";
(() => {
  const keyOf = (row, place) => {
    const cell = row.cells[place];
    return "key" in cell.dataset ? Number(cell.dataset.key) : cell.textContent.trim();
  };

  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return 1;
    if (typeof b === "number") return -1;
    return a.localeCompare(b, undefined, { numeric: true });
  };

  // A name that several rows share is said once: on the first of them that is shown.
  const regroup = (table) => {
    if (!("grouped" in table.dataset)) return;
    let before = null;
    for (const row of table.tBodies[0].rows) {
      if (row.hidden) continue;
      const name = row.cells[0].textContent;
      row.classList.toggle("again", name === before);
      before = name;
    }
  };

  const sort = (table, place, head) => {
    const down = head.getAttribute("aria-sort") === "descending";
    const fresh = !head.hasAttribute("aria-sort");
    // Numbers are most telling from the top, names from A.
    const descending = fresh ? head.classList.contains("number") : !down;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [keyOf(row, place), row]);
    rows.sort(([a], [b]) => (descending ? compare(b, a) : compare(a, b)));
    body.append(...rows.map(([, row]) => row));
    regroup(table);
  };

  for (const table of document.querySelectorAll("table[data-sortable]")) {
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      if ("fixed" in head.dataset || !head.textContent.trim()) return;
      const button = document.createElement("button");
      button.type = "button";
      const meaning = head.querySelector(".term");
      if (meaning) {
        // The button takes the focus, so it is what says the meaning.
        button.title = meaning.title;
        button.className = "term";
      }
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => sort(table, place, head));
    });
  }

  for (const input of document.querySelectorAll("input[data-filter]")) {
    const table = document.getElementById(input.dataset.filter);
    const rows = [...table.tBodies[0].rows];
    const found = input.parentElement.querySelector("output");
    input.parentElement.hidden = false;
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      regroup(table);
      found.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
    });
  }

  const tip = document.getElementById("tip");
  const show = (of) => {
    tip.textContent = of.dataset.meaning;
    tip.hidden = false;
    const box = of.getBoundingClientRect();
    const left = Math.min(box.left, innerWidth - tip.offsetWidth - 16);
    const below = box.bottom + 6 + tip.offsetHeight < innerHeight;
    tip.style.left = `${Math.max(16, left)}px`;
    tip.style.top = `${below ? box.bottom + 6 : box.top - tip.offsetHeight - 6}px`;
  };
  const hide = () => { tip.hidden = true; };
  for (const one of document.querySelectorAll(".term")) {
    one.dataset.meaning = one.title;
    one.removeAttribute("title");
    one.setAttribute("aria-description", one.dataset.meaning);
    one.addEventListener("mouseenter", () => show(one));
    one.addEventListener("focus", () => show(one));
    one.addEventListener("mouseleave", hide);
    one.addEventListener("blur", hide);
  }
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  addEventListener("scroll", hide, true);

  const theme = document.getElementById("theme");
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const label = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to ${theme.textContent.toLowerCase()} colours`);
  };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  dark.addEventListener("change", label);
  label();
})();
