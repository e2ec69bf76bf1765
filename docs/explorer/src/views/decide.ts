// specsim plan with sliders: which draft length, or none, for a GPU, a pair of models and a load.
import * as Plot from "@observablehq/plot";
import { quickCore, type Answer } from "../core";
import { copyable, figure, fixed, h, percent, pictureSize, problem, select, slider, speedupColour, table } from "../ui";
import { commandLine, named, number, oneOf, rates, text, whole } from "../settings";
import { type Place, type View, workload, workloadChecks, workloadDefaults, workloadFields, workloadOptions, serverOptions } from "../view";

const kinds = [
  { value: "alpha", label: "one rate at every position" },
  { value: "position_rates", label: "rates by position, of all rounds (vLLM's log)" },
  { value: "conditional_rates", label: "rates by position, once it is reached" },
  { value: "length", label: "mean acceptance length, bonus included" },
  { value: "rate", label: "accepted / drafted tokens" },
  { value: "table", label: "a published table" },
  { value: "log", label: "a server's log or metrics, pasted" },
];

function acceptance(settings: Place["settings"]): Record<string, unknown> {
  const kind = settings.acceptance!;
  if (kind === "alpha") return { kind, value: Number(settings.alpha) };
  if (kind === "length") return { kind, value: Number(settings.length), at: Number(settings.at) };
  if (kind === "rate") return { kind, value: Number(settings.rate), at: Number(settings.at) };
  if (kind === "log") return Number(settings.at) > 0 && settings.logat === "yes" ? { kind, value: settings.log, at: Number(settings.at) } : { kind, value: settings.log };
  if (kind === "table") return { kind, value: settings.table };
  const value = settings.rates!.split(",").map((rate) => (rate.trim().endsWith("%") ? Number(rate.trim().slice(0, -1)) / 100 : Number(rate)));
  return { kind, value: value.map((rate) => (Number.isFinite(rate) ? rate : -1)) };
}

function acceptanceOptions(settings: Place["settings"]): string[] {
  switch (settings.acceptance) {
    case "alpha":
      return ["--alpha", settings.alpha!];
    case "length":
      return ["--mean-acceptance-length", settings.length!, "--at-draft-length", settings.at!];
    case "rate":
      return ["--acceptance-rate", settings.rate!, "--at-draft-length", settings.at!];
    case "log":
      return ["--log", "FILE", ...(settings.logat === "yes" ? ["--at-draft-length", settings.at!] : [])];
    case "table":
      return ["--acceptance", settings.table!];
    case "position_rates":
      return ["--position-rates", settings.rates!.replaceAll(" ", "")];
    default:
      return ["--conditional-rates", settings.rates!.replaceAll(" ", "")];
  }
}

function acceptanceFields(place: Place, holder: HTMLElement, changed: () => void): void {
  const { settings, parts } = place;
  const set = (key: string) => (value: string | number) => {
    settings[key] = String(value);
    changed();
  };
  const draw = (): void => {
    const at = slider({ label: "measured at draft length", name: "at", min: 1, max: 16, step: 1, value: Number(settings.at), change: set("at") });
    const kind = settings.acceptance!;
    const fields: HTMLElement[] = [];
    if (kind === "alpha") fields.push(slider({ label: "Acceptance rate α", name: "alpha", min: 0, max: 1, step: 0.01, value: Number(settings.alpha), change: set("alpha") }));
    if (kind === "length") fields.push(slider({ label: "Tokens per round, bonus included", name: "length", min: 1, max: 9, step: 0.05, value: Number(settings.length), change: set("length") }), at);
    if (kind === "rate") fields.push(slider({ label: "Accepted / drafted", name: "rate", min: 0, max: 1, step: 0.01, value: Number(settings.rate), change: set("rate") }), at);
    if (kind === "table") fields.push(select("Table", (parts.acceptance as string[]).map((value) => ({ value })), settings.table!, set("table")));
    if (kind === "log") {
      const field = h("textarea", { id: "log", name: "log", rows: 5, spellcheck: "false", oninput: () => set("log")(field.value) }, settings.log!);
      const known = select("Draft length of the server", [{ value: "", label: "from the log" }, { value: "yes", label: "set here" }], settings.logat!, (value) => {
        settings.logat = value;
        draw();
        changed();
      });
      fields.push(h("div", { class: "field" }, h("label", { for: "log" }, "Lines of vLLM, SGLang, llama.cpp or TensorRT-LLM"), field), known, ...(settings.logat === "yes" ? [at] : []));
    }
    if (kind.endsWith("_rates")) {
      const id = `rates-${kind}`;
      const field = h("input", { id, type: "text", name: "rates", value: settings.rates!, spellcheck: "false", oninput: () => set("rates")(field.value) });
      fields.push(h("div", { class: "field" }, h("label", { for: id }, "Rates, position by position"), field, h("small", {}, "0.7, 0.45, 0.31 or 70%, 45%, 31%")));
    }
    holder.replaceChildren(
      select("Acceptance is known as", kinds, kind, (value) => {
        settings.acceptance = value;
        draw();
        changed();
      }),
      ...fields,
    );
  };
  draw();
}

// Benchmark results of the user's own server, one run without speculation and one with it. Either alone helps too.
function runFields({ settings }: Place, changed: () => void): HTMLElement[] {
  const area = (name: string, label: string): HTMLElement => {
    const field = h("textarea", { id: name, name, rows: 3, spellcheck: "false", placeholder: '{"mean_ttft_ms": ...}', oninput: () => { settings[name] = field.value; changed(); } }, settings[name]!);
    return h("div", { class: "field" }, h("label", { for: name }, label), field);
  };
  return [
    area("plainrun", "Benchmark result without speculation"),
    area("draftedrun", "Benchmark result with speculation"),
    slider({ label: "Draft length of that run", name: "runlength", min: 1, max: 16, step: 1, value: Number(settings.runlength), change: (value) => { settings.runlength = String(value); changed(); } }),
    h("small", {}, "Files saved by vllm bench serve, sglang.bench_serving, AIPerf or GuideLLM. The estimates then fit your server."),
  ];
}

function pastedRuns(settings: Place["settings"]): Record<string, unknown>[] {
  const runs = [];
  if (settings.plainrun!.trim()) runs.push({ text: settings.plainrun });
  // Tables have a column for the draft length.
  const drafted = settings.draftedrun!.trim();
  if (drafted) runs.push(/^[[{]/.test(drafted) ? { text: drafted, draft_length: Number(settings.runlength) } : { text: drafted });
  return runs;
}

// Results learned from the runs, above the answer.
function learned(answer: Answer): HTMLElement {
  const ms = (x: number | null): string => (x === null ? "–" : fixed(x, 2));
  return h(
    "section",
    { "data-part": "tuned" },
    h("h2", {}, "Your runs show"),
    ...(answer.findings as string[]).map((sentence) => h("p", {}, `${sentence}.`)),
    answer.findings.length === 0 ? h("p", {}, "Your server agrees with the estimate.") : null,
    table("Runs", ["draft length", "TPOT ms, measured", "estimated", "after tuning"], (answer.runs as Answer[]).map((run) => [String(run.draft_length), ms(run.tpot_ms), ms(run.tpot_ms_estimated), ms(run.tpot_ms_tuned)]), -1),
    ...(answer.warnings as string[]).map((warning) => h("p", { class: "warning" }, warning)),
  );
}

function verdict(answer: Answer): HTMLElement {
  const { best, points } = answer;
  const point = points[best];
  const even = best > 0 ? answer.break_even_chosen : answer.break_even;
  const title = best > 0 ? h("p", { class: "big" }, "Draft ", h("strong", { "data-figure": "best" }, String(best)), ` token${best > 1 ? "s" : ""}: `, h("strong", { "data-figure": "speedup" }, fixed(point.speedup, 4)), "× as fast") : h("p", { class: "big" }, "Do not speculate: ", h("strong", { "data-figure": "best" }, "0"), " drafts are best");
  const lines = [
    best > 0 ? `${fixed(point.tokens_per_round, 3)} tokens per round of ${fixed(1e3 * point.round, 3)} ms; without speculation ${fixed(1e3 * point.plain, 3)} ms per token` : `Reason: ${answer.reason}. No draft length up to ${points.length - 1} beats plain decoding.`,
    answer.gain ? `Speedup at draft length ${answer.gain.draft_length}, 95 %: ${fixed(answer.gain.low, 2)} to ${fixed(answer.gain.high, 2)}; ${answer.gain.verdict}` : "",
    even ? `Break-even: α = ${fixed(even.alpha, 4)} at draft length ${even.draft_length}; here ${fixed(answer.equivalent_alpha, 4)}` : "No acceptance breaks even: even a draft that is always right loses",
    answer.ties.length ? `A tie with draft length ${answer.ties.join(", ")}: within the error of the comparison, ${percent(answer.noise)}` : "",
    answer.measured < points.length - 1 ? `Acceptance was measured up to draft length ${answer.measured}; beyond it the last rate is assumed` : "",
    answer.cliff ? `At batch ${answer.cliff.batch} draft length ${best} drops to ${fixed(answer.cliff.speedup, 3)}: another tile or captured size begins` : "",
    `Acceptance: ${answer.acceptance}`,
  ];
  return h("section", { class: `verdict ${best > 0 ? "pays" : "loses"}`, "aria-live": "polite" }, title, ...lines.filter(Boolean).map((line) => h("p", {}, line)), ...(answer.warnings as string[]).map((warning) => h("p", { class: "warning" }, warning)));
}

const wide = (height = 260) => ({ ...pictureSize(2, height), marginLeft: 50 });

function byLength(answer: Answer): HTMLElement {
  const points = answer.points.slice(1);
  const picture = Plot.plot({
    ...wide(),
    x: { label: "draft length", tickFormat: "d" },
    y: { label: "speedup", grid: true, zero: true },
    marks: [
      Plot.barY(points, { x: "draft_length", y: "speedup", fill: (d) => (d.draft_length === answer.best ? "var(--accent)" : "var(--soft)"), tip: true, title: (d) => `draft length ${d.draft_length}: ${fixed(d.speedup, 4)}×\n${fixed(d.tokens_per_round, 3)} tokens per round\ndraft ${fixed(1e3 * d.draft, 3)} ms, verify ${fixed(1e3 * d.verify, 3)} ms` }),
      Plot.ruleY([1], { stroke: "var(--line)", strokeDasharray: "4 3" }),
    ],
  });
  return figure("Speedup by draft length", answer.best > 0 ? `Highest at ${answer.best}: ${fixed(answer.points[answer.best].speedup, 2)}` : "None exceeds 1", picture);
}

function waterfall(answer: Answer): HTMLElement {
  const steps = answer.waterfall as { name: string; after: number }[];
  const bars = steps.map((step, i) => ({ name: i === 0 ? "ideal" : step.name, from: i === 0 ? 0 : steps[i - 1]!.after, to: step.after, order: i })).filter((bar, i) => i === 0 || Math.abs(bar.from - bar.to) > 1e-4);
  bars.push({ name: "speedup", from: 0, to: steps[steps.length - 1]!.after, order: 99 });
  const picture = Plot.plot({
    ...wide(60 + 26 * bars.length),
    marginLeft: 120,
    marginRight: 44,
    x: { label: "speedup", grid: true, zero: true },
    y: { label: null, domain: bars.map((bar) => bar.name) },
    marks: [
      Plot.barX(bars, { y: "name", x1: "from", x2: "to", fill: (d) => (d.name === "ideal" || d.name === "speedup" ? "var(--accent)" : "var(--loss)"), insetTop: 2, insetBottom: 2 }),
      Plot.text(bars, { y: "name", x: (d) => Math.max(d.from, d.to), text: (d) => (d.name === "ideal" || d.name === "speedup" ? fixed(d.to, 2) : fixed(d.to - d.from, 2).replace("-", "−")), textAnchor: "start", dx: 4, fill: "currentColor" }),
      Plot.ruleX([1], { stroke: "var(--line)", strokeDasharray: "4 3" }),
    ],
  });
  return figure(`Losses of speedup, at draft length ${answer.waterfall_of}`, bars.map((bar) => `${bar.name} ${fixed(bar.to, 2)}`).join(", "), picture);
}

function byBatch(answer: Answer): HTMLElement | null {
  const points = answer.by_batch as Answer[];
  if (points.length === 0) return null;
  const picture = Plot.plot({
    ...wide(),
    x: { type: "log", base: 2, label: "batch", tickFormat: "d" },
    y: { label: "best draft length", grid: true, domain: [0, Math.max(4, ...points.map((point) => point.best + 1))], interval: 1, ticks: 8, tickFormat: "d" },
    marks: [
      Plot.line(points, { x: "at", y: "smooth", stroke: "var(--accent)", strokeWidth: 2, curve: "step-after" }),
      Plot.dot(points, { x: "at", y: "best", r: 2.5, fill: "var(--loss)", tip: true, title: (d) => `batch ${d.at}: ${d.best} (smoothed ${d.smooth})\nspeedup ${fixed(d.speedup, 3)}` }),
    ],
  });
  const schedule = ((answer.schedule ?? []) as Answer[]).map((stretch) => `${stretch.draft_length} up to batch ${stretch.to}`).join(", ");
  return figure("Best draft length by batch", `Smoothed: ${schedule}`, picture, h("p", { class: "note" }, "Dots: best at each batch. Line: a schedule for a server, ", schedule, "."));
}

function map(answer: Answer, batch: number, context: number): HTMLElement | null {
  const cells = (answer.cells as Answer[]) ?? [];
  if (cells.length === 0) return null;
  const thousands = (x: number): string => (x >= 1024 ? `${x / 1024}k` : String(x));
  const picture = Plot.plot({
    ...wide(300),
    padding: 0.03,
    x: { type: "band", label: "batch" },
    y: { type: "band", label: "context", reverse: true, tickFormat: thousands },
    color: { type: "identity" },
    marks: [
      Plot.cell(cells.filter((cell) => cell.known), { x: "batch", y: "context", fill: (d) => speedupColour(d.best > 0 ? d.speedup : 1, 3), tip: true, title: (d) => `batch ${d.batch}, context ${d.context}\n${d.best > 0 ? `draft ${d.best}: ${fixed(d.speedup, 2)}×` : "do not speculate"}\nbreak-even α ${fixed(d.break_even_alpha, 3)}` }),
      Plot.cell(cells.filter((cell) => !cell.known), { x: "batch", y: "context", fill: "var(--ground)", stroke: "var(--line)", title: "regime" }),
      Plot.text(cells, { x: "batch", y: "context", text: (d) => (d.known ? (d.best > 0 ? String(d.best) : "–") : "×"), fill: "currentColor" }),
      Plot.cell(cells.filter((cell) => cell.batch === batch && cell.context === context), { x: "batch", y: "context", fill: "none", stroke: "currentColor", strokeWidth: 2 }),
    ],
  });
  return figure("Best draft length by batch and context", `${cells.filter((cell) => cell.known && cell.best > 0).length} of ${cells.length} places speculate`, picture, h("p", { class: "note" }, "Colour: speedup. –: plain decoding is best. ×: does not fit into memory, or is outside the measured range."));
}

const gib = (bytes: number): string => fixed(bytes / 2 ** 30, 2);

export const decide: View = {
  id: "decide",
  title: "Decide",
  about: "Which draft length for your GPU, models and load, and whether to speculate at all: specsim plan with sliders.",
  defaults: { ...workloadDefaults, acceptance: "alpha", alpha: "0.7", rates: "0.7, 0.45, 0.31", length: "2.8", rate: "0.54", at: "3", table: "eagle-vicuna-7b-chat", log: "SpecDecoding metrics: Mean acceptance length: 2.46, Accepted throughput: 146.00 tokens/s, Drafted throughput: 300.00 tokens/s, Accepted: 1460 tokens, Drafted: 3000 tokens, Per-position acceptance rate: 0.700, 0.450, 0.310, Avg Draft acceptance rate: 48.7%", logat: "", plainrun: "", draftedrun: "", runlength: "3", longest: "10" },
  allowed: { ...workloadChecks, acceptance: oneOf(...kinds.map((kind) => kind.value)), alpha: number(0, 1), rates, length: number(1, 1e6), rate: number(0, 1), at: whole(1, 1e6), table: named("acceptance"), log: text, logat: oneOf("", "yes"), plainrun: text, draftedrun: text, runlength: whole(1, 1e6), longest: whole(1, 1e6) },
  open(place) {
    const { root, settings } = place;
    const results = h("div", { class: "results" });
    const mapHolder = h("div", {});
    const tunedHolder = h("div", {});
    let asked = ""; // the runs and the server that `tuned` is of
    let tuned: unknown;
    const plan = (): void => {
      const question = { ...workload(settings), acceptance: acceptance(settings), tuned };
      quickCore().latest("plan", { ask: "plan", ...question }, show);
      quickCore().latest("map", { ask: "map", ...question }, (answer) => {
        const drawn = answer.error ? null : map(answer, Number(settings.batch), Number(settings.context));
        mapHolder.replaceChildren(...(drawn ? [drawn] : []));
      });
    };
    const changed = (): void => {
      place.save();
      const { batch: _batch, context: _context, longest: _longest, ...server } = workload(settings);
      const question = { ask: "tune", ...server, runs: pastedRuns(settings) };
      const now = JSON.stringify(question);
      if (question.runs.length === 0) {
        tuned = undefined;
        tunedHolder.replaceChildren();
      } else if (now !== asked) {
        quickCore().latest("tune", question, (answer) => {
          tuned = answer.error ? undefined : answer.tuned;
          tunedHolder.replaceChildren(answer.error ? problem(answer.error) : learned(answer));
          plan();
        });
        asked = now;
        return;
      }
      asked = now;
      plan();
    };
    const show = (answer: Answer): void => {
      if (answer.error) {
        results.replaceChildren(problem(answer.error));
        return;
      }
      const own = tuned ? { ...settings, engine: "build/server/server.yaml" } : settings;
      const tuning = tuned ? commandLine(["specsim", "tune", ...(settings.plainrun!.trim() ? ["plain.json"] : []), ...(settings.draftedrun!.trim() ? [`drafted.json@k=${settings.runlength}`] : []), ...serverOptions(settings), "--out", "build/server"]) : null;
      const command = commandLine(["specsim", "plan", ...workloadOptions(own), ...acceptanceOptions(settings), "--longest", settings.longest!]);
      const ms = 1e3;
      results.replaceChildren(
        verdict(answer),
        tunedHolder,
        h("div", { class: "pictures" }, byLength(answer), waterfall(answer), byBatch(answer), mapHolder),
        table(
          "Draft lengths",
          ["draft length", "tokens/round", "draft ms", "verify ms", "other ms", "round ms", "tokens/s", "speedup"],
          (answer.points as Answer[]).map((point) => [String(point.draft_length), fixed(point.tokens_per_round, 4), fixed(ms * point.draft, 4), fixed(ms * point.verify, 4), fixed(ms * point.other, 4), fixed(ms * point.round, 4), fixed(point.tokens_per_second, 1), fixed(point.speedup, 4)]),
          answer.best,
        ),
        answer.memory ? table(`Memory: ${gib(answer.memory.needed)} of ${gib(answer.memory.available)} GiB`, ["what", "GiB"], [...(answer.memory.lines as Answer[]).map((line) => [line.what, gib(line.bytes)]), ["largest batch with the draft", String(answer.largest_batch_with_draft)], ["largest batch without", String(answer.largest_batch_without)]], -1, true) : h("span", {}),
        h("section", {}, h("h2", {}, "Start a server with"), ...(answer.commands as Answer[]).map((own) => h("div", {}, h("h3", {}, own.engine), own.command ? copyable(own.command, `flags for ${own.engine}`) : null, ...(own.notes as string[]).map((note) => h("p", { class: "note" }, note)))), answer.commands.length === 0 ? h("p", { class: "note" }, "No draft, no flags.") : null),
        h("section", {}, h("h2", {}, "The same from the command line"), tuning ? copyable(tuning, "command that reads the runs") : null, copyable(command, "command")),
      );
    };
    const acceptanceHolder = h("div", {});
    acceptanceFields(place, acceptanceHolder, changed);
    root.replaceChildren(
      h("form", { class: "controls", "aria-label": "Settings" }, h("fieldset", {}, h("legend", {}, "Acceptance"), acceptanceHolder), h("fieldset", {}, h("legend", {}, "Server"), ...workloadFields(place, changed)), h("fieldset", {}, h("legend", {}, "Your own runs"), ...runFields(place, changed)), h("fieldset", {}, h("legend", {}, "Search"), slider({ label: "Longest draft that is tried", name: "longest", min: 1, max: 32, step: 1, value: Number(settings.longest), change: (value) => { settings.longest = String(value); changed(); } }))),
      results,
    );
    changed();
  },
};
