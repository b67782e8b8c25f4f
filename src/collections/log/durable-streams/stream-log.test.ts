import { expect, onTestFinished, test, vi } from "vitest";
import { openStreamLog } from "./stream-log.ts";

test("where there is no page, whole addresses count, also if the platform has an empty location", async () => {
  onTestFinished(() => void vi.unstubAllGlobals());
  vi.stubGlobal("location", undefined);
  const fetch = async () => new Response(null, { status: 404 });
  const log = openStreamLog({ url: "http://127.0.0.1:1/v1/stream/x", fetch, onError: () => {} });
  log.ready.catch(() => {});
  await log.close();
  expect(() => openStreamLog({ url: "/v1/stream/x" })).toThrow(expect.objectContaining({ code: "bad_config" }));
  vi.stubGlobal("location", new URL("http://page.example/a"));
  const relative = openStreamLog({ url: "/v1/stream/x", fetch, onError: () => {} });
  relative.ready.catch(() => {});
  await relative.close();
});
