import { afterEach, expect, test, vi } from "vitest";

afterEach(() => {
  vi.doUnmock("ai");
  vi.resetModules();
});

test("an AI SDK of version 6 is refused when it is loaded, with what to install, and looked for again the next time", async () => {
  vi.resetModules();
  vi.doMock("ai", () => ({ streamText: () => undefined }));
  const { aiSdk, hasAiSdk, loadAiSdk } = await import("../../src/base/ai-sdk.ts");
  const refusal: unknown = expect.objectContaining({
    code: "bad_config",
    message: expect.stringContaining("npm install ai@7") as string,
  });
  await expect(loadAiSdk()).rejects.toThrow(refusal as Error);
  expect(hasAiSdk()).toBe(false);
  expect(aiSdk).toThrow("not loaded yet");
  vi.doUnmock("ai");
  expect(Object.keys(await loadAiSdk())).toContain("streamText");
  expect(hasAiSdk()).toBe(true);
});

test("a server of chat agents does not start with version 6; one of plain agents does not look", async () => {
  vi.resetModules();
  vi.doMock("ai", () => ({ streamText: () => undefined }));
  const { Agent, AIChatAgent } = await import("perdure");
  const { memoryStorage, serve } = await import("perdure/node");
  class Plain extends Agent {}
  class Chat extends AIChatAgent {}
  const options = { storage: memoryStorage(), port: 0, signals: false };
  await expect(serve({ ...options, agents: { Plain, Chat } })).rejects.toThrow("npm install ai@7");
  const host = await serve({ ...options, storage: memoryStorage(), agents: { Plain } });
  expect(host.status().ok).toBe(true);
  await host.stop();
});
