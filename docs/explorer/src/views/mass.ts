// One position taken apart: what of the draft's mass is accepted, what is rejected, and where the residual puts it.
import { prices, type Answer } from "../core";
import { figure, fixed, h, problem, table } from "../ui";
import { ownWeights, pairConfig, pairDefaults, pairFields, ruleFields } from "../pair";
import type { Place, View } from "../view";

const SVG = "http://www.w3.org/2000/svg";
function svg(tag: string, attributes: Record<string, string | number>, ...children: (Element | string)[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

const size = { width: 860, height: 330, left: 46, top: 12, bottom: 34 };

// Target and draft side by side, the draft's bar cut into what is accepted and what is rejected; the target's cut into what comes
// as an accepted draft and what comes from the residual. Bars are dragged by their tops.
function bars(answer: Answer, drag: (which: 0 | 1, token: number, probability: number) => void): SVGElement {
  const n = (answer.target as number[]).length;
  const emitted = answer.emitted as number[];
  const most = Math.max(0.05, ...answer.target, ...answer.drafted, ...emitted) * 1.12;
  const plot = { width: size.width - size.left - 8, height: size.height - size.top - size.bottom };
  const y = (p: number): number => size.top + plot.height * (1 - p / most);
  const group = plot.width / n;
  const gap = Math.min(10, group * 0.12);
  const bar = (group - gap) / 2;
  const picture = svg("svg", { viewBox: `0 0 ${size.width} ${size.height}`, width: size.width, height: size.height, "font-size": 12, "font-family": "inherit" });
  picture.append(
    svg("defs", {}, svg("pattern", { id: "rejected", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { width: 6, height: 6, fill: "var(--draft)", opacity: 0.25 }), svg("line", { x1: 0, y1: 0, x2: 0, y2: 6, stroke: "var(--draft)", "stroke-width": 3 })), svg("pattern", { id: "residual", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(-45)" }, svg("rect", { width: 6, height: 6, fill: "var(--target)", opacity: 0.25 }), svg("line", { x1: 0, y1: 0, x2: 0, y2: 6, stroke: "var(--target)", "stroke-width": 3 }))),
  );
  const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find((own) => most / own <= 6) ?? 0.5;
  for (let p = 0; p <= most; p += step) {
    picture.append(svg("line", { x1: size.left, x2: size.width - 8, y1: y(p), y2: y(p), stroke: "var(--line)", "stroke-width": p === 0 ? 1.5 : 0.6 }), svg("text", { x: size.left - 6, y: y(p) + 4, "text-anchor": "end", fill: "var(--quiet)" }, p.toFixed(2)));
  }
  for (let x = 0; x < n; ++x) {
    const left = size.left + x * group + gap / 2;
    const part = (at: number, from: number, to: number, fill: string): void => {
      picture.append(svg("rect", { x: at, width: bar, y: y(to), height: Math.max(0, y(from) - y(to)), fill }));
    };
    const accepted = answer.accepted[x] as number;
    part(left, 0, accepted, "var(--accepted)");
    part(left, accepted, answer.drafted[x], "url(#rejected)");
    part(left + bar, 0, accepted, "var(--accepted)");
    part(left + bar, accepted, emitted[x]!, "url(#residual)");
    picture.append(svg("line", { x1: left, x2: left + bar, y1: y(answer.drafted[x]), y2: y(answer.drafted[x]), stroke: "var(--draft)", "stroke-width": 3 }), svg("line", { x1: left + bar, x2: left + 2 * bar, y1: y(answer.target[x]), y2: y(answer.target[x]), stroke: "var(--target)", "stroke-width": 3 }));
    picture.append(svg("text", { x: left + bar, y: size.height - 12, "text-anchor": "middle", fill: "currentColor" }, String(x)));
    for (const which of [1, 0] as const) {
      const area = svg("rect", { x: left + (which === 0 ? bar : 0), width: bar, y: size.top, height: plot.height, fill: "transparent", style: "cursor:ns-resize;touch-action:none" });
      area.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        const move = (own: PointerEvent): void => {
          const box = picture.getBoundingClientRect();
          const at = ((own.clientY - box.top) / box.height) * size.height;
          drag(which, x, Math.min(0.98, Math.max(0, most * (1 - (at - size.top) / plot.height))));
        };
        const stop = (): void => {
          removeEventListener("pointermove", move);
          removeEventListener("pointerup", stop);
        };
        addEventListener("pointermove", move);
        addEventListener("pointerup", stop);
        move(event as PointerEvent);
      });
      picture.append(area);
    }
  }
  return picture;
}

export function figures(pairs: [string, string, string][]): HTMLElement {
  return h("dl", { class: "figures" }, ...pairs.map(([name, value, key]) => h("div", {}, h("dt", {}, name), h("dd", { "data-figure": key }, value))));
}

export const mass: View = {
  id: "mass",
  title: "Mass",
  about: "One position taken apart: which of the draft's probability a rule accepts, which it rejects, and where the residual puts the rest.",
  defaults: { ...pairDefaults },
  open(place: Place) {
    const { root, settings } = place;
    const results = h("div", { class: "results" });
    const byHand = h("fieldset", {});
    let shown: Answer | undefined;
    const changed = (): void => {
      place.save();
      prices().latest("mass", { ask: "mass", config: pairConfig(settings, 1, 1000, 1) }, show);
    };
    // One probability as drawn; the others share the rest as they did before.
    const drag = (which: 0 | 1, token: number, probability: number): void => {
      if (!shown) return;
      const lists = ownWeights(settings) ?? [[...shown.target], [...shown.drafted]];
      const list = lists[which]!;
      const sum = list.reduce((a, b) => a + b, 0);
      const rest = sum - list[token]!;
      lists[which] = list.map((weight, x) => (x === token ? probability : rest > 0 ? (weight / rest) * (1 - probability) : (1 - probability) / (list.length - 1)));
      settings.own = lists.map((own) => own.map((weight) => Number(weight.toFixed(5))).join(",")).join(";");
      changed();
    };
    const drawByHand = (answer: Answer): void => {
      if (byHand.contains(document.activeElement)) return;
      const row = (which: 0 | 1, name: string): HTMLElement[] => (answer[which === 0 ? "target" : "drafted"] as number[]).map((p, x) => h("input", { type: "range", min: 0, max: 0.98, step: 0.01, value: p, "aria-label": `${name} of token ${x}`, oninput: (event) => drag(which, x, Number((event.target as HTMLInputElement).value)) }));
      byHand.replaceChildren(h("legend", {}, "By hand"), h("p", { class: "note" }, "Drag the bars of the picture up and down, or use the sliders."), h("details", {}, h("summary", {}, "Sliders, token by token"), h("p", {}, "Target"), ...row(0, "Target"), h("p", {}, "Draft"), ...row(1, "Draft")));
    };
    const show = (answer: Answer): void => {
      if (answer.error) {
        results.replaceChildren(problem(answer.error));
        return;
      }
      shown = answer;
      drawByHand(answer);
      const off = answer.bias as number;
      const picture = figure("Draft (left bar of each token) and emitted tokens (right bar)", `alpha ${fixed(answer.alpha, 4)}, distance of the emitted distribution from the target ${fixed(off, 4)}`, bars(answer, drag), h("ul", { class: "legend" }, ...[["var(--accepted)", "accepted drafts"], ["repeating-linear-gradient(45deg,var(--draft) 0 3px,transparent 3px 6px)", "drafts that are rejected"], ["repeating-linear-gradient(-45deg,var(--target) 0 3px,transparent 3px 6px)", "what comes in their place"], ["var(--draft)", "line: the draft"], ["var(--target)", "line: the target"]].map(([colour, text]) => h("li", {}, h("i", { style: `background:${colour}` }), text!))));
      picture.querySelector(".picture")!.setAttribute("role", "group"); // bars are dragged: no mere image
      results.replaceChildren(
        h("section", { class: `verdict ${off < 1e-9 ? "pays" : "loses"}`, "aria-live": "polite" }, h("p", { class: "big" }, off < 1e-9 ? "The target's own distribution comes out" : `Biased: ${fixed(off, 4)} of the mass is in the wrong place`)),
        figures([
          ["α: accepted", fixed(answer.alpha, 6), "alpha"],
          ["overlap of the two", fixed(answer.overlap, 6), "overlap"],
          ["total variation of the draft", fixed(answer.distance, 6), "distance"],
          ["of the emitted tokens from the target", fixed(off, 6), "bias"],
        ]),
        picture,
        table(
          "Token by token",
          ["token", "target", "draft", "accept with", "accepted", "residual", "emitted"],
          (answer.target as number[]).map((p, x) => [String(x), fixed(p, 4), fixed(answer.drafted[x], 4), fixed(answer.acceptance[x], 4), fixed(answer.accepted[x], 4), fixed(answer.residual[x], 4), fixed(answer.emitted[x], 4)]),
        ),
      );
    };
    root.replaceChildren(h("form", { class: "controls", "aria-label": "Settings" }, ruleFields(place, changed), pairFields(place, changed), byHand), results);
    changed();
  },
};
