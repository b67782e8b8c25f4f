import { type ScheduledTasks, Think } from "perdure";
import { expect, test } from "vitest";
import { ADA, DM, openKit } from "./kit.ts";

const ELSEWHERE = { channel: "memory", thread: "memory:9" } as const;

test("the answer to a scheduled task goes to the thread that its conversation belongs to", async () => {
  const kit = await openKit({
    manual: true,
    make: (Base) =>
      class extends Base {
        override getScheduledTasks(): ScheduledTasks {
          // The root has no conversation of its own.
          return this.name === "main" ? {} : { digest: { schedule: "every hour", prompt: "Write the digest." } };
        }
      },
    script: ({ userText }) => (userText === "Write the digest." ? "The digest." : "Hello there."),
  });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  await kit.clock.advance(61 * 60_000);
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there.", "The digest."]));
});

test("a scheduled task says where its answer goes, from an agent that belongs to no thread", async () => {
  const kit = await openKit({
    manual: true,
    make: (Base) =>
      class extends Base {
        override getScheduledTasks(): ScheduledTasks {
          const digest = { schedule: "every hour", prompt: "Write the digest.", deliverTo: ELSEWHERE } as const;
          return this.name === "main" ? { digest } : {};
        }
      },
    script: () => "The digest.",
  });
  await kit.clock.advance(61 * 60_000);
  await kit.until(() => expect(kit.texts("memory:9")).toEqual(["The digest."]));
  await kit.until(() => expect(kit.lives[0]?.listDeliveries()).toMatchObject([{ state: "done", thread: "memory:9" }]));
});

test("a place that is none is refused when the agent starts", async () => {
  const { checkTasks } = await import("../../src/work/tasks.ts");
  const retry = { maxAttempts: 1, baseDelayMs: 1, maxDelayMs: 1 };
  const task = { schedule: "every hour", prompt: "x", deliverTo: { channel: "memory" } };
  const check = (one: object) => checkTasks({ a: one }, { timeZone: () => undefined, retry });
  expect(() => check(task)).toThrow("`deliverTo` must be { channel, thread }");
  expect(() => check({ schedule: "every hour", handler: () => 1, deliverTo: ELSEWHERE })).toThrow("only a prompt");
});

test("what is submitted says where its answer goes, once per key", async () => {
  const kit = await openKit();
  const nowhere = { deliverTo: { channel: "memory" } as typeof ELSEWHERE };
  const refused = kit.lives[0]?.submitMessages("Write it.", nowhere);
  await expect(refused).rejects.toThrow("`deliverTo` must be { channel, thread }");
  const submit = () => kit.lives[0]?.submitMessages("Write it.", { idempotencyKey: "a", deliverTo: ELSEWHERE });
  await submit();
  await submit();
  await kit.until(() => expect(kit.texts("memory:9")).toEqual(["Hello there."]));
  expect(kit.model.calls).toHaveLength(1);
});

test("the end of a detached run goes to the thread that asked for it, or to where the run says", async () => {
  class Helper extends Think {
    override workspaceTools = false as const;
    override getModel() {
      return kit.model;
    }
  }
  const kit = await openKit({
    agents: { Helper },
    script: ({ userText }) => (userText === "work" ? "Worked." : userText === "hi" ? "Hello." : "The helper is done."),
  });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Hello."]));
  await kit.holder().runAgentTool(Helper, { input: "work", detached: { notify: true } });
  await kit.until(() => expect(kit.texts()).toEqual(["Hello.", "The helper is done."]));
  await kit.lives[0]?.runAgentTool(Helper, { input: "work", detached: { notify: true, deliverTo: ELSEWHERE } });
  await kit.until(() => expect(kit.texts("memory:9")).toEqual(["The helper is done."]));
});

test("a messenger that there is not is refused where somebody names it, before anything is stored", async () => {
  const nowhere = { channel: "memroy", thread: "memory:9" } as const;
  const words = '`deliverTo` names "memroy", and there is no such messenger';
  class Helper extends Think {
    override workspaceTools = false as const;
  }
  const kit = await openKit({ agents: { Helper } });
  const [root] = kit.lives;
  const detached = (deliverTo: object) =>
    root?.runAgentTool(Helper, { input: "work", detached: { notify: true, deliverTo: deliverTo as never } });
  await expect(root?.submitMessages("Write it.", { deliverTo: nowhere })).rejects.toThrow(words);
  const submits = root?.runTurn({ mode: "submit", input: "Write it.", deliverTo: nowhere });
  await expect(submits).rejects.toThrow(words);
  await expect(detached(nowhere)).rejects.toThrow(words);
  await expect(detached({ channel: "memory" })).rejects.toThrow("`deliverTo` must be { channel, thread }");
  await expect(root?.submitMessages("x", { deliverTo: { ...nowhere, channel: "web" } })).rejects.toThrow('names "web"');
  expect([root?.listSubmissions(), root?.messages, root?.listSubAgents(Helper)]).toEqual([[], [], []]);
  // A child has the messengers of its root.
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  await expect(kit.holder().submitMessages("Write it.", { deliverTo: nowhere })).rejects.toThrow(words);
});

test("an agent whose task names a messenger that there is not does not start, and says which task", async () => {
  class Digest extends Think {
    override workspaceTools = false as const;
    override getScheduledTasks(): ScheduledTasks {
      return { digest: { schedule: "every hour", prompt: "x", deliverTo: { channel: "memroy", thread: "memory:9" } } };
    }
  }
  const kit = await openKit({ agents: { Digest } });
  const words = 'Scheduled task "digest": `deliverTo` names "memroy"';
  await expect(kit.host.getAgentByName(Digest, "main").listDeliveries()).rejects.toThrow(words);
});

test("an agent that waits for a child while it starts does, when the child has a task with a place at a messenger", async () => {
  const heard: unknown[] = [];
  class Digest extends Think {
    override workspaceTools = false as const;
    override getScheduledTasks(): ScheduledTasks {
      const channel = this.name === "wrong" ? "memroy" : "memory";
      return { digest: { schedule: "every hour", prompt: "x", deliverTo: { channel, thread: "memory:9" } } };
    }
    override onError(error: unknown) {
      heard.push(error);
    }
    hello() {
      return "hello";
    }
  }
  const said: string[] = [];
  const kit = await openKit({
    agents: { Digest },
    make: (Base) =>
      class extends Base {
        override async onStart() {
          for (const name of ["right", "wrong"]) said.push(await (await this.subAgent(Digest, name)).hello());
        }
      },
  });
  expect(said).toEqual(["hello", "hello"]);
  // What is wrong is said all the same.
  await kit.until(() =>
    expect(heard).toEqual([expect.objectContaining({ message: expect.stringContaining('names "memroy"') as string })]),
  );
});
