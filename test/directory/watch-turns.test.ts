import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { killPrograms } from "perdure/testing";
import { afterAll, expect, test } from "vitest";
import { lastText, openChat } from "../examples/run-example.ts";
import { connect, eventually } from "../host/open-host.ts";
import { speaker } from "./project.ts";
import { watchProject } from "./watched.ts";

afterAll(killPrograms);

/** A chat agent whose model says some words, and then maybe nothing more for ever. */
function chat(text: readonly string[], hang: boolean): string {
  return `import { agent } from "perdure";
import { scriptedModel } from "perdure/testing";
const model = scriptedModel(() => ({ text: ${JSON.stringify(text)}, hang: ${hang} }));
export const Chat = agent({ name: "Chat", model });
`;
}

test("a turn under way is carried on by the new code, and open clients see the rest of it", async () => {
  const { project, url, prints } = await watchProject({ "chat.ts": chat(["Written by ", "the old "], true) });
  const [one, two] = [await openChat(url, "chat"), await openChat(url, "chat")];
  const sent = one.sendMessage({ text: "hello" });
  for (const tab of [one, two])
    await eventually(() => lastText(tab) === "Written by the old ", "what the old code said");
  project.write("chat.ts", chat(["and the new code."], false));
  await prints("Agents reloaded: Chat.\n");
  const whole = "Written by the old and the new code.";
  for (const tab of [one, two]) await eventually(() => lastText(tab) === whole, "the whole answer");
  await sent;
  await eventually(() => one.getSnapshot().status === "ready", "the turn is over");
  expect(one.messages).toHaveLength(2);
  const later = await openChat(url, "chat");
  await eventually(() => lastText(later) === whole, "it is stored");
});

/** An agent with queued work that never ends, or ends with a note in a file. */
function worker(note?: string): string {
  const work =
    note === undefined
      ? "await new Promise(() => undefined);"
      : `writeFileSync(${JSON.stringify(note)}, "attempt " + item.attempt);`;
  return `import { writeFileSync } from "node:fs";
import { Agent, type AgentEnv, callable } from "perdure";
import type { QueueRun } from "perdure/work";
export class Worker extends Agent<AgentEnv, { began: number }> {
  static { callable(this, "begin"); }
  override initialState = { began: 0 };
  async begin(): Promise<void> { await this.queue("work"); }
  async work(_: unknown, item: QueueRun): Promise<void> {
    this.setState({ began: this.state.began + 1 });
    ${work}
  }
}
`;
}

test("work under way is carried on by the new code, and the open socket sees it", async () => {
  const { project, url } = await watchProject({ "worker.ts": worker() });
  const note = join(project.dir, "note");
  const client = await connect({ url }, "/agents/worker/one");
  await client.call("begin");
  await eventually(() => client.states().length === 2, "the work began");
  project.write("worker.ts", worker(note));
  await eventually(() => existsSync(note), "the new code did it");
  expect(readFileSync(note, "utf8")).toBe("attempt 2");
  await eventually(() => client.states().length === 3, "the socket is told");
  expect(client.states()).toEqual([{ began: 0 }, { began: 1 }, { began: 2 }]);
  expect(client.closed).toBeUndefined();
});

test("work of a class that was taken away waits until it is there again, with nobody connected", async () => {
  const { project, url } = await watchProject({ "worker.ts": worker(), "other.ts": speaker("Other", '"other"') });
  const note = join(project.dir, "note");
  const client = await connect({ url }, "/agents/worker/one");
  await client.call("begin");
  await eventually(() => client.states().length === 2, "the work began");
  project.remove("worker.ts");
  await client.whenClosed();
  project.write("worker.ts", worker(note));
  await eventually(() => existsSync(note), "the new code did it");
  expect(readFileSync(note, "utf8")).toBe("attempt 2");
});
