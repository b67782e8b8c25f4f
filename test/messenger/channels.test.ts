import { Think } from "perdure";
import { type Channels, defineMessengers, messenger, type MessengerOptions } from "perdure/messengers";
import { memoryStorage, serve } from "perdure/node";
import { memoryChannel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { serverTool } from "../think/harness.ts";
import { ADA, DM, openKit } from "./kit.ts";

test("a channel has its own instructions, tools and bound, also in a turn that is carried on", async () => {
  const seen: unknown[] = [];
  const kit = await openKit({
    tools: { look: serverTool(() => "seen"), pay: serverTool(() => "paid") },
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "look", input: {} }] } : "Hello there."),
    make: (Base) =>
      class extends Base {
        override configureChannels(): Channels {
          return {
            memory: {
              instructions: ({ thread }) => `Be short at ${thread ?? "nowhere"}.`,
              tools: ({ pay: _, ...others }) => others,
              maxTurns: 1,
            },
            web: { instructions: "You are in a browser." },
          };
        }
        override beforeTurn() {
          seen.push(this.activeChannel);
        }
      },
  });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done" }]));
  expect(seen).toEqual([{ channelId: "memory", kind: "messenger", thread: DM }]);
  const [call] = kit.model.calls;
  expect(JSON.stringify(call?.prompt)).toContain(`Be short at ${DM}.`);
  expect(call?.tools?.map(({ name }) => name)).toEqual(["look"]);
  expect(kit.model.calls).toHaveLength(1);
  expect(kit.lives[0]?.activeChannel).toBeUndefined();
  // What code asks for, and goes nowhere, has no channel.
  await kit.lives[0]?.saveMessages([{ id: "x", role: "user", parts: [{ type: "text", text: "x" }] }]);
  await kit.until(() => expect(seen).toHaveLength(2));
  expect(seen[1]).toBeUndefined();
});

test("a channel that there is not is refused at the start", async () => {
  class Talk extends Think {
    override getMessengers() {
      return defineMessengers({ memory: messenger(memoryChannel().channel(), { allow: ["7"] }) });
    }
    override configureChannels() {
      return { telegram: { maxTurns: 3 } };
    }
  }
  class Quiet extends Think {
    override configureChannels() {
      return { telegram: { maxTurns: 3 } };
    }
  }
  const agents = { Talk, Quiet };
  const host = await serve({ agents, storage: memoryStorage(), port: 0, signals: false, log: false });
  onTestFinished(() => host.stop());
  await expect(host.getAgentByName(Talk, "main").listDeliveries()).rejects.toThrow('There are "web", "memory"');
  await expect(host.getAgentByName(Quiet, "main").listDeliveries()).rejects.toThrow('There are "web".');
  const web = { web: messenger(memoryChannel().channel()) };
  expect(() => defineMessengers(web)).toThrow("must have another name");
});

test("a notice goes to the place of the turn, joins the conversation if it is to, and goes to clients otherwise", async () => {
  const kit = await openKit({
    tools: { tell: serverTool(() => kit.holder().deliverNotice("On it.", { informModel: true, kind: "interim" })) },
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "tell", input: {} }] } : "Done."),
  });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect([...kit.texts()].sort()).toEqual(["Done.", "On it."]));
  const holder = kit.holder();
  await kit.until(() => expect(kit.deliveries().every(({ state }) => state === "done")).toBe(true));
  const noted = holder.messages.find(
    ({ metadata }) => (metadata as { notice?: string } | undefined)?.notice === "interim",
  );
  expect(noted).toMatchObject({ role: "assistant", parts: [{ type: "text", text: "On it." }] });
  const [root] = kit.lives;
  expect(await root?.deliverNotice("For the page.", { key: "a" })).toBe(true);
  expect(await root?.deliverNotice("For the page.", { key: "a" })).toBe(false);
  expect(root?.messages).toMatchObject([{ role: "assistant", metadata: { notice: "notice" } }]);
  expect(kit.texts()).toHaveLength(2);
  await expect(root?.deliverNotice("x", { channel: "memory" })).rejects.toThrow("Say at which `thread`");
});

test.each([
  [{ allow: "17" }, "`allow` that is no list of ids"],
  [{ allow: 7 }, "`allow` that is no list of ids"],
  [{ allow: [7] }, "`allow` that is no list of ids"],
  [{ allow: ["@ada"] }, "Names with @ do not count"],
  [{ allow: ["memory:7"] }, "as the network gives them"],
  [{ conversation: "thraed" }, "`conversation` that is none of"],
  [{ approvers: ["7"] }, "`approvers` that is no function"],
  [{ coalesceMs: -1 }, "coalesceMs must be a number of at least 0"],
  [{ limits: { perHour: "many" } }, "perHour must be a number"],
  [{ delivery: { giveUpAfterMs: "1h" } }, "giveUpAfterMs must be a number"],
])("options that cannot work are refused: %o", (options, words) => {
  const memory = messenger(memoryChannel().channel(), options as MessengerOptions);
  expect(() => defineMessengers({ memory })).toThrow(words);
});

test("a messenger without a name is refused with how to give it one", () => {
  const memory = messenger(memoryChannel().channel(), { allow: ["7"] });
  expect(() => defineMessengers(memory as never)).toThrow("Name each one");
});
