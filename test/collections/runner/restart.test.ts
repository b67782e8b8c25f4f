import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RowLog } from "perdure/collections";
import {
  durableStreamsWebhookAdapter,
  handleDurableStreamsWake,
  openStreamLog,
  runWithLifecycle,
} from "perdure/collections";
import { keepWakeSubscription, runPullWakeWorker } from "perdure/collections/worker";
import { startProgram } from "perdure/testing";
import { expect, test } from "vitest";
import { aborted, answerAll, inbox, startHook } from "./desk.ts";
import { until } from "../../support/until.ts";

const program = new URL("server-program.ts", import.meta.url);

test.concurrent.each(["memory", "file"])(
  "a server that is killed forgets its subscriptions and changes its keys: they are made again, nothing is lost (%s)",
  async (kind) => {
    const dir = await mkdtemp(join(tmpdir(), "perdure-runner-"));
    const start = async (port: string) => {
      const life = startProgram(program, { dir, env: { PORT: port, KIND: kind } });
      return { life, url: String((await life.waitFor("up"))["url"]) };
    };
    let { life, url } = await start("0");
    const open = async (path: string): Promise<RowLog> => {
      const log = openStreamLog({ url: `${url}/v1/stream/${path}`, onError: () => {} });
      await log.ready;
      return log;
    };
    const logs = { pushed: await open("pushed"), pulled: await open("pulled") };
    const hook = await startHook();
    const adapter = durableStreamsWebhookAdapter({
      jwksUrl: `${url}/v1/stream/__ds/jwks.json`,
      heartbeatIntervalMs: 20,
    });
    const ends: unknown[] = [];
    const tokens: number[] = [];
    let isHeld = false;
    hook.handle = (request) =>
      handleDurableStreamsWake({
        request,
        adapter,
        run: async (wake) => {
          const run = runWithLifecycle(wake, adapter, async (session) => {
            tokens.push(Number(session.fenceToken));
            if (isHeld) return aborted(session.signal);
            await answerAll(session, logs.pushed);
          });
          ends.push(await run.then(() => "done").catch((error: { code?: string }) => error.code));
        },
      });
    const kept = keepWakeSubscription({
      baseUrl: url,
      id: "agent",
      streams: ["pushed"],
      webhook: hook.url,
      everyMs: 50,
      onError: () => {},
    });
    const worker = runPullWakeWorker({
      baseUrl: url,
      subscriptionId: "worker",
      streams: ["pulled"],
      run: (session) => answerAll(session, logs.pulled),
      onError: () => {},
    });
    const answered = (text: string) =>
      until(() => Object.values(logs).every((log) => inbox(log).texts().includes(`re ${text}`)), `re ${text}`);
    const send = (text: string) => Promise.all(Object.values(logs).map((log) => inbox(log).send(text)));
    try {
      await kept.ready;
      await send("a");
      await answered("a");
      await until(() => ends.length === tokens.length, "the end of the first wakes");
      isHeld = true;
      await inbox(logs.pushed).send("b");
      await until(() => tokens.length > ends.length, "the wake of b");
      await life.kill();
      isHeld = false;
      ({ life, url } = await start(new URL(url).port));
      if (kind === "memory") {
        // The rows are gone with it: who has said "b" says it again.
        for (const log of Object.values(logs)) await log.close();
        Object.assign(logs, { pushed: await open("pushed"), pulled: await open("pulled") });
        await inbox(logs.pushed).send("b");
      }
      await inbox(logs.pulled).send("b");
      await answered("b");
      await until(() => ends.includes("fenced"), "the end of the run that was cut");
      // The server counts its wakes from 1 again; fences go on.
      expect(tokens).toEqual(tokens.toSorted((x, y) => x - y));
      expect(new Set(tokens).size).toBe(tokens.length);
    } finally {
      kept.stop();
      await worker.stop();
      for (const log of Object.values(logs)) await log.close();
      await hook.stop();
      await life.kill();
      await rm(dir, { recursive: true, force: true });
    }
  },
);
