import "../clients/dom.ts";
import { useAgent as usePublicAgent, useAgentToolEvents as usePublicToolEvents } from "agents/react";
import { Agent, type Connection } from "perdure";
import { act, type ReactNode, StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { renderToString } from "react-dom/server";
import { expect, test, vi } from "vitest";
import { useAgent, useAgentToolEvents, type UseAgentToolEvents } from "../../src/client/react.ts";
import { newLine } from "../chat-client/task-socket.ts";
import { addressOf, atEnd, eventually, QUICK, startHost } from "../clients/harness.ts";
import { EPOCH, framesOf, seeded } from "./agent-tool-script.ts";

type PublicSource = Parameters<typeof usePublicToolEvents>[0]["agent"];
type PublicToolEvents = ReturnType<typeof usePublicToolEvents>;
/** Both hooks need no more of an agent than this. */
type Source = EventTarget & PublicSource;

async function acting(work: () => void): Promise<void> {
  const flags = globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean };
  flags.IS_REACT_ACT_ENVIRONMENT = true;
  try {
    await act(async () => work());
  } finally {
    flags.IS_REACT_ACT_ENVIRONMENT = false;
  }
}

/** Shows a component; gone at the end of the test. */
async function show(page: ReactNode) {
  const container = document.createElement("div");
  document.body.append(container);
  const root = createRoot(container);
  const hide = async () => {
    await acting(() => root.unmount());
    container.remove();
  };
  atEnd(hide);
  await acting(() => root.render(page));
  return { hide, update: (next: ReactNode) => acting(() => root.render(next)) };
}

/** The returned data of a hook, without functions and without fields that are undefined. */
function plain(events: Pick<UseAgentToolEvents | PublicToolEvents, "runsById" | "runsByToolCallId" | "unboundRuns">) {
  const { runsById, runsByToolCallId, unboundRuns } = events;
  return JSON.parse(JSON.stringify({ runsById, runsByToolCallId, unboundRuns })) as typeof events;
}

/** All that the public hook shows is the same here; ours may say more of a part (ids of reasoning, partial inputs). */
function expectSame(ours: UseAgentToolEvents, theirs: PublicToolEvents): void {
  const wanted = plain(theirs);
  // It keeps why a run was interrupted after that is no longer so, although its types say otherwise.
  const runs = [
    ...Object.values(wanted.runsById),
    ...Object.values(wanted.runsByToolCallId).flat(),
    ...wanted.unboundRuns,
  ] as { status: string; reason?: unknown; childStillRunning?: unknown }[];
  for (const run of runs) {
    if (run.status === "interrupted") continue;
    delete run.reason;
    delete run.childStillRunning;
  }
  const got = plain(ours);
  expect(got).toMatchObject(wanted);
  expect(Object.keys(got.runsById).sort()).toEqual(Object.keys(wanted.runsById).sort());
  expect(Object.keys(got.runsByToolCallId).sort()).toEqual(Object.keys(wanted.runsByToolCallId).sort());
  for (const [id, run] of Object.entries(wanted.runsById)) {
    // Nothing but the parts may have more.
    const { parts: _ours, ...rest } = got.runsById[id] ?? {};
    const { parts: _theirs, ...wantedRest } = run;
    expect(rest).toEqual(wantedRest);
    expect(got.runsById[id]?.parts).toHaveLength(run.parts.length);
  }
}

const seeds = Array.from({ length: 60 }, (_, index) => index + 1);

test.each(seeds)("shows what the public hook shows, seed %i", async (seed) => {
  vi.useFakeTimers({ toFake: ["Date"], now: EPOCH });
  atEnd(() => vi.useRealTimers());
  const agent = new EventTarget() as Source;
  let ours: UseAgentToolEvents | undefined;
  let theirs: PublicToolEvents | undefined;
  function Page(): ReactNode {
    ours = useAgentToolEvents({ agent, throttle: false });
    theirs = usePublicToolEvents({ agent });
    return null;
  }
  await show(<Page />);
  const random = seeded(seed);
  const frames = framesOf(seed);
  while (frames.length > 0) {
    const some = frames.splice(0, 1 + Math.floor(random() * 20));
    // Not between frames: React runs the public hook's updates later, and they look at the clock then.
    vi.setSystemTime(Date.now() + Math.floor(random() * 10));
    await acting(() => {
      for (const frame of some) agent.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(frame) }));
    });
    if (ours === undefined || theirs === undefined) throw new Error("The hooks have not returned yet.");
    expectSame(ours, theirs);
    for (const id of ["call-a", "call-b", "none"]) {
      expect(ours.getRunsForToolCall(id).map(({ runId }) => runId)).toEqual(
        theirs.getRunsForToolCall(id).map(({ runId }) => runId),
      );
    }
  }
  await acting(() => {
    ours?.resetLocalState();
    theirs?.resetLocalState();
  });
  if (ours === undefined || theirs === undefined) throw new Error("The hooks have not returned yet.");
  expectSame(ours, theirs);
  expect(ours.runsById).toEqual({});
});

const SCRIPT = framesOf(7);

/** Each page hears of progress at its own time. */
function withoutTimes<T>(events: T): T {
  return JSON.parse(JSON.stringify(events, (key, value: unknown) => (key === "at" ? 0 : value))) as T;
}

/** Tells everyone who connects the same story. */
class Parent extends Agent {
  override onConnect(connection: Connection): void {
    for (const frame of SCRIPT) connection.send(JSON.stringify(frame));
  }
}

test("over real sockets, through reconnects, in StrictMode", async () => {
  const host = await startHost({ agents: { Parent } });
  const [line, publicLine] = [newLine(), newLine()];
  let ours: UseAgentToolEvents | undefined;
  let theirs: PublicToolEvents | undefined;
  const options = { ...QUICK, agent: "parent", name: "x", host: addressOf(host) };
  function Ours(): ReactNode {
    ours = useAgentToolEvents({ agent: useAgent({ ...options, WebSocket: line.Socket }) });
    return null;
  }
  function Theirs(): ReactNode {
    theirs = usePublicToolEvents({ agent: usePublicAgent({ ...options, WebSocket: publicLine.Socket }) });
    return null;
  }
  await show(
    <StrictMode>
      <Ours />
    </StrictMode>,
  );
  await show(<Theirs />);
  const ids = [...new Set(SCRIPT.map(({ event }) => event.runId))].sort();
  const shown = () => {
    if (ours === undefined || theirs === undefined) throw new Error("The hooks have not returned yet.");
    return { ours, theirs };
  };
  const told = ({ received }: typeof line) => received.filter(({ type }) => type === "agent-tool-event").length;
  await eventually(() => expect(Math.min(told(line), told(publicLine))).toBeGreaterThanOrEqual(SCRIPT.length));
  await eventually(() => expect(Object.keys(shown().ours.runsById).sort()).toEqual(ids));
  await eventually(() => expectSame(withoutTimes(shown().ours), withoutTimes(shown().theirs)));
  const before = shown().ours;
  const { opens, received } = line;
  const heard = received.length;
  line.cut();
  line.mend();
  await eventually(() => expect(line.opens).toBeGreaterThan(opens));
  await eventually(() => expect(line.received.length).toBeGreaterThanOrEqual(heard + SCRIPT.length));
  expect(shown().ours.runsById).toBe(before.runsById);
});

const started = (runId: string, parentToolCallId?: string) =>
  JSON.stringify({
    type: "agent-tool-event",
    parentToolCallId,
    sequence: 0,
    event: { kind: "started", runId, agentType: "R", order: 0 },
  });
const said = (runId: string, sequence: number, chunk: object) =>
  JSON.stringify({
    type: "agent-tool-event",
    sequence,
    event: { kind: "chunk", runId, body: JSON.stringify(chunk) },
  });

/** An agent that says what the test wants, and a component that shows its runs. */
function quietAgent() {
  const agent = new EventTarget() as Source;
  const renders: UseAgentToolEvents[] = [];
  return {
    agent,
    renders,
    last: (): UseAgentToolEvents => {
      const last = renders.at(-1);
      if (last === undefined) throw new Error("The hook has not returned yet.");
      return last;
    },
    tell: (...frames: string[]) =>
      acting(() => {
        for (const data of frames) agent.dispatchEvent(new MessageEvent("message", { data }));
      }),
    Runs({ of = agent, throttle = false }: { of?: Source; throttle?: number | false }): ReactNode {
      renders.push(useAgentToolEvents({ agent: of, throttle }));
      return null;
    },
  };
}

test("a component that comes later shows what was heard before, also while none was there", async () => {
  const { Runs, tell, last } = quietAgent();
  const page = await show(<Runs />);
  await tell(started("r"));
  await page.update(null);
  await tell(said("r", 1, { type: "text-start", id: "t" }), said("r", 2, { type: "text-delta", id: "t", delta: "hi" }));
  await page.update([<Runs key="1" />, <Runs key="2" />]);
  expect(last().unboundRuns).toMatchObject([{ runId: "r", parts: [{ type: "text", text: "hi" }] }]);
});

test("another agent has other runs", async () => {
  const { Runs, tell, last } = quietAgent();
  const page = await show(<Runs />);
  await tell(started("r", "call"));
  expect(last().getRunsForToolCall("call")).toHaveLength(1);
  await page.update(<Runs of={new EventTarget() as Source} />);
  expect(last()).toMatchObject({ runsById: {}, unboundRuns: [] });
  expect(last().getRunsForToolCall("call")).toEqual([]);
  expect(last().getRunsForToolCall("toString")).toEqual([]);
  await page.update(<Runs />);
  expect(last().getRunsForToolCall("call")).toHaveLength(1);
});

test("what is returned stays the same until something happens; resetLocalState stays the same always", async () => {
  const { Runs, tell, last } = quietAgent();
  const page = await show(<Runs />);
  await tell(started("r"));
  const before = last();
  await page.update(<Runs />);
  expect(last()).toBe(before);
  await tell(started("s"));
  expect(last()).not.toBe(before);
  expect(last().runsById.r).toBe(before.runsById.r);
  expect(last().resetLocalState).toBe(before.resetLocalState);
});

test("what children say is drawn at intervals, that they end at once", async () => {
  const { Runs, tell, last, renders } = quietAgent();
  vi.useFakeTimers();
  atEnd(() => vi.useRealTimers());
  await show(<Runs throttle={1000} />);
  await tell(started("r"));
  const drawn = renders.length;
  const text = (): unknown => last().runsById.r?.parts[0];
  await tell(said("r", 1, { type: "text-start", id: "t" }));
  for (let n = 2; n < 10; n++) await tell(said("r", n, { type: "text-delta", id: "t", delta: "x" }));
  expect(renders).toHaveLength(drawn);
  await acting(() => void vi.advanceTimersByTime(1000));
  expect(text()).toMatchObject({ text: "xxxxxxxx" });
  expect(renders).toHaveLength(drawn + 1);
  await tell(said("r", 10, { type: "text-delta", id: "t", delta: "!" }));
  expect(renders).toHaveLength(drawn + 1);
  await tell(
    JSON.stringify({ type: "agent-tool-event", sequence: 11, event: { kind: "finished", runId: "r", summary: "" } }),
  );
  expect(text()).toMatchObject({ text: "xxxxxxxx!" });
  expect(last().runsById.r?.status).toBe("completed");
});

test("a server can draw the page", () => {
  const { Runs, last } = quietAgent();
  expect(renderToString(<Runs />)).toBe("");
  expect(last().unboundRuns).toEqual([]);
});
