// Measures llama.cpp's passes through node-llama-cpp: llama_cpp.mjs MODEL.gguf REQUEST.json NODE_MODULES (the folder of node-llama-cpp). The request
// has `contexts`, `tokens`, `repetitions`, `prompt`, and the model's `vocab`. Prints {argmax: after each token of the prompt, ms: {"context tokens":
// [...]}}. One thread, keys and values in F32. Each pass includes the choice of the most likely next token after every row; the choices cross into
// JavaScript within the measured time. scripts/results/llama_cpp.py runs it.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const [gguf, requestFile, modules] = process.argv.slice(2);
const {getLlama} = await import(pathToFileURL(createRequire(modules + "/").resolve("node-llama-cpp")));
const request = JSON.parse(readFileSync(requestFile, "utf8"));
const llama = await getLlama({gpu: false, build: "never", maxThreads: 1, skipDownload: true});
const model = await llama.loadModel({modelPath: gguf});
const context = await model.createContext({contextSize: 256, batchSize: 64, sequences: 1, threads: 1, experimentalKvCacheKeyType: "F32",
                                           experimentalKvCacheValueType: "F32", flashAttention: false});
const sequence = context.getSequence();
const rewind = (length) => sequence.eraseContextTokenRanges([{start: length, end: sequence.nextTokenIndex}]);
const pass = (tokens) => sequence.controlledEvaluate(tokens.map((token) => [token, {generateNext: {token: true, options: {temperature: 0}}}]));
const filler = (count) => Array.from({length: count}, (_, i) => (i * 7919 + 13) % request.vocab);

const argmax = (await pass(request.prompt)).map((output) => output.next.token);
const ms = {};
for (let repetition = -1; repetition < request.repetitions; ++repetition)
  for (const length of request.contexts)
    for (const tokens of request.tokens) {
      if (sequence.nextTokenIndex > length) await rewind(length);
      if (sequence.nextTokenIndex < length) await sequence.evaluateWithoutGeneratingNewTokens(filler(length - sequence.nextTokenIndex));
      const rows = filler(length + tokens).slice(length);
      const begin = performance.now();
      await pass(rows);
      if (repetition >= 0) (ms[`${length} ${tokens}`] ??= []).push(performance.now() - begin);
    }
console.log(JSON.stringify({argmax, ms}));
process.exit(0);
