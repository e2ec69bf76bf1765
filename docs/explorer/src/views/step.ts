// One round of a run, choice by choice: drafted tokens, uniforms, and why each was accepted or not.
import * as Plot from "@observablehq/plot";
import { quickCore, type Answer } from "../core";
import { figure, fixed, h, pictureSize, problem, slider } from "../ui";
import { pairConfig, pairChecks, pairDefaults, pairFields, ruleFields } from "../pair";
import { whole } from "../settings";
import type { Place, View } from "../view";

function told(position: Answer, i: number, matches: boolean): HTMLElement {
  if (!position.judged) return h("li", { class: "unseen" }, h("p", {}, h("strong", {}, `Position ${i + 1}: token ${position.token} was drafted`), ", and is thrown away: a token before it was rejected."));
  const product = position.u * (position.odds_draft ?? 0);
  const why = position.odds_draft === undefined ? "the rule judges the block as a whole" : matches ? `the target's own token ${position.accepts ? "is the same" : "is another"}` : `u = ${fixed(position.u, 6)}: u × ${fixed(position.odds_draft, 4)} = ${fixed(product, 6)} is ${position.accepts ? "less" : "not less"} than ${fixed(position.odds_target, 4)}`;
  return h(
    "li",
    { class: position.accepts ? "yes" : "no" },
    h("p", {}, h("strong", {}, `Position ${i + 1}: token ${position.token} is ${position.accepts ? "accepted" : "rejected"}`)),
    h("p", {}, `drawn by ${fixed(position.draw, 6)}; the draft gives it ${fixed(position.drafted, 4)}, the target ${fixed(position.target, 4)}`),
    h("p", {}, why),
  );
}

function last(answer: Answer): HTMLElement {
  const rows = (answer.final.distribution as number[]).map((p, token) => ({ token, p, target: answer.target[token] as number }));
  const picture = Plot.plot({
    ...pictureSize(2, 220),
    marginLeft: 50,
    x: { type: "band", label: "token" },
    y: { label: "probability", grid: true },
    marks: [Plot.barY(rows, { x: "token", y: "p", fill: (d) => (d.token === answer.final.token ? "var(--accent)" : "var(--soft)") }), Plot.tickY(rows, { x: "token", y: "target", stroke: "var(--target)", strokeWidth: 2 })],
  });
  const title = answer.final.bonus ? "The last token: every draft was accepted, so one more comes from the target" : "The last token: drawn from the residual of the rejected position";
  return figure(title, `token ${answer.final.token}`, picture, h("p", { class: "note" }, `Bars: what token ${answer.final.token} was drawn from. Lines: the target.`));
}

export const step: View = {
  id: "step",
  title: "Step",
  about: "One round of a run, choice by choice, with the random numbers that the program draws at this seed.",
  defaults: { ...pairDefaults, length: "5", seed: "1", round: "0" },
  allowed: { ...pairChecks, length: whole(1, 1e6), seed: whole(0, 1e15), round: whole(0, 1e15) },
  open(place: Place) {
    const { root, settings } = place;
    const results = h("div", { class: "results" });
    const show = (answer: Answer): void => {
      if (answer.error) {
        results.replaceChildren(problem(answer.error));
        return;
      }
      const positions = answer.positions as Answer[];
      const chain = positions.map((position, i) => h("span", { class: `token ${!position.judged ? "" : position.accepts ? "yes" : "no"}`, title: `drafted at position ${i + 1}` }, String(position.token)));
      results.replaceChildren(
        h(
          "section",
          { class: `verdict ${answer.accepted > 0 ? "pays" : "loses"}`, "aria-live": "polite" },
          h("p", { class: "big" }, h("strong", { "data-figure": "accepted" }, String(answer.accepted)), ` of ${positions.length} accepted, ${answer.emitted.length} tokens come out`),
          h("p", { class: "chain" }, "drafted ", ...chain),
          h("p", { class: "chain" }, "emitted ", ...(answer.emitted as number[]).map((token, i) => h("span", { class: `token ${i < answer.accepted ? "yes" : "final"}`, "data-emitted": String(token) }, String(token)))),
        ),
        h("ol", { class: "steps" }, ...positions.map((position, i) => told(position, i, answer.matches))),
        answer.final.distribution ? last(answer) : h("p", { class: "note" }, `The last token, ${answer.final.token}, is the rule's own choice.`),
      );
    };
    const changed = (): void => {
      place.save();
      const round = Math.round(Number(settings.round));
      quickCore().latest("step", { ask: "step", round, config: pairConfig(settings, Math.round(Number(settings.length)), 1000000, Math.round(Number(settings.seed))) }, show);
    };
    const set = (key: string) => (value: number) => {
      settings[key] = String(value);
      changed();
    };
    const holder = h("fieldset", {});
    const draw = (): void => {
      const go = (by: number) => () => {
        settings.round = String(Math.max(0, Number(settings.round) + by));
        draw();
        changed();
      };
      holder.replaceChildren(
        h("legend", {}, "Round"),
        slider({ label: "Round of the run", name: "round", min: 0, max: 200, step: 1, value: Number(settings.round), change: set("round") }),
        h("div", { class: "row" }, h("button", { type: "button", onclick: go(-1) }, "← before"), h("button", { type: "button", name: "next", onclick: go(1) }, "next →")),
        slider({ label: "Draft length", name: "length", min: 1, max: 12, step: 1, value: Number(settings.length), change: set("length") }),
        slider({ label: "Seed", name: "seed", min: 1, max: 100, step: 1, value: Number(settings.seed), change: set("seed") }),
      );
    };
    draw();
    root.replaceChildren(h("form", { class: "controls", "aria-label": "Settings", onsubmit: (event) => event.preventDefault() }, holder, ruleFields(place, changed), pairFields(place, changed)), results);
    changed();
  },
};
