// Helpers of the explorer's tests: the compiled core in this process, and the program next to it.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export const web = process.env.SPECSIM_WEB;
const program = process.env.SPECSIM;
export const require = createRequire(join(web, "page", "package.json"));

export async function core() {
  const { default: createCore } = await import(pathToFileURL(join(web, "core", "core.mjs")).href);
  const own = await createCore({ wasmBinary: readFileSync(join(web, "core", "core.wasm")) });
  return (question) => JSON.parse(own.ccall("specsim_answer", "string", ["string"], [JSON.stringify(question)]));
}

// A plain CSV without quoted commas as a list of objects.
export function csv(text) {
  const [head, ...lines] = text.trim().split("\n").map((line) => line.split(","));
  return lines.map((line) => Object.fromEntries(head.map((name, i) => [name, line[i]])));
}

// Runs the program with --out, and returns its files by name, and its output.
export function run(args, files) {
  const folder = mkdtempSync(join(tmpdir(), "specsim-web-"));
  try {
    const printed = execFileSync(program, [...args, "--out", join(folder, "out")], { encoding: "utf8" });
    return { printed, ...Object.fromEntries(files.map((name) => [name, readFileSync(join(folder, "out", name), "utf8")])) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// Runs a command that the page shows, with --out, and returns one of its files.
export function runWords(words, file) {
  const folder = mkdtempSync(join(tmpdir(), "specsim-web-"));
  try {
    const line = words.replace(/^specsim /, `"${program}" `);
    execFileSync("bash", ["-c", `${line} --out "${join(folder, "out")}"`], { stdio: "pipe" });
    return readFileSync(join(folder, "out", file), "utf8");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// The counts that `specsim run` writes for a config, from the core.
export function countsOfRun(config) {
  const folder = mkdtempSync(join(tmpdir(), "specsim-web-"));
  try {
    const path = join(folder, "config.yaml");
    writeFileSync(path, JSON.stringify(config)); // JSON is YAML
    execFileSync(program, ["run", path, "--quiet", "--out", join(folder, "out")]);
    return csv(readFileSync(join(folder, "out", "counts.csv"), "utf8"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export function failure(args) {
  try {
    execFileSync(program, args, { encoding: "utf8", stdio: "pipe" });
    return "";
  } catch (error) {
    return error.stderr;
  }
}
