// Allowed values of each setting of a view. Settings come from the address, which anyone may have written, and are inserted into commands that people
// paste into a shell. So each value is checked for its type, and commands consist of quoted words.
import type { Settings } from "./state";

// Check of a value: returns a description of the allowed values if it is wrong; "" if it is right. `parts`: names that the program knows, by kind.
export type Allowed = (value: string, parts: Record<string, unknown>) => string;
export type Checks = Record<string, Allowed>;

const kNumber = /^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$/;

export const number = (least: number, most: number): Allowed => (value) =>
  kNumber.test(value) && Number(value) >= least && Number(value) <= most ? "" : `a number in [${least}, ${most}]`;

export const whole = (least: number, most: number): Allowed => (value) =>
  /^[0-9]{1,15}$/.test(value) && Number(value) >= least && Number(value) <= most ? "" : `a whole number in [${least}, ${most}]`;

export const oneOf = (...values: string[]): Allowed => (value) => (values.includes(value) ? "" : values.map((own) => own || "nothing").join(", "));

// A name of this kind that the program has, or one of `others`.
export const named = (kind: string, ...others: string[]): Allowed => (value, parts) => {
  const known = ((parts[kind] ?? []) as (string | { name: string })[]).map((part) => (typeof part === "string" ? part : part.name));
  return known.includes(value) || others.includes(value) ? "" : `a name that specsim list ${kind} prints`;
};

// Shares of positions: 0.7, 0.45 or 70%, 45%. The text may be anything while it is typed: the program reports errors in it.
export const rates: Allowed = (value) => (/^[0-9eE.+\-%, ]{0,2000}$/.test(value) ? "" : "numbers with commas between, as 0.7, 0.45 or 70%, 45%");

// Weights of two distributions: 5,3,2;4,4,2.
export const weights: Allowed = (value) => (/^[0-9eE.+\-,;]{0,4000}$/.test(value) ? "" : "two lists of numbers, as 5,3,2;4,4,2");

// Text that is not inserted into a command.
export const text: Allowed = (value) => (value.length <= 1e6 ? "" : "a text of at most 1000000 characters");

// Errors in the given settings, one per line. Settings that the view does not have are ignored.
export function wrongSettings(given: Settings, checks: Checks, parts: Record<string, unknown>): string[] {
  return Object.entries(given)
    .filter(([key]) => Object.hasOwn(checks, key))
    .map(([key, value]) => [key, value, checks[key]!(value, parts)] as const)
    .filter(([, , allowed]) => allowed !== "")
    .map(([key, value, allowed]) => `${key}: ${JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value)}, allowed: ${allowed}`);
}

// A word quoted for a shell, whatever it contains.
export function shellWord(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export const commandLine = (words: string[]): string => words.map(shellWord).join(" ");
