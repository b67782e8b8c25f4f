import { expect, test } from "vitest";
import { probeHost } from "../../../../test/chat/probe-host.ts";
import { FLOW_MAX_AGE_MS, newFlowState, openFlow, readFlowState, saveFlow, takeFlow } from "./flows.ts";

const flow = (n: number, startedAt: number) => ({
  serverId: "s1",
  nonce: String(n).padStart(64, "0"),
  verifier: `v${n}`,
  authUrl: `https://example.com/${n}`,
  startedAt,
});

test("a state says whose it is, and cannot be guessed or made up", () => {
  const state = newFlowState("my-server");
  expect(readFlowState(state)?.serverId).toBe("my-server");
  expect(readFlowState(state)?.nonce).toHaveLength(64);
  expect(newFlowState("my-server")).not.toBe(state);
  for (const wrong of ["", "x.s1", `${"g".repeat(64)}.s1`, `${"0".repeat(64)}.`, `${state}\n`, `${state}:x`]) {
    expect(readFlowState(wrong)).toBeUndefined();
  }
});

test("a sign-in is taken once, by its own server, and in time", async () => {
  const { host, clock } = await probeHost();
  const now = host.clock.now();
  saveFlow(host, flow(1, now));
  expect(takeFlow(host, host.clock, "s2", flow(1, 0).nonce)).toBeUndefined();
  expect(takeFlow(host, host.clock, "s1", flow(1, 0).nonce)?.verifier).toBe("v1");
  expect(takeFlow(host, host.clock, "s1", flow(1, 0).nonce)).toBeUndefined();
  saveFlow(host, flow(2, now));
  await clock.advance(FLOW_MAX_AGE_MS + 1);
  expect(openFlow(host, host.clock, "s1")).toBeUndefined();
  expect(takeFlow(host, host.clock, "s1", flow(2, 0).nonce)).toBeUndefined();
});

test("only the newest few are kept", async () => {
  const { host } = await probeHost();
  const now = host.clock.now();
  for (let n = 1; n <= 8; n++) saveFlow(host, flow(n, now + n));
  expect(takeFlow(host, { ...host.clock, now: () => now + 10 }, "s1", flow(3, 0).nonce)).toBeUndefined();
  expect(openFlow(host, { ...host.clock, now: () => now + 10 }, "s1")?.verifier).toBe("v8");
  expect(takeFlow(host, { ...host.clock, now: () => now + 10 }, "s1", flow(4, 0).nonce)?.verifier).toBe("v4");
});
