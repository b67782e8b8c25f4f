import { AgentChat, AgentClient } from "perdure/client";
import { expect, onTestFinished, test } from "vitest";
import type { Orchestrator } from "../../examples/orchestrator/orchestrator.ts";
import { eventually, tempDir } from "../host/open-host.ts";
import { lastText, loadPage, startExample } from "./run-example.ts";

function connect(url: string) {
  const client = new AgentClient<Orchestrator>({ agent: "orchestrator", name: "main", host: url });
  onTestFinished(() => client.close());
  const relayed: string[] = [];
  client.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
    if (typeof data === "string" && data.includes('"relay"')) relayed.push(data);
  });
  return { client, relayed };
}

/** What a child said, as it was relayed. */
function textOf(relayed: readonly string[]): string {
  const chunks = relayed.map(
    (frame) => JSON.parse((JSON.parse(frame) as { chunk: string }).chunk) as { delta?: string },
  );
  return chunks.map(({ delta }) => delta ?? "").join("");
}

async function idle(client: AgentClient<Orchestrator>, tasks: number): Promise<void> {
  await eventually(() => {
    const [child] = client.state?.children ?? [];
    return child?.status === "idle" && child.tasks === tasks;
  }, "the child is done");
}

test("children are made, given work, and share what the orchestrator has; their chats can be opened", async () => {
  const { url } = await startExample(tempDir(), "orchestrator");
  const { modules } = await loadPage(url);
  expect(modules.join("")).toContain("Delegate");
  const { client, relayed } = connect(url);
  await client.ready;
  const writer = await client.stub.create("Writer");
  await client.stub.delegate(writer, "write plan.txt");
  await idle(client, 1);
  await expect.poll(() => textOf(relayed)).toContain("plan.txt is written");
  const reader = await client.stub.create("Reader");
  const sub = [{ agent: "session", name: reader }];
  const child = new AgentClient({ agent: "orchestrator", name: "main", host: url, sub });
  onTestFinished(() => child.close());
  const chat = new AgentChat(child);
  onTestFinished(chat.subscribe(() => {}));
  await chat.sendMessage({ text: "read plan.txt" });
  expect(lastText(chat)).toContain("write plan.txt");
  await chat.sendMessage({ text: "How is the weather?" });
  expect(lastText(chat)).toContain("Sun in Oslo");
  await client.stub.remove(writer);
  await eventually(() => client.state?.children.length === 1, "the child is gone");
});

test("work goes on after a crash", async () => {
  const dir = tempDir();
  const first = await startExample(dir, "orchestrator");
  const before = connect(first.url);
  await before.client.ready;
  const name = await before.client.stub.create("Writer");
  await before.client.stub.delegate(name, "hello");
  await eventually(() => before.relayed.some((frame) => frame.includes("text-delta")), "it says something");
  first.child.kill("SIGKILL");
  await first.exited;
  const { url } = await startExample(dir, "orchestrator");
  const { client } = connect(url);
  await client.ready;
  await idle(client, 1);
  const stored = () => fetch(`${url}/agents/orchestrator/main/sub/session/${name}/get-messages`);
  await expect.poll(async () => (await stored()).text()).toContain("ask for the weather.");
});
