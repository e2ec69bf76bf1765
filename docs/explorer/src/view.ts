import type { Answer } from "./core";
import { type Checks, named, oneOf, whole } from "./settings";
import type { Settings } from "./state";

export interface Place {
  root: HTMLElement;
  settings: Settings;
  parts: Answer; // names of GPUs, models, engines, rules
  save: () => void; // puts the settings into the address
}

export interface View {
  id: string;
  title: string;
  about: string;
  defaults: Settings;
  allowed: Checks; // a check for every setting in defaults
  open: (place: Place) => void;
  close?: () => void;
}

// The settings of a workload, in the form of a question to the core.
export function workload(settings: Settings): Record<string, unknown> {
  return {
    hardware: settings.hardware,
    target: settings.target,
    draft: settings.draft,
    engine: settings.engine || undefined,
    tensor_parallel: Number(settings.gpus),
    dtype: settings.dtype || undefined,
    batch: Number(settings.batch),
    context: Number(settings.context),
    longest: Number(settings.longest ?? 16),
  };
}

export const workloadDefaults: Settings = {
  hardware: "h100-sxm",
  target: "llama-3.1-8b",
  draft: "llama-3.2-1b",
  engine: "",
  gpus: "1",
  dtype: "",
  batch: "1",
  context: "2048",
};

export const workloadChecks: Checks = {
  hardware: named("hardware"),
  target: named("model"),
  draft: named("model", "none"),
  engine: named("engine", ""),
  gpus: oneOf("1", "2", "4", "8"),
  dtype: oneOf("", "fp8", "int8", "int4"),
  batch: whole(1, 1e6),
  context: whole(1, 1e9),
};

// A server as command line options.
export function serverOptions(settings: Settings): string[] {
  const options = ["--hardware", settings.hardware!, "--target", settings.target!, "--draft", settings.draft!];
  if (settings.engine) options.push("--engine", settings.engine);
  if (settings.gpus !== "1") options.push("--tensor-parallel", settings.gpus!);
  if (settings.dtype) options.push("--dtype", settings.dtype);
  return options;
}

// A server with a load, as command line options.
export function workloadOptions(settings: Settings): string[] {
  return [...serverOptions(settings), "--batch", settings.batch!, "--context", settings.context!];
}

// Fields of a workload, for the views that estimate passes.
import { select, slider } from "./ui";

export const isHead = (name: string): boolean => /^eagle|mtp|-draft-|^medusa/.test(name);

// Fields of a GPU, models and how they are run.
export function modelFields({ settings, parts }: Place, changed: () => void): HTMLElement[] {
  const set = (key: string) => (value: string | number) => {
    settings[key] = String(value);
    changed();
  };
  const models = parts.model as string[];
  const options = (names: string[]) => names.map((value) => ({ value }));
  const drafts = [
    { value: "none", label: "none: n-grams, or heads inside the target" },
    ...models.filter(isHead).map((value) => ({ value, group: "heads" })),
    ...models.filter((name) => !isHead(name)).map((value) => ({ value, group: "models" })),
  ];
  return [
    select("GPU", options(parts.hardware), settings.hardware!, set("hardware")),
    select("Target model", options(models.filter((name) => !isHead(name))), settings.target!, set("target")),
    select("Draft", drafts, settings.draft!, set("draft")),
    select("GPUs that share the target", ["1", "2", "4", "8"].map((value) => ({ value })), settings.gpus!, set("gpus")),
    select("Types of the target", [{ value: "", label: "as published" }, ...["fp8", "int8", "int4"].map((value) => ({ value }))], settings.dtype!, set("dtype")),
    select("Engine", [{ value: "", label: "the usual" }, ...options(parts.engine)], settings.engine!, set("engine")),
  ];
}

// The same fields, with one batch and context.
export function workloadFields(place: Place, changed: () => void): HTMLElement[] {
  const { settings } = place;
  const set = (key: string) => (value: number) => {
    settings[key] = String(value);
    changed();
  };
  return [
    ...modelFields(place, changed),
    slider({ label: "Batch: sequences decoded together", name: "batch", min: 1, max: 512, step: 1, value: Number(settings.batch), powers: true, change: set("batch") }),
    slider({ label: "Context: tokens cached by each", name: "context", min: 256, max: 131072, step: 1, value: Number(settings.context), powers: true, change: set("context") }),
  ];
}
