// For crash tests of the chat: a client that notes what it was told, and what must be true afterwards.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { UIMessage, UIMessageChunk } from "ai";
import type { CrashOutcome, Fact, Life, Program } from "perdure/testing";
import { expect } from "vitest";
import { WebSocket } from "ws";
import { isToolPart, toolParts } from "../../src/message/types.ts";
import { RESPONSE, RESUMING, textIn, TRANSCRIPT, type Frame } from "./client.ts";
import { PATIENCE_MS } from "../support/until.ts";

export type Command = { readonly type: "look"; readonly id: number } | { readonly type: "release" };

/** How things stand when nothing runs. */
export interface Look extends Fact {
  readonly type: "look";
  readonly id: number;
  readonly messages: readonly UIMessage[];
  readonly calls: number;
}

/** A frame of a stream that a client was sent. */
export interface Seen extends Fact {
  readonly type: "seen";
  readonly request: string;
  readonly seq: number;
  readonly body: string;
}

/** What a run ends with. */
export interface Result {
  readonly messages: readonly UIMessage[];
  readonly calls: number;
  /** Every execution of a tool: its name, its call, and the idempotency key if it was given one. */
  readonly ran: readonly { readonly name: string; readonly call: string; readonly key: string | undefined }[];
}

export interface Driver {
  send(frame: Record<string, unknown>): void;
  request(id: string, messages: readonly unknown[], trigger?: string): void;
  frame(matches: (frame: Frame) => boolean): Promise<Frame>;
  /** Waits until everything that was sent before was handled. */
  flushed(): Promise<void>;
  readonly frames: readonly Frame[];
  close(): void;
}

/** Connects, and notes every chunk that comes as a fact of this life. */
export async function connect(child: Program): Promise<Driver> {
  const { url } = await child.waitFor("ready");
  const ws = new WebSocket(`${String(url).replace("http", "ws")}/agents/talk/one`);
  const frames: Frame[] = [];
  const watchers = new Set<() => void>();
  const change = (): void => {
    for (const watcher of [...watchers]) watcher();
  };
  ws.on("message", (data: Buffer) => {
    const frame = JSON.parse(data.toString("utf8")) as Frame;
    frames.push(frame);
    if (frame.type === RESPONSE && frame.seq !== undefined) {
      const seen: Seen = { type: "seen", request: frame.id ?? "", seq: frame.seq, body: frame.body ?? "" };
      child.note(seen);
    }
    if (frame.type === RESPONSE && frame.done === true)
      child.note({ type: "done", request: frame.id, outcome: frame.outcome });
    if (frame.type === "agent-tool-event") child.note({ type: "heard", frame });
    // Only the others are told what was accepted.
    for (const { id } of frame.type === TRANSCRIPT ? (frame.messages ?? []) : []) child.note({ type: "told", id });
    change();
  });
  ws.on("close", change);
  ws.on("error", () => undefined);
  const driver: Driver = {
    send: (frame) => ws.send(JSON.stringify(frame)),
    request(id, messages, trigger = "submit-message") {
      const body = JSON.stringify({ messages, trigger });
      driver.send({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body } });
    },
    frame(matches) {
      return new Promise((resolve, reject) => {
        const stop = (): void => {
          clearTimeout(timer);
          watchers.delete(check);
        };
        const check = (): void => {
          const found = frames.find(matches);
          if (found !== undefined) {
            stop();
            resolve(found);
          } else if (ws.readyState === WebSocket.CLOSED) {
            stop();
            reject(new Error("The socket was closed."));
          }
        };
        const timer = setTimeout(() => {
          stop();
          reject(
            new Error(
              `A frame never came. There were ${frames.map(({ type, body }) => `${type} ${body ?? ""}`).join("\n")}`,
            ),
          );
        }, PATIENCE_MS);
        watchers.add(check);
        check();
      });
    },
    async flushed() {
      const id = `flush-${frames.length}`;
      driver.send({ type: "rpc", id, method: "nothing", args: [] });
      await driver.frame((frame) => frame.type === "rpc" && frame.id === id);
    },
    frames,
    close: () => ws.terminate(),
  };
  await driver.frame(({ type }) => type === "cf_agent_mcp_servers");
  return driver;
}

/** Waits until nothing runs. Nobody is connected for that, and nobody is woken. */
export async function lookAt<L extends Look = Look>(child: Program): Promise<L> {
  await child.waitFor("ready");
  const id = child.facts.filter(({ type }) => type === "look").length;
  const command: Command = { type: "look", id };
  await child.send(command);
  return (await child.waitFor((fact) => fact.type === "look" && fact.id === id)) as L;
}

/** What a client does whenever it is asked something: it runs its tool, and approves. */
export async function untilAnswered(child: Program, driver?: () => Promise<Driver>): Promise<Look> {
  for (;;) {
    const look = await lookAt(child);
    const open = toolParts(look.messages.at(-1) ?? { id: "", role: "user", parts: [] }).filter(
      ({ state }) => state === "input-available" || state === "approval-requested",
    );
    const last = look.messages.at(-1);
    const goesOn = last?.role === "assistant" && toolParts(last).some(({ state }) => state === "approval-responded");
    if (open.length === 0 && !goesOn) return look;
    const client = await (driver ?? (() => connect(child)))();
    for (const { toolCallId, state } of open) {
      if (state === "approval-requested")
        client.send({ type: "cf_agent_tool_approval", toolCallId, approved: true, autoContinue: true });
      else
        client.send({
          type: "cf_agent_tool_result",
          toolCallId,
          toolName: "where",
          output: "here",
          autoContinue: true,
        });
      await client.frame(({ type, message }) => {
        const part = message?.parts.find((one) => isToolPart(one) && one.toolCallId === toolCallId);
        return type === "cf_agent_message_updated" && part !== undefined;
      });
    }
    if (driver === undefined) client.close();
    // The continuation starts a moment after the last answer.
    await new Promise((resolve) => setTimeout(resolve, 70));
  }
}

/** In a later life, before the model goes on: what the log gives to who comes back. */
export async function replayed(child: Program): Promise<readonly Seen[]> {
  const { driver, log } = await comeBack(child);
  driver.close();
  return log;
}

/** The same, and stays. */
export async function comeBack(child: Program): Promise<{ driver: Driver; log: readonly Seen[] }> {
  const driver = await connect(child);
  const offer = driver.frames.find(({ type }) => type === RESUMING);
  if (offer !== undefined) {
    driver.send({ type: "cf_agent_stream_resume_ack", id: offer.id });
    await driver.flushed();
  }
  const seen = driver.frames.filter(({ replay, seq }) => replay === true && seq !== undefined);
  const log = seen.map(({ id, seq, body }): Seen => {
    return { type: "seen", request: id ?? "", seq: seq ?? -1, body: body ?? "" };
  });
  return { driver, log };
}

/** All that was seen of the stream that is offered comes again, in order, once, and nothing else in its place. */
export function expectSameLog(log: readonly Seen[], before: readonly Life[]): void {
  const request = log[0]?.request;
  const seen = seenIn(before.flatMap((life) => life.facts)).filter((one) => one.request === request);
  expect(log.map(({ seq }) => seq)).toEqual(log.map((_, at) => at));
  for (const { seq, body } of seen) expect(log[seq]?.body).toBe(body);
}

export function resultOf({ messages, calls }: Look, dir: string): Result {
  const file = join(dir, "tools");
  const lines = existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line !== "")
    : [];
  const ran = lines.map((line) => {
    const [name = "", call = "", key] = line.split(" ");
    return { name, call, key };
  });
  return { messages, calls, ran };
}

export const seenIn = (facts: readonly Fact[]): Seen[] => facts.filter((fact): fact is Seen => fact.type === "seen");

/** What clients were sent of one request, over all lives: each chunk once, and always the same one. */
export function logOf(facts: readonly Fact[], request: string): string[] {
  const log: string[] = [];
  for (const seen of seenIn(facts)) {
    if (seen.request !== request) continue;
    if (log[seen.seq] !== undefined) expect(seen.body, `chunk ${seen.seq} of ${request}`).toBe(log[seen.seq]);
    log[seen.seq] = seen.body;
  }
  // Transient chunks aside, nobody is ever sent a chunk without those before it.
  expect(Object.keys(log)).toHaveLength(log.length);
  return log;
}

/** The promises that hold whatever was cut, and whenever. */
export function expectKept(outcome: CrashOutcome<Result>, lastLife?: Pick<Life, "facts">): void {
  const { result } = outcome.after;
  const facts = [...outcome.before.facts, ...(lastLife ?? outcome.after).facts];
  expect(facts.filter(({ type }) => type === "failed")).toEqual([]);
  const ids = result.messages.map(({ id }) => id);
  expect(new Set(ids).size, "one row per message").toBe(ids.length);
  for (const request of new Set(seenIn(facts).map((seen) => seen.request))) {
    const log = logOf(facts, request);
    const chunks = log.map((body) => JSON.parse(body) as UIMessageChunk);
    // What was cleared, or replaced by another answer, need not be there.
    if (facts.some((fact) => fact.type === "forgotten" && fact.request === request)) continue;
    expectStored(chunks, result.messages);
  }
  expectSettledOnce(facts, result);
}

/** Every chunk that a client saw has its place in what is stored: the id, the texts in order, and the results. */
export function expectStored(chunks: readonly UIMessageChunk[], messages: readonly UIMessage[]): void {
  const start = chunks.find((chunk) => chunk.type === "start");
  const id = start?.type === "start" ? start.messageId : undefined;
  const named = messages.find((message) => message.id === id);
  if (id !== undefined) expect(named, `the answer ${id}`).toBeDefined();
  const answer = named ?? messages.findLast(({ role }) => role === "assistant");
  const text = chunks.map((chunk) => (chunk.type === "text-delta" ? chunk.delta : "")).join("");
  expect(textIn(answer)).toContain(text);
  for (const chunk of chunks) {
    if (chunk.type !== "tool-output-available" || chunk.preliminary === true) continue;
    const part = answer?.parts.find((one) => isToolPart(one) && one.toolCallId === chunk.toolCallId);
    expect(part, `the result of ${chunk.toolCallId}`).toMatchObject({
      state: "output-available",
      output: chunk.output,
    });
  }
}

/** A call whose result was stored, or seen, was made once; and its tool was not run again for the same purpose. */
function expectSettledOnce(facts: readonly Fact[], { messages, ran }: Result): void {
  for (const { call } of ran)
    expect(
      ran.filter((one) => one.call === call),
      call,
    ).toHaveLength(1);
  const settled = messages.flatMap((message) => toolParts(message)).filter(({ state }) => state === "output-available");
  for (const name of ["look", "send"]) {
    const times = settled.filter(({ type }) => type === `tool-${name}`).length;
    expect(times, `results of ${name}`).toBeLessThanOrEqual(1);
    const firstSeen = seenIn(facts).findIndex(({ body }) => body.includes(`"${name} result"`));
    if (firstSeen === -1) continue;
    // Whatever ran after a client had seen a result would be a second effect.
    const call = (JSON.parse(seenIn(facts)[firstSeen]?.body ?? "{}") as { toolCallId?: string }).toolCallId;
    expect(ran.filter((one) => one.name === name).at(-1)?.call, `the last run of ${name}`).toBe(call);
  }
}
