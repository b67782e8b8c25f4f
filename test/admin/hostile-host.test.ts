import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openTarget } from "../../src/cli/target.ts";
import { openHost, tempDir } from "../host/open-host.ts";
import { deskOf } from "./desk.ts";
import { perdure, type Ran } from "./run-command.ts";

const WANTED = Buffer.from("what somebody else wants there");

/** Runs the command against something that answers what it likes. */
async function against(answers: Readonly<Record<string, object | Buffer>>, args: readonly string[]): Promise<Ran> {
  const server = createServer((request, response) => {
    const answer = answers[(request.url ?? "").replace("/_perdure/v1/", "").replace(/\?.*/, "")] ?? WANTED;
    response.end(Buffer.isBuffer(answer) ? answer : JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return perdure([...args, "--url", `http://127.0.0.1:${port}`], { PERDURE_TOKEN: "t".repeat(32) });
}

/** An agent's rows as a host sends them, but with other names of its files. */
async function rowsNaming(blobs: readonly string[]): Promise<Buffer> {
  const dir = tempDir();
  const { Desk } = deskOf(["Good day."]);
  const host = await openHost({ agents: { Desk }, dir });
  await host.getAgentByName(Desk, "anna").runTurn({ input: "Hello" });
  const target = await openTarget({ dir, who: "anna" });
  const sent = Buffer.from(await (await target.ask("GET", "agents/Desk%2Fanna/rows")).arrayBuffer());
  await host.stop();
  const end = sent.indexOf("\n");
  const about = JSON.parse(sent.subarray(0, end).toString()) as object;
  return Buffer.concat([Buffer.from(JSON.stringify({ ...about, blobs })), sent.subarray(end)]);
}

test("a host that names files by a path has nothing written there, neither by an export nor by a backup", async () => {
  const victim = join(tempDir(), "victim");
  writeFileSync(victim, "mine");
  const answers = {
    backup: { at: 1, version: "1", items: [{ id: "Desk/anna", version: null }] },
    "agents/Desk%2Fanna/rows": await rowsNaming([`../../../../../..${victim}`]),
  };
  for (const command of [["export", "Desk/anna"], ["backup"]]) {
    const ran = await against(answers, [...command, "--to", join(tempDir(), "copy")]);
    expect(ran).toMatchObject({ code: 1, err: expect.stringContaining("names files otherwise") });
    expect(readFileSync(victim, "utf8")).toBe("mine");
  }
});

test("nothing that stands in a request, a message or a tape moves the cursor of a terminal", async () => {
  const [old, young] = ["\u001b]0;mine\u0007", "\u009b31m"];
  const evil = `${old}${young}\u202e`;
  const call = { call: "c2", before: "c1", model: evil, step: 0, proof: "exact", changed: [evil], cap: null };
  const shown = { ...call, settings: {}, instructions: evil, messages: [{ role: evil, content: evil }] };
  const answers = {
    "agents/a/turns/t": { calls: [{ id: "c2", purpose: "turn", step: 0 }] },
    "agents/a/calls/c2/request": { ...shown, tools: { [evil]: { inputSchema: { [evil]: evil } } } },
    "agents/a/calls/c1/request": { ...shown, tools: { [evil]: { inputSchema: { [evil]: "" } } } },
    "agents/a/messages": { messages: [{ id: "m", role: evil, parts: [{ type: "text", text: evil }] }] },
    "agents/a/tape": Buffer.from(`${JSON.stringify({ tape: 1, agent: evil, session: "main" })}\n`),
    host: { running: true, ok: true, [evil]: evil },
  };
  const commands = [["request", "a", "t"], ["request", "a", "t", "--diff"], ["messages", "a"], ["info"]];
  for (const args of [...commands, ...commands.map((one) => [...one, "--json"]), ["tape", "a"]]) {
    const { code, out, err } = await against(answers, args);
    expect({ code, err }, args.join(" ")).toEqual({ code: 0, err: "" });
    expect(out).toContain("mine");
    expect(out, args.join(" ")).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u);
    const isJson = args.includes("--json") || args[0] === "tape";
    // JSON says the same as before.
    expect(isJson ? JSON.stringify(JSON.parse(out)) : young).toContain(young);
  }
});
