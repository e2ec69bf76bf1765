// Records the tokens that llama.cpp accepts, round by round, as JSON lines that `specsim fit` and `specsim plan --trace` read.
//
//   scripts/record/record_llama_cpp.mjs PROMPTS OUT --model TARGET.gguf --draft DRAFT.gguf [--draft-length 4] [--temperature 0] [--tokens 128]
//                                [--form rounds|overlap] [--seed 1] [--threads 1] [--node-modules DIR]
//
// PROMPTS: JSON lines with "prompt" or "tokens" (numbers) and optionally "kind"; or a text with one prompt per line.
// OUT gets one line per prompt: {"request": 0, "draft_length": D, "rounds": [accepted, ...]}. The rounds are executed here on llama.cpp's own
// forward passes: the draft model draws D tokens, and the target's pass judges them by the rejection rule (at temperature 0: equal or not).
//
// --form overlap writes {"overlap": [...]} instead. It is the overlap of the two distributions at every token of the target's own text.
// Whole distributions cross into JavaScript once per row: with vocabularies of 100,000 tokens this takes longer than a small model's pass.
// llama.cpp comes with npm's node-llama-cpp 3.18 or later: scripts/npm/llama_cpp has its checksums ("npm ci --prefix scripts/npm/llama_cpp").
//
// Exit status: 0 success, 2 bad arguments or input, 77 node-llama-cpp is not installed.
import {existsSync, readFileSync, writeFileSync} from "node:fs";
import {createRequire} from "node:module";
import {resolve} from "node:path";
import {pathToFileURL} from "node:url";
import {parseArgs} from "node:util";

const stop = (message, status = 2) => {
  console.error(`record_llama_cpp: ${message}`);
  process.exit(status);
};

function readOptions() {
  const text = (fallback) => ({type: "string", ...(fallback === undefined ? {} : {default: fallback})});
  let given;
  try {
    given = parseArgs({allowPositionals: true, options: {model: text(), draft: text(), "draft-length": text("4"), temperature: text("0"), tokens: text("128"),
                                                         form: text("rounds"), seed: text("1"), threads: text("1"), "node-modules": text("node_modules")}});
  } catch (wrong) {
    stop(wrong.message);
  }
  const {values, positionals} = given;
  if (positionals.length !== 2 || !values.model || !values.draft) stop("allowed: PROMPTS OUT --model TARGET.gguf --draft DRAFT.gguf");
  const number = (name, least, whole) => {
    const x = Number(values[name]);
    if (!(x >= least) || (whole && !Number.isInteger(x))) stop(`--${name} is ${values[name]}, allowed: a ${whole ? "whole " : ""}number of at least ${least}`);
    return x;
  };
  if (!["rounds", "overlap"].includes(values.form)) stop(`--form is ${values.form}, allowed: rounds, overlap`);
  for (const file of [values.model, values.draft, positionals[0]]) if (!existsSync(file)) stop(`${file}: no such file`);
  return {prompts: positionals[0], out: positionals[1], model: values.model, draft: values.draft, form: values.form, modules: values["node-modules"],
          draftLength: number("draft-length", 1, true), temperature: number("temperature", 0, false), tokens: number("tokens", 2, true),
          seed: number("seed", 0, true), threads: number("threads", 1, true)};
}

function readPrompts(path) {
  const prompts = readFileSync(path, "utf8").split("\n").filter((line) => line.trim()).map((line, i) => {
    if (!line.trimStart().startsWith("{")) return {prompt: line};
    let record;
    try {
      record = JSON.parse(line);
    } catch (wrong) {
      stop(`${path}:${i + 1}: ${wrong.message}`);
    }
    if (typeof record.prompt !== "string" && !Array.isArray(record.tokens)) stop(`${path}:${i + 1}: neither "prompt" nor "tokens", allowed: one of them`);
    return record;
  });
  if (prompts.length === 0) stop(`${path}: no prompt in it, allowed: JSON lines with "prompt", or a prompt a line`);
  return prompts;
}

// Uniform random numbers from a seed (mulberry32).
function uniforms(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
}

const options = readOptions();
const prompts = readPrompts(options.prompts);
let library;
try {
  library = await import(pathToFileURL(createRequire(`${resolve(options.modules)}/`).resolve("node-llama-cpp")));
} catch (missing) {
  stop(`node-llama-cpp is not in ${options.modules} (${missing.code ?? missing.message})`, 77);
}
const llama = await library.getLlama({gpu: false, build: "never", maxThreads: options.threads, skipDownload: true});

// A model and its computed tokens. A distribution is a Map of tokens; at temperature 0 it has a single token.
async function open(path) {
  const model = await llama.loadModel({modelPath: path});
  const contextSize = Math.min(model.trainContextSize, 4096);
  const context = await model.createContext({contextSize, batchSize: Math.min(contextSize, 512), sequences: 1, threads: options.threads});
  const sequence = context.getSequence();
  const want = {generateNext: options.temperature > 0 ? {probabilities: true, options: {temperature: options.temperature, topK: 0, topP: 1, minP: 0}} : {token: true, options: {temperature: 0}}};
  const distribution = (next) => options.temperature > 0 ? next.probabilities : new Map([[next.token, 1]]);
  return {
    model,
    contextSize,
    // The distributions after each of `tokens`, which follow the first `behind` tokens of `text`.
    async after(text, behind, tokens) {
      if (sequence.nextTokenIndex > behind) await sequence.eraseContextTokenRanges([{start: behind, end: sequence.nextTokenIndex}]);
      if (sequence.nextTokenIndex < behind) await sequence.evaluateWithoutGeneratingNewTokens(text.slice(sequence.nextTokenIndex, behind));
      const rows = await sequence.controlledEvaluate(tokens.map((token) => [token, want]));
      return rows.map((row) => distribution(row.next));
    },
    async clear() {
      await sequence.clearHistory();
    },
  };
}

const target = await open(options.model);
const draft = await open(options.draft);
const random = uniforms(options.seed);
const room = Math.min(target.contextSize, draft.contextSize) - options.draftLength - 2;

function drawn(weights) {
  let sum = 0;
  for (const weight of weights.values()) sum += weight;
  let left = random() * sum;
  let last;
  for (const [token, weight] of weights) {
    if (weight <= 0) continue;
    last = token;
    left -= weight;
    if (left < 0) break;
  }
  return last;
}

// One round that continues `text`: returns the accepted count; the tokens are appended to the text.
async function round(text) {
  const behind = text.length - 1;
  const drafted = [];
  const drafts = [];
  for (let i = 0; i < options.draftLength; ++i) {
    const [own] = await draft.after([...text, ...drafted], behind + i, [[...text, ...drafted][behind + i]]);
    drafts.push(own);
    drafted.push(drawn(own));
  }
  const judged = await target.after(text, behind, [text[behind], ...drafted]);
  let accepted = 0;
  while (accepted < drafted.length) {
    const token = drafted[accepted];
    const [p, q] = [judged[accepted].get(token) ?? 0, drafts[accepted].get(token)];
    if (!(random() * q < p)) break;
    ++accepted;
  }
  const behindLast = judged[accepted];
  const residual = accepted < drafted.length ? new Map([...behindLast].map(([token, p]) => [token, Math.max(0, p - (drafts[accepted].get(token) ?? 0))])) : behindLast;
  text.push(...drafted.slice(0, accepted), drawn(residual) ?? drawn(behindLast));
  return accepted;
}

// Overlap of both distributions after `text`; the target's own token is appended to the text.
async function overlap(text) {
  const behind = text.length - 1;
  const [[p], [q]] = [await target.after(text, behind, [text[behind]]), await draft.after(text, behind, [text[behind]])];
  let shared = 0;
  for (const [token, x] of p) shared += Math.min(x, q.get(token) ?? 0);
  text.push(drawn(p));
  return Math.min(1, shared);
}

const lines = [];
const rest = [];
for (const [i, prompt] of prompts.entries()) {
  const text = prompt.tokens ? [...prompt.tokens] : target.model.tokenize(prompt.prompt);
  if (text.length === 0) stop(`prompt ${i} has no token`);
  const before = text.length;
  const end = Math.min(before + options.tokens, room);
  await target.clear();
  await draft.clear();
  const told = [];
  while (text.length < end) told.push(options.form === "rounds" ? await round(text) : await overlap(text));
  if (told.length === 0) continue;
  rest.push(text.slice(before));
  const head = {request: i, ...(prompt.kind ? {kind: prompt.kind} : {})};
  lines.push(JSON.stringify(options.form === "rounds" ? {...head, draft_length: options.draftLength, rounds: told} : {...head, overlap: told.map((x) => Number(x.toFixed(6)))}));
}
if (lines.length === 0) stop("no request had a round: prompts are as long as the models' contexts");
writeFileSync(options.out, `${lines.join("\n")}\n`);
console.log(`wrote ${options.out}, ${lines.length} requests, ${rest.reduce((sum, tokens) => sum + tokens.length, 0)} tokens`);
if (process.env.SPECSIM_RECORD_TEXT) writeFileSync(process.env.SPECSIM_RECORD_TEXT, JSON.stringify(rest)); // for tests
process.exit(0);
