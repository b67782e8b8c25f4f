import type { Experimental_DownloadFunction as DownloadFunction, ModelMessage } from "ai";
import { expect, test } from "vitest";
import { manualClock } from "../testing/manual-clock.ts";
import { FileLoads } from "./file-loads.ts";

const LATE_MS = 60_000;
const never = new AbortController().signal;
const file = (url: string): ModelMessage => ({
  role: "user",
  content: [{ type: "file", mediaType: "image/png", filename: "a.png", data: new URL(url) }],
});
const urlsIn = (messages: readonly ModelMessage[]): URL[] =>
  messages.flatMap(({ content }) =>
    typeof content === "string" ? [] : content.flatMap((part) => (part.type === "file" ? [part.data as URL] : [])),
  );
/** What the AI SDK does before a call: asks for all files at once. */
const load = async (messages: readonly ModelMessage[], download: DownloadFunction, supported: readonly string[] = []) =>
  download(urlsIn(messages).map((url) => ({ url, isUrlSupportedByModel: supported.includes(url.href) })));

function loads(answers: Record<string, "ok" | "lost" | "late">) {
  const clock = manualClock();
  const asked: string[] = [];
  const failed: string[] = [];
  const files = new FileLoads(
    clock,
    (url, error) => failed.push(`${url} ${error.code}`),
    async ({ url, abortSignal }) => {
      asked.push(url.href);
      const answer = answers[url.href];
      if (answer === "late") {
        await new Promise((_resolve, reject) => {
          abortSignal?.addEventListener("abort", () => reject(abortSignal.reason as Error));
        });
      }
      if (answer !== "ok") throw new Error("not there");
      return { data: Uint8Array.of(1), mediaType: "image/png" };
    },
  );
  return { files, clock, asked, failed };
}

const [A, B, C] = ["https://a.example/", "https://b.example/", "https://c.example/"] as const;

test("files that are there are loaded once for a call, also when it is made again without those that are not", async () => {
  const { files, asked, failed } = loads({ [A]: "ok", [B]: "lost" });
  const calls: ModelMessage[][] = [];
  const given = [file(A), file(B), file(C)];
  const got = await files.within(given, never, (messages, download) => {
    calls.push(messages);
    return load(messages, download, [C]);
  });
  expect(got).toEqual([{ data: Uint8Array.of(1), mediaType: "image/png" }, null]);
  expect(asked).toEqual([A, B]);
  expect(failed).toEqual([`${B} not_found`]);
  expect(calls).toHaveLength(2);
  expect(calls[0]).toBe(given);
  expect(calls[1]).toEqual([
    file(A),
    { role: "user", content: [{ type: "text", text: "[The file a.png (image/png) could not be loaded.]" }] },
    file(C),
  ]);
  await files.within(given, never, (messages, download) => load(messages, download, [C]));
  expect(asked).toEqual([A, B, A]);
  expect(failed).toHaveLength(1);
});

test("a file that never comes is given up", async () => {
  const { files, clock, failed } = loads({ [A]: "late" });
  const done = files.within([file(A)], never, load);
  await clock.advance(LATE_MS);
  expect(await done).toEqual([]);
  expect(failed).toEqual([`${A} not_found`]);
});

test("a stop while files load is a stop, and loses none", async () => {
  const { files, failed } = loads({ [A]: "late" });
  const stop = new AbortController();
  const done = files.within([file(A)], stop.signal, load);
  stop.abort(new Error("stopped"));
  await expect(done).rejects.toThrow("stopped");
  expect(failed).toEqual([]);
});

test("what the call throws is thrown, and a lost file that is asked for all the same does not go round for ever", async () => {
  const { files } = loads({ [A]: "lost" });
  await expect(files.within([], never, () => Promise.reject(new Error("no model")))).rejects.toThrow("no model");
  const stubborn = files.within([], never, (_messages, download) => load([file(A)], download));
  await expect(stubborn).rejects.toThrow("not there");
});
