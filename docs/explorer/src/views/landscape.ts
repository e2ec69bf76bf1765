// Speedup over acceptance and draft length, with the best draft length's ridge and the line of break-even.
import * as Plot from "@observablehq/plot";
import { quickCore, type Answer } from "../core";
import { figure, fixed, h, percent, pictureSize, problem, select, slider, speedupColour, table } from "../ui";
import { number, oneOf, whole } from "../settings";
import { type View, workload, workloadChecks, workloadDefaults, workloadFields } from "../view";

interface Point {
  alpha: number;
  draft_length: number;
  speedup: number;
  tokens_per_round: number;
  draft: number;
  verify: number;
  other: number;
  plain: number;
}

function picture(answer: Answer, alpha: number): HTMLElement {
  const rows = answer.rows as Answer[];
  const points: Point[] = rows.flatMap((row) => (row.points as Answer[]).slice(1).map((point) => ({ ...(point as unknown as Point), alpha: row.alpha as number })));
  const step = rows.length > 1 ? (rows[1]!.alpha as number) - (rows[0]!.alpha as number) : 0.025;
  const ridge = rows.filter((row) => row.best > 0).map((row) => ({ alpha: row.alpha, draft_length: row.best }));
  const even = ((answer.break_even ?? []) as Answer[]).map((own, i) => ({ draft_length: i + 1, alpha: own?.alpha as number | undefined })).filter((own) => own.alpha !== undefined);
  const largest = Math.max(1.5, ...points.map((point) => point.speedup));
  const chart = Plot.plot({
    ...pictureSize(1, 440),
    marginLeft: 50,
    x: { label: "acceptance rate α", domain: [0 - step / 2, 1 + step / 2] },
    y: { label: "draft length", domain: [0.5, Math.max(...points.map((point) => point.draft_length)) + 0.5], interval: undefined, tickFormat: "d" },
    color: { type: "identity" },
    marks: [
      Plot.rect(points, {
        x1: (d: Point) => d.alpha - step / 2,
        x2: (d: Point) => d.alpha + step / 2,
        y1: (d: Point) => d.draft_length - 0.5,
        y2: (d: Point) => d.draft_length + 0.5,
        fill: (d: Point) => speedupColour(d.speedup, largest),
        title: (d: Point) => `α ${d.alpha.toFixed(3)}, draft length ${d.draft_length}\nspeedup ${fixed(d.speedup, 3)}, ${fixed(d.tokens_per_round, 3)} tokens per round\nof a round: draft ${percent(d.draft / (d.draft + d.verify + d.other))}, verify ${percent(d.verify / (d.draft + d.verify + d.other))}, other ${percent(d.other / (d.draft + d.verify + d.other))}`,
        tip: true,
      }),
      Plot.line(even, { x: "alpha", y: "draft_length", stroke: "currentColor", strokeWidth: 2, strokeDasharray: "5 4" }),
      Plot.dot(ridge, { x: "alpha", y: "draft_length", r: 4, fill: "var(--ink)", stroke: "var(--ground)" }),
      Plot.ruleX([alpha], { stroke: "var(--ink)", strokeOpacity: 0.5 }),
    ],
  });
  const words = ridge.length ? `Speculation pays from α ${fixed(answer.break_even_any?.alpha, 3)}; at α 1 draft length ${ridge[ridge.length - 1]!.draft_length} is best` : "No draft length pays at any acceptance";
  return figure("Speedup over acceptance and draft length", words, chart, h("ul", { class: "legend" }, ...[["var(--accent)", "faster than plain decoding, up to " + fixed(largest, 2) + "×"], ["var(--loss)", "slower"]].map(([colour, text]) => h("li", {}, h("i", { style: `background:${colour}` }), text!)), h("li", {}, "● best draft length"), h("li", {}, "┄ break-even")));
}

function slice(answer: Answer, alpha: number): HTMLElement {
  const rows = answer.rows as Answer[];
  const row = rows.reduce((a, b) => (Math.abs(b.alpha - alpha) < Math.abs(a.alpha - alpha) ? b : a));
  const points = (row.points as Answer[]).slice(1);
  return table(
    `At α ${fixed(row.alpha, 3)}`,
    ["draft length", "tokens/round", "round, in plain passes", "speedup", "break-even α"],
    points.map((point, i) => [String(point.draft_length), fixed(point.tokens_per_round, 4), fixed(point.round / point.plain, 4), fixed(point.speedup, 4), fixed(answer.break_even[i]?.alpha, 4)]),
    row.best - 1,
  );
}

export const landscape: View = {
  id: "landscape",
  title: "Landscape",
  about: "When speculation pays: speedup for every acceptance rate and draft length, by a cost ratio or on a real GPU.",
  defaults: { ...workloadDefaults, by: "ratio", ratio: "0.05", inflation: "1", overhead: "0", alpha: "0.7", longest: "12" },
  allowed: { ...workloadChecks, by: oneOf("ratio", "gpu"), ratio: number(0, 1e6), inflation: number(0, 1e6), overhead: number(0, 1e6), alpha: number(0, 1), longest: whole(1, 1e6) },
  open(place) {
    const { root, settings } = place;
    const results = h("div", { class: "results" });
    const holder = h("fieldset", {});
    const set = (key: string) => (value: string | number) => {
      settings[key] = String(value);
      changed();
    };
    const changed = (): void => {
      place.save();
      const common = { ask: "landscape", longest: Number(settings.longest), steps: 40 };
      const question = settings.by === "ratio" ? { ...common, cost_ratio: Number(settings.ratio), verify_inflation: Number(settings.inflation), overhead: Number(settings.overhead) } : { ...workload(settings), ...common };
      quickCore().latest("landscape", question, (answer) => {
        if (answer.error) results.replaceChildren(problem(answer.error));
        else {
          const even = answer.break_even_any;
          const here = (answer.rows as Answer[]).reduce((a, b) => (Math.abs(b.alpha - Number(settings.alpha)) < Math.abs(a.alpha - Number(settings.alpha)) ? b : a));
          results.replaceChildren(
            h("section", { class: `verdict ${here.best > 0 ? "pays" : "loses"}`, "aria-live": "polite" },
              h("p", { class: "big" }, `At α ${fixed(here.alpha, 3)}: `, here.best > 0 ? h("span", {}, "draft ", h("strong", { "data-figure": "best" }, String(here.best)), ", ", h("strong", { "data-figure": "speedup" }, fixed(here.points[here.best].speedup, 4)), "×") : h("strong", { "data-figure": "best" }, "do not speculate")),
              h("p", {}, even ? `Break-even at α ${fixed(even.alpha, 4)}, draft length ${even.draft_length}` : "Nothing breaks even"),
            ),
            picture(answer, Number(settings.alpha)),
            slice(answer, Number(settings.alpha)),
          );
        }
      });
    };
    const draw = (): void => {
      holder.replaceChildren(
        h("legend", {}, "Latency"),
        select("Latency of passes", [{ value: "ratio", label: "by a cost ratio" }, { value: "gpu", label: "on a GPU" }], settings.by!, (value) => {
          settings.by = value;
          draw();
          changed();
        }),
        ...(settings.by === "ratio"
          ? [
              slider({ label: "Draft pass / target pass", name: "ratio", min: 0, max: 0.5, step: 0.005, value: Number(settings.ratio), change: set("ratio") }),
              slider({ label: "Verification / target pass", name: "inflation", min: 1, max: 3, step: 0.05, value: Number(settings.inflation), change: set("inflation") }),
              slider({ label: "Host time of a round, in target passes", name: "overhead", min: 0, max: 1, step: 0.01, value: Number(settings.overhead), change: set("overhead") }),
            ]
          : workloadFields(place, changed)),
      );
    };
    draw();
    root.replaceChildren(
      h("form", { class: "controls", "aria-label": "Settings" }, holder, h("fieldset", {}, h("legend", {}, "Look at"), slider({ label: "Acceptance rate α", name: "alpha", min: 0, max: 1, step: 0.025, value: Number(settings.alpha), change: set("alpha") }), slider({ label: "Longest draft", name: "longest", min: 2, max: 32, step: 1, value: Number(settings.longest), change: set("longest") }))),
      results,
    );
    changed();
  },
};
