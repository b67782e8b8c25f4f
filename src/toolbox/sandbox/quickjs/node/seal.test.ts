import { expect, test } from "vitest";
import { DEFAULT_LIMITS } from "../../sandbox.ts";
import { seal, unseal, type Sealed } from "./seal.ts";

const key = new Uint8Array(32).fill(1);
const sealed: Sealed = {
  engine: "e1",
  limits: DEFAULT_LIMITS,
  used: { cpuMs: 1, toolCalls: 2, outputBytes: 3 },
  nextCall: 2,
  parked: [{ call: 1, namespace: "tools", name: "ask", args: { a: 1 } }],
  image: { bytes: new Uint8Array([1, 2, 3]), meta: "{}", packed: true },
};

test("what was sealed is what is opened", () => {
  expect(unseal(key, "e1", seal(key, sealed))).toEqual(sealed);
});

test("another engine is said to be the reason", () => {
  expect(() => unseal(key, "e2", seal(key, sealed))).toThrow(/another build of the engine/);
});

test("every single byte counts", () => {
  const whole = seal(key, sealed);
  for (let at = 0; at < whole.length; at++) {
    const changed = Uint8Array.from(whole);
    changed[at] = (changed[at] ?? 0) ^ 0x40;
    expect(() => unseal(key, "e1", changed), String(at)).toThrow(
      expect.objectContaining({ code: "bad_input" }) as Error,
    );
    expect(() => unseal(key, "e1", whole.subarray(0, at)), String(at)).toThrow(
      expect.objectContaining({ code: "bad_input" }) as Error,
    );
  }
});
