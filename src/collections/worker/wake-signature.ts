import { PerdureError } from "../../base/error.ts";
import { callControl, fieldOf, type ControlOptions } from "./control.ts";

/** A public key that deliveries are signed with. */
export interface WakeKey {
  readonly kid: string;
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
}

/** Where keys come from. */
interface KeySource extends ControlOptions {
  /** `…/v1/stream/__ds/jwks.json` of the server. Its keys are asked for again when an unknown one is used. */
  readonly jwksUrl?: string | URL;
  /** Keys that are known already; then none are asked for. */
  readonly keys?: readonly WakeKey[];
}

/** Checks a delivery. Rejects with PerdureError `not_allowed` when it is not the server's. */
type VerifyWake = (signature: string | null, body: string) => Promise<void>;

const SIGNATURE = /^t=(\d{1,12}),kid=([^,]+),ed25519=([A-Za-z0-9_-]+)$/;
/** Keys are asked for again after this long, so that one that was withdrawn does not work for ever. */
const KEYS_MAX_AGE_MS = 5 * 60_000;
/** After a key that is not there, no further look before this: strangers must not make this process ask. */
const UNKNOWN_KEY_PAUSE_MS = 1_000;

/**
 * Verifies the `Webhook-Signature` of a delivery: Ed25519 over the time and the body as it came.
 * The returned function rejects with `not_allowed` for a bad signature, an old time or an unknown key, and with
 * `disconnected` when the keys cannot be had.
 */
export function wakeVerifier(source: KeySource, toleranceMs: number): VerifyWake {
  const ring = new KeyRing(source);
  return async (signature, body) => {
    const [, time, kid, mark] = SIGNATURE.exec(signature ?? "") ?? [];
    if (time === undefined || kid === undefined || mark === undefined) {
      throw refused("it has no Webhook-Signature of the form t=…,kid=…,ed25519=…");
    }
    if (Math.abs(Date.now() - Number(time) * 1000) > toleranceMs) {
      throw refused("its time is too far from this machine's clock: an old delivery, or a clock that is wrong");
    }
    const key = await ring.find(kid);
    if (key === undefined) throw refused(`the key "${kid}" is not one of the server's`);
    const signed = new TextEncoder().encode(`${time}.${body}`);
    const given = bytesOf(mark);
    if (given === undefined || !(await crypto.subtle.verify("Ed25519", key, given, signed))) {
      throw refused("the signature does not fit the body");
    }
  };
}

class KeyRing {
  readonly #source: KeySource;
  /** Those that need not be asked for. */
  readonly #given: Promise<Map<string, CryptoKey>> | undefined;
  #keys: ReadonlyMap<string, CryptoKey> = new Map();
  #loading: Promise<ReadonlyMap<string, CryptoKey>> | undefined;
  #loadedAt = Number.NEGATIVE_INFINITY;
  #missedAt = Number.NEGATIVE_INFINITY;

  constructor(source: KeySource) {
    this.#source = source;
    if (source.keys !== undefined) this.#given = imported(source.keys);
    // Told to who asks for a key, not to the process.
    this.#given?.catch(() => {});
  }

  async find(kid: string): Promise<CryptoKey | undefined> {
    if (this.#given !== undefined) return (await this.#given).get(kid);
    const now = performance.now();
    const isOld = now - this.#loadedAt > KEYS_MAX_AGE_MS;
    const known = isOld ? undefined : this.#keys.get(kid);
    if (known !== undefined) return known;
    if (!isOld && now - this.#missedAt < UNKNOWN_KEY_PAUSE_MS) return undefined;
    const found = (await this.#load()).get(kid);
    if (found === undefined) this.#missedAt = performance.now();
    return found;
  }

  /** Once for all who ask at the same time. */
  #load(): Promise<ReadonlyMap<string, CryptoKey>> {
    this.#loading ??= this.#fetchKeys()
      .then((keys) => {
        this.#loadedAt = performance.now();
        return (this.#keys = keys);
      })
      .finally(() => (this.#loading = undefined));
    return this.#loading;
  }

  async #fetchKeys(): Promise<Map<string, CryptoKey>> {
    const url = String(this.#source.jwksUrl);
    const { status, body } = await callControl(this.#source, url, { method: "GET" });
    const keys = fieldOf(body, "keys");
    if (status !== 200 || !Array.isArray(keys)) {
      throw new PerdureError("disconnected", `${url} answered ${status} and no set of keys.`);
    }
    return imported(keys.filter(isKey));
  }
}

function isKey(value: unknown): value is WakeKey {
  return fieldOf(value, "crv") === "Ed25519" && ["kid", "x"].every((name) => typeof fieldOf(value, name) === "string");
}

async function imported(keys: readonly WakeKey[]): Promise<Map<string, CryptoKey>> {
  const ring = new Map<string, CryptoKey>();
  for (const { kid, x } of keys) {
    const jwk = { kty: "OKP", crv: "Ed25519", x };
    ring.set(kid, await crypto.subtle.importKey("jwk", jwk, "Ed25519", false, ["verify"]));
  }
  return ring;
}

function bytesOf(base64url: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64url.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function refused(why: string): PerdureError {
  return new PerdureError("not_allowed", `The delivery was refused: ${why}.`);
}
