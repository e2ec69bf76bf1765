// A server under load: latency, throughput and goodput over the load, with speculation and without, and its steps one by one.
import * as Plot from "@observablehq/plot";
import { serving, type Answer } from "../core";
import { copyable, figure, figures, fixed, h, pictureSize, problem, select, slider, table } from "../ui";
import type { Settings } from "../state";
import { commandLine, number, oneOf, rates as ratesOf, whole } from "../settings";
import { isHead, modelFields, type Place, type View, workloadChecks, workloadDefaults } from "../view";

type Figures = Record<string, number | null>;
interface Point {
  load: number;
  speculative: boolean;
  overloaded: boolean;
  figures: Figures;
}
interface Step {
  step: number;
  start: number;
  target: number;
  draft: number;
  waiting: number;
  prefill_rows: number;
  decode_rows: number;
  draft_rows: number;
  preempted: number;
  draft_length: number;
  free_blocks: number | null;
  items: [request: number, rows: number, drafts: number, accepted: number, prefill: number, emits: number][];
}

const kLanes = 24; // requests that the replay draws

const rates = (text: string): number[] => text.split(",").map((rate) => (rate.trim().endsWith("%") ? Number(rate.trim().slice(0, -1)) / 100 : Number(rate)));

// Ten loads up to the largest: by equal factors, whole numbers of clients.
function loads(settings: Settings): number[] {
  const largest = Number(settings.most);
  const list = Array.from({ length: 10 }, (_, i) => largest / 32 ** ((9 - i) / 9));
  return settings.load === "rate" ? list.map((value) => Number(value.toPrecision(3))) : [...new Set(list.map((value) => Math.max(1, Math.round(value))))];
}

const method = (settings: Settings): string => (settings.draft === "none" ? "ngram" : isHead(settings.draft!) ? "eagle" : "draft_model");

function policy(settings: Settings): Record<string, unknown> {
  return settings.policy === "fixed" ? { kind: "fixed", draft_length: Number(settings.length) } : { kind: "goodput", longest: Number(settings.length) };
}

const affine = (settings: Settings): Record<string, number> => ({
  target_fixed_ms: Number(settings.fixed),
  target_ms_per_token: Number(settings.token),
  target_ms_per_kv_token: Number(settings.cached) / 1000,
  draft_fixed_ms: Number(settings.draftfixed),
});

// The config of `specsim serve` for the settings.
function config(settings: Settings, load: number): Record<string, unknown> {
  const cut = (preset: string, more: Record<string, unknown> = {}): unknown => {
    if (preset === "none") return preset;
    const changes = { ...(settings.gpus === "1" ? {} : { tensor_parallel: Number(settings.gpus) }), ...more };
    return Object.keys(changes).length ? { preset, ...changes } : preset;
  };
  const onGpu = settings.by === "gpu";
  const lengths = (mean: string) => ({ lognormal: { mean: Number(mean), cv: 1 } });
  return {
    experiment: "explorer",
    seed: Number(settings.seed),
    serve: {
      scheduler: { kind: "vllm_v1" },
      ...(onGpu ? { kv: { utilization: 0.9 } } : {}),
      arrivals: settings.load === "rate" ? { process: "poisson", rate: load, requests: Number(settings.requests) } : { process: "closed", concurrency: load, requests: Number(settings.requests) },
      lengths: { prompt: lengths(settings.prompt!), output: lengths(settings.output!) },
      speculation: { policy: policy(settings), acceptance: { position_rates: rates(settings.rates!) }, method: method(settings) },
      slo: { ttft_ms: Number(settings.ttft), tpot_ms: Number(settings.tpot) },
    },
    cost: onGpu
      ? { model: "roofline", hardware: settings.hardware, target: cut(settings.target!, settings.dtype ? { dtype: settings.dtype } : {}), draft: cut(settings.draft!), ...(settings.engine ? { engine: settings.engine } : {}) }
      : { model: "affine", ...affine(settings) },
  };
}

// The same as a command line.
function command(settings: Settings): string {
  const words = ["specsim", "serve"];
  const change = (path: string, value: string): number => words.push("--set", `${path}=${value}`);
  if (settings.by === "gpu") {
    words.push("--hardware", settings.hardware!, "--target", settings.target!, "--draft", settings.draft!);
    if (settings.gpus !== "1") for (const model of settings.draft === "none" ? ["target"] : ["target", "draft"]) change(`cost.${model}.tensor_parallel`, settings.gpus!);
    if (settings.dtype) change("cost.target.dtype", settings.dtype);
    if (settings.engine) change("cost.engine", settings.engine);
    change("serve.scheduler.max_num_batched_tokens", "2048"); // options alone use the values of the GPU
    change("serve.scheduler.max_num_seqs", "256");
  } else change("cost", `{model: affine, ${Object.entries(affine(settings)).map(([key, value]) => `${key}: ${value}`).join(", ")}}`);
  words.push("--position-rates", rates(settings.rates!).join(","), "--policy", `${settings.policy}:${settings.length}`, "--method", method(settings));
  words.push("--prompt", `{lognormal: {mean: ${settings.prompt}, cv: 1}}`, "--output", `{lognormal: {mean: ${settings.output}, cv: 1}}`);
  words.push("--requests", settings.requests!, "--seed", settings.seed!, "--slo", `ttft=${settings.ttft},tpot=${settings.tpot}`);
  words.push("--sweep", `${settings.load}=${loads(settings).join(",")}`);
  return commandLine(words);
}

const loadLabel = (settings: Settings): string => (settings.load === "rate" ? "requests a second" : "clients at once");
const way = (point: { speculative: boolean }): string => (point.speculative ? "speculative" : "plain");
const legend = (): HTMLElement => h("ul", { class: "legend" }, ...[["var(--target)", "with speculation"], ["var(--quiet)", "plain decoding"]].map(([colour, text]) => h("li", {}, h("i", { style: `background:${colour}` }), text!)));
const colour = (point: { speculative: boolean }): string => (point.speculative ? "var(--target)" : "var(--quiet)");

// One metric over the load, with and without speculation; `limit`: the SLO's line.
function over(settings: Settings, points: Point[], title: string, label: string, of: (figures: Figures) => number | null, more: { limit?: number; log?: boolean; note?: string } = {}): HTMLElement {
  const note = more.note;
  const rows = points.map((point) => ({ ...point, y: of(point.figures) })).filter((row) => row.y !== null && (!more.log || row.y > 0)) as (Point & { y: number })[];
  const limit = more.limit;
  const picture = Plot.plot({
    ...pictureSize(2, 260),
    marginLeft: 56,
    x: { type: "log", label: loadLabel(settings), tickFormat: "~s", grid: false },
    y: more.log ? { type: "log", label, grid: true, tickFormat: "~s" } : { label, grid: true, zero: true },
    marks: [
      ...(limit !== undefined && rows.some((row) => row.y > limit / 4) ? [Plot.ruleY([limit], { stroke: "var(--bad)", strokeDasharray: "5 4" })] : []),
      Plot.line(rows, { x: "load", y: "y", z: way, stroke: colour, strokeWidth: 2 }),
      Plot.dot(rows, { x: "load", y: "y", r: 3.5, fill: colour, symbol: (row: Point) => (row.speculative ? "circle" : "square"), tip: true, title: (row: Point & { y: number }) => `${loadLabel(settings)}: ${row.load}\n${way(row)}\n${label}: ${row.y.toPrecision(4)}` }),
    ],
  });
  const last = rows.filter((row) => row.load === rows[rows.length - 1]?.load).map((row) => `${way(row)} ${row.y.toPrecision(3)}`).join(", ");
  return figure(title, `At the largest load: ${last}`, picture, legend(), limit === undefined ? null : h("p", { class: "note" }, `Red dashes: the limit, ${limit} ms.`), note ? h("p", { class: "note" }, note) : null);
}

// The largest load up to which every tried load keeps the limits; 0 if the smallest does not.
function keeps(points: Point[], speculative: boolean): number {
  const own = points.filter((point) => point.speculative === speculative);
  const fails = own.findIndex((point) => point.figures.meets_slo !== 1 || point.overloaded);
  return fails < 0 ? (own[own.length - 1]?.load ?? 0) : fails > 0 ? own[fails - 1]!.load : 0;
}

function verdictOf(settings: Settings, answer: Answer, done: boolean): HTMLElement {
  const points = answer.points as Point[];
  const largest = points[points.length - 1]?.load ?? 0;
  const [plain, own] = [keeps(points, false), keeps(points, true)];
  const last = (speculative: boolean): Figures => points.filter((point) => point.speculative === speculative).pop()?.figures ?? {};
  const faster = (last(false).mean_tpot_ms ?? 0) / (last(true).mean_tpot_ms ?? 1);
  const loses = plain === own ? faster < 1 : own < plain;
  const upTo = (load: number): string => (load === 0 ? "at no load tried" : load === largest ? "at every load tried" : `up to ${load}`);
  const big = plain === own ? `Both keep the limits ${upTo(own)}; at the largest load tokens come ${fixed(faster, 2)} times as fast with speculation` : `With speculation the limits are kept ${upTo(own)}${own > 0 && own < largest ? ` ${loadLabel(settings)}` : ""}, without ${upTo(plain)}`;
  return h("section", { class: `verdict ${loses ? "loses" : "pays"}`, "data-done": done ? "yes" : "no", "aria-live": done ? "polite" : "off" }, h("p", { class: "big" }, big), ...(answer.verdict as string[]).map((line) => h("p", {}, line)), ...(answer.warnings as string[]).map((warning) => h("p", { class: "warning" }, warning)));
}

// ---- the replay -----------------------------------------------------------------------------------------------------------------

const milliseconds = (seconds: number): string => `${(1e3 * seconds).toFixed(2)} ms`;

function lanes(steps: Step[], at: number): HTMLElement {
  const seen = [...new Set(steps.flatMap((step) => step.items.map((item) => item[0])))].slice(0, kLanes);
  const shown = new Set(seen);
  const rows = steps.flatMap((step, index) => step.items.filter((item) => shown.has(item[0])).map((item) => ({ index, step, request: `#${item[0]}`, from: 1e3 * step.start, to: 1e3 * (step.start + step.target + step.draft), prefill: item[4] === 1, drafts: item[2], accepted: item[3], rows: item[1], emits: item[5] })));
  const now = steps[at]!;
  const kind = (row: (typeof rows)[number]): string => (row.prefill ? "var(--draft)" : row.drafts > 0 ? `color-mix(in oklab, var(--accepted) ${25 + 75 * (row.accepted / row.drafts)}%, var(--ground))` : "var(--soft)");
  const size = pictureSize(1, 70 + 17 * seen.length);
  const picture = Plot.plot({
    ...size,
    width: Math.max(size.width, 320),
    marginLeft: 56,
    x: { label: "milliseconds since the start of the load", domain: [1e3 * steps[0]!.start, 1e3 * (steps[steps.length - 1]!.start + steps[steps.length - 1]!.target + steps[steps.length - 1]!.draft)] },
    y: { type: "band", domain: seen.map((request) => `#${request}`), label: null, padding: 0.15 },
    color: { type: "identity" },
    marks: [
      Plot.rect(rows, { x1: "from", x2: "to", y: "request", fill: kind, inset: 0.3, tip: true, title: (row) => `request ${row.request}, step ${row.step.step}\n${row.prefill ? `${row.rows} tokens of its prompt` : row.drafts > 0 ? `${row.accepted} of ${row.drafts} drafts accepted` : "one token, without drafts"}` }),
      Plot.ruleX([1e3 * now.start, 1e3 * (now.start + now.target + now.draft)], { stroke: "var(--ink)", strokeWidth: 1.5 }),
    ],
  });
  return figure("Steps and their work", `Step ${now.step}: ${now.items.length} requests`, picture, h("ul", { class: "legend" }, ...[["var(--draft)", "prompt"], ["var(--accepted)", "round, all drafts accepted"], ["color-mix(in oklab, var(--accepted) 25%, var(--ground))", "round, none accepted"], ["var(--soft)", "one token, no drafts"]].map(([fill, text]) => h("li", {}, h("i", { style: `background:${fill}` }), text!))));
}

function stepOf(step: Step): HTMLElement {
  const items = step.items;
  const decoding = items.filter((item) => item[4] === 0);
  const accepted = decoding.reduce((sum, item) => sum + item[3], 0);
  const drafts = decoding.reduce((sum, item) => sum + item[2], 0);
  return h(
    "section",
    { "data-step": String(step.step) },
    figures([
      ["step", String(step.step), "step"],
      ["begins after", milliseconds(step.start), "start"],
      ["target's pass", milliseconds(step.target), "target"],
      ["draft's passes", milliseconds(step.draft), "drafting"],
      ["requests in it", String(items.length), "batch"],
      ["waiting", String(step.waiting), "waiting"],
      ["prompt tokens", String(step.prefill_rows), "prefill"],
      ["drafts accepted", drafts > 0 ? `${accepted} of ${drafts}` : "none drafted", "accepted"],
      ...(step.free_blocks === null ? [] : ([["free cache blocks", step.free_blocks.toLocaleString("en"), "free"]] as [string, string, string][])),
    ]),
    h(
      "ol",
      { class: "items", "aria-label": "Requests of the step" },
      ...items.slice(0, 48).map(([request, rows, drafts, accepted, prefill, emits]) =>
        h("li", { class: prefill ? "prompt" : "" }, h("strong", {}, `#${request} `), prefill ? `${rows} prompt tokens${emits ? ", first token" : ""}` : drafts > 0 ? h("span", { role: "img", "aria-label": `${accepted} of ${drafts} drafts accepted` }, "●".repeat(accepted) + "○".repeat(drafts - accepted)) : "one token"),
      ),
      items.length > 48 ? h("li", {}, `and ${items.length - 48} more`) : null,
    ),
  );
}

function replay(place: Place): { element: HTMLElement; ask: () => void; stop: () => void } {
  const { settings } = place;
  const picture = h("div", {});
  const one = h("div", {});
  let steps: Step[] = [];
  let at = 0;
  let timer = 0;
  const button = h("button", { type: "button", name: "play", onclick: () => (timer ? stop() : play()) }, "▶ play");
  const show = (): void => {
    if (steps.length === 0) return;
    const move = h("input", { type: "range", "aria-label": "Step of the replay", name: "step", min: 0, max: steps.length - 1, step: 1, value: at });
    move.addEventListener("input", () => {
      at = Number(move.value);
      detail();
    });
    const detail = (): void => {
      move.value = String(at);
      move.setAttribute("aria-valuetext", `step ${steps[at]!.step}`);
      picture.replaceChildren(lanes(steps, at));
      one.replaceChildren(stepOf(steps[at]!));
    };
    tick = (): void => {
      at = (at + 1) % steps.length;
      detail();
    };
    bar.replaceChildren(h("button", { type: "button", name: "back", onclick: () => step(-1) }, "← step"), button, h("button", { type: "button", name: "on", onclick: () => step(1) }, "step →"), move);
    detail();
    const step = (by: number): void => {
      at = Math.min(steps.length - 1, Math.max(0, at + by));
      detail();
    };
  };
  let tick = (): void => undefined;
  const stop = (): void => {
    clearInterval(timer);
    timer = 0;
    button.textContent = "▶ play";
  };
  const play = (): void => {
    timer = window.setInterval(() => tick(), 300);
    button.textContent = "❚❚ pause";
  };
  const bar = h("div", { class: "row player" });
  const ask = (): void => {
    place.save();
    const list = loads(settings);
    const value = list[Math.min(Number(settings.replayed), list.length - 1)]!;
    serving().latest("replay", { ask: "replay", config: config(settings, value), load: settings.load, value, from: Number(settings.from), steps: 60, plain: settings.way === "plain" }, (answer) => {
      if (answer.error) {
        picture.replaceChildren(problem(answer.error));
        one.replaceChildren();
        return;
      }
      steps = answer.steps as Step[];
      at = Math.min(at, Math.max(0, steps.length - 1));
      if (steps.length === 0) {
        picture.replaceChildren(h("p", { class: "note" }, "No step begins that late: all requests have ended."));
        one.replaceChildren();
      } else show();
    });
  };
  const choices = h("div", { class: "row wide" });
  const drawChoices = (): void => {
    const list = loads(settings);
    choices.replaceChildren(
      select("At", list.map((value, i) => ({ value: String(i), label: `${value} ${loadLabel(settings)}` })), settings.replayed!, (value) => {
        settings.replayed = value;
        ask();
      }),
      select("Server", [{ value: "speculative", label: "with speculation" }, { value: "plain", label: "plain decoding" }], settings.way!, (value) => {
        settings.way = value;
        ask();
      }),
      slider({ label: "From second", name: "from", min: 0, max: 60, step: 1, value: Number(settings.from), change: (value) => {
        settings.from = String(value);
        ask();
      } }),
    );
  };
  drawChoices();
  const element = h("section", { "aria-label": "Replay" }, h("h2", {}, "Step by step"), choices, bar, picture, one);
  return {
    element,
    ask: () => {
      drawChoices();
      ask();
    },
    stop,
  };
}

let generation = 0; // number of the shown curve: older ones stop
let playing: (() => void) | undefined;

export const serve: View = {
  id: "serve",
  title: "Serve",
  about: "A server under load: latency, throughput and goodput with speculation and without, and its steps one by one: specsim serve.",
  defaults: {
    ...workloadDefaults,
    draft: "eagle-head-8b",
    by: "gpu",
    fixed: "17.46",
    token: "0.0893",
    cached: "0.113",
    draftfixed: "1",
    rates: "0.77, 0.55, 0.39",
    policy: "fixed",
    length: "3",
    load: "rate",
    most: "64",
    requests: "600",
    prompt: "512",
    output: "256",
    ttft: "500",
    tpot: "20",
    seed: "1",
    replayed: "4",
    way: "speculative",
    from: "2",
  },
  allowed: {
    ...workloadChecks,
    by: oneOf("gpu", "line"),
    fixed: number(0, 1e6),
    token: number(0, 1e6),
    cached: number(0, 1e6),
    draftfixed: number(0, 1e6),
    rates: ratesOf,
    policy: oneOf("fixed", "goodput"),
    length: whole(1, 1e6),
    load: oneOf("rate", "concurrency"),
    most: number(0.001, 1e6),
    requests: whole(1, 1e6),
    prompt: number(1, 1e9),
    output: number(1, 1e9),
    ttft: number(0, 1e9),
    tpot: number(0, 1e9),
    seed: whole(0, 1e15),
    replayed: whole(0, 9),
    way: oneOf("speculative", "plain"),
    from: number(0, 1e9),
  },
  open(place) {
    const { root, settings } = place;
    const results = h("div", { class: "results" });
    const curve = h("div", { class: "results" });
    const player = replay(place);
    playing = player.stop;
    let timer = 0;
    const run = async (): Promise<void> => {
      const own = ++generation;
      const list = loads(settings);
      // Middle loads first, so that the curve's shape appears before its ends.
      const question = { ask: "serve", config: config(settings, list[0]!), load: settings.load };
      for (let upTo = Math.min(4, list.length); own === generation; upTo = Math.min(list.length, upTo + 2)) {
        const values = upTo >= list.length ? list : list.filter((_, i) => i % Math.ceil(list.length / upTo) === 0);
        const answer = await serving().ask({ ...question, values });
        if (own !== generation) return;
        if (answer.error) {
          results.replaceChildren(problem(answer.error));
          return;
        }
        show(answer, false);
        if (values.length === list.length) break;
      }
      // The saturated throughput takes longer to compute than the curve, which is shown meanwhile.
      const answer = await serving().ask({ ...question, values: list, capacity: true });
      if (own === generation) show(answer, true);
    };
    const show = (answer: Answer, whole: boolean): void => {
      const points = answer.points as Point[];
      curve.replaceChildren(
        verdictOf(settings, answer, whole),
        h(
          "div",
          { class: "pictures" },
          over(settings, points, "Time per output token, mean", "TPOT, ms", (own) => own.mean_tpot_ms!, { limit: Number(settings.tpot) }),
          over(settings, points, "Time to first token, p99", "TTFT p99, ms", (own) => own.p99_ttft_ms!, { limit: Number(settings.ttft), log: true }),
          over(settings, points, "Goodput: requests within both limits", "requests a second", (own) => own.request_goodput!, { note: "Over the whole run, until its last request ends: with few requests that end weighs at high loads." }),
          over(settings, points, "Output", "tokens a second", (own) => own.output_throughput!),
        ),
        table(
          "Load by load",
          [loadLabel(settings), "server", "TTFT ms", "p99", "TPOT ms", "p99", "tokens/s", "goodput", "batch", "tokens/round"],
          points.map((point) => [String(point.load), way(point), fixed(point.figures.mean_ttft_ms, 2), fixed(point.figures.p99_ttft_ms, 2), fixed(point.figures.mean_tpot_ms, 3), fixed(point.figures.p99_tpot_ms, 3), fixed(point.figures.output_throughput, 1), fixed(point.figures.request_goodput, 3), fixed(point.figures.mean_batch, 2), fixed(point.figures.tokens_per_round, 3)]),
        ),
        h("section", {}, h("h2", {}, "The same from the command line"), copyable(command(settings), "command")),
      );
      curve.dataset.points = JSON.stringify(points.map((point) => [point.load, point.speculative, point.figures.mean_tpot_ms, point.figures.p99_ttft_ms, point.figures.request_goodput, point.figures.output_throughput]));
      curve.dataset.command = command(settings);
      if (curve.parentElement !== results) results.replaceChildren(curve, player.element);
    };
    const changed = (): void => {
      place.save();
      clearTimeout(timer);
      ++generation;
      timer = window.setTimeout(() => {
        void run();
        player.ask();
      }, 150);
    };
    const set = (key: string) => (value: string | number) => {
      settings[key] = String(value);
      changed();
    };
    const latency = h("fieldset", {});
    const drawLatency = (): void => {
      latency.replaceChildren(
        h("legend", {}, "Server"),
        select("Latency of steps", [{ value: "gpu", label: "on a GPU (roofline)" }, { value: "line", label: "by a line fitted to a server (affine)" }], settings.by!, (value) => {
          settings.by = value;
          drawLatency();
          changed();
        }),
        ...(settings.by === "gpu"
          ? modelFields(place, changed)
          : [
              slider({ label: "Fixed time of a target pass, ms", name: "fixed", min: 1, max: 60, step: 0.1, value: Number(settings.fixed), change: set("fixed") }),
              slider({ label: "for each new token, ms", name: "token", min: 0, max: 0.5, step: 0.005, value: Number(settings.token), change: set("token") }),
              slider({ label: "for a thousand cached tokens, ms", name: "cached", min: 0, max: 1, step: 0.001, value: Number(settings.cached), change: set("cached") }),
              slider({ label: "Draft's pass, ms", name: "draftfixed", min: 0, max: 10, step: 0.1, value: Number(settings.draftfixed), change: set("draftfixed") }),
            ]),
      );
    };
    drawLatency();
    const load = h("fieldset", {});
    const drawLoad = (): void => {
      load.replaceChildren(
        h("legend", {}, "Load"),
        select("Clients", [{ value: "rate", label: "send at a fixed rate" }, { value: "concurrency", label: "wait for answers, a fixed number at once" }], settings.load!, (value) => {
          settings.load = value;
          drawLoad();
          changed();
        }),
        slider({ label: `Largest load: ${loadLabel(settings)}`, name: "most", min: 1, max: 512, step: 1, value: Number(settings.most), powers: true, change: set("most") }),
        slider({ label: "Requests of each run", name: "requests", min: 100, max: 2000, step: 100, value: Number(settings.requests), change: set("requests") }),
        slider({ label: "Prompt tokens, mean", name: "prompt", min: 16, max: 4096, step: 1, value: Number(settings.prompt), powers: true, change: set("prompt") }),
        slider({ label: "Output tokens, mean", name: "output", min: 16, max: 1024, step: 1, value: Number(settings.output), powers: true, change: set("output") }),
        slider({ label: "Limit: first token, ms", name: "ttft", min: 50, max: 5000, step: 50, value: Number(settings.ttft), change: set("ttft") }),
        slider({ label: "Limit: each later token, ms", name: "tpot", min: 2, max: 200, step: 1, value: Number(settings.tpot), change: set("tpot") }),
        slider({ label: "Seed", name: "seed", min: 1, max: 100, step: 1, value: Number(settings.seed), change: set("seed") }),
      );
    };
    drawLoad();
    const field = h("input", { id: "serve-rates", type: "text", name: "rates", value: settings.rates!, spellcheck: "false", oninput: () => set("rates")(field.value) });
    const speculation = h(
      "fieldset",
      {},
      h("legend", {}, "Speculation"),
      h("div", { class: "field" }, h("label", { for: "serve-rates" }, "Acceptance, position by position, of all rounds"), field, h("small", {}, "as vLLM logs it: 0.77, 0.55, 0.39")),
      select("Draft length", [{ value: "fixed", label: "fixed" }, { value: "goodput", label: "chosen step by step (goodput)" }], settings.policy!, set("policy")),
      slider({ label: "drafts, at most", name: "length", min: 1, max: 16, step: 1, value: Number(settings.length), change: set("length") }),
    );
    root.replaceChildren(h("form", { class: "controls", "aria-label": "Settings", onsubmit: (event) => event.preventDefault() }, latency, speculation, load), results);
    place.save();
    void run();
    player.ask();
  },
  close() {
    ++generation;
    playing?.();
  },
};
