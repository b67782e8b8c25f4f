// A parent with tools that are agents, and what its clients hear of their runs.
import type { ToolSet } from "ai";
import { type AgentHost, agentTool, Think } from "perdure";
import { type ManualClock, type Script, type ScriptedModel, scriptedModel } from "perdure/testing";
import { z } from "zod";
import { type ChatClient, connectTo } from "../chat/client.ts";
import type { AgentOptions, TestAgent } from "../chat/open-agent.ts";
import { eventually } from "../host/open-host.ts";
import { openThink, outputsSent, type TestThink, type ThinkBase } from "../think/harness.ts";

/** A frame about a run. */
export interface RunFrame {
  readonly type: "agent-tool-event";
  readonly sequence: number;
  readonly replay?: boolean;
  readonly parentToolCallId?: string;
  readonly event: {
    readonly kind: string;
    readonly runId: string;
    readonly body?: string;
    readonly summary?: string;
    readonly error?: string;
    readonly reason?: string;
    readonly agentType?: string;
  };
}

/** What a client heard of runs, in order. */
export function runFrames(client: ChatClient): RunFrame[] {
  return client.ofType("agent-tool-event") as unknown as RunFrame[];
}

/** The text that the child said, as a client heard it; each chunk counts once, by its number. */
export function heardText(frames: readonly RunFrame[]): string {
  const heard = new Map<number, string>();
  for (const { sequence, event } of frames) if (event.kind === "chunk") heard.set(sequence, event.body ?? "");
  return [...heard.values()]
    .map((body) => JSON.parse(body) as { type: string; delta?: string })
    .map(({ type, delta }) => (type === "text-delta" ? delta : ""))
    .join("");
}

type ChildBase = new (host: AgentHost) => Think;

/** A class of children that plays a script; `make` adds to it. What its children fail with is noted in `errors`. */
export function childClass(script: Script, tools: ToolSet = {}, make: (Base: ChildBase) => ChildBase = (Base) => Base) {
  const model = scriptedModel(script);
  const lives: Think[] = [];
  const hosts: AgentHost[] = [];
  const errors: string[] = [];
  class Child extends Think {
    override workspaceTools = false as const;
    constructor(host: AgentHost) {
      super(host);
      lives.push(this);
      hosts.push(host);
    }
    override getModel() {
      return model;
    }
    override getTools() {
      return tools;
    }
    override onError(error: unknown) {
      errors.push(error instanceof Error ? error.message : String(error));
    }
  }
  return { Researcher: make(Child), model, lives, hosts, errors };
}

export interface Together<A extends Think> extends TestThink<A> {
  readonly model: ScriptedModel;
}

/** The script of a parent that asks for one run and then says what it was given. */
export const asksOnce: Script = ({ step }) =>
  step === 0 ? { toolCalls: [{ toolName: "research", input: { query: "tea" }, toolCallId: "c1" }] } : "Done.";

/** A parent whose tool `research` is a child of this class. */
export async function openTogether<A extends Think = Think>(
  Researcher: new (host: AgentHost) => Think,
  script: Script = asksOnce,
  options: AgentOptions & {
    readonly tool?: Partial<Parameters<typeof agentTool>[1]>;
    readonly make?: (Base: ThinkBase) => ThinkBase;
  } = {},
): Promise<Together<A>> {
  const model = scriptedModel(script);
  const { make = (Base) => Base, tool, ...rest } = options;
  const kit = await openThink(
    (Base) => {
      class Parent extends Base {
        override getModel() {
          return model;
        }
        override getTools(): ToolSet {
          const inputSchema = z.object({ query: z.string() });
          return { research: agentTool(Researcher, { description: "Research a topic.", ...tool, inputSchema }) };
        }
      }
      return make(Parent) as new (host: AgentHost) => A;
    },
    { ...rest, children: { Researcher, ...rest.children } },
  );
  return Object.assign(kit, { model });
}

/** Something that waits until the test lets it go on. */
export function newGate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: () => resolve() };
}

/** A client of the child itself. */
export function connectChild(kit: { readonly url: string }, runId: string): Promise<ChatClient> {
  return connectTo(`${kit.url}/sub/researcher/${runId}`);
}

/** A run as the parent stores it. */
export interface StoredRun {
  readonly runId: string;
  readonly className: string;
  readonly status: string;
  readonly error: string | null;
  readonly reason: string | null;
  readonly output: string | null;
  readonly toolCallId: string | null;
  readonly childRunning: number | null;
  readonly chunks: number;
}

/** The runs that the parent keeps, oldest first. */
export function storedRuns(kit: Pick<TestAgent<unknown>, "rows">): Promise<StoredRun[]> {
  return kit.rows<StoredRun>(
    `SELECT run_id AS runId, class_name AS className, status, error, reason, output, tool_call_id AS toolCallId,
       child_running AS childRunning, chunks FROM perdure_agent_run ORDER BY seq`,
  );
}

/** Waits until the runs of the parent are in these states. */
export async function runsAre(kit: Pick<TestAgent<unknown>, "rows">, ...statuses: string[]): Promise<StoredRun[]> {
  return untilTrue(
    async () => {
      const runs = await storedRuns(kit);
      return runs.length === statuses.length && runs.every(({ status }, i) => status === statuses[i]) && runs;
    },
    `runs that are ${statuses.join(", ")}`,
  );
}

/** Waits until `look` brings something. */
export async function untilTrue<T>(look: () => Promise<T | false | undefined>, what: string): Promise<T> {
  let found: T | false | undefined;
  let looking = false;
  return eventually(() => {
    if (!looking && (found === undefined || found === false)) {
      looking = true;
      void look().then((value) => {
        found = value;
        looking = false;
      });
    }
    return found;
  }, what);
}

/** Lets time pass, a little at a time, until something is there. What real sockets bring needs real time too. */
export async function passUntil(clock: ManualClock, look: () => boolean, what: string, stepMs = 5): Promise<void> {
  let moving = false;
  await eventually(() => {
    if (look()) return true;
    if (!moving) {
      moving = true;
      void clock.advance(stepMs).finally(() => (moving = false));
    }
    return false;
  }, what);
}

/** What the model was given for a tool call. */
export function given(model: ScriptedModel, call: number, toolCallId = "c1"): unknown {
  const output = outputsSent(model, call)[toolCallId] as { type: string; value?: unknown } | undefined;
  return output?.value;
}
