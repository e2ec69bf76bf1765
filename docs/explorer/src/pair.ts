// Two distributions and a rule, in the form of a config of `specsim run`: shared by the views of rounds.
import { h, select, slider } from "./ui";
import type { Place } from "./view";
import { type Checks, named, number, oneOf, weights, whole } from "./settings";
import type { Settings } from "./state";

export const pairDefaults: Settings = {
  vocab: "8",
  target: "zipf",
  shape: "1",
  draft: "temperature",
  change: "1.6",
  own: "", // weights of target and draft that were drawn by hand: "5,3,2;4,4,2"
  rule: "token",
  lenience: "0.5",
  epsilon: "0.2",
  delta: "0.4",
  k: "2",
};

export const pairChecks: Checks = {
  vocab: whole(2, 1e6),
  target: oneOf("zipf", "geometric", "dirichlet"),
  shape: number(0, 1e6),
  draft: oneOf("temperature", "mix_noise", "dirichlet"),
  change: number(0, 1e6),
  own: weights,
  rule: named("verifier"),
  lenience: number(0, 1e6),
  epsilon: number(0, 1e6),
  delta: number(0, 1e6),
  k: whole(1, 1e6),
};

const targets = [
  { value: "zipf", label: "zipf: falls with a power of the rank" },
  { value: "geometric", label: "geometric: falls by a ratio" },
  { value: "dirichlet", label: "dirichlet: a random one" },
];
const drafts = [
  { value: "temperature", label: "the target, flatter or sharper" },
  { value: "mix_noise", label: "the target with uniform noise" },
  { value: "dirichlet", label: "an independent random one" },
];

export function ownWeights(settings: Settings): number[][] | null {
  if (!settings.own) return null;
  const lists = settings.own.split(";").map((list) => list.split(",").map(Number));
  const good = lists.length === 2 && lists[0]!.length === lists[1]!.length && lists.every((list) => list.length > 1 && list.length <= 32 && list.every((x) => x >= 0) && list.some((x) => x > 0));
  return good ? lists : null;
}

// Weights as probabilities that sum to 1 up to rounding, as the config requires.
function shares(weights: number[]): number[] {
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / sum);
}

export function pairConfig(settings: Settings, draftLength: number, rounds: number, seed: number): Record<string, unknown> {
  const own = ownWeights(settings);
  const shape = Number(settings.shape);
  const change = Number(settings.change);
  const target = settings.target === "zipf" ? { family: "zipf", exponent: shape } : settings.target === "geometric" ? { family: "geometric", ratio: Math.min(1, Math.max(0.05, 1 / (1 + shape))) } : { family: "dirichlet", concentration: Math.max(0.05, shape) };
  const draft = settings.draft === "temperature" ? { from: "target", transform: "temperature", value: Math.max(0.05, change) } : settings.draft === "mix_noise" ? { from: "target", transform: "mix_noise", value: Math.min(1, change / 3) } : { family: "dirichlet", concentration: Math.max(0.05, change) };
  const rule: Record<string, unknown> = { kind: settings.rule };
  if (settings.rule === "lenience") rule.lenience = Number(settings.lenience);
  if (settings.rule === "typical" || settings.rule === "typical_medusa") {
    rule.epsilon = Number(settings.epsilon);
    rule.delta = Number(settings.delta);
  }
  if (settings.rule === "top_k_match") rule.k = Number(settings.k);
  return {
    experiment: "explorer",
    seed,
    rounds,
    pair: own ? { vocab: own[0]!.length, target: { family: "explicit", probabilities: shares(own[0]!) }, draft: { family: "explicit", probabilities: shares(own[1]!) } } : { vocab: Number(settings.vocab), target, draft },
    context: { process: "fixed" },
    decode: { drafter: { kind: "chain", draft_length: draftLength, ...(settings.rule === "soft_argmax" ? { selection: "argmax" } : {}) }, verifier: rule },
  };
}

export function pairFields(place: Place, changed: () => void): HTMLElement {
  const { settings } = place;
  const set = (key: string) => (value: string | number) => {
    settings[key] = String(value);
    settings.own = "";
    tellDrawn();
    changed();
  };
  const holder = h("fieldset", {});
  const note = h("p", { class: "note" });
  // Distributions drawn by hand belong to no family: the fields show this until one of them is changed.
  const tellDrawn = (): void => {
    const own = ownWeights(settings);
    note.hidden = own === null;
    note.textContent = own ? `Drawn by hand: ${own[0]!.length} tokens. A setting here replaces them.` : "";
    for (const input of holder.querySelector(".pair")!.querySelectorAll("input")) input.value = own ? String(own[0]!.length) : settings.vocab!;
    holder.querySelectorAll("select").forEach((field, i) => {
      const first = field.options[0]!;
      if (own && first.value !== "") field.prepend(new Option("drawn by hand", "", true, true));
      if (!own && first.value === "") {
        first.remove();
        field.value = settings[i === 0 ? "target" : "draft"]!;
      }
    });
  };
  holder.addEventListener("drawn", tellDrawn);
  const draw = (): void => {
    holder.replaceChildren(
      h("legend", {}, "Distributions"),
      slider({ label: "Tokens", name: "vocab", min: 2, max: 24, step: 1, value: Number(settings.vocab), change: set("vocab") }),
      select("Target", targets, settings.target!, set("target")),
      slider({ label: "its shape", name: "shape", min: 0.05, max: 3, step: 0.05, value: Number(settings.shape), change: set("shape") }),
      select("Draft", drafts, settings.draft!, set("draft")),
      slider({ label: "how far from the target", name: "change", min: 0.1, max: 3, step: 0.05, value: Number(settings.change), change: set("change") }),
      note,
    );
    tellDrawn();
  };
  draw();
  return holder;
}

// Rules that judge a chain and accept these distributions unchanged.
export function ruleFields(place: Place, changed: () => void): HTMLElement {
  const { settings, parts } = place;
  type Rule = { name: string; summary: string; lossless: boolean; chains: boolean; one_hot_target: boolean };
  const rules = (parts.verifier as Rule[]).filter((rule) => rule.chains && !rule.one_hot_target);
  const holder = h("fieldset", {});
  const set = (key: string) => (value: string | number) => {
    settings[key] = String(value);
    changed();
  };
  const draw = (): void => {
    const chosen = rules.find((rule) => rule.name === settings.rule);
    const extra: HTMLElement[] = [];
    if (settings.rule === "lenience") extra.push(slider({ label: "lenience (1 is the token rule)", name: "lenience", min: 0.05, max: 1, step: 0.05, value: Number(settings.lenience), change: set("lenience") }));
    if (settings.rule!.startsWith("typical"))
      extra.push(
        slider({ label: "epsilon", name: "epsilon", min: 0.01, max: 1, step: 0.01, value: Number(settings.epsilon), change: set("epsilon") }),
        slider({ label: "delta", name: "delta", min: 0.01, max: 1, step: 0.01, value: Number(settings.delta), change: set("delta") }),
      );
    if (settings.rule === "top_k_match") extra.push(slider({ label: "k", name: "k", min: 1, max: 8, step: 1, value: Number(settings.k), change: set("k") }));
    holder.replaceChildren(
      h("legend", {}, "Rule"),
      select("Verifier", rules.map((rule) => ({ value: rule.name, group: rule.lossless ? "lossless" : "biased" })), settings.rule!, (value) => {
        settings.rule = value;
        draw();
        changed();
      }),
      h("p", { class: "note" }, chosen?.summary ?? ""),
      ...extra,
    );
  };
  draw();
  return holder;
}
