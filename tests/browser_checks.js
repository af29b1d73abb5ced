/** What can be said of a page without a picture of it: its boxes, its texts and their colours. */
() => {
  const faults = [];
  const width = document.documentElement.clientWidth;

  /** Whether an element is seen; what a closed element or one out of sight holds is not laid out. */
  const isSeen = (element) =>
    element.checkVisibility({ contentVisibilityAuto: true, opacityProperty: true, visibilityProperty: true }) &&
    !element.closest("[aria-hidden=true], .unseen, .skip, noscript");
  const named = (element) => {
    const path = [];
    for (let at = element; at && at !== document.body && path.length < 3; at = at.parentElement)
      path.unshift(at.tagName.toLowerCase() + (at.classList.length ? `.${[...at.classList].join(".")}` : ""));
    return path.join(" > ");
  };
  const quoted = (text) => JSON.stringify(text.trim().slice(0, 60));

  /** Texts with their elements and the boxes of their lines. */
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !isSeen(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter((box) => box.width > 1 && box.height > 1);
    if (boxes.length) texts.push({ element, text: node.data, boxes, shown: boxes });
  }

  /** The page itself scrolls down only. */
  const whole = document.documentElement.scrollWidth;
  if (whole > width) faults.push(`wider than the window: ${whole} > ${width}`);

  /** What is cut has a cue: an ellipsis, a box that scrolls and shows it, or it is hidden on purpose. */
  for (const item of texts) {
    let [left, right, top, bottom] = [-Infinity, Infinity, -Infinity, Infinity];
    let cue = false;
    for (let at = item.element; at && at !== document.body; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.clipPath !== "none" || style.position === "fixed") cue = true;
      if (style.overflowX === "visible" || style.display === "inline" || style.display === "contents") continue;
      const box = at.getBoundingClientRect();
      [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
      [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
      if (style.textOverflow === "ellipsis") cue = true;
      if (/auto|scroll/.test(style.overflowX) && (at.tabIndex >= 0 || style.backgroundImage !== "none")) cue = true;
      if (/auto|scroll/.test(style.overflowY) && at.tabIndex >= 0) cue = true;
    }
    item.shown = item.boxes
      .map((box) => new DOMRect(Math.max(box.left, left), Math.max(box.top, top),
        Math.min(box.right, right) - Math.max(box.left, left), Math.min(box.bottom, bottom) - Math.max(box.top, top)))
      .filter((box) => box.width > 1 && box.height > 1);
    const isCut = item.boxes.some((box) => box.right > right + 1 || box.left < left - 1);
    if (isCut && !cue) faults.push(`cut without a cue: ${named(item.element)} ${quoted(item.text)}`);
    for (const box of item.shown)
      if (!cue && (box.right > width + 1 || box.left < -1))
        faults.push(`outside of the window: ${named(item.element)} ${quoted(item.text)}`);
  }

  /** No text covers another. Lines are as high as their letters here, not as their font. */
  const lines = texts.flatMap((item) =>
    item.shown.map((box) => ({ item, box: { ...box.toJSON(), top: box.top + box.height * 0.2, bottom: box.bottom - box.height * 0.2 } })));
  lines.sort((a, b) => a.box.top - b.box.top);
  lines.forEach(({ item, box }, at) => {
    for (let next = at + 1; next < lines.length && lines[next].box.top < box.bottom; next += 1) {
      const other = lines[next];
      if (other.item === item) continue;
      const across = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
      if (across > 2)
        faults.push(`on top of each other: ${named(item.element)} ${quoted(item.text)}, ${named(other.item.element)} ${quoted(other.item.text)}`);
    }
  });

  /** Contrast of each text with what lies behind it, as WCAG 2 computes it. */
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      known.set(colour, [...canvas.getImageData(0, 0, 1, 1).data].map((value) => value / 255));
    }
    return known.get(colour);
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((value, place) => value * a + under[place] * (1 - a));
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((under, layer) => over(layer, under), [1, 1, 1]);
  };
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  let least = 21;
  for (const { element, text } of texts) {
    if (element.closest(":disabled")) continue;
    const under = behind(element);
    const ink = rgba(getComputedStyle(element).color);
    let opacity = 1;
    for (let at = element; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
    const shown = over([...ink.slice(0, 3), ink[3] * opacity], under);
    const [light, dark] = [luminance(shown), luminance(under)].sort((a, b) => b - a);
    const contrast = (light + 0.05) / (dark + 0.05);
    least = Math.min(least, contrast);
    if (contrast < 4.5) faults.push(`contrast ${contrast.toFixed(2)}: ${named(element)} ${quoted(text)}`);
  }

  return { faults: [...new Set(faults)], texts: texts.length, least };
};
