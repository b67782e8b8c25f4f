import type { AgentHost, StreamCallback, Think } from "perdure";
import { expect, test } from "vitest";
import { eventually } from "../host/open-host.ts";
import type { ThinkBase } from "../think/harness.ts";
import { childClass, newGate, openTogether, passUntil } from "./harness.ts";

interface Heard {
  readonly callback: StreamCallback;
  readonly events: string[];
  text(): string;
  readonly id: () => string;
}

/** Who listens to a turn of another agent. */
function listener(more: Partial<StreamCallback> = {}): Heard {
  const events: string[] = [];
  let text = "";
  let id = "";
  return {
    events,
    text: () => text,
    id: () => id,
    callback: {
      onStart: ({ requestId }) => {
        id = requestId;
        events.push("start");
      },
      onEvent: (json) => {
        const chunk = JSON.parse(json) as { type: string; delta?: string };
        text += chunk.delta ?? "";
      },
      onDone: () => void events.push("done"),
      onError: (error) => void events.push(`error: ${error}`),
      onInterrupted: () => void events.push("interrupted"),
      ...more,
    },
  };
}

async function opened(script: Parameters<typeof childClass>[0], options: { manual?: boolean; stallMs?: number } = {}) {
  const child = childClass(script, {}, (Base) => {
    return class extends Base {
      override chatStreamStallTimeoutMs = options.stallMs ?? 0;
    };
  });
  const kit = await openTogether(child.Researcher, ["unused"], { manual: options.manual ?? false });
  const agent = await kit.agent();
  const stub = await agent.subAgent(child.Researcher, "helper");
  return { ...child, kit, agent, stub };
}

test("a parent has a turn of its child streamed to itself", async () => {
  const { stub, model } = await opened([{ text: ["One ", "two"] }]);
  const heard = listener();
  const end = await stub.chat("Count.", heard.callback);
  expect(end).toMatchObject({ status: "completed", requestId: heard.id() });
  expect(heard.text()).toBe("One two");
  expect(heard.events).toEqual(["start", "done"]);
  expect(model.calls[0]?.userText).toBe("Count.");
});

test("a turn that fails", async () => {
  const { stub } = await opened(() => ({ error: new Error("No ink.") }));
  const heard = listener();
  expect(await stub.chat("Count.", heard.callback)).toMatchObject({ status: "error" });
  // In the words that users read: what a bug says is in the log.
  expect(heard.events).toEqual(["start", expect.stringMatching(/^error: The model call failed\./)]);
});

test("a turn is stopped by its id", async () => {
  const { stub, model } = await opened([{ text: ["One "], hang: true }]);
  const heard = listener();
  const turn = stub.chat("Count.", heard.callback);
  await eventually(() => heard.text() === "One ", "the first word");
  expect(await stub.cancelChat(heard.id(), "Enough.")).toBe(true);
  expect(await turn).toMatchObject({ status: "aborted" });
  expect(heard.events).toEqual(["start", "done"]);
  expect(model.calls[0]?.status).toBe("aborted");
  expect(await stub.cancelChat(heard.id())).toBe(false);
});

test("a signal reaches across", async () => {
  const { stub, model } = await opened([{ text: ["One "], hang: true }]);
  const heard = listener();
  const stop = new AbortController();
  const turn = stub.chat("Count.", heard.callback, { signal: stop.signal });
  await eventually(() => heard.text() === "One ", "the first word");
  stop.abort();
  expect(await turn).toMatchObject({ status: "aborted" });
  expect(model.calls[0]?.status).toBe("aborted");
});

test("a listener that throws stops the turn", async () => {
  const { stub, model } = await opened([{ text: ["One ", "two"], hang: true }]);
  const heard = listener({
    onEvent: () => {
      throw new Error("Too loud.");
    },
  });
  await expect(stub.chat("Count.", heard.callback)).rejects.toThrow("Too loud.");
  expect(model.calls[0]?.status).toBe("aborted");
});

test("an attempt that stalls is told as neither done nor failed, and the rest comes", async () => {
  const gate = newGate();
  const { stub, kit, model } = await opened(
    async ({ index }) => {
      if (index > 0) await gate.opened;
      return index === 0 ? { text: ["One "], hang: true } : { text: ["two"] };
    },
    { manual: true, stallMs: 1000 },
  );
  const heard = listener();
  const turn = stub.chat("Count.", heard.callback);
  await passUntil(kit.clock, () => heard.text() === "One ", "the first word");
  await kit.clock.advance(1100);
  await passUntil(kit.clock, () => model.calls.length === 2, "the second call");
  expect(heard.events).toEqual(["start", "interrupted"]);
  gate.open();
  await passUntil(kit.clock, () => heard.events.includes("done"), "the end");
  expect(await turn).toMatchObject({ status: "completed" });
  expect(heard.text()).toBe("One two");
});

test("a child whose life ends: the caller hears that it is gone, the turn goes on without it", async () => {
  const { stub, agent, Researcher, model, lives } = await opened(({ index }) =>
    index === 0 ? { text: ["One "], hang: true } : { text: ["two"] },
  );
  const heard = listener();
  const turn = stub.chat("Count.", heard.callback);
  const gone = expect(turn).rejects.toMatchObject({ code: "agent_gone" });
  await eventually(() => heard.text() === "One ", "the first word");
  agent.abortSubAgent(Researcher, "helper");
  await gone;
  await stub.waitUntilStable();
  expect(model.calls).toHaveLength(2);
  expect(heard.events).toEqual(["start"]);
  expect(lives.at(-1)?.messages).toHaveLength(2);
});

test("three layers deep: words come up and a stop goes down", async () => {
  const { Researcher: Reader, model: deep } = childClass([{ text: ["Page "], hang: true }]);
  /** Passes on what its own child says. */
  const relay = (Base: ThinkBase) =>
    class Relay extends Base {
      async relay(text: string, callback: StreamCallback, signal: AbortSignal) {
        const below = await this.subAgent(Reader, "reader");
        return below.chat(text, callback, { signal });
      }
    };
  const { Researcher: Base } = childClass(["unused"]);
  const Researcher = relay(Base) as new (host: AgentHost) => Think & InstanceType<ReturnType<typeof relay>>;
  const kit = await openTogether(Researcher, ["unused"], { children: { Reader } });
  const agent = await kit.agent();
  const stop = new AbortController();
  const heard = listener();
  const middle = await agent.subAgent(Researcher, "middle");
  const turn = middle.relay("Read.", heard.callback, stop.signal);
  await eventually(() => heard.text() === "Page ", "the first word");
  stop.abort();
  expect(await turn).toMatchObject({ status: "aborted" });
  expect(deep.calls[0]?.status).toBe("aborted");
  expect(heard.events).toEqual(["start", "done"]);
});
