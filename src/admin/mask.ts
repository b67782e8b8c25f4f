import { isRecord } from "../base/json.ts";

const MASKED = "•••";

/** Names whose values are secret, however they are written: `apiKey`, `API_KEY`, `x-api-key`. */
const SECRET_NAMES =
  /^(?:.*(?:apikey|secret|password|passwd|credential|privatekey|accesskey)s?|.*(?:access|refresh|auth|bearer|bot|session|id)token|token|authorization|cookie|setcookie)$/;

/** How keys of well-known services look, wherever they stand. */
const SECRETS = [
  /\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}/g,
  /\bxox[a-z]-[A-Za-z0-9-]{10,}/g,
  /\bxapp-[A-Za-z0-9-]{10,}/g,
  /\bgh[a-z]_[A-Za-z0-9]{20,}/g,
  /\bgithub_pat_\w{20,}/g,
  /\bAKIA[A-Z0-9]{16}\b/g,
  /\bAIza[\w-]{30,}/g,
  /\b\d{8,10}:[\w-]{35}\b/g,
  /\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+/g,
  /(?<=\b[Bb]earer )[\w.~+/=-]{16,}/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g,
];

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
    return SECRETS.reduce((line, secret) => line.replaceAll(secret, MASKED), known);
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

/** Numbers and yes or no under such a name count or describe something. */
function isHidden(value: unknown): boolean {
  return value !== null && value !== "" && typeof value !== "boolean" && typeof value !== "number";
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}
