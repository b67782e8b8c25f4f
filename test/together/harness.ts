// A parent with tools that are agents, and what its clients hear of their runs.
import type { ToolSet } from "ai";
import { type AgentHost, agentTool, Think } from "perdure";
import { type Script, type ScriptedModel, scriptedModel } from "perdure/testing";
import { z } from "zod";
import type { ChatClient } from "../chat/client.ts";
import type { AgentOptions } from "../chat/open-agent.ts";
import { openThink, type TestThink, type ThinkBase } from "../think/harness.ts";

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

/** A class of children that plays a script. */
export function childClass(script: Script, tools: ToolSet = {}) {
  const model = scriptedModel(script);
  class Researcher extends Think {
    override getModel() {
      return model;
    }
    override getTools() {
      return tools;
    }
  }
  return { Researcher, model };
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
