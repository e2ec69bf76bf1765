// The core as browsers run it, compared with the program: the same counts exactly, and the same plans.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { core, countsOfRun, csv, failure, run } from "./program.mjs";

const ask = await core();

const config = (verifier, more = {}) => ({
  experiment: "web",
  seed: 7,
  rounds: 300001, // not a whole number of chunks
  pair: {
    vocab: 6,
    target: { family: "explicit", probabilities: [0.375, 0.25, 0.125, 0.125, 0.125, 0] },
    draft: { family: "explicit", probabilities: [0.125, 0.5, 0.0625, 0.1875, 0, 0.125] },
  },
  context: { process: "fixed" },
  decode: { drafter: { kind: "chain", draft_length: 4, ...more }, verifier },
});

function sameCounts(own) {
  const answer = ask({ ask: "rounds", config: own });
  assert.equal(answer.error, undefined);
  assert.equal(answer.done, true);
  let compared = 0;
  const expected = new Map(csvPairs(countsOfRun(own)));
  for (const [name, values] of Object.entries(answer.counts))
    values.forEach((value, index) => {
      assert.equal(value, expected.get(`${name} ${index}`) ?? 0, `${name}[${index}]`);
      compared += value > 0 ? 1 : 0;
      expected.delete(`${name} ${index}`);
    });
  assert.equal(expected.size, 0, `the program counts more: ${[...expected.keys()]}`);
  assert.ok(compared > 20, `${compared} counts compared`);
}

function csvPairs(lines) {
  const columns = Object.keys(lines[0]);
  const [name, index, value] = columns.slice(-3);
  return lines.map((line) => [`${line[name]} ${Number(line[index] || 0)}`, Number(line[value])]);
}

for (const verifier of ["token", { kind: "lenience", lenience: 0.5 }, { kind: "top_k_match", k: 2 }, "sample_match", "block"])
  test(`counts of ${typeof verifier === "string" ? verifier : verifier.kind} are the program's, bit for bit`, () => sameCounts(config(verifier)));
test("counts of soft_argmax are the program's, bit for bit", () => sameCounts(config("soft_argmax", { selection: "argmax" })));

test("a run in pieces counts what a run at once does", () => {
  const own = config("token");
  ask({ ask: "rounds", config: { ...own, seed: 8 } });
  for (const until of [1, 50000, 50001, 200000]) assert.equal(ask({ ask: "rounds", config: own, until }).done, false);
  sameCounts(own);
});

test("another seed gives other counts", () => {
  const counts = [7, 8].map((seed) => ask({ ask: "rounds", config: { ...config("token"), seed } }).counts.emitted[0]);
  assert.notEqual(counts[0], counts[1]);
});

const close = (a, b, what) => assert.ok(Math.abs(a - b) <= 1e-8 * Math.max(1e-3, Math.abs(b)), `${what}: ${a}, the program prints ${b}`);

for (const [hardware, target, draft, more, options] of [
  ["h100-sxm", "llama-3.1-8b", "llama-3.2-1b", {}, []],
  ["rtx-4090", "llama-3.1-8b", "none", { batch: 8, context: 1024 }, ["--batch", "8", "--context", "1024"]],
  ["h100-sxm", "llama-3.1-70b", "llama-3.2-1b", { tensor_parallel: 4, batch: 16, dtype: "fp8" }, ["--tensor-parallel", "4", "--batch", "16", "--dtype", "fp8"]],
  ["b200", "deepseek-v3", "deepseek-v3-mtp", { tensor_parallel: 8, batch: 32 }, ["--tensor-parallel", "8", "--batch", "32"]],
])
  test(`the plan of ${draft} for ${target} on ${hardware} is the program's`, () => {
    const answer = ask({ ask: "plan", hardware, target, draft, ...more, longest: 8, acceptance: { kind: "position_rates", value: [0.7, 0.45, 0.31] } });
    assert.equal(answer.error, undefined);
    const told = run(["plan", "--hardware", hardware, "--target", target, "--draft", draft, ...options, "--longest", "8", "--position-rates", "0.7,0.45,0.31", "--verbose"], ["plan.csv", "own_map.csv"]);
    const lines = csv(told["plan.csv"]);
    assert.equal(lines.length, 9);
    lines.forEach((line, i) => {
      const point = answer.points[i];
      close(point.tokens_per_round, Number(line.tokens_per_round), "tokens per round");
      close(1e3 * point.draft, Number(line.draft_ms), "draft");
      close(1e3 * point.verify, Number(line.verify_ms), "verify");
      close(1e3 * point.round, Number(line.round_ms), "round");
      close(point.speedup, Number(line.speedup), "speedup");
      assert.equal(answer.best === i, line.best === "1");
    });
    for (const own of answer.commands) if (own.command) assert.ok(told.printed.includes(own.command), own.command);
    const map = ask({ ask: "map", hardware, target, draft, ...more, longest: 8, acceptance: { kind: "position_rates", value: [0.7, 0.45, 0.31] } });
    csv(told["own_map.csv"]).forEach((line, i) => {
      assert.equal(map.cells[i].known ? String(map.cells[i].best) : "", line.best_draft_length);
      if (line.speedup) close(map.cells[i].speedup, Number(line.speedup), "speedup of the map");
    });
  });

test("the landscape by a cost ratio is that of the closed form", () => {
  const answer = ask({ ask: "landscape", cost_ratio: 0.1, steps: 10, longest: 5 });
  const alpha = 0.7;
  const point = answer.rows[7].points[3];
  close(point.speedup, (1 - alpha ** 4) / (1 - alpha) / (3 * 0.1 + 1), "speedup"); // Leviathan et al. 2022, theorem 3.8
  assert.equal(answer.rows[0].best, 0);
});

test("mass: accepted and residual make the target, but for a biased rule", () => {
  const good = ask({ ask: "mass", config: config("token", { draft_length: 1 }) });
  good.emitted.forEach((p, x) => close(p, good.target[x], "emitted"));
  close(good.alpha, good.overlap, "alpha");
  const biased = ask({ ask: "mass", config: config({ kind: "lenience", lenience: 0.5 }, { draft_length: 1 }) });
  assert.ok(biased.bias > 0.01 && biased.alpha > good.alpha, `${biased.bias} ${biased.alpha} ${good.alpha}`);
});

test("step shows the round that the run plays", () => {
  const own = { ...config("token"), rounds: 64 }; // one sequence
  const counts = ask({ ask: "rounds", config: own }).counts;
  const rounds = Array.from({ length: 64 }, (_, round) => ask({ ask: "step", config: own, round }));
  assert.equal(rounds.reduce((sum, round) => sum + round.emitted.length, 0), counts.emitted[0]);
  for (const round of rounds) {
    const positions = round.positions.slice(0, round.accepted + 1);
    positions.forEach((position, i) => {
      assert.equal(position.accepts, i < round.accepted);
      assert.equal(position.u * position.odds_draft < position.odds_target, position.accepts);
      if (position.accepts) assert.equal(position.token, round.emitted[i]);
    });
    assert.ok(round.final.distribution[round.final.token] > 0);
  }
});

test("a pasted log plans as plan --log does", () => {
  const line = "SpecDecoding metrics: Mean acceptance length: 2.46, Accepted throughput: 146.00 tokens/s, Drafted throughput: 300.00 tokens/s, Accepted: 1460 tokens, Drafted: 3000 tokens, Per-position acceptance rate: 0.700, 0.450, 0.310, Avg Draft acceptance rate: 48.7%";
  const folder = mkdtempSync(join(tmpdir(), "specsim-web-"));
  writeFileSync(join(folder, "log"), `${line}\n`);
  const told = csv(run(["plan", "--log", join(folder, "log"), "--longest", "6"], ["plan.csv"])["plan.csv"]);
  rmSync(folder, { recursive: true });
  const answer = ask({ ask: "plan", longest: 6, acceptance: { kind: "log", value: line } });
  assert.equal(answer.error, undefined);
  told.forEach((own, i) => close(answer.points[i].speedup, Number(own.speedup), "speedup"));
  assert.match(ask({ ask: "plan", acceptance: { kind: "log", value: "nothing of it" } }).error, /no line .* speculative decoding \(1 read\)/);
});

const server = (cost, lengths, arrivals) => ({
  experiment: "web",
  seed: 3,
  serve: {
    scheduler: { kind: "vllm_v1" },
    kv: cost.model === "roofline" ? { utilization: 0.9 } : { blocks: 900 }, // few blocks: the load below fills them
    arrivals: { ...arrivals, requests: 300 },
    lengths,
    speculation: { policy: { kind: "fixed", draft_length: 3 }, acceptance: { position_rates: [0.77, 0.55, 0.39] } },
    slo: { ttft_ms: 500, tpot_ms: 50 },
  },
  cost,
});
const affine = { model: "affine", target_fixed_ms: 17.46, target_ms_per_token: 0.0893, target_ms_per_kv_token: 0.000113, draft_fixed_ms: 1 };
const roofline = { model: "roofline", hardware: "h100-sxm", target: "llama-3.1-8b", draft: "eagle-head-8b" };
const drawn = { prompt: { lognormal: { mean: 512, cv: 1 } }, output: { lognormal: { mean: 256, cv: 1 } } };
const told = (own, more, files) => {
  const folder = mkdtempSync(join(tmpdir(), "specsim-web-"));
  writeFileSync(join(folder, "config.yaml"), JSON.stringify(own)); // JSON is YAML
  const out = run(["serve", join(folder, "config.yaml"), ...more], files);
  rmSync(folder, { recursive: true });
  return out;
};

for (const [name, own, values, exact] of [
  ["by a line", server(affine, { prompt: { uniform: { from: 20, to: 900 } }, output: { uniform: { from: 20, to: 400 } } }, { process: "deterministic", rate: 1 }), [1, 4, 16, 64], true],
  ["on a GPU", server(roofline, drawn, { process: "poisson", rate: 1 }), [2, 8, 32, 128], false],
])
  test(`a server's curve ${name} is the program's${exact ? ", to the last digit of its file" : ""}`, () => {
    const answer = ask({ ask: "serve", config: own, load: "rate", values, capacity: true });
    assert.equal(answer.error, undefined);
    const { "curve.csv": text, printed } = told(own, ["--sweep", `rate=${values.join(",")}`], ["curve.csv"]);
    const lines = csv(text);
    assert.equal(answer.points.length, lines.length);
    let compared = 0;
    lines.forEach((line, i) => {
      assert.equal(answer.points[i].load, Number(line.rate));
      assert.equal(answer.points[i].speculative, line.speculative === "1");
      close(answer.points[i].capacity, Number(line.capacity), "capacity");
      assert.equal(answer.points[i].needed_requests, Number(line.needed_requests));
      for (const [column, value] of Object.entries(answer.points[i].figures)) {
        if (line[column] === undefined || line[column] === "") continue;
        if (exact) assert.equal(Number(value?.toPrecision(10)), Number(line[column]), `${column} at ${line.rate}`);
        else if (value !== null) assert.ok(Math.abs(value - Number(line[column])) <= 1e-6 * Math.max(1, Math.abs(value)), `${column} at ${line.rate}: ${value}, the program prints ${line[column]}`);
        ++compared;
      }
    });
    for (const sentence of answer.verdict) assert.ok(printed.includes(sentence), sentence);
    console.log(`${compared} figures of ${lines.length} runs of a server compared`);
    assert.ok(compared > 500 && answer.points.some((point) => point.figures.overloaded === 1));
    const again = performance.now(); // a longer curve runs no load twice
    const grown = ask({ ask: "serve", config: own, load: "rate", values: values.slice(0, 2), capacity: true });
    assert.deepEqual(grown.points, answer.points.slice(0, 4));
    assert.ok(performance.now() - again < 200);
  });

test("the steps of a replay are those of steps.csv", () => {
  const own = server(affine, drawn, { process: "closed", concurrency: 24 });
  const answer = ask({ ask: "replay", config: own, load: "concurrency", value: 24, from: 1, steps: 80 });
  assert.equal(answer.error, undefined);
  const lines = csv(told(own, ["--steps"], ["steps.csv"])["steps.csv"]).filter((line) => Number(line.start_s) >= 1).slice(0, 80);
  assert.equal(answer.steps.length, 80);
  lines.forEach((line, i) => {
    const step = answer.steps[i];
    assert.equal(step.step, Number(line.step));
    close(step.start, Number(line.start_s), "start");
    close(step.target + step.draft, Number(line.duration_s), "duration");
    for (const column of ["waiting", "prefill_rows", "decode_rows", "draft_rows", "preempted", "draft_length", "free_blocks"]) assert.equal(step[column], Number(line[column]), column);
    assert.equal(step.items.length, Number(line.requests));
    for (const [, , drafts, accepted] of step.items) assert.ok(accepted <= drafts);
  });
  const plain = ask({ ask: "replay", config: own, load: "concurrency", value: 24, from: 1, steps: 10, plain: true });
  assert.ok(plain.steps.every((step) => step.draft_rows === 0 && step.draft === 0));
});

test("a server that cannot be gets the program's own message", () => {
  const own = server(roofline, drawn, { process: "poisson", rate: 1 });
  const wrong = (change) => ask({ ask: "serve", config: change(JSON.parse(JSON.stringify(own))), load: "rate", values: [2] }).error ?? "";
  assert.match(wrong((one) => { one.cost.hardware = "h1000"; return one; }), /unknown hardware "h1000", did you mean "/);
  assert.match(wrong((one) => { one.serve.speculation.acceptance.position_rates = [0.5, 0.7]; return one; }), /0\.7/);
  assert.match(ask({ ask: "serve", config: own, load: "rate", values: [] }).error, /allowed: 1 to 64/);
  assert.match(ask({ ask: "serve", config: own, load: "rate", values: [-1] }).error, /allowed: requests per second above 0/);
  assert.match(ask({ ask: "replay", config: own, load: "clients", value: 1 }).error, /allowed: rate, concurrency/);
});

test("bad input gets the program's own message", () => {
  const answer = ask({ ask: "plan", hardware: "h1000", acceptance: { kind: "alpha", value: 0.7 } });
  const told = failure(["plan", "--hardware", "h1000", "--alpha", "0.7"]);
  assert.match(answer.error, /unknown hardware "h1000", did you mean "/);
  assert.ok(told.includes(answer.error.split(", or ")[0].replace(/^hardware/, "--hardware")), `${answer.error} | ${told}`);
  assert.match(ask({ ask: "plan", acceptance: { kind: "alpha", value: 1.5 } }).error, /allowed: a number in \[0, 1\]/);
  assert.match(ask({ ask: "mass", config: { pair: { vocabulary: 3 } } }).error, /unknown key "vocabulary"|vocab/);
  assert.match(ask({ ask: "weather" }).error, /allowed: parts, plan/);
});

test("100,000 rounds take less than 100 ms", () => {
  const times = Array.from({ length: 7 }, (_, seed) => {
    const own = { ...config("token"), rounds: 100000, seed: 100 + seed };
    const started = performance.now();
    assert.equal(ask({ ask: "rounds", config: own }).done, true);
    return performance.now() - started;
  }).sort((a, b) => a - b);
  console.log(`100,000 rounds: ${times.map((time) => time.toFixed(1)).join(", ")} ms`);
  assert.ok(times[0] < 100, `${times[0]} ms`);
});
