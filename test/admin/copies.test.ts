import { existsSync, globSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { Think } from "perdure";
import type { ServedHost } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { agentFiles, withDatabase } from "../host/agent-files.ts";
import { openHost, tempDir } from "../host/open-host.ts";
import { ALL_TABLES, makeOld } from "./old-rows.ts";
import { askDir, perdure } from "./run-command.ts";

const TOKEN = "t".repeat(32);
const SECRET = "the-secret-of-anna";
const PICTURE = `data:image/png;base64,${Buffer.alloc(60_000, 7).toString("base64")}`;
const model = scriptedModel(() => "Yes.");

class Desk extends Think {
  override workspaceTools = false as const;
  override mediaRetention = { keepInMessages: 1 };

  override getModel() {
    return model;
  }

  async fill(): Promise<void> {
    this.createSession({ id: "s1", subject: "anna" });
    await this.saveMessages([{ id: "m1", role: "user", parts: [{ type: "text", text: SECRET }] }], { session: "s1" });
    await this.saveMessages([
      { id: "p", role: "user", parts: [{ type: "file", mediaType: "image/png", url: PICTURE }] },
    ]);
    await this.saveMessages([{ id: "q", role: "user", parts: [{ type: "text", text: "What is it?" }] }]);
    // What is large leaves the message after the turn.
    while (!JSON.stringify(this.messages).includes("/files/")) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  async hire(name: string): Promise<void> {
    const child = await this.subAgent(Desk, name);
    await child.runTurn({ input: "Hello" });
  }
}

async function openDesk(): Promise<{ dir: string; host: ServedHost }> {
  const dir = tempDir();
  const host = await openHost({ agents: { Desk }, dir, admin: { token: TOKEN } });
  await host.getAgentByName(Desk, "anna").fill();
  await host.getAgentByName(Desk, "ben").runTurn({ input: "Hello" });
  return { dir, host };
}

/** Whether bytes stand anywhere in a directory. */
const holds = (dir: string, text: string) =>
  globSync(join(dir, "**/*")).some((file) => statSync(file).isFile() && readFileSync(file).includes(text));

test("what was erased since a backup stays erased in what is restored: an agent, a session, a person's data", async () => {
  const { dir, host } = await openDesk();
  const to = join(tempDir(), "backups");
  expect(await perdure(["backup", "--to", to, "--dir", dir])).toMatchObject({ code: 0 });
  await host.getAgentByName(Desk, "anna").erase({ subject: "anna" });
  expect((await perdure(["erase", "Desk/ben", "--yes", "--dir", dir])).code).toBe(0);
  // Nothing of it is in the directory, the list of what was erased included.
  await host.stop();
  expect([holds(dir, SECRET), holds(join(dir, "host.db"), "Desk/ben")]).toEqual([false, false]);
  expect(await perdure(["backup", "--to", to, "--dir", dir])).toMatchObject({ code: 0 });

  // An older backup is restored by the newest list, which is read first as all else is.
  const [, newest = ""] = readdirSync(to)
    .filter((name) => name.endsWith(".jsonl"))
    .sort();
  const { host: digest } = JSON.parse(readFileSync(join(to, newest), "utf8").split("\n")[0] ?? "") as { host: string };
  const list = join(to, "data", digest.slice(0, 2), digest);
  const bytes = readFileSync(list);
  writeFileSync(list, bytes.subarray(0, -1));
  const restored = join(tempDir(), "restored");
  const damaged = await perdure(["restore", to, "--number", "1", "--dir", restored]);
  expect(damaged).toMatchObject({ code: 1, err: expect.stringContaining("is damaged") });
  expect(existsSync(restored)).toBe(false);
  writeFileSync(list, bytes);

  const done = await perdure(["restore", to, "--number", "1", "--json", "--dir", restored]);
  expect(done).toMatchObject({ code: 0, err: "" });
  expect(JSON.parse(done.out)).toMatchObject({ backup: 1, agents: 1, erased: 1 });
  expect(holds(restored, SECRET)).toBe(false);
  const { items } = (await askDir(restored, "agents")) as { items: { id: string }[] };
  expect(items.map(({ id }) => id)).toEqual(["Desk/anna"]);
  const { messages } = (await askDir(restored, "agents/Desk%2Fanna/messages")) as { messages: { id: string }[] };
  expect(messages.map(({ id }) => id)).toEqual(expect.arrayContaining(["p", "q"]));
  // The list goes on there.
  const again = await perdure(["restore", to, "--number", "1", "--agent", "Desk/ben", "--dir", restored]);
  expect(again).toMatchObject({ code: 1, err: expect.stringContaining("--erased") });
  const back = ["restore", to, "--number", "1", "--agent", "Desk/ben", "--erased", "--dir", restored];
  expect(await perdure(back)).toMatchObject({ code: 0 });
});

test("an agent that was deleted by mistake comes back without what somebody had asked to erase from it", async () => {
  const { dir, host } = await openDesk();
  const to = join(tempDir(), "backups");
  expect(await perdure(["backup", "--to", to, "--dir", dir])).toMatchObject({ code: 0 });
  await host.getAgentByName(Desk, "anna").erase({ subject: "anna" });
  expect(await perdure(["erase", "Desk/anna", "--yes", "--dir", dir])).toMatchObject({ code: 0 });
  const back = ["restore", to, "--agent", "Desk/anna", "--dir", dir];
  expect(await perdure(back)).toMatchObject({ code: 1, err: expect.stringContaining("--erased") });
  expect(await perdure([...back, "--erased"])).toMatchObject({ code: 0, err: "" });
  await host.stop();
  expect(holds(dir, SECRET)).toBe(false);
  const { messages } = (await askDir(dir, "agents/Desk%2Fanna/messages")) as { messages: { id: string }[] };
  expect(messages.map(({ id }) => id)).toEqual(expect.arrayContaining(["p", "q"]));
});

test("one agent of a backup comes back under another name beside the first, with its children and its files, by socket, URL and at rest", async () => {
  const { dir, host } = await openDesk();
  await host.getAgentByName(Desk, "anna").hire("kid");
  const to = join(tempDir(), "backups");
  const far = { PERDURE_TOKEN: TOKEN };
  expect(await perdure(["backup", "--to", to, "--url", host.url], far)).toMatchObject({ code: 0 });
  const restore = (name: string) => ["restore", to, "--agent", "Desk/anna", "--rename", name];
  expect(await perdure([...restore("Desk/live"), "--dir", dir])).toMatchObject({ code: 0 });
  expect(await perdure([...restore("Desk/far"), "--url", host.url], far)).toMatchObject({ code: 0 });
  const twice = await perdure([...restore("Desk/live"), "--dir", dir]);
  expect(twice).toMatchObject({ code: 1, err: expect.stringContaining("--rename") });
  const unnamed = await perdure(["restore", to, "--agent", "Desk/anna", "--dir", dir]);
  expect(unnamed).toMatchObject({ code: 1, err: expect.stringContaining("conflict") });
  // It works on, on its own.
  await host.getAgentByName(Desk, "live").runTurn({ input: "And now?" });
  expect(JSON.stringify((await askDir(dir, "agents/Desk%2Flive/messages")).messages)).toContain("And now?");
  expect(JSON.stringify((await askDir(dir, "agents/Desk%2Fanna/messages")).messages)).not.toContain("And now?");
  const picture = await fetch(
    `${host.url}/agents/desk/far/files/${(globSync(join(dir, "blobs/far*/*"))[0] ?? "").split("/").at(-1)}`,
  );
  expect((await picture.arrayBuffer()).byteLength).toBe(60_000);

  await host.stop();
  expect(await perdure([...restore("Desk/rest"), "--dir", dir])).toMatchObject({ code: 0 });
  const { items } = (await askDir(dir, "agents")) as { items: { id: string }[] };
  const names = ["anna", "far", "live", "rest"].flatMap((name) => [`Desk/${name}`, `Desk/${name}/Desk/kid`]);
  expect(items.map(({ id }) => id)).toEqual([...names, "Desk/ben"].sort());
  expect(await perdure(["check", "--dir", dir])).toMatchObject({ code: 0 });
});

test("an agent leaves one host as a file that any program can open, and goes on in another", async () => {
  const { dir, host } = await openDesk();
  await host.getAgentByName(Desk, "anna").hire("kid");
  const file = join(tempDir(), "anna.tar");
  const made = await perdure(["export", "Desk/anna", "--to", file, "--json", "--dir", dir]);
  expect(JSON.parse(made.out)).toMatchObject({ id: "Desk/anna", agents: 2 });
  expect(await perdure(["export", "Desk/anna", "--to", file, "--dir", dir])).toMatchObject({ code: 2 });
  expect(await perdure(["export", "Desk/none", "--to", `${file}2`, "--dir", dir])).toMatchObject({ code: 1 });
  expect(await perdure(["export", "Desk/anna/Desk/kid", "--to", `${file}2`, "--dir", dir])).toMatchObject({ code: 2 });
  const names = execFileSync("tar", ["-tf", file], { encoding: "utf8" }).trim().split("\n");
  expect(names).toEqual(expect.arrayContaining(["0/agent.json", "0/messages.jsonl", "0/rows.db", "1/rows.db"]));
  const lines = execFileSync("tar", ["-xOf", file, "0/messages.jsonl"], { encoding: "utf8" }).trim().split("\n");
  expect(lines.map((line) => (JSON.parse(line) as { id: string }).id)).toEqual(
    expect.arrayContaining(["m1", "p", "q"]),
  );

  const other = tempDir();
  const there = await openHost({ agents: { Desk }, dir: other });
  expect(await perdure(["import", file, "--dir", other])).toMatchObject({ code: 0 });
  expect(await perdure(["import", file, "--dir", other])).toMatchObject({ code: 1 });
  expect(await perdure(["import", file, "--rename", "Desk/copy", "--dir", other])).toMatchObject({ code: 0 });
  expect(await perdure(["import", join(dir, "host.db"), "--dir", other])).toMatchObject({ code: 2 });
  const moved = await there.getAgentByName(Desk, "anna").runTurn({ input: "Are you there?" });
  expect(moved.status).toBe("completed");
  expect(agentFiles(other).filter((one) => one.includes("/blobs/"))).toHaveLength(2);
});

test("a tar whose entries lead back to themselves is refused", async () => {
  const { dir, host } = await openDesk();
  await host.stop();
  const file = join(tempDir(), "loop.tar");
  const header = Buffer.alloc(512);
  header.write("0/rows.db", 0);
  header.write("-1000", 124);
  header.write("0", 156);
  const sum = header.reduce((so, byte) => so + byte, 8 * " ".charCodeAt(0));
  header.write(sum.toString(8), 148);
  writeFileSync(file, Buffer.concat([header, Buffer.alloc(1024)]));
  expect(await perdure(["import", file, "--dir", dir])).toMatchObject({
    code: 2,
    err: expect.stringContaining("no tar"),
  });
});

test("check names an agent whose rows are damaged, a file that is missing, and files of nobody", async () => {
  const { dir, host } = await openDesk();
  expect(await perdure(["check", "--dir", dir])).toMatchObject({ code: 0, out: "" });
  await host.stop();
  const [blob = ""] = agentFiles(dir).filter((file) => file.includes("/blobs/"));
  execFileSync("rm", [blob]);
  const [rows = ""] = agentFiles(dir).filter((file) => file.includes("/ben."));
  execFileSync("cp", [rows, rows.replace("ben.", "nobody.")]);
  const bad = await perdure(["check", "--json", "--dir", dir]);
  expect(bad.code).toBe(1);
  const items = bad.out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(items).toContainEqual(
    expect.objectContaining({ id: "Desk/anna", ok: false, error: expect.stringContaining("is missing") }),
  );
  expect(items).toContainEqual(expect.objectContaining({ id: "Desk/ben", ok: true, schema: expect.any(Number) }));
  expect(items).toContainEqual(expect.objectContaining({ file: expect.stringContaining("nobody."), ok: false }));
});

test("a directory of before is brought up to date at once, and first only told of", async () => {
  const { dir, host } = await openDesk();
  await host.stop();
  const [rows = ""] = agentFiles(dir).filter((file) => file.includes("/ben."));
  const schemaOf = () => withDatabase(rows, (db) => db.prepare("SELECT max(id) FROM perdure_migration").pluck().get());
  const newest = schemaOf();
  makeOld(rows);
  const old = { id: "Desk/ben", schema: ALL_TABLES, newest };
  const dry = await perdure(["migrate", "--dry-run", "--json", "--dir", dir]);
  expect(JSON.parse(dry.out)).toEqual(old);
  expect(schemaOf()).toBe(ALL_TABLES);
  const done = await perdure(["migrate", "--json", "--dir", dir]);
  expect({ ...done, out: JSON.parse(done.out) as unknown }).toEqual({ code: 0, out: old, err: "" });
  expect(schemaOf()).toBe(newest);
  const none = await perdure(["migrate", "--dir", dir]);
  expect(none).toEqual({ code: 0, out: "", err: "All rows are up to date.\n" });
});
