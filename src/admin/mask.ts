import { isRecord } from "../base/json.ts";

const MASKED = "•••";

/** Names whose values are secret, however they are written: `apiKey`, `API_KEY`, `x-api-key`. */
const SECRET_NAMES =
  /^(?:.*(?:apikey|secret|password|passwd|credential|privatekey|accesskey)s?|.*(?:access|refresh|auth|bearer|bot|session|id)token|token|authorization|cookie|setcookie)$/;

/**
 * How keys of well-known services look, wherever they stand. Whoever talks with an agent chooses the texts: each of these passes over
 * one in a time that grows with its length alone, and none takes more letters than the stack holds.
 */
const SECRETS = [
  /\bxox[a-z]-[A-Za-z0-9-]{10,50000}/g,
  /\bxapp-[A-Za-z0-9-]{10,50000}/g,
  /\bgh[a-z]_[A-Za-z0-9]{20,50000}/g,
  /\bgithub_pat_\w{20,50000}/g,
  /\bAKIA[A-Z0-9]{16}\b/g,
  /\bAIza[\w-]{30,50000}/g,
  /\b\d{8,10}:[\w-]{35}\b/g,
  /(?<=\b[Bb]earer )[\w.~+/=-]{16,50000}/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?!-----)[\s\S])*?-----END [A-Z ]*PRIVATE KEY-----/g,
];
const LONG_KEY = /\b(?:sk|pk|rk)[-_][\w-]{16,50000}/g;
/** Without so many letters and digits in a row it is words. */
const KEY_LETTERS = /[A-Za-z0-9]{16}/;
/** All that may be in a signed token, its dots included. */
const DOTTED = /[\w.-]{26,50000}/g;
const TOKEN_HEAD = /\beyJ[\w-]{10}/;
const LEAST_CLAIMS = 10;

/** Hides what an operator need not see: the values of secret names, and whatever looks like a key. */
export interface Mask {
  text(text: string): string;
  /** A copy of JSON. */
  json(value: unknown): unknown;
}

/** @param names further names whose values are hidden, in whatever spelling @param words texts that are hidden wherever they stand */
export function createMask(names: readonly string[] = [], words: readonly string[] = []): Mask {
  const own = new Set(names.map(plain));
  const isSecret = (name: string) => own.has(plain(name)) || SECRET_NAMES.test(plain(name));
  const text = (given: string) => {
    const known = words.reduce((line, word) => line.replaceAll(word, MASKED), given);
    const without = SECRETS.reduce((line, secret) => line.replaceAll(secret, MASKED), known);
    return without
      .replaceAll(LONG_KEY, (key) => (KEY_LETTERS.test(key) ? MASKED : key))
      .replaceAll(DOTTED, withoutTokens);
  };
  const json = (value: unknown): unknown => {
    if (typeof value === "string") return text(value);
    if (Array.isArray(value)) return value.map(json);
    if (!isRecord(value)) return value;
    const hide = (name: string, one: unknown) => (isHidden(one) && isSecret(name) ? MASKED : json(one));
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [text(name), hide(name, one)]));
  };
  return { text, json };
}

/** Hides signed tokens: a head, claims and a signature, with dots in between. */
function withoutTokens(dotted: string): string {
  const parts = dotted.split(".");
  const shown: string[] = [];
  for (let at = 0; at < parts.length; at++) {
    const [head = "", claims = "", signature = ""] = parts.slice(at, at + 3);
    const begin = claims.length < LEAST_CLAIMS || signature === "" ? -1 : head.search(TOKEN_HEAD);
    shown.push(begin === -1 ? head : head.slice(0, begin) + MASKED);
    if (begin !== -1) at += 2;
  }
  return shown.join(".");
}

/** Numbers and yes or no under such a name count or describe something. */
function isHidden(value: unknown): boolean {
  return value !== null && value !== "" && typeof value !== "boolean" && typeof value !== "number";
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}
