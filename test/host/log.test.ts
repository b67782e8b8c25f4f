import { APICallError } from "ai";
import { Agent, AIChatAgent, callable, PerdureError, type SaveMessagesResult, Think } from "perdure";
import { createHost, type Host, type HostOptions, type LogEntry, memoryStorage, subscribe } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { expect, test, vi } from "vitest";
import { until } from "../support/until.ts";

const NO_KEY = new APICallError({
  message: "Incorrect API key provided: sk-1234.",
  url: "https://models.example/v1/responses",
  requestBodyValues: { input: "what the user said" },
  statusCode: 401,
});

/** A host in memory whose log is a list. */
function open(agents: HostOptions["agents"], options: Partial<HostOptions> = {}) {
  const log: LogEntry[] = [];
  const events: string[] = [];
  const unsubscribe = subscribe("chat:request:failed", ({ payload }) => void events.push(payload.error));
  const host = createHost({ agents, storage: memoryStorage(), log: (entry) => void log.push(entry), ...options });
  return {
    host,
    log,
    events,
    [Symbol.asyncDispose]: async () => {
      unsubscribe();
      await host.stop();
    },
  };
}

/** Says something to an agent, and waits for the end of the turn. */
function ask(host: Host, cls: Parameters<Host["getAgentByName"]>[0]): Promise<SaveMessagesResult> {
  const agent = host.getAgentByName(cls, "anna") as unknown as Pick<Think, "saveMessages">;
  return agent.saveMessages([{ id: "m1", role: "user", parts: [{ type: "text", text: "hello" }] }]);
}

class NoKey extends Think {
  override getModel() {
    return scriptedModel(() => {
      throw NO_KEY;
    });
  }
}

class BadHook extends Think {
  override getModel() {
    return scriptedModel(() => "never");
  }
  override beforeTurn(): never {
    throw new TypeError("Cannot read properties of undefined (reading 'plan')");
  }
}

class BadAnswer extends AIChatAgent {
  override onChatMessage(): never {
    throw new TypeError("Cannot read properties of undefined (reading 'plan')");
  }
}

class Saying extends AIChatAgent {
  override onChatMessage(): never {
    throw new PerdureError("not_allowed", "This room is closed until Monday.");
  }
}

test("a turn that the provider refuses is logged once: the agent, the stage, the request and the error", async () => {
  await using it = open({ NoKey });
  const { requestId, error } = await ask(it.host, NoKey);
  expect(error).toContain("refused the API key (HTTP 401)");
  expect(it.log).toMatchObject([{ agent: "NoKey/anna", stage: "stream", requestId, error: NO_KEY }]);
  expect(it.events).toEqual([NO_KEY.message]);
});

test.each([{ cls: BadHook }, { cls: BadAnswer }])(
  "the bug of a hook of $cls.name is in the log and in the event; the user reads a plain sentence",
  async ({ cls }) => {
    await using it = open([cls]);
    const { requestId, error } = await ask(it.host, cls);
    expect(error).toMatch(/^Something went wrong on the server/);
    expect(it.log).toMatchObject([
      { agent: `${cls.name}/anna`, stage: "turn", requestId, error: { message: expect.stringContaining("'plan'") } },
    ]);
    expect(it.log[0]).toMatchObject({ error: { stack: expect.stringContaining("log.test.ts") } });
    expect(it.events).toEqual(["Cannot read properties of undefined (reading 'plan')"]);
  },
);

test("what a hook says on purpose, with a PerdureError, is what the user reads", async () => {
  await using it = open({ Saying });
  const { error } = await ask(it.host, Saying);
  expect(error).toBe("This room is closed until Monday.");
});

class Clumsy extends Agent {
  static {
    callable(this, "trip");
    callable(this, "refuse");
  }
  trip(): never {
    throw new Error("tripped");
  }
  refuse(): never {
    throw new PerdureError("not_allowed", "Not you.");
  }
  override onRequest(): never {
    throw new Error("no answer");
  }
  override onStateChanged(): never {
    throw new Error("watched badly");
  }
  change(): void {
    this.setState({ n: 1 });
  }
  tick(): never {
    throw new Error("tock");
  }
  async begin(): Promise<void> {
    await this.schedule(0, "tick", undefined, { retry: { maxAttempts: 1 } });
    await this.queue("tick", undefined, { retry: { maxAttempts: 1 } });
  }
}

test("requests, hooks that watch, schedules and queued calls that throw are logged, each once", async () => {
  await using it = open({ Clumsy });
  const agent = it.host.getAgentByName(Clumsy, "a");
  const response = await it.host.fetch(new Request("http://x/agents/clumsy/a"));
  expect(response.status).toBe(500);
  await agent.change();
  await agent.begin();
  await until(() => it.log.length === 4);
  const lines = it.log.map(({ agent: id, stage, error }) => `${id} ${stage}: ${(error as Error).message}`);
  expect(lines.toSorted()).toEqual([
    "Clumsy/a onStateChanged: watched badly",
    "Clumsy/a queue tick: tock",
    "Clumsy/a request: no answer",
    "Clumsy/a schedule tick: tock",
  ]);
});

test("a hook of the host that throws is logged once, and not told to who asked", async () => {
  const onBeforeRequest = () => {
    throw new Error("no database");
  };
  await using it = open({ Clumsy }, { onBeforeRequest });
  const response = await it.host.fetch(new Request("http://x/agents/clumsy/a"));
  expect([response.status, await response.text()]).toEqual([500, "Internal Server Error"]);
  expect(it.log).toMatchObject([{ agent: "Clumsy/a", stage: "onBeforeRequest", error: { message: "no database" } }]);
});

test("by default it is written to the console, as text with the stack and without what was sent to the model", async () => {
  const said = vi.spyOn(console, "error").mockReturnValue();
  try {
    await using it = open({ NoKey, Clumsy }, { log: undefined });
    const { requestId } = await ask(it.host, NoKey);
    expect(said).toHaveBeenCalledTimes(1);
    const text = said.mock.calls[0]?.join(" ") ?? "";
    expect(text).toMatch(/^\[NoKey\/anna\] stream failed/);
    expect(text).toContain(`request ${requestId}`);
    expect(text).toContain("Incorrect API key provided");
    expect(text).not.toContain("sk-1234");
    expect(text).toMatch(/\n\s+at /);
    expect(text).not.toContain("what the user said");
  } finally {
    said.mockRestore();
  }
});

test("log: false is silent, and a log that throws harms nobody", async () => {
  const said = vi.spyOn(console, "error").mockReturnValue();
  try {
    await using quiet = open({ BadHook }, { log: false });
    await ask(quiet.host, BadHook);
    expect(said).not.toHaveBeenCalled();
    const log = () => {
      throw new Error("the log is full");
    };
    await using broken = open({ BadHook }, { log });
    const { status } = await ask(broken.host, BadHook);
    expect(status).toBe("error");
  } finally {
    said.mockRestore();
  }
});

class Reporting extends Agent {
  async tell(text: string): Promise<void> {
    await this.onError(text);
  }
  override onRequest(): never {
    throw "no answer" as unknown;
  }
}

test("what an agent hands to its onError itself is logged, and what was told to it is not logged again", async () => {
  await using it = open({ Reporting });
  await it.host.getAgentByName(Reporting, "a").tell("by hand");
  await it.host.fetch(new Request("http://x/agents/reporting/a"));
  expect(it.log.map(({ stage, error }) => `${stage}: ${String(error)}`)).toEqual([
    "onError: by hand",
    "request: no answer",
  ]);
});

test("an agent that was ended is no failure", async () => {
  await using it = open({ Clumsy });
  const agent = it.host.getAgentByName(Clumsy, "a");
  await agent.setState({ n: 0 }).catch(() => {});
  await agent.destroy();
  expect(it.log.map(({ stage }) => stage)).toEqual(["onStateChanged"]);
});
