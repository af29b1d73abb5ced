// A box above long tables that shows only the rows with all of its words, those of the section's heading included.
// Without a script the tables are whole.
document.addEventListener("DOMContentLoaded", () => {
  let heading = "";
  const rows = [];
  for (const part of document.querySelectorAll("article h2, article tr")) {
    if (part.tagName === "H2") heading = part.textContent;
    else if (part.querySelector("td")) rows.push([part, `${heading} ${part.textContent}`.toLowerCase()]);
  }
  if (rows.length < 60) return;
  const box = Object.assign(document.createElement("input"), { type: "search", className: "row-filter" });
  box.placeholder = box.ariaLabel = "Filter the rows of all tables on this page";
  document.querySelector("article h1").after(box);
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/);
    for (const [row, text] of rows) row.hidden = !words.every((word) => text.includes(word));
    for (const table of document.querySelectorAll("article table")) table.hidden = !table.querySelector("td:not([hidden] td)");
  });
});
