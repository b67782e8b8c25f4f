// Layers of Think agents, each the tool of the one above, all of whose calls cost the same; and what their books say.
import type { ToolSet } from "ai";
import { type Agent, type AgentHost, agentTool, type Budgets, Think } from "perdure";
import type { LedgerEntry } from "perdure/chat";
import type { PriceTable } from "perdure/context";
import { type Script, type ScriptedModel, scriptedModel } from "perdure/testing";
import { expect } from "vitest";
import { z } from "zod";
import type { AgentOptions } from "../chat/open-agent.ts";
import { openThink, type TestThink } from "../think/harness.ts";

/** Each call uses 30 tokens, which is less than is reserved for any. */
export const USED = 30;
export const usage = { inputTokens: 10, outputTokens: 20 };
const MAX_OUTPUT = 40;

export const LAYERS = ["Talk", "Middle", "Leaf"] as const;
export type Layer = (typeof LAYERS)[number];

/** Asks for one run below in its first step, and says something in the second. */
export const asksBelow: Script = ({ step }) =>
  step === 0 ? { toolCalls: [{ toolName: "below", input: { query: "tea" } }], usage } : { text: "Done.", usage };
export const says: Script = () => ({ text: "Tea.", usage });

export interface TreeOptions {
  readonly scripts?: Partial<Record<Layer, Script>>;
  readonly budgets?: Partial<Record<Layer, Budgets>>;
  readonly prices?: Partial<Record<Layer, PriceTable>>;
  readonly detached?: Partial<Record<Layer, boolean>>;
  readonly host?: AgentOptions["host"];
  /** Instead of the class in the middle. */
  readonly middle?: (Leaf: new (host: AgentHost) => Think) => new (host: AgentHost) => Agent;
}

export interface Tree extends TestThink<Think> {
  readonly models: Readonly<Record<Layer, ScriptedModel>>;
  /** Budgets may be changed at any time: all lives read these. */
  readonly budgets: Record<Layer, Budgets>;
  /** The agents that are in memory, by class, the oldest first. */
  of(layer: Layer): Think[];
  readonly Leaf: new (host: AgentHost) => Think;
  /** Ends the life of the first agent alone: its class has newer code. */
  renewTop(): void;
  /** How often any model was called. */
  calls(): number;
}

/** Opens `Talk`, whose tool `below` is `Middle`, whose tool `below` is `Leaf`. */
export async function openTree(options: TreeOptions = {}): Promise<Tree> {
  const scripts = { Talk: asksBelow, Middle: asksBelow, Leaf: says, ...options.scripts };
  const models: Record<Layer, ScriptedModel> = {
    Talk: scriptedModel(scripts.Talk, { modelId: "top" }),
    Middle: scriptedModel(scripts.Middle, { modelId: "middle" }),
    Leaf: scriptedModel(scripts.Leaf, { modelId: "leaf" }),
  };
  const budgets: Record<Layer, Budgets> = { Talk: {}, Middle: {}, Leaf: {}, ...options.budgets };
  const alive = new Map<string, { layer: Layer; agent: Think }>();

  /** A class of one layer. */
  const layered = (
    layer: Layer,
    below?: new (host: AgentHost) => Agent,
    Base: new (host: AgentHost) => Think = Think,
  ) =>
    class extends Base {
      constructor(host: AgentHost) {
        super(host);
        alive.set(host.id, { layer, agent: this });
        Object.defineProperty(this, "budgets", { get: () => budgets[layer] });
        this.prices = options.prices?.[layer] ?? {};
        this.workspaceTools = false;
      }
      override getModel() {
        return models[layer];
      }
      override getSystemPrompt() {
        return "";
      }
      override beforeTurn() {
        return { maxOutputTokens: MAX_OUTPUT, maxRetries: 0, system: "" };
      }
      override getTools(): ToolSet {
        if (below === undefined) return {};
        const detached = options.detached?.[layer] === true && { detached: { notify: false } };
        const inputSchema = z.object({ query: z.string() });
        return { below: agentTool(below, { description: "Asks.", inputSchema, ...detached }) };
      }
    };
  class Leaf extends layered("Leaf") {
    /** Long enough that more is reserved for its calls than for the first ones of those above. */
    override formatAgentToolInput(): string {
      return "Tea. ".repeat(40);
    }
  }
  const Middle = options.middle?.(Leaf) ?? class Middle extends layered("Middle", Leaf) {};
  let Top: new (host: AgentHost) => Think = Think;
  const kit = await openThink((Base) => (Top = class Talk extends layered("Talk", Middle, Base) {}), {
    children: { Middle, Leaf },
    ...(options.host !== undefined && { host: options.host }),
  });
  return Object.assign(kit, {
    models,
    budgets,
    Leaf,
    renewTop: () => kit.host.replaceAgents({ agents: { Talk: class extends Top {}, Middle, Leaf } }),
    of: (layer: Layer) => [...alive.values()].filter((one) => one.layer === layer).map(({ agent }) => agent),
    calls: () => LAYERS.reduce((sum, layer) => sum + models[layer].calls.length, 0),
  });
}

/** The calls that agents of these layers made themselves. */
export function ownCalls(tree: Tree, layers: readonly Layer[] = LAYERS): LedgerEntry[] {
  const agents = layers.flatMap((layer) => tree.of(layer));
  return agents.flatMap((agent) => agent.listUsage({ limit: 1000 }).filter(({ purpose }) => purpose === "turn"));
}

/** Nothing is open, and what the agents of a layer have on their books is what they and those below have used. */
export function expectBooked(tree: Tree): void {
  for (const [at, layer] of LAYERS.entries()) {
    const agents = tree.of(layer).map((agent) => agent.usage());
    const calls = ownCalls(tree, LAYERS.slice(at));
    const sum = (value: (row: LedgerEntry) => number | null) =>
      calls.reduce((total, row) => total + (value(row) ?? 0), 0);
    expect(
      agents.reduce((total, { reservedTokens }) => total + reservedTokens, 0),
      `reserved by ${layer}`,
    ).toBe(0);
    expect(
      agents.reduce((total, one) => total + one.calls, 0),
      `calls of ${layer}`,
    ).toBe(calls.length);
    expect(
      agents.reduce((total, { tokens }) => total + tokens, 0),
      `tokens of ${layer}`,
    ).toBe(sum(({ tokens }) => tokens));
  }
}
