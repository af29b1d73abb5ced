for (const strip of document.querySelectorAll(".strip")) {
  const picture = strip.querySelector("svg"), said = strip.querySelector("output");
  const spots = [...strip.querySelectorAll("rect")];
  let at = -1;
  const show = (next) => {
    if (next < 0 || next >= spots.length) return;
    if (at >= 0) spots[at].classList.remove("on");
    at = next;
    spots[at].classList.add("on");
    said.textContent = spots[at].textContent;
  };
  const steps = { ArrowRight: () => at + 1, ArrowLeft: () => at - 1, Home: () => 0, End: () => spots.length - 1 };
  picture.tabIndex = 0;
  said.textContent = said.dataset.hint;
  picture.addEventListener("keydown", (event) => {
    if (!steps[event.key]) return;
    event.preventDefault();
    show(steps[event.key]());
  });
  picture.addEventListener("pointerover", (event) => show(spots.indexOf(event.target)));
}
const open = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  for (let folded = target && target.closest("details"); folded; folded = folded.parentElement.closest("details")) folded.open = true;
};
addEventListener("hashchange", open);
open();
addEventListener("beforeprint", () => document.querySelectorAll("details.strip-of").forEach((one) => (one.open = true)));
