// Small elements of the views.
type Child = Node | string | null | undefined;
type Attributes = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined));
  return element;
}

let ids = 0;
export const newId = (): string => `field-${++ids}`;

export function select(label: string, options: { value: string; label?: string; group?: string }[], value: string, change: (value: string) => void): HTMLElement {
  const id = newId();
  const list = h("select", { id, onchange: () => change(list.value) });
  const groups = new Map<string, HTMLOptGroupElement>();
  for (const option of options) {
    const element = h("option", { value: option.value }, option.label ?? option.value);
    if (option.value === value) element.selected = true;
    if (!option.group) list.append(element);
    else {
      const group = groups.get(option.group) ?? h("optgroup", { label: option.group });
      if (!groups.has(option.group)) {
        groups.set(option.group, group);
        list.append(group);
      }
      group.append(element);
    }
  }
  return h("div", { class: "field" }, h("label", { for: id }, label), list);
}

export interface Range {
  label: string;
  name: string;
  min: number;
  max: number;
  step: number;
  value: number;
  hint?: string;
  powers?: boolean; // the slider moves in powers of two
  change: (value: number) => void;
}

// A slider and a number field for the same value.
export function slider(range: Range): HTMLElement {
  const id = newId();
  const place = (x: number): number => (range.powers ? Math.log2(Math.max(x, 1)) : x);
  const number = h("input", { type: "number", id, name: range.name, min: range.min, max: range.max, step: "any", value: range.value, inputmode: "decimal" });
  const slide = h("input", {
    type: "range",
    "aria-label": `${range.label}, slider`,
    "data-name": range.name,
    min: place(range.min),
    max: place(range.max),
    step: range.powers ? 1 : range.step,
    value: place(range.value),
  });
  const spoken = (x: number): void => slide.setAttribute("aria-valuetext", String(x));
  spoken(range.value);
  slide.addEventListener("input", () => {
    const x = range.powers ? 2 ** Number(slide.value) : Number(slide.value);
    number.value = String(x);
    spoken(x);
    range.change(x);
  });
  number.addEventListener("input", () => {
    const x = Number(number.value);
    if (number.value === "" || Number.isNaN(x)) return;
    slide.value = String(place(x));
    spoken(x);
    range.change(x);
  });
  return h("div", { class: "field" }, h("label", { for: id }, range.label), h("div", { class: "pair" }, slide, number), range.hint ? h("small", {}, range.hint) : null);
}

export function copyable(text: string, label: string): HTMLElement {
  const button = h("button", {
    type: "button",
    class: "copy",
    "aria-label": `Copy ${label}`,
    onclick: () => {
      void navigator.clipboard.writeText(text).then(
        () => (button.textContent = "copied"),
        () => (button.textContent = "select it and copy"),
      );
    },
  }, "copy");
  return h("div", { class: "command" }, h("pre", { tabindex: "0", "aria-label": label }, h("code", {}, text)), button);
}

// The description of a point under the pointer stays within the page: on a phone it is wider than the space next to the point.
function keepTipsInside(picture: Element): void {
  const move = (): void => {
    for (const tip of picture.querySelectorAll<SVGGElement>('g[aria-label="tip"]')) {
      const shown = tip.getBoundingClientRect();
      if (shown.width === 0) continue;
      const room = document.documentElement.clientWidth - 4;
      const by = shown.left < 4 ? 4 - shown.left : Math.min(0, room - shown.right);
      const svg = tip.ownerSVGElement!;
      const scale = svg.getBoundingClientRect().width / (svg.viewBox.baseVal.width || svg.clientWidth);
      if (by !== 0) tip.style.translate = `${by / scale}px`;
    }
  };
  // Each movement of the pointer redraws it, and its box has a size only after its text.
  new MutationObserver(() => requestAnimationFrame(move)).observe(picture, { childList: true, subtree: true });
}

// A picture with a text for people who do not see it.
export function figure(title: string, words: string, picture: Element, ...more: Child[]): HTMLElement {
  for (const part of picture.querySelectorAll("[aria-label], [aria-description]")) {
    part.removeAttribute("aria-label"); // roles of groups of marks, which must have none: the text describes the picture
    part.removeAttribute("aria-description");
  }
  const box = h("div", { class: "picture", role: "img", "aria-label": `${title}. ${words}` }, picture);
  keepTipsInside(box);
  return h("figure", {}, h("figcaption", {}, title), box, ...more);
}

// Names and values; tests find the value by the key.
export function figures(pairs: [string, string, string][]): HTMLElement {
  return h("dl", { class: "figures" }, ...pairs.map(([name, value, key]) => h("div", {}, h("dt", {}, name), h("dd", { "data-figure": key }, value))));
}

export function table(caption: string, heads: string[], rows: string[][], marked = -1, names = false): HTMLElement {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, ...rows.map((row, i) => h("tr", { class: i === marked ? "best" : "" }, ...row.map((cell, j) => (j === 0 ? h("th", { scope: "row", class: names ? "name" : "" }, cell) : h("td", {}, cell)))))),
    ),
  );
}

export function problem(message: string): HTMLElement {
  return h("p", { class: "problem", role: "alert" }, message);
}

export const fixed = (x: number | null | undefined, digits: number): string => (x === null || x === undefined ? "–" : x.toFixed(digits));
export const percent = (x: number): string => `${(100 * x).toFixed(1)} %`;

// Blue above 1, orange below, close to the background at 1. The share grows with the logarithm, so that 1.5 and 3 differ as much as 3 and 6.
export function speedupColour(speedup: number, largest: number): string {
  const share = Math.min(1, Math.abs(Math.log(speedup)) / Math.log(speedup >= 1 ? largest : 4));
  return `color-mix(in oklab, var(${speedup >= 1 ? "--accent" : "--loss"}) ${(10 + 80 * share).toFixed(0)}%, var(--ground))`;
}

// Pictures are drawn at their displayed width, so that their text keeps its size: `columns` of them in a row if there is room, as style.css arranges
// them.
export function pictureSize(columns: 1 | 2, height: number): { width: number; height: number; marginBottom: number; style: Record<string, string> } {
  const narrow = innerWidth <= 760;
  const all = narrow ? innerWidth - 24 : Math.min(innerWidth, 1500) - 40 - 320 - 24;
  const half = columns === 2 && all >= 2 * 416 + 16 ? (all - 16) / 2 : all;
  return { width: Math.round(Math.min(half, columns === 2 ? 640 : 900)), height: height + 12, marginBottom: 42, style: { maxWidth: "100%", fontSize: "12px" } };
}
