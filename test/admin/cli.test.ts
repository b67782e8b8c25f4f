import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openTarget, Unreached } from "../../src/cli/target.ts";
import { databaseFile, withDatabase } from "../host/agent-files.ts";
import { eventually, openHost, tempDir } from "../host/open-host.ts";
import { deskOf } from "./desk.ts";
import { makeOld } from "./old-rows.ts";
import { perdure, startPerdure } from "./run-command.ts";

const TOKEN = "t".repeat(32);

const follow = (dir: string) => startPerdure(["tail", "--json", "--dir", dir]);

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
    [["backup"], "backup --to DIR"],
    [["backup", "--to", dir, "--keep", "none"], "--keep"],
    [["restore", dir], "folder of backups"],
    [["restore", dir, "--rename", "Desk/b", "--dir", join(dir, "x")], "--agent"],
    [["restore", dir, "--url", "http://127.0.0.1:9"], "--dir"],
    [["export", "Desk/a"], "--to FILE"],
    [["import", join(dir, "none.tar")], "no file"],
    [["migrate", "--dry-run", "--dir", dir], "--dir"],
  ] as const;
  for (const [args, told] of wrong) {
    expect(await perdure(args), args.join(" ")).toMatchObject({ code: 2, out: "", err: expect.stringContaining(told) });
  }
  const nobody = await perdure(["agents", "--url", "http://127.0.0.1:9"], { PERDURE_TOKEN: TOKEN });
  expect(nobody).toMatchObject({ code: 3, out: "", err: expect.stringContaining("No host answers") });
  expect((await perdure(["docs", "operate"])).out).toContain("# Operating a host");
});
