import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { createHost, type Host, type HostOptions } from "perdure/node";
import { killPrograms, startProgram } from "perdure/testing";
import { afterEach, expect, onTestFinished, test } from "vitest";
import { agentFiles, databaseFile, withDatabase } from "../host/agent-files.ts";
import { HostDb } from "../../src/host/node/host-db.ts";
import { tempDir } from "../host/open-host.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import { until } from "../support/until.ts";
import { Talker, Worker } from "./workers.ts";

const ODD = "an odd: name / with everything ".repeat(3);
const KINDS = ["fiber", "queue", "schedule"];
const program = await bundleProgram(new URL("./workers-program.ts", import.meta.url));

afterEach(async () => void (await killPrograms()));

function open(dir: string, options: Partial<HostOptions> = {}): Host & { readonly said: string[] } {
  const said: string[] = [];
  const env = { ran: join(dir, "ran"), hangs: false };
  const log = ({ error }: { error: unknown }) => void said.push(String(error));
  const host = createHost({ agents: { Worker, Talker }, dir, env, log, graceMs: 100, ...options });
  onTestFinished(() => host.stop());
  return { ...host, said };
}

/** What has run, each once, sorted. */
function ranIn(dir: string): string[] {
  const file = join(dir, "ran");
  return existsSync(file) ? [...new Set(readFileSync(file, "utf8").trimEnd().split("\n"))].sort() : [];
}

const hostFiles = (dir: string) => readdirSync(dir).filter((name) => name.startsWith("host.db"));
function deleteHostDb(dir: string): void {
  for (const name of hostFiles(dir)) rmSync(join(dir, name));
}

/** A directory whose host was killed while its agents had all kinds of work. */
async function killedDirectory(): Promise<string> {
  const dir = tempDir();
  const child = startProgram(program, { dir });
  await child.waitFor("planned");
  await child.kill();
  return dir;
}

test("host.db was deleted after a crash: all that was due runs, at any depth and under any name", async () => {
  const dir = await killedDirectory();
  deleteHostDb(dir);
  const host = open(dir);
  const names = ["plain@0", "gone@0", `${ODD}@0`, "below 3: äö@1", "below 2: äö@2", "below 1: äö@3"];
  const all = ["chat turn", ...names.flatMap((name) => KINDS.map((kind) => `${name} ${kind}`))].sort();
  await until(() => ranIn(dir).length >= all.length, "all work");
  expect(ranIn(dir)).toEqual(all);
  expect(host.listAgents()).toHaveLength(7);
  expect(host.said.join()).toContain("made anew from the files of 7 agents");
  expect(await host.getAgentByName(Worker, "plain").n()).toBe(1);
  expect(await host.getAgentByName(Worker, ODD).below()).toBe(1);
  await host.stop();
  // Once is enough.
  expect(open(dir).said).toEqual([]);
});

test("files of an earlier version, which do not say whose they are, are known by what their parents call them", async () => {
  const dir = await killedDirectory();
  deleteHostDb(dir);
  for (const file of agentFiles(dir).filter((one) => one.endsWith(".db"))) {
    const isOdd = file.includes("/an_odd");
    if (!isOdd) withDatabase(file, (db) => db.exec("DELETE FROM perdure_cell WHERE key = 'agent:id'"));
  }
  const host = open(dir);
  await until(() => ranIn(dir).filter((line) => line.startsWith("below 1")).length === 3, "the deepest work");
  expect(host.listAgents()).toHaveLength(7);
});

test("an older host.db beside newer files: who was made or given work since is woken, who was deleted since stays deleted", async () => {
  const dir = tempDir();
  const first = open(dir);
  await first.getAgentByName(Worker, "old").n();
  await first.getAgentByName(Worker, "asleep").planBelow(1);
  await first.getAgentByName(Worker, "deleted").plan();
  await until(() => ranIn(dir).length === 9, "the first work");
  await first.stop();
  mkdirSync(join(dir, "copy"));
  for (const name of hostFiles(dir)) copyFileSync(join(dir, name), join(dir, "copy", name));
  rmSync(join(dir, "ran"));

  const second = open(dir, { env: { ran: join(dir, "ran"), hangs: true } });
  await second.getAgentByName(Worker, "asleep").plan();
  await second.getAgentByName(Worker, "asleep").drop("below 1: äö");
  await second.getAgentByName(Worker, "new").plan();
  await second.getAgentByName(Worker, "deleted").destroy();
  await second.stop();
  deleteHostDb(dir);
  for (const name of readdirSync(join(dir, "copy"))) copyFileSync(join(dir, "copy", name), join(dir, name));

  const third = open(dir);
  const all = ["asleep@0", "new@0"].flatMap((name) => KINDS.map((kind) => `${name} ${kind}`));
  await until(() => ranIn(dir).length >= all.length, "the work of both");
  expect(ranIn(dir)).toEqual(all);
  expect(third.listAgents()).toEqual(["Worker/asleep", "Worker/new"]);
  expect(await third.getAgentByName(Worker, "asleep").below()).toBe(0);
  expect(third.said.join()).toContain("missing or an older copy");
});

test("a host.db that was copied a moment before the next agent was made is an old copy, however short the moment", async () => {
  const dir = tempDir();
  const first = open(dir, { env: { ran: join(dir, "ran"), hangs: true } });
  await first.getAgentByName(Worker, "a").plan();
  mkdirSync(join(dir, "copy"));
  for (const name of hostFiles(dir)) copyFileSync(join(dir, name), join(dir, "copy", name));
  await first.getAgentByName(Worker, "b").plan();
  await first.stop();
  deleteHostDb(dir);
  for (const name of readdirSync(join(dir, "copy"))) copyFileSync(join(dir, "copy", name), join(dir, name));
  const second = open(dir);
  const all = ["a@0", "b@0"].flatMap((name) => KINDS.map((kind) => `${name} ${kind}`));
  await until(() => ranIn(dir).length >= all.length, "the work of both");
  expect(ranIn(dir)).toEqual(all);
  expect(second.said.join()).toContain("missing or an older copy");
});

test.each(["an earlier start", "the same start"])(
  "an old host.db of %s beside a newer log is not mixed with it, but made anew",
  async (from) => {
    const dir = tempDir();
    const host = open(dir, { env: { ran: join(dir, "ran"), hangs: true } });
    await host.getAgentByName(Worker, "real").plan();
    await host.stop();
    const old = join(dir, "old");
    if (from === "an earlier start") copyFileSync(join(dir, "host.db"), old);
    const index = new HostDb(dir);
    if (from === "the same start") copyFileSync(join(dir, "host.db"), old);
    for (let i = 0; i < 3_000; i++) index.wake(`Worker/${String(i).padStart(40, "-")}`);
    // As a process leaves it that is killed.
    const killed = tempDir();
    cpSync(dir, killed, { recursive: true });
    index.close();
    expect(statSync(join(killed, "host.db-wal")).size).toBeGreaterThan(0);
    copyFileSync(old, join(killed, "host.db"));
    const again = new HostDb(killed);
    onTestFinished(() => again.close());
    expect(again.notices.join()).toContain("missing or an older copy");
    expect(again.list("", 10)).toEqual(["Worker/real"]);
  },
);

test("a process that was killed between two moves of its log comes back with all that it had noted", () => {
  const dir = tempDir();
  const index = new HostDb(dir);
  const ids = Array.from({ length: 1_000 }, (_, i) => `Worker/${String(i).padStart(4, "0")}`);
  for (const id of ids) index.wake(id);
  const killed = tempDir();
  cpSync(dir, killed, { recursive: true });
  index.close();
  const again = new HostDb(killed);
  onTestFinished(() => again.close());
  expect(again.notices).toEqual([]);
  expect(again.list("", 2_000)).toEqual(ids);
});

test("files of the host are not written through links that somebody has put in their place", async () => {
  const dir = tempDir();
  const elsewhere = join(tempDir(), "precious");
  for (const name of ["agents.json.draft", "host.pid"]) {
    writeFileSync(elsewhere, "precious");
    symlinkSync(elsewhere, join(dir, name));
    const host = open(dir);
    await host.getAgentByName(Worker, "a").n();
    await host.stop();
    expect(readFileSync(elsewhere, "utf8")).toBe("precious");
  }
});

test("a deletion that was cut, and host.db lost with it: the agent stays deleted, and none of its rows come back", async () => {
  const dir = tempDir();
  const first = open(dir);
  await first.getAgentByName(Worker, "a").planBelow(1);
  await until(() => ranIn(dir).length === 6, "its work");
  await first.stop();
  const [file] = [databaseFile(dir, "a")];
  const kept = `${file}.kept`;
  copyFileSync(file, kept);
  const second = open(dir);
  await second.getAgentByName(Worker, "a").destroy();
  await second.stop();
  // As if the process had died before the file of the agent was deleted.
  renameSync(kept, file);
  const mark = JSON.parse(readFileSync(join(dir, "agents.json"), "utf8")) as object;
  writeFileSync(join(dir, "agents.json"), JSON.stringify({ ...mark, doomed: ["Worker/a"] }));
  deleteHostDb(dir);
  const third = open(dir);
  await until(() => !existsSync(file), "the end of the file");
  expect(third.listAgents()).toEqual([]);
  expect(await third.getAgentByName(Worker, "a").n()).toBe(0);
});

test("a file of which nothing tells whose it is is named and left as it is", async () => {
  const dir = tempDir();
  const first = open(dir);
  await first.getAgentByName(Worker, "a").plan();
  await first.stop();
  const file = databaseFile(dir, "a");
  const stray = file.replace("/a.", "/b.");
  copyFileSync(file, stray);
  deleteHostDb(dir);
  const second = open(dir);
  expect(second.said.join()).toContain(`Nothing tells whose file ${stray.slice(dir.length + 1)} is`);
  expect(existsSync(stray)).toBe(true);
  expect(second.listAgents()).toEqual(["Worker/a"]);
});

test("a start with a host.db that is right opens no agent's file", async () => {
  const dir = tempDir();
  const first = open(dir);
  for (const name of ["a", ODD]) await first.getAgentByName(Worker, name).plan();
  await until(() => ranIn(dir).length === 6, "all work");
  await first.stop();
  // They could not be opened.
  for (const file of agentFiles(dir)) writeFileSync(file, "no database");
  const second = open(dir);
  expect(second.said).toEqual([]);
  expect(second.listAgents()).toHaveLength(2);
});
