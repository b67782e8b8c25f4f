// What every channel must do, of the channels over published adapters.
import type { Channel, SentFile, StateOp } from "perdure/messengers";
import { chatSdkMessenger } from "perdure/messengers/chat-sdk";
import { channelConformance, type ConformanceNetwork } from "perdure/testing";
import { describe, expect, test } from "vitest";
import { AT_ONCE } from "./kit.ts";
import { type Hook, NETWORKS, type NetworkName } from "./networks.ts";
import { makeAdapter } from "./make-adapter.ts";

/** What an adapter keeps, for as long as a case takes. */
function memoryState() {
  const values = new Map<string, unknown>();
  return (op: StateOp): Promise<unknown> => {
    const before = values.get(op.key) ?? null;
    if (op.op === "get") return Promise.resolve(before);
    if (op.op === "delete") values.delete(op.key);
    else if (op.op === "append") values.set(op.key, [...((before as unknown[] | null) ?? []), op.value]);
    else if (op.op === "set") values.set(op.key, op.value);
    return Promise.resolve(true);
  };
}

/** The channel, and the network's own way to deliver: again and again, until it is told that we have it. */
async function open(name: NetworkName): Promise<ConformanceNetwork> {
  const network = await NETWORKS[name]();
  const adapter = await makeAdapter(name, network.config);
  const { channel } = chatSdkMessenger({ adapter, verifyWebhook: false, pace: AT_ONCE });
  const state = memoryState();
  channel.open?.({ state, stateIn: () => state });
  const queue: Hook[] = [];
  const listen: Channel["listen"] = async (accept, _cursor, signal) => {
    while (!signal.aborted) {
      const [hook] = queue;
      if (hook === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
      else {
        const request = new Request("http://there.invalid/", { method: "POST", headers: hook.headers });
        await channel.read?.(request, new TextEncoder().encode(hook.body), accept);
        queue.shift();
      }
    }
  };
  return {
    channel: { ...channel, listen },
    place: { thread: network.thread, dm: name !== "github" },
    says: (text) => void queue.push(...network.says(text)),
    presses: (_id, label) => {
      if (network.presses !== undefined) queue.push(network.presses(label));
    },
    deletes: network.deletes,
    // Slack's and Discord's adapters read files from public addresses alone: see adapters.test.ts.
    ...(name === "telegram" && {
      sendsFile: (file: SentFile, text: string) => void queue.push(...(network.sends?.(file, text) ?? [])),
    }),
    seen: () => network.seen().map(({ id, text, file }) => ({ id, text, ...(file !== undefined && { file }) })),
    told: () => network.told(),
    creates: () => network.creates(),
    breaks: (how) => network.breaks(how),
    close: () => network.close(),
  };
}

describe.each(Object.keys(NETWORKS) as NetworkName[])("%s", (name) => {
  // At GitHub people name whom they talk to, and nobody is alone.
  const cases = channelConformance(() => open(name)).filter(
    (one) => name !== "github" || !/^what (a person says|was not stored)/.test(one.name),
  );
  test.for(cases)("$name", async ({ run }) => {
    await expect(run()).resolves.toBeUndefined();
  });
});
