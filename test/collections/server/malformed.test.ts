import { Agent } from "perdure";
import type { AgentHost } from "perdure";
import { expect, test } from "vitest";
import { connect, openHost } from "../../host/open-host.ts";
import { Room } from "./room.ts";

class Target extends Room {
  static failures: unknown[] = [];
  readonly port: AgentHost;

  constructor(host: AgentHost) {
    super(host);
    this.port = host;
  }
  override onError(error: unknown): void {
    Target.failures.push(error);
  }
  /** Every row of every table. */
  dump(): string {
    const tables = this.port.sql<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
    return JSON.stringify(tables.map(({ name }) => [name, this.port.sql(`SELECT * FROM "${name}"`)]));
  }
}

const WRONG: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e308,
  "",
  "x",
  [],
  [[]],
  {},
  "\ud800",
  "x".repeat(5000),
  [0],
];
const LONG = Array.from({ length: 1001 }, (_, n) => n);
const change = { table: "notes", key: "a", operation: "upsert", value: { n: 1 } };
const condition = { table: "notes", key: "a", version: 1 };

/** Frames in which one thing is wrong. What a null means is for the optional ones to say. */
function frames(): object[] {
  const list: object[] = [];
  const write = (fields: object) => list.push({ type: "perdure_rows_write", txid: "t", changes: [change], ...fields });
  const subscribe = (fields: object) => list.push({ type: "perdure_rows_subscribe", id: "q", since: {}, ...fields });
  for (const value of WRONG) {
    if (value !== "x") write({ txid: value });
    write({ changes: value });
    write({ changes: [value] });
    if (value !== null && !(Array.isArray(value) && value.length === 0)) write({ when: value });
    write({ when: [value] });
    if (value !== null) write({ producer: value });
    for (const field of ["table", "key", "operation", "value"]) {
      const fine =
        (field === "value" && value !== null && typeof value === "object" && !Array.isArray(value)) ||
        (value === "x" && field !== "value" && field !== "operation");
      if (!fine) write({ changes: [{ ...change, [field]: value }] });
    }
    for (const field of ["table", "key", "version"]) {
      const fine = value === "x" || (field === "version" && value === 0);
      if (!fine) write({ when: [{ ...condition, [field]: value }] });
    }
    for (const field of ["id", "epoch"]) {
      const fine = (value === "x" && field === "id") || (value === 0 && field === "epoch");
      if (!fine) write({ producer: { id: "p", epoch: 1, [field]: value } });
    }
    if (value !== "x") subscribe({ id: value });
    if (value !== null && value !== "x") subscribe({ life: value });
    if (value !== null && typeof value !== "boolean") subscribe({ all: value });
    if (typeof value !== "object" || value === null || Array.isArray(value)) subscribe({ since: value });
    if (value !== 0) subscribe({ since: { notes: value } });
    if (value !== null && !(Array.isArray(value) && value.length === 0))
      list.push({ type: "perdure_rows_unsubscribe", collections: value });
  }
  write({ changes: LONG.map(() => change) });
  write({ when: LONG.map(() => condition) });
  subscribe({ since: Object.fromEntries(LONG.map((n) => [`c${n}`, 0])) });
  subscribe({ since: { ["n".repeat(201)]: 0 } });
  return list;
}

test("a malformed frame about rows is answered with an error, changes nothing, and harms nobody", async () => {
  Target.failures = [];
  const host = await openHost({ agents: { Target } });
  const stub = host.getAgentByName(Target, "a");
  await stub.note("a", "here");
  const bystander = await connect(host, "/agents/target/a");
  bystander.send(JSON.stringify({ type: "perdure_rows_subscribe", id: "q", since: { notes: 0 } }));
  await bystander.frame(({ type }) => type === "perdure_rows_page");
  const before = await stub.dump();
  const seen = bystander.frames.length;
  const attacker = await connect(host, "/agents/target/a");
  const greeted = attacker.frames.length;
  const all = frames();
  for (const frame of all) attacker.send(JSON.stringify(frame));
  await expect(attacker.call("nothing")).rejects.toThrow("does not exist");
  const answers = attacker.frames.slice(greeted, -1);
  expect(answers.map(({ type }) => type)).toEqual(all.map(() => "perdure_rows_error"));
  const codes = new Set(answers.map(({ error }) => (error as { code: string }).code));
  expect([...codes]).toEqual(["bad_input"]);
  // Under the name of what was asked, where it had one.
  expect(answers.filter(({ txid }) => txid === "t").length).toBeGreaterThan(100);
  expect(answers.filter(({ id }) => id === "q").length).toBeGreaterThan(20);
  expect(await stub.dump()).toBe(before);
  expect(bystander.frames.length).toBe(seen);
  expect(Target.failures).toEqual([]);
  attacker.send(JSON.stringify({ type: "perdure_rows_write", txid: "good", changes: [change] }));
  expect(await attacker.frame(({ txid }) => txid === "good")).toMatchObject({ applied: true, seq: 2 });
});

test("rows with names that reach around are rows like any other", async () => {
  const host = await openHost({ agents: { Target } });
  const client = await connect(host, "/agents/target/a");
  const names = ["__proto__", "constructor", "toString", "*"];
  for (const name of names) {
    const value = JSON.parse(`{"${name}":{"polluted":true},"n":1}`) as object;
    const changes = [{ table: name, key: name, operation: "insert", value }];
    client.send(JSON.stringify({ type: "perdure_rows_write", txid: name, changes }));
  }
  const answers = await Promise.all(names.map((name) => client.frame(({ txid }) => txid === name)));
  expect(answers.map(({ type }) => type)).toEqual([
    ...["perdure_rows_error", "perdure_rows_receipt", "perdure_rows_receipt", "perdure_rows_error"],
  ]);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

test("an agent without collections says so", async () => {
  class Plain extends Agent {}
  const host = await openHost({ agents: { Plain } });
  const client = await connect(host, "/agents/plain/a");
  client.send(JSON.stringify({ type: "perdure_rows_subscribe", id: "q", since: { notes: 0 } }));
  client.send(JSON.stringify({ type: "perdure_rows_write", txid: "t", changes: [change] }));
  const page = await client.frame(({ type }) => type === "perdure_rows_page");
  expect(page).toMatchObject({ since: {}, seq: 0, refused: { notes: { code: "not_found" } } });
  expect(await client.frame(({ txid }) => txid === "t")).toMatchObject({ error: { code: "not_found" } });
  expect(host.listAgents(), "nothing was written").toEqual([]);
});
