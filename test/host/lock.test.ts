import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Agent, type AgentEnv, PerdureError } from "perdure";
import { createHost, serve } from "perdure/node";
import { killPrograms, startProgram } from "perdure/testing";
import { afterEach, expect, test } from "vitest";
import { PATIENCE_MS } from "../support/until.ts";
import { openHost, tempDir } from "./open-host.ts";

const program = new URL("./lock-program.ts", import.meta.url);

class Note extends Agent<AgentEnv, { text: string }> {
  read(): string {
    return this.state?.text ?? "";
  }
}

afterEach(killPrograms);

function refusal(work: () => unknown): unknown {
  try {
    work();
  } catch (thrown) {
    return thrown;
  }
  return undefined;
}

test("a second host in the same process is refused, and the first one works on", async () => {
  const dir = tempDir();
  const host = await openHost({ agents: { Note }, dir });
  const error = refusal(() => createHost({ agents: { Note }, dir }));
  expect(PerdureError.is(error, "directory_locked")).toBe(true);
  expect(String(error)).toContain(dir);
  expect(String(error)).toContain(`process ${process.pid}`);
  expect(String(error)).toContain("Stop that one first");
  expect(String(error)).toContain("`lock: { waitMs: 10_000 }`");
  expect(await host.getAgentByName(Note, "a").read()).toBe("");
  // Refusing twice must not have dropped the first one's lock.
  expect(
    PerdureError.is(
      refusal(() => createHost({ agents: { Note }, dir })),
      "directory_locked",
    ),
  ).toBe(true);
  await host.stop();
  await openHost({ agents: { Note }, dir });
});

test("a host in another process has it until it stops", async () => {
  const dir = tempDir();
  const other = startProgram(program, { dir });
  await other.waitFor("open");
  const error = refusal(() => createHost({ agents: { Note }, dir }));
  expect(PerdureError.is(error, "directory_locked")).toBe(true);
  expect(String(error)).toContain(`process ${other.pid}`);
  await other.send("stop");
  expect(await other.exited).toEqual({ code: 0, signal: null });
  const host = await openHost({ agents: { Note }, dir });
  expect(await host.getAgentByName(Note, "a").read()).toBe(`from ${other.pid}`);
});

test("a host that is to wait takes over as soon as the other process has stopped, or gives up after its time", async () => {
  const dir = tempDir();
  const other = startProgram(program, { dir });
  await other.waitFor("open");
  const error = refusal(() => createHost({ agents: { Note }, dir, lock: { waitMs: 1 } }));
  expect(PerdureError.is(error, "directory_locked")).toBe(true);
  // The wait blocks this process, so the other one must stop by itself.
  await other.send("stop later");
  const host = await openHost({ agents: { Note }, dir, lock: { waitMs: PATIENCE_MS } });
  expect(await host.getAgentByName(Note, "a").read()).toBe(`from ${other.pid}`);
});

test("the lock is free after kill -9, and what was written is there", async () => {
  const dir = tempDir();
  const other = startProgram(program, { dir });
  await other.waitFor("open");
  expect((await other.kill()).signal).toBe("SIGKILL");
  const host = await openHost({ agents: { Note }, dir });
  expect(await host.getAgentByName(Note, "a").read()).toBe(`from ${other.pid}`);
});

test("a directory of an unreadable host database says which file it is", () => {
  const dir = tempDir();
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "host.db"), "garbage ".repeat(1000));
  const error = refusal(() => createHost({ agents: { Note }, dir }));
  expect(PerdureError.is(error, "database_corrupt")).toBe(true);
  expect(String(error)).toContain(join(dir, "host.db"));
});

test("a host without a place for its data, and one on a port that is taken, say so and leave nothing open", async () => {
  expect(refusal(() => createHost({ agents: { Note } }))).toMatchObject({ code: "bad_config" });
  const dir = tempDir();
  const first = await openHost({ agents: { Note } });
  const taken = serve({ agents: { Note }, dir, port: first.port, signals: false });
  const message = expect.stringContaining("is in use by another program") as string;
  await expect(taken).rejects.toMatchObject({ code: "EADDRINUSE", message });
  await openHost({ agents: { Note }, dir });
});

test.each([
  [{ idleMs: Number.NaN }, "idleMs"],
  [{ graceMs: -1 }, "graceMs"],
  [{ lock: { waitMs: -1 } }, "lock.waitMs"],
  [{ limits: { agents: 0 } }, "limits.agents"],
  [{ limits: { frameBytes: Number.NaN } }, "limits.frameBytes"],
])("options that cannot work are refused before anything is opened: %o", (options, named) => {
  const dir = tempDir();
  expect(() => createHost({ agents: {}, dir, ...options })).toThrow(named);
  expect(readdirSync(dir)).toEqual([]);
});

test("a limit that is undefined is not set, and a file in place of the directory is told plainly", async () => {
  const dir = tempDir();
  const limits = { agents: undefined } as { agents?: number };
  await createHost({ agents: {}, dir, limits }).stop();
  const file = join(dir, "host.db");
  expect(() => createHost({ agents: {}, dir: file })).toThrow(expect.objectContaining({ code: "bad_config" }));
});
