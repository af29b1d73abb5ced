// A box above long tables that shows only the rows with all of its words, those of the section's heading included.
// Without a script the tables are whole.
document.addEventListener("DOMContentLoaded", () => {
  const sections = [[]]; // the elements of the page from one second-level heading to the next
  for (const part of document.querySelector("article").children) {
    if (part.tagName === "H2") sections.push([]);
    sections.at(-1).push(part);
  }
  const rowsOf = (parts) => parts.flatMap((part) => [...part.querySelectorAll("tbody tr")]);
  if (rowsOf(sections.flat()).length < 60) return;
  const box = Object.assign(document.createElement("input"), { type: "search", className: "row-filter" });
  box.placeholder = box.ariaLabel = "Filter the rows of all tables on this page";
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/);
    for (const parts of sections) {
      const rows = rowsOf(parts);
      const heading = parts[0]?.tagName === "H2" ? parts[0].textContent : "";
      for (const row of rows) {
        const text = `${heading} ${row.textContent}`.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      if (heading) for (const part of parts) part.hidden = rows.length > 0 && rows.every((row) => row.hidden);
    }
  });
  document.querySelector("article h1").after(box);
});
