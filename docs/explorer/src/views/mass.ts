// One position in detail: which part of the draft's mass is accepted and rejected, and where the residual puts it.
import { quickCore, type Answer } from "../core";
import { figures, fixed, h, pictureSize, problem, table } from "../ui";
import { ownWeights, pairConfig, pairChecks, pairDefaults, pairFields, ruleFields } from "../pair";
import type { Place, View } from "../view";

const SVG = "http://www.w3.org/2000/svg";
function svg(tag: string, attributes: Record<string, string | number>, ...children: (Element | string)[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

function hatch(id: string, angle: number, colour: string): SVGElement {
  return svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${angle})` }, svg("rect", { width: 6, height: 6, fill: colour, opacity: 0.25 }), svg("line", { x1: 0, y1: 0, x2: 0, y2: 6, stroke: colour, "stroke-width": 3 }));
}

interface Bars {
  picture: SVGElement;
  show: (answer: Answer) => void;
}

// Target and draft side by side. The draft's bar is divided into accepted and rejected mass, the target's into mass from accepted drafts and from the
// residual. Every bar is a slider: dragged with the pointer, or set with the arrow keys. The drawing is rebuilt with every answer; dragged bars stay,
// and so does the scale while a finger is down.
function bars(drag: (which: 0 | 1, token: number, probability: number) => void): Bars {
  const size = { width: pictureSize(1, 0).width, height: 330, left: 46, top: 12, bottom: 34 };
  const plot = { width: size.width - size.left - 8, height: size.height - size.top - size.bottom };
  const drawn = svg("g", { "aria-hidden": "true" });
  const handles = svg("g", {});
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${size.width} ${size.height}`, width: size.width, height: size.height, "font-size": 12, "font-family": "inherit" },
    svg("defs", {}, hatch("rejected", 45, "var(--draft)"), hatch("residual", -45, "var(--target)")),
    drawn,
    handles,
  );
  let most = 1;
  let held = false;

  const probabilityAt = (event: PointerEvent): number => {
    const box = picture.getBoundingClientRect();
    const at = ((event.clientY - box.top) / box.height) * size.height;
    return Math.min(0.98, Math.max(0, most * (1 - (at - size.top) / plot.height)));
  };

  const makeHandles = (n: number): void => {
    const group = plot.width / n;
    const gap = Math.min(10, group * 0.12);
    const bar = (group - gap) / 2;
    handles.replaceChildren();
    for (let token = 0; token < n; ++token)
      for (const which of [1, 0] as const) {
        const name = `${which === 0 ? "Target" : "Draft"} of token ${token}`;
        const handle = svg("rect", { class: "bar", role: "slider", tabindex: 0, "aria-label": name, "aria-orientation": "vertical", "aria-valuemin": 0, "aria-valuemax": 0.98, x: size.left + token * group + gap / 2 + (which === 0 ? bar : 0), width: bar, y: size.top, height: plot.height, fill: "transparent", "data-which": which, "data-token": token });
        handle.addEventListener("pointerdown", (event) => {
          const own = event as PointerEvent;
          event.preventDefault();
          handle.setPointerCapture(own.pointerId);
          held = true;
          drag(which, token, probabilityAt(own));
        });
        handle.addEventListener("pointermove", (event) => held && drag(which, token, probabilityAt(event as PointerEvent)));
        for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) handle.addEventListener(end, () => (held = false));
        handle.addEventListener("keydown", (event) => {
          const now = Number(handle.getAttribute("aria-valuenow"));
          const to = ({ ArrowUp: now + 0.01, ArrowRight: now + 0.01, ArrowDown: now - 0.01, ArrowLeft: now - 0.01, PageUp: now + 0.1, PageDown: now - 0.1, Home: 0, End: 0.98 } as Record<string, number>)[(event as KeyboardEvent).key];
          if (to === undefined) return;
          event.preventDefault();
          drag(which, token, Math.min(0.98, Math.max(0, to)));
        });
        handles.append(handle);
      }
  };

  const show = (answer: Answer): void => {
    const n = (answer.target as number[]).length;
    const emitted = answer.emitted as number[];
    const group = plot.width / n;
    const gap = Math.min(10, group * 0.12);
    const bar = (group - gap) / 2;
    if (!held) most = Math.max(0.05, ...answer.target, ...answer.drafted, ...emitted) * 1.12;
    const y = (p: number): number => size.top + plot.height * (1 - Math.min(p, most) / most);
    drawn.replaceChildren();
    const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find((own) => most / own <= 6) ?? 0.5;
    for (let p = 0; p <= most; p += step) {
      drawn.append(svg("line", { x1: size.left, x2: size.width - 8, y1: y(p), y2: y(p), stroke: "var(--line)", "stroke-width": p === 0 ? 1.5 : 0.6 }), svg("text", { x: size.left - 6, y: y(p) + 4, "text-anchor": "end", fill: "var(--quiet)" }, p.toFixed(2)));
    }
    for (let x = 0; x < n; ++x) {
      const left = size.left + x * group + gap / 2;
      const part = (at: number, from: number, to: number, fill: string): void => {
        drawn.append(svg("rect", { x: at, width: bar, y: y(to), height: Math.max(0, y(from) - y(to)), fill }));
      };
      const line = (at: number, p: number, stroke: string): void => {
        drawn.append(svg("line", { x1: at, x2: at + bar, y1: y(p), y2: y(p), stroke, "stroke-width": 3 }));
      };
      const accepted = answer.accepted[x] as number;
      part(left, 0, accepted, "var(--accepted)");
      part(left, accepted, answer.drafted[x], "url(#rejected)");
      part(left + bar, 0, accepted, "var(--accepted)");
      part(left + bar, accepted, emitted[x]!, "url(#residual)");
      line(left, answer.drafted[x], "var(--draft)");
      line(left + bar, answer.target[x], "var(--target)");
      drawn.append(svg("text", { x: left + bar, y: size.height - 12, "text-anchor": "middle", fill: "currentColor" }, String(x)));
    }
    if (handles.childElementCount !== 2 * n) makeHandles(n);
    for (const handle of handles.children) {
      const p = (handle.getAttribute("data-which") === "0" ? answer.target : answer.drafted)[Number(handle.getAttribute("data-token"))] as number;
      handle.setAttribute("aria-valuenow", p.toFixed(4));
      handle.setAttribute("aria-valuetext", p.toFixed(4));
    }
  };
  return { picture, show };
}

export const mass: View = {
  id: "mass",
  title: "Mass",
  about: "One position in detail: which part of the draft's probability a rule accepts and rejects, and where the residual puts the rest.",
  defaults: { ...pairDefaults },
  allowed: pairChecks,
  open(place: Place) {
    const { root, settings } = place;
    const results = h("div", { class: "results" });
    const head = h("div", { class: "results" });
    const foot = h("div", {});
    let shown: Answer | undefined;
    const changed = (): void => {
      place.save();
      quickCore().latest("mass", { ask: "mass", config: pairConfig(settings, 1, 1000, 1) }, show);
    };
    // Sets one drawn probability; the others share the rest in their earlier proportions. Weights that were drawn before the last answer count:
    // `shown` may be older.
    const drag = (which: 0 | 1, token: number, probability: number): void => {
      if (!shown) return;
      const lists = ownWeights(settings) ?? [[...shown.target], [...shown.drafted]];
      const list = lists[which]!;
      const sum = list.reduce((a, b) => a + b, 0);
      const rest = sum - list[token]!;
      lists[which] = list.map((weight, x) => (x === token ? probability : rest > 1e-9 ? (weight / rest) * (1 - probability) : (1 - probability) / (list.length - 1)));
      settings.own = lists.map((own) => own.map((weight) => Number(weight.toFixed(5))).join(",")).join(";");
      fields.dispatchEvent(new Event("drawn"));
      changed();
    };
    const fields = pairFields(place, changed);
    const chart = bars(drag);
    const legend = h("ul", { class: "legend" }, ...[["var(--accepted)", "accepted drafts"], ["repeating-linear-gradient(-45deg,var(--draft) 0 3px,transparent 3px 6px)", "rejected drafts"], ["repeating-linear-gradient(45deg,var(--target) 0 3px,transparent 3px 6px)", "tokens from the residual"], ["var(--draft)", "line: the draft"], ["var(--target)", "line: the target"]].map(([colour, text]) => h("li", {}, h("i", { style: `background:${colour}` }), text!)));
    const picture = h("figure", {}, h("figcaption", {}, "Draft (left bar of each token) and emitted tokens (right bar)"), h("div", { class: "picture", role: "group", "aria-label": "Draft and emitted tokens, each bar a slider" }, chart.picture), legend, h("p", { class: "note" }, "Drag a bar up or down: the left one changes the draft, the right one the target. With the keyboard: Tab to a bar, then the arrow keys, Page Up and Page Down, Home or End."));
    const show = (answer: Answer): void => {
      if (answer.error) {
        results.replaceChildren(problem(answer.error));
        return;
      }
      shown = answer;
      const off = answer.bias as number;
      chart.show(answer);
      head.replaceChildren(
        h("section", { class: `verdict ${off < 1e-9 ? "pays" : "loses"}`, "aria-live": "polite" }, h("p", { class: "big" }, off < 1e-9 ? "The output follows the target's distribution" : `Biased: ${fixed(off, 4)} of the mass is in the wrong place`)),
        figures([
          ["α: accepted", fixed(answer.alpha, 6), "alpha"],
          ["overlap of the two", fixed(answer.overlap, 6), "overlap"],
          ["total variation of the draft", fixed(answer.distance, 6), "distance"],
          ["distance of the emitted tokens from the target", fixed(off, 6), "bias"],
        ]),
      );
      foot.replaceChildren(
        table(
          "Token by token",
          ["token", "target", "draft", "accept with", "accepted", "residual", "emitted"],
          (answer.target as number[]).map((p, x) => [String(x), fixed(p, 4), fixed(answer.drafted[x], 4), fixed(answer.acceptance[x], 4), fixed(answer.accepted[x], 4), fixed(answer.residual[x], 4), fixed(answer.emitted[x], 4)]),
        ),
      );
      if (picture.parentElement !== results) results.replaceChildren(head, picture, foot); // otherwise it keeps the focus and the pointer
    };
    root.replaceChildren(h("form", { class: "controls", "aria-label": "Settings" }, ruleFields(place, changed), fields), results);
    changed();
  },
};
