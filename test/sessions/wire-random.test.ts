// Tabs that speak, ask anew, edit, fork, switch and lose their line, in any order: in the end each shows its branch.
import { expect, test } from "vitest";
import { AgentChat, AgentClient } from "../../src/client/index.ts";
import type { UIMessage } from "../../src/message/types.ts";
import { PAGE_MESSAGES } from "../../src/wire/history.ts";
import { startTalk } from "../chat-client/talk.ts";
import { newLine } from "../chat-client/task-socket.ts";
import { addressOf, atEnd, eventually, QUICK } from "../clients/harness.ts";

const TABS = 3;
const STEPS = 40;
const SEEDS = [2, 11, 32, 66, 79, 150, 227, 347];

function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function openTab(host: { readonly port: number }) {
  const line = newLine();
  const client = new AgentClient({ ...QUICK, agent: "Talk", name: "x", WebSocket: line.Socket, host: addressOf(host) });
  atEnd(() => client.close());
  const chat = new AgentChat(client);
  chat.subscribe(() => {});
  return { line, client, chat };
}

/** An answer that takes its time. */
function pieces(pick: (below: number) => number): ReadableStream<Uint8Array> {
  const left = Array.from({ length: 1 + pick(4) }, (_, i) => `piece ${i} `);
  return new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, pick(4)));
      const next = left.shift();
      if (next === undefined) controller.close();
      else controller.enqueue(new TextEncoder().encode(next));
    },
  });
}

type Tab = ReturnType<typeof openTab>;

/** What the session allows at this moment, a tab may be told that it does not. */
const FINE = new Set(["not_found", "bad_state", "disconnected"]);

async function act(tab: Tab, what: number, pick: (below: number) => number, forks: string[], n: number): Promise<void> {
  const { chat } = tab;
  const some = chat.messages[pick(Math.max(1, chat.messages.length))];
  switch (what) {
    case 0:
    case 1:
      return chat.sendMessage({ text: `m${n}` });
    case 2:
      if (chat.messages.length > 0) return chat.regenerate();
      return;
    case 3:
      if (some?.role === "user") return chat.sendMessage({ text: `e${n}`, messageId: some.id });
      return;
    case 4:
      if (some !== undefined && chat.getSnapshot().branches(some.id) !== undefined)
        return pick(2) === 0 ? chat.previousBranch(some.id) : chat.nextBranch(some.id);
      return;
    case 5:
      if (some !== undefined) forks.push((await chat.fork({ at: some.id })).id);
      return;
    case 6:
      return chat.switchTo([null, ...forks][pick(forks.length + 1)] ?? null);
    case 7:
      if (some !== undefined) return chat.switchBranch(some.id, { own: false });
      return;
    default:
      tab.line.cut();
      tab.line.mend();
  }
}

const words = (list: readonly UIMessage[]) => list.map(({ role, parts }) => `${role} ${JSON.stringify(parts)}`);
const plain = ({ id, role, parts }: UIMessage) => ({ id, role, text: JSON.stringify(parts) });

test.each(SEEDS)("in the end every tab shows its own branch (%d)", async (seed) => {
  const pick = random(seed);
  const { host, agent } = await startTalk({ script: [], answer: () => new Response(pieces(pick)) });
  const tabs = Array.from({ length: TABS }, () => openTab(host));
  await eventually(() => expect(tabs.every(({ client }) => client.identified)).toBe(true));
  const forks: string[] = [];
  /** Forks that nobody goes to: nothing that others do may change them. */
  const witnesses: { id: string; said: string[] }[] = [];
  const failures: unknown[] = [];
  const all: Promise<void>[] = [];
  for (let step = 0; step < STEPS; step++) {
    const tab = tabs[pick(TABS)] as Tab;
    const done = act(tab, pick(9), pick, forks, step).catch((thrown: unknown) => {
      if (!FINE.has(String((thrown as { code?: string }).code))) failures.push(thrown);
    });
    all.push(done);
    if (pick(8) === 0) {
      const { id } = await agent.forkSession();
      witnesses.push({ id, said: words(await agent.getHistory(null, { session: id })) });
    }
    if (pick(3) > 0) await done;
  }
  await Promise.all(all);
  expect(failures).toEqual([]);
  await agent.waitUntilStable();
  for (const { id, said } of witnesses) expect(words(await agent.getHistory(null, { session: id }))).toEqual(said);
  for (const { chat } of tabs) {
    await eventually(async () => {
      const { session, messages, status } = chat.getSnapshot();
      const stored = await agent.getHistory(null, { session: session?.id ?? "main" });
      expect(messages.map(plain)).toEqual(stored.map(plain));
      expect(status).toBe("ready");
      for (const { id } of messages.slice(-PAGE_MESSAGES)) {
        const count = (await chat.listBranches(id)).length;
        // Others may have added to what was told before: only what was told is shown.
        expect(chat.getSnapshot().branches(id)?.count ?? 1, id).toBeLessThanOrEqual(count);
      }
    });
  }
});
