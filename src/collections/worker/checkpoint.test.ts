import { expect, test } from "vitest";
import { openLocalLog } from "../log/local-log.ts";
import { catchUp } from "./checkpoint.ts";

const write = (log: ReturnType<typeof openLocalLog>, key: string) =>
  log.write({ changes: [{ table: "t", key, operation: "insert", value: {} }] });

test("it waits until the log has read what the wake was for, and for no other log", async () => {
  const [log, other] = [openLocalLog({ name: "chat" }), openLocalLog({ name: "other" })];
  await write(log, "a");
  const cursor = log.position.replace(/1$/, "2");
  const { signal } = new AbortController();
  let isThere = false;
  const waiting = catchUp({ tails: [{ source: "chat", cursor }], signal }, [other, log]).then(() => (isThere = true));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(isThere).toBe(false);
  await write(log, "b");
  await waiting;
  expect(log.position).toBe(cursor);
});

test("it ends with its time, and with its session", async () => {
  const log = openLocalLog({ name: "chat" });
  const tails = [{ source: "chat", cursor: "9" }];
  const stop = new AbortController();
  const late = catchUp({ tails, signal: stop.signal }, [log], { timeoutMs: 10 });
  await expect(late).rejects.toMatchObject({ code: "timeout" });
  const waiting = catchUp({ tails, signal: stop.signal }, [log]);
  stop.abort(new Error("lost"));
  await expect(waiting).rejects.toThrow("lost");
});
