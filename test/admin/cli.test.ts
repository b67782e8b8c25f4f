import { execFile, spawn } from "node:child_process";
import { copyFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { plainSql } from "../support/plain-sql.ts";
import { expect, onTestFinished, test } from "vitest";
import { openTarget, Unreached } from "../../src/cli/target.ts";
import { migrate, migrations } from "../../src/store/migrations.ts";
import { databaseFile, withDatabase } from "../host/agent-files.ts";
import { eventually, openHost, tempDir } from "../host/open-host.ts";
import { deskOf } from "./desk.ts";

const program = fileURLToPath(new URL("../../src/cli/perdure.ts", import.meta.url));
const SOURCE = ["--conditions=perdure-source", "--disable-warning=ExperimentalWarning", program];
const TOKEN = "t".repeat(32);
/** Far longer than any takes: what does not end by itself is killed, and has no code. */
const ENDLESS_MS = 90_000;

/** Runs the command as a process of its own. */
function perdure(args: readonly string[], env: Record<string, string> = {}) {
  return new Promise<{ code: number | null; out: string; err: string }>((resolve) => {
    const options = { env: { PATH: process.env["PATH"] ?? "", ...env }, timeout: ENDLESS_MS };
    const child = execFile(process.execPath, [...SOURCE, ...args], options, (_, out, err) =>
      resolve({ code: child.exitCode, out, err }),
    );
  });
}

/** The command while it follows events. */
function follow(dir: string) {
  const child = spawn(process.execPath, [...SOURCE, "tail", "--json", "--dir", dir], { env: { PATH: "" } });
  onTestFinished(() => void child.kill("SIGKILL"));
  const told = { out: "", err: "" };
  child.stdout.on("data", (piece: Buffer) => (told.out += piece.toString()));
  child.stderr.on("data", (piece: Buffer) => (told.err += piece.toString()));
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  return { child, told, ended };
}

test("the command reads a running host by its socket, by its URL, and its directory at rest, alike", async () => {
  const dir = tempDir();
  const { Desk } = deskOf([{ toolCalls: [{ toolCallId: "c1", toolName: "pay", input: { amount: 7 } }] }, "Done."]);
  const host = await openHost({ agents: { Desk }, dir, admin: { token: TOKEN } });
  await host.getAgentByName(Desk, "anna").runTurn({ input: "Pay 7." });

  const live = await perdure(["approvals", "--json", "--dir", dir]);
  expect(live).toMatchObject({ code: 0, err: "" });
  expect(JSON.parse(live.out)).toMatchObject({ agent: "Desk/anna", call: "c1", tool: "pay", input: { amount: 7 } });
  const far = await perdure(["approvals", "--json", "--url", host.url], { PERDURE_TOKEN: TOKEN });
  expect(far).toEqual(live);
  expect(await perdure(["health", "--dir", dir])).toMatchObject({ code: 0, out: "ok\n" });
  const stranger = await perdure(["agents", "--url", host.url], { PERDURE_TOKEN: "x".repeat(32) });
  expect(stranger).toMatchObject({ code: 2, out: "", err: expect.stringContaining("PERDURE_TOKEN") });

  await host.stop();
  expect(await perdure(["approvals", "--json", "--dir", dir])).toEqual(live);
  const health = await perdure(["health", "--dir", dir]);
  expect(health).toMatchObject({ code: 1, out: "", err: expect.stringContaining("No host runs here") });
  const approve = await perdure(["approve", "Desk/anna", "c1", "--dir", dir]);
  expect(approve).toMatchObject({ code: 3, err: expect.stringContaining("Start the app") });
  expect(await perdure(["erase", "Desk/anna", "--yes", "--dir", dir])).toMatchObject({ code: 0 });
  const none = await perdure(["agents", "--dir", dir]);
  expect(none).toEqual({ code: 0, out: "", err: "There are no agents yet.\n" });
});

test("a conversation and an answer to its question, by the command alone", async () => {
  const dir = tempDir();
  const pay = { toolCallId: "c1", toolName: "pay", input: { amount: 7 } };
  const { Desk } = deskOf(["Good \u{1b}[2Jday.", { toolCalls: [pay] }, "Done."]);
  await openHost({ agents: { Desk }, dir });
  const said = await perdure(["chat", "Desk/anna", "Hello", "--dir", dir]);
  // What clears a screen does not reach it.
  expect(said).toEqual({ code: 0, out: "Good \u{fffd}[2Jday.\n", err: "" });
  const asks = await perdure(["chat", "Desk/anna", "Pay 7.", "--dir", dir]);
  expect(asks).toMatchObject({ code: 0, err: "It waits for a person: perdure approve Desk/anna c1\n" });
  const yes = await perdure(["approve", "Desk/anna", "c1", "--as", "Åsa", "--dir", dir]);
  expect(yes).toEqual({ code: 0, out: "approved Desk/anna c1\n", err: "" });
  const again = await perdure(["deny", "Desk/anna", "c1", "--dir", dir]);
  expect(again).toMatchObject({ code: 1, out: "", err: expect.stringContaining("conflict") });
  const audit = await perdure(["audit", "--json", "--limit", "2", "--dir", dir]);
  expect(audit.out).toContain('"who":"Åsa"');
});

test("who follows events ends with 0 by Ctrl-C, and with 3 when the host goes", async () => {
  const dir = tempDir();
  const { Desk } = deskOf(["Good day."]);
  const host = await openHost({ agents: { Desk }, dir });
  const [first, second] = [follow(dir), follow(dir)];
  for (const { told } of [first, second]) await eventually(() => told.out.includes("following"), "who follows");
  await host.getAgentByName(Desk, "anna").runTurn({ input: "Hello" });
  for (const { told } of [first, second]) await eventually(() => told.out.includes("Desk/anna"), "an event");
  first.child.kill("SIGINT");
  expect(await first.ended).toBe(0);
  expect(first.told.err).toBe("");
  await host.stop();
  expect(await second.ended).toBe(3);
  expect(second.told.err).toContain("The host has gone away");
});

test("a host that is there and silent is not waited for without end", async () => {
  const dir = tempDir();
  writeFileSync(join(dir, "host.db"), "");
  const server = createServer().listen(join(dir, "admin.sock"));
  onTestFinished(() => void server.close());
  const opening = openTarget({ dir, who: "anna", patienceMs: 50 });
  await expect(opening).rejects.toThrow(Unreached);
  await expect(opening).rejects.toThrow("has not answered");
});

test("an agent that has only talked is read alike, whether its file has few tables or all of before", async () => {
  const dir = tempDir();
  const { Desk } = deskOf(["Good day.", "Good evening."]);
  const host = await openHost({ agents: { Desk }, dir });
  for (const name of ["new", "old"]) await host.getAgentByName(Desk, name).runTurn({ input: "Hello" });
  await host.stop();
  makeOld(databaseFile(dir, "old"));
  const tables = (name: string) =>
    withDatabase(databaseFile(dir, name), (db) =>
      db.prepare("SELECT count(*) FROM sqlite_schema WHERE name = 'perdure_action'").pluck().get(),
    );
  expect([tables("new"), tables("old")]).toEqual([0, 1]);

  const asked = [
    ["show", "Desk/new"],
    ["show", "Desk/old"],
    ["messages", "Desk/old"],
    ["approvals"],
    ["cost"],
    ["check"],
  ];
  const read = async () => {
    const answers: unknown[] = [];
    for (const args of asked) {
      const { code, out, err } = await perdure([...args, "--json", "--dir", dir]);
      expect({ code, err }, args.join(" ")).toEqual({ code: 0, err: "" });
      answers.push(out);
    }
    return answers;
  };
  const atRest = await read();
  const [anew, old, said, questions, cost, check] = atRest;
  expect(JSON.parse(String(anew))).toMatchObject({ calls: 1, last: "completed", children: [], pending: [] });
  expect(JSON.parse(String(old))).toMatchObject({ calls: 1, last: "completed", children: [], pending: [] });
  expect(said).toContain("Good evening.");
  expect(questions).toBe("");
  expect(JSON.parse(String(cost))).toMatchObject({ calls: 2 });
  expect(String(check).match(/"ok":true/g)).toHaveLength(2);
  await openHost({ agents: { Desk }, dir });
  expect(await read()).toEqual(atRest);
});

/** The last schema in which each file had all tables. */
const ALL_TABLES = 21;

/** Writes what is in a file as a version of before would have. */
function makeOld(file: string): void {
  const made = join(tempDir(), "old.db");
  migrate(
    plainSql(made),
    migrations.filter(({ id }) => id <= ALL_TABLES),
  );
  withDatabase(made, (db) => {
    db.prepare("ATTACH ? AS now").run(file);
    const columnsOf = (schema: string, table: string) =>
      db.prepare("SELECT name FROM pragma_table_info(?, ?)").pluck().all(table, schema) as string[];
    const names = "SELECT name FROM now.sqlite_schema WHERE type = 'table' AND name LIKE 'perdure_%'";
    for (const table of db.prepare(names).pluck().all() as string[]) {
      if (table === "perdure_migration") continue;
      const known = columnsOf("main", table);
      const shared = columnsOf("now", table).filter((name) => known.includes(name));
      if (shared.length === 0) continue;
      db.exec(`INSERT OR REPLACE INTO main.${table} (${shared.join()}) SELECT ${shared.join()} FROM now.${table}`);
    }
    db.exec("DETACH now");
  });
  copyFileSync(made, file);
}

test("wrong use says what to do, and exits 2; where nobody answers it exits 3", async () => {
  const dir = tempDir();
  const wrong = [
    [["nope"], "perdure help"],
    [["show"], "show <agent>"],
    [["agents", "--nope"], "--nope"],
    [["agents", "--reason", "x"], "no option --reason"],
    [["agents", "--dir", dir], "--dir"],
    [["agents", "--url", "http://127.0.0.1:9"], "PERDURE_TOKEN"],
    [["docs", "../README"], "perdure docs"],
  ] as const;
  for (const [args, told] of wrong) {
    expect(await perdure(args), args.join(" ")).toMatchObject({ code: 2, out: "", err: expect.stringContaining(told) });
  }
  const nobody = await perdure(["agents", "--url", "http://127.0.0.1:9"], { PERDURE_TOKEN: TOKEN });
  expect(nobody).toMatchObject({ code: 3, out: "", err: expect.stringContaining("No host answers") });
  expect((await perdure(["docs", "operate"])).out).toContain("# Operating a host");
});
