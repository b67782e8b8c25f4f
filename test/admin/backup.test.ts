import { existsSync, globSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Fact, type Program, startProgram } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { eventually, tempDir } from "../host/open-host.ts";
import { askDir, perdure, startPerdure } from "./run-command.ts";

const program = new URL("backup-program.ts", import.meta.url);
const AGENTS = 12;

function startHost(dir: string): Program {
  const host = startProgram(program, { dir });
  onTestFinished(async () => void (await host.kill()));
  return host;
}

const saidIn = (host: Program) => host.facts.filter(({ type }) => type === "said");

/** Waits until every agent has answered so often more. */
async function rounds(host: Program, count: number): Promise<void> {
  const before = saidIn(host).length;
  await eventually(() => saidIn(host).length >= before + count * AGENTS, "answers");
}

async function backUp(dir: string, to: string) {
  // What takes long says on stderr how far it is.
  const { code, out, err } = await perdure(["backup", "--to", to, "--json", "--dir", dir]);
  expect(code, err).toBe(0);
  return JSON.parse(out) as { backup: number; at: number; agents: number; unchanged: number; newBytes: number };
}

/** What was acknowledged before a moment and is not in a directory. */
async function lostIn(dir: string, facts: readonly Fact[], before: number): Promise<unknown[]> {
  const lost: unknown[] = [];
  for (let at = 0; at < AGENTS; at++) {
    const { messages } = await askDir(dir, `agents/Desk%2Fa${at}/messages?limit=99999`);
    const there = JSON.stringify(messages);
    const said = facts.filter(({ name, at: when }) => name === `a${at}` && Number(when) < before);
    lost.push(...said.filter(({ said: text }) => !there.includes(JSON.stringify(text))));
  }
  return lost;
}

test("a backup under load has every turn that was acknowledged before it, and one that a kill cut off changes none from before", async () => {
  const [dir, to] = [tempDir(), join(tempDir(), "backups")];
  const host = startHost(dir);
  await host.waitFor("grown");
  await rounds(host, 2);
  const first = await backUp(dir, to);
  expect(first).toMatchObject({ backup: 1, agents: AGENTS });
  await rounds(host, 2);

  const files = () => globSync(join(to, "data/*/*")).length;
  const before = files();
  const cut = startPerdure(["backup", "--to", to, "--dir", dir]);
  await eventually(() => files() > before + 3, "the middle of a backup");
  await host.kill();
  expect(await cut.ended).toBe(3);
  expect(cut.told.err).toContain("gone away");

  const restored = join(tempDir(), "restored");
  const done = await perdure(["restore", to, "--json", "--dir", restored]);
  expect(done.code, done.err).toBe(0);
  expect(JSON.parse(done.out)).toMatchObject({ backup: 1, agents: AGENTS, erased: 0 });
  expect(await lostIn(restored, host.facts, first.at)).toEqual([]);
  expect(saidIn(host).filter(({ at }) => Number(at) < first.at).length).toBeGreaterThanOrEqual(2 * AGENTS);
  // With the file that a message names.
  expect(globSync(join(restored, "blobs/*/*"))).toHaveLength(1);
  expect((await perdure(["check", "--dir", restored])).code).toBe(0);

  const next = startHost(dir);
  await next.waitFor("grown");
  await rounds(next, 1);
  const second = await backUp(dir, to);
  expect(second).toMatchObject({ backup: 2, agents: AGENTS });
  const again = join(tempDir(), "again");
  expect(await perdure(["restore", to, "--dir", again])).toMatchObject({ code: 0 });
  expect(await lostIn(again, [...host.facts, ...next.facts], second.at)).toEqual([]);

  // Agents that were in the middle of something carry on in the restored directory.
  const carried = startHost(again);
  await carried.waitFor("grown");
  await rounds(carried, 1);
  expect(await lostIn(again, [...host.facts, ...next.facts], second.at)).toEqual([]);
});

test("whoever makes a backup may be killed at any time: the next one goes on where it was", async () => {
  const [dir, to] = [tempDir(), join(tempDir(), "backups")];
  const host = startHost(dir);
  await host.waitFor("grown");
  await rounds(host, 1);
  const cut = startPerdure(["backup", "--to", to, "--dir", dir]);
  await eventually(() => globSync(join(to, "data/*/*")).length > 3, "the middle of a backup");
  cut.child.kill("SIGKILL");
  await cut.ended;
  expect(existsSync(join(to, "lock"))).toBe(true);
  const none = await perdure(["restore", to, "--dir", join(tempDir(), "x")]);
  expect(none).toMatchObject({ code: 1, err: expect.stringContaining("no whole backup") });

  await host.kill();
  // At rest, where nothing changes any more.
  const [first, second] = [await backUp(dir, to), await backUp(dir, to)];
  expect([first.backup, second.backup, second.agents]).toEqual([1, 2, AGENTS]);
  expect(globSync(join(to, "data/*.draft"))).toEqual([]);
  expect(second.unchanged).toBe(AGENTS);
  expect(await perdure(["check", "--backup", to])).toMatchObject({ code: 0, out: "" });
  const trimmed = await perdure(["backup", "--to", to, "--keep", "1", "--dir", dir]);
  expect(trimmed.code).toBe(0);
  expect(readdirSync(to).filter((name) => name.endsWith(".jsonl"))).toEqual(["000003.jsonl"]);
  expect(await perdure(["check", "--backup", to])).toMatchObject({ code: 0 });
});

test("bytes that are damaged or gone are found before anything is restored, and half a restore is no directory", async () => {
  const [dir, to] = [tempDir(), join(tempDir(), "backups")];
  const host = startHost(dir);
  await host.waitFor("grown");
  await rounds(host, 1);
  await host.kill();
  await backUp(dir, to);
  const [victim = ""] = globSync(join(to, "data/*/*")).sort();
  const bytes = readFileSync(victim);
  writeFileSync(
    victim,
    bytes.map((byte, at) => (at === 2_000 ? byte ^ 1 : byte)),
  );
  const restored = join(tempDir(), "restored");
  const refused = await perdure(["restore", to, "--dir", restored]);
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("is damaged") });
  expect(existsSync(restored)).toBe(false);
  expect(await perdure(["check", "--backup", to])).toMatchObject({ code: 1, out: expect.stringContaining("damaged") });
  writeFileSync(victim, bytes);

  const full = tempDir();
  writeFileSync(join(full, "mine"), "");
  expect(await perdure(["restore", to, "--dir", full])).toMatchObject({
    code: 2,
    err: expect.stringContaining("not empty"),
  });
  expect(await perdure(["backup", "--to", full, "--dir", dir])).toMatchObject({ code: 2 });

  const half = join(tempDir(), "half");
  const cut = startPerdure(["restore", to, "--dir", half]);
  await eventually(() => globSync(join(half, "agents/*/*.db")).length > 3, "the middle of a restore");
  cut.child.kill("SIGKILL");
  await cut.ended;
  const after = await perdure(["agents", "--dir", half]);
  expect(after).toMatchObject({ code: 2, err: expect.stringContaining("cut off") });
});
