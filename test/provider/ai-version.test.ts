import { expect, test, vi } from "vitest";

test("an AI SDK of version 6 is refused when the package is loaded, with what to install", async () => {
  vi.resetModules();
  vi.doMock("ai", () => ({ streamText: () => undefined }));
  await expect(import("../../src/base/ai-sdk.ts")).rejects.toThrow(
    expect.objectContaining({ code: "bad_config", message: expect.stringContaining("npm install ai@7") as string }),
  );
  vi.doUnmock("ai");
});
