// Many rounds, run live: does the output follow the target's distribution?
import * as Plot from "@observablehq/plot";
import { rounds, type Answer } from "../core";
import { figure, figures, fixed, h, pictureSize, problem, slider, table } from "../ui";
import { pairConfig, pairChecks, pairDefaults, pairFields, ruleFields } from "../pair";
import { whole } from "../settings";
import type { Place, View } from "../view";

let generation = 0; // number of the shown run: older ones stop

interface Mark {
  emitted: number;
  distance: number;
  expected: number;
}

function shares(answer: Answer): HTMLElement {
  const all = (answer.observed as number[]).reduce((a, b) => a + b, 0);
  const rows = (answer.target as number[]).map((target, token) => ({ token, target, drafted: answer.drafted[token] as number, observed: all > 0 ? answer.observed[token] / all : 0 }));
  const picture = Plot.plot({
    ...pictureSize(2, 300),
    marginLeft: 50,
    x: { type: "band", label: "token" },
    y: { label: "share", grid: true },
    marks: [
      Plot.barY(rows, { x: "token", y: "observed", fill: "var(--soft)", tip: true, title: (d) => `token ${d.token}\nobserved ${fixed(d.observed, 5)}\ntarget ${fixed(d.target, 5)}\ndraft ${fixed(d.drafted, 5)}` }),
      Plot.tickY(rows, { x: "token", y: "target", stroke: "var(--target)", strokeWidth: 3 }),
      Plot.tickY(rows, { x: "token", y: "drafted", stroke: "var(--draft)", strokeWidth: 2, strokeDasharray: "3 3" }),
    ],
  });
  return figure("Emitted tokens", `Distance from the target ${fixed(answer.distance, 5)}`, picture, h("ul", { class: "legend" }, ...[["var(--soft)", "emitted"], ["var(--target)", "line: target"], ["var(--draft)", "dashes: draft"]].map(([colour, text]) => h("li", {}, h("i", { style: `background:${colour}` }), text!))));
}

function path(marks: Mark[]): HTMLElement {
  // A run that ended at once is one point: in the middle of a decade each way.
  const around = (x: number): { domain?: [number, number] } => (marks.length > 1 ? {} : { domain: [x / 10, x * 10] });
  const picture = Plot.plot({
    ...pictureSize(2, 300),
    marginLeft: 60,
    x: { type: "log", ...around(marks[0]!.emitted), label: "emitted tokens", tickFormat: "~s", grid: true },
    y: { type: "log", ...around(marks[0]!.distance), label: "sum of |share − target|", grid: true, tickFormat: "~g" },
    marks: [
      Plot.line(marks, { x: "emitted", y: "expected", stroke: "var(--target)", strokeDasharray: "5 4" }),
      Plot.line(marks, { x: "emitted", y: "distance", stroke: "var(--loss)", strokeWidth: 2 }),
      Plot.dot(marks.slice(-1), { x: "emitted", y: "distance", r: 4, fill: "var(--loss)" }),
    ],
  });
  const last = marks[marks.length - 1];
  return figure("Distance from the target by number of tokens", last ? `${fixed(last.distance, 5)} after ${last.emitted} tokens; ${fixed(last.expected, 5)} expected for tokens drawn from the target` : "", picture, h("p", { class: "note" }, "Dashed line: the average for this number of tokens drawn from the target itself. A lossless rule follows it; a biased rule stays above it."));
}

export const unbiased: View = {
  id: "unbiasedness",
  title: "Unbiasedness",
  about: "Rounds run live on this page: the distribution of the emitted tokens, compared with the target's. A biased rule never converges to it.",
  defaults: { ...pairDefaults, length: "4", rounds: "1000000", seed: "1" },
  allowed: { ...pairChecks, length: whole(1, 1e6), rounds: whole(1, 2 ** 40), seed: whole(0, 1e15) },
  open(place: Place) {
    const { root, settings } = place;
    const results = h("div", { class: "results" });
    const status = h("p", { class: "note", role: "status" });
    const run = async (): Promise<void> => {
      const own = ++generation;
      const all = Math.round(Number(settings.rounds));
      const config = pairConfig(settings, Math.round(Number(settings.length)), all, Math.round(Number(settings.seed)));
      const marks: Mark[] = [];
      let until = Math.min(all, 100);
      let busy = 0;
      while (own === generation) {
        const answer = await rounds().ask({ ask: "rounds", config, until });
        if (own !== generation) return;
        if (answer.error) {
          results.replaceChildren(problem(answer.error));
          status.textContent = "";
          return;
        }
        busy += answer.ms;
        marks.push({ emitted: answer.emitted, distance: Math.max(answer.distance, 1e-7), expected: answer.expected_distance });
        const rate = answer.rounds / Math.max(busy, 0.01);
        const off = answer.distance > 3 * answer.expected_distance;
        results.replaceChildren(
          h("section", { class: `verdict ${off ? "loses" : "pays"}`, "data-done": answer.done ? "yes" : "no" }, h("p", { class: "big" }, off ? "Off the target" : "On the target"), h("p", {}, `distance ${fixed(answer.distance, 5)}, ${fixed(answer.distance / answer.expected_distance, 2)} times what ${answer.emitted.toLocaleString("en")} tokens drawn from the target would show`), answer.done ? h("p", {}, `verdict against theory: ${answer.verdict}${answer.p_output === null || answer.p_output === undefined ? "" : `, p of the output distribution ${Number(answer.p_output).toPrecision(3)}`}`) : null),
          figures([
            ["rounds", answer.rounds.toLocaleString("en"), "rounds"],
            ["emitted", answer.emitted.toLocaleString("en"), "emitted"],
            ["α", `${fixed(answer.alpha, 5)}${answer.predicted_alpha ? ` (theory ${fixed(answer.predicted_alpha, 5)})` : ""}`, "alpha"],
            ["tokens per round", `${fixed(answer.tokens_per_round, 5)}${answer.predicted_tokens_per_round ? ` (theory ${fixed(answer.predicted_tokens_per_round, 5)})` : ""}`, "tokens"],
            ["rounds in a millisecond", fixed(rate, 0), "rate"],
          ]),
          h("div", { class: "pictures" }, shares(answer), path(marks)),
          answer.done
            ? table(
                "Counts, the same as the program's at this seed",
                ["token", "emitted", "share", "target"],
                (answer.observed as number[]).map((count, x) => [String(x), String(count), fixed(count / answer.emitted, 6), fixed(answer.target[x], 6)]),
              )
            : h("span", {}),
        );
        results.dataset.counts = JSON.stringify(answer.counts);
        status.textContent = answer.done ? `${answer.rounds.toLocaleString("en")} rounds took ${fixed(busy, 0)} ms` : "running";
        if (answer.done) return;
        until = Math.min(all, Math.max(until * 1.5, answer.rounds + 1));
        await new Promise((resolve) => requestAnimationFrame(resolve));
      }
    };
    let timer = 0;
    const changed = (): void => {
      place.save();
      clearTimeout(timer);
      timer = window.setTimeout(() => void run(), 120);
    };
    const set = (key: string) => (value: number) => {
      settings[key] = String(value);
      changed();
    };
    root.replaceChildren(
      h(
        "form",
        { class: "controls", "aria-label": "Settings", onsubmit: (event) => event.preventDefault() },
        ruleFields(place, changed),
        h(
          "fieldset",
          {},
          h("legend", {}, "Run"),
          slider({ label: "Draft length", name: "length", min: 1, max: 12, step: 1, value: Number(settings.length), change: set("length") }),
          slider({ label: "Rounds", name: "rounds", min: 1024, max: 2 ** 24, step: 1, value: Number(settings.rounds), powers: true, change: set("rounds") }),
          slider({ label: "Seed", name: "seed", min: 1, max: 100, step: 1, value: Number(settings.seed), change: set("seed") }),
          status,
        ),
        pairFields(place, changed),
      ),
      results,
    );
    place.save();
    void run();
  },
  close() {
    ++generation;
  },
};
