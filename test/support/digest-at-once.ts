import { createHash } from "node:crypto";

/**
 * The platform's digest comes from another thread, at a time that no seed and no manual clock decides. From now on it gives
 * the same at once. @returns what gives the platform's back; `beforeAll(digestAtOnce)` does so at the end of the file.
 */
export function digestAtOnce(): () => void {
  const digest = async (_algorithm: string, data: Uint8Array) =>
    new Uint8Array(createHash("sha256").update(data).digest()).buffer;
  Object.defineProperty(crypto.subtle, "digest", { value: digest, configurable: true });
  return () => void Reflect.deleteProperty(crypto.subtle, "digest");
}
