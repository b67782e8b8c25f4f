// An agent whose conversation is a matter of chance, and a reader of its rows that says what every request must hold.
import type { UIMessage } from "ai";
import { type AgentHost, durableTool, type Session, staticContext, Think } from "perdure";
import { createHost, type Host, memoryStorage, subscribe } from "perdure/node";
import { type ScriptedCall, scriptedModel, type ScriptedReply } from "perdure/testing";
import { onTestFinished } from "vitest";
import { serverTool } from "../think/harness.ts";
import type { Random } from "../think/interleave-random.ts";
import { isSummary } from "./compacting.ts";
import { answer, called, step, text, user } from "./paths.ts";

type Part = UIMessage["parts"][number];

export const SYSTEM = "SYSTEM-PROMPT: you keep the books.";
export const BLOCK = "BLOCK-TEXT: the harbour has nine berths.";
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAGQAAABkCAIAAAD/gAIDAAAA";

/** A call of a tool as the model asks for it, and what came of it. */
interface KnownCall {
  readonly tool: string;
  output: unknown;
}

/** What a test of chance plays with. */
export class World {
  readonly chance: Random;
  /** What the model may be sent. */
  usable = Number.POSITIVE_INFINITY;
  /** Summaries that are asked for fail. */
  mute = false;
  /** The next model call is cut by the end of this life; called when it has ended. */
  cut: (() => void) | undefined;
  readonly calls = new Map<string, KnownCall>();
  /** The steps of the turn that runs, as they will be stored. */
  own: Part[] = [];
  /** What is wrong with a request, in words. */
  readonly faults: string[] = [];
  /** The marks of all that was read for summaries. */
  readonly read = new Set<string>();
  /** Compactions that an event told of. */
  readonly told = new Set<string>();
  requests = 0;
  #marks = 0;
  #host: Host | undefined;
  readonly #storage = memoryStorage();
  agent: Chance | undefined;
  port: AgentHost | undefined;
  readonly #check: (world: World, call: ScriptedCall) => void;

  constructor(chance: Random, check: (world: World, call: ScriptedCall) => void) {
    this.chance = chance;
    this.#check = check;
    onTestFinished(subscribe("chat:context:compacted", ({ payload }) => void this.told.add(payload.compactionId)));
    onTestFinished(() => this.#host?.stop());
  }

  readonly model = scriptedModel((call) => this.#say(call));

  mark(kind: string): string {
    return `«${kind}${++this.#marks}»`;
  }

  words(kind: string, most: number): string {
    return `${this.mark(kind)} ${"abc ".repeat(this.chance.int(most))}`.trim();
  }

  /** The stub of the agent, which wakes it. */
  async open() {
    this.#host ??= createHost({ agents: { Chance: chanceOf(this) }, storage: this.#storage, idleMs: 1e9, graceMs: 0 });
    const stub = this.#host.getAgentByName(chanceOf(this), "one");
    await stub.hasPendingInteraction();
    if (this.agent === undefined) throw new Error("The agent was not made.");
    return this.agent;
  }

  async restart(): Promise<void> {
    await this.#host?.stop();
    this.#host = undefined;
    await this.open();
  }

  async nextLife(): Promise<void> {
    this.port?.abort(this.port.path, new Error("This life is over."));
    await this.open();
  }

  /** A call that has its output, for histories that are brought along. */
  callPart(tool: string, size: number): Part {
    const id = `call-${this.mark("c").slice(1, -1)}`;
    const output = outputOf(tool, this.mark("o"), size);
    this.calls.set(id, { tool, output });
    return called(tool, id, output, { tool });
  }

  /** A question, and an answer of some steps. */
  round(size: number): UIMessage[] {
    const { chance } = this;
    const parts: Part[] = [];
    for (let i = chance.int(3); i >= 0; i--) {
      parts.push(step, text(this.words("a", 60)));
      for (let n = chance.int(3); n > 0; n--) parts.push(this.callPart(chance.pick(TOOLS), size));
    }
    return [user(this.mark("id").slice(1, -1), this.words("u", 100)), answer(this.mark("id").slice(1, -1), ...parts)];
  }

  #say(call: ScriptedCall): ScriptedReply | Promise<ScriptedReply> {
    const { chance } = this;
    if (isSummary(call) && !this.mute) for (const [mark] of marksIn(JSON.stringify(call.prompt))) this.read.add(mark);
    if (isSummary(call)) return this.mute ? { error: new Error("no") } : { text: `## Goal\n${this.mark("s")}` };
    this.requests++;
    this.#check(this, call);
    if (this.cut !== undefined) {
      const { cut, port } = this;
      this.cut = undefined;
      setTimeout(() => {
        port?.abort(port.path, new Error("This life is over."));
        cut();
      }, 0);
      return { hang: "before" };
    }
    const said = this.words("a", 80);
    const count = this.own.filter(({ type }) => type === "step-start").length < 4 ? chance.int(3) : 0;
    const toolCalls = Array.from({ length: count }, () => {
      const tool = chance.pick(TOOLS);
      const toolCallId = `call-${this.mark("c").slice(1, -1)}`;
      this.calls.set(toolCallId, { tool, output: undefined });
      return { toolCallId, toolName: tool, input: { tool, size: chance.int(2_500) } };
    });
    this.own.push(step, text(said));
    for (const { toolCallId, toolName, input } of toolCalls) this.own.push(called(toolName, toolCallId, "", input));
    return { text: said, toolCalls };
  }
}

/** The marks of what people and models said. */
export function marksIn(text: string): IterableIterator<RegExpExecArray> {
  return text.matchAll(/«[ua]\d+»/g);
}

const TOOLS = ["read", "read", "read", "scan", "shot", "keep"] as const;

/** What a tool returns; its own mark is in it. */
function outputOf(tool: string, mark: string, size: number): unknown {
  // What is stored of these is far more than what is shown.
  if (tool === "shot") return { image: `${PNG}${btoa(mark).replaceAll("=", "")}${"A".repeat(size * 12)}`, mark };
  return `${mark} ${"abc ".repeat(tool === "scan" ? size * 3 : size)}`;
}

/** What the model reads of it, as a piece of JSON. */
export function shownOutput({ tool, output }: KnownCall): string {
  if (tool === "shot") return (output as { image: string }).image;
  return tool === "scan" ? `line of ${/«o\d+»/.exec(output as string)?.[0] ?? ""}` : (output as string);
}

type Chance = Think;
const classes = new WeakMap<World, new (host: AgentHost) => Chance>();

function chanceOf(world: World): new (host: AgentHost) => Chance {
  const known = classes.get(world);
  if (known !== undefined) return known;
  const run = (tool: string) =>
    serverTool<{ size: number }>(
      ({ size }, { toolCallId }) => {
        const output = outputOf(tool, world.mark("o"), size);
        world.calls.set(toolCallId, { tool, output });
        return output;
      },
      tool === "scan"
        ? { toModelOutput: ({ toolCallId }) => ({ type: "text", value: shownOutput(callIn(world, toolCallId)) }) }
        : tool === "shot"
          ? {
              toModelOutput: ({ output }) => ({
                type: "content",
                value: [{ type: "file", mediaType: "image/png", data: { type: "data", data: imageIn(output) } }],
              }),
            }
          : {},
    );
  class Chance extends Think {
    override workspaceTools = false as const;
    override titles = false;
    override maxSteps = 8;
    override mediaRetention = { keepInMessages: 2 };
    constructor(host: AgentHost) {
      super(host);
      world.agent = this;
      world.port = host;
    }
    override modelLimits = () => ({ window: 1_000_000, input: world.usable });
    override getModel() {
      return world.model;
    }
    override getSystemPrompt() {
      return SYSTEM;
    }
    override configureSession(session: Session) {
      return session.withContext("harbour", { provider: staticContext(BLOCK) });
    }
    override getTools() {
      return {
        read: run("read"),
        scan: run("scan"),
        shot: run("shot"),
        keep: durableTool(run("keep"), { keep: "always" }),
      };
    }
  }
  classes.set(world, Chance);
  return Chance;
}

function callIn(world: World, id: string): KnownCall {
  return world.calls.get(id) ?? { tool: "scan", output: "" };
}

function imageIn(output: unknown): string {
  return (output as { image: string }).image;
}
