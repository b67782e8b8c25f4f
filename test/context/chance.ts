// An agent whose conversation is a matter of chance, and a reader of its rows that says what every request must hold.
import { jsonSchema, type ModelMessage, type UIMessage } from "ai";
import { type AgentHost, durableTool, type Session, Think } from "perdure";
import { staticContext } from "perdure/context";
import { createHost, type Host, memoryStorage, subscribe } from "perdure/node";
import { type ScriptedCall, scriptedModel, type ScriptedReply } from "perdure/testing";
import { onTestFinished } from "vitest";
import { parts } from "../../src/parts/part.ts";
import { estimateTokens } from "../../src/context/estimate.ts";
import { unitsOfTool } from "../../src/context/units.ts";
import { contextOf } from "../../src/turn/step/step-run.ts";
import { refusal, serverTool } from "../think/harness.ts";
import type { Storage } from "../../src/host/storage.ts";
import type { Random } from "../think/interleave-random.ts";
import { Power, powered, settle } from "../think/interleave-world.ts";
import { isSummary, long } from "./compacting.ts";
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

/** How the model behaves that is asked for summaries. */
export const MOODS = ["good", "good", "good", "forgetful", "failing", "empty", "long", "full"] as const;

/** An estimate may be so much too low before the provider refuses a request. */
export const SLACK = 1.1;

/** A process that tells of its end. */
class Mains extends Power {
  readonly ended: Promise<void>;
  #end: () => void = () => {};

  constructor() {
    super();
    this.ended = new Promise((resolve) => void (this.#end = resolve));
  }

  override committed(): void {
    super.committed();
    if (!this.on) this.#end();
  }
}

/** A storage that wakes nobody once the power is off: the host of a process that is gone must not be heard in later tests. */
function mortal(storage: Storage, power: Power): Storage {
  const { index, ...rest } = powered(storage, power);
  const quiet = {
    awake: () => (power.on ? index.awake() : []),
    due: (now: number, limit: number) => (power.on ? index.due(now, limit) : []),
    nextDue: () => (power.on ? index.nextDue() : null),
  };
  return { ...rest, index: { ...index, ...quiet } };
}

/** What a test of chance plays with. */
export class World {
  readonly chance: Random;
  /** What the model may be sent. */
  usable = Number.POSITIVE_INFINITY;
  /** Which model answers. */
  modelId = "one";
  mood: (typeof MOODS)[number] = "good";
  background = false;
  /** The next model call is cut by the end of this life; called when it has ended. */
  cut: (() => void) | undefined;
  readonly calls = new Map<string, KnownCall>();
  /** The steps of the turn that runs, as they will be stored; undefined after a kill: nobody knows what was stored. */
  own: Part[] | undefined = [];
  /** What came of the requests of the turn that runs: how many tokens each had, and whether it was refused. */
  turn: { readonly tokens: number; readonly refused: boolean }[] = [];
  /** What is wrong with a request, in words. */
  readonly faults: string[] = [];
  /** The marks of all that was read for summaries. */
  readonly read = new Set<string>();
  /** Compactions that an event told of, and how many messages it said nobody had read. */
  readonly told = new Map<string, number>();
  /** What was read for each summary, by the row of it: the marks in each request that the model has taken. */
  readonly reads = new Map<number, (readonly string[])[]>();
  requests = 0;
  #marks = 0;
  #killed = false;
  #host: Host | undefined;
  power = new Mains();
  readonly #storage = memoryStorage({ onCommit: () => this.power.committed() });
  agent: Chance | undefined;
  port: AgentHost | undefined;
  readonly #check: (world: World, call: ScriptedCall) => void;

  constructor(chance: Random, check: (world: World, call: ScriptedCall) => void) {
    this.chance = chance;
    this.#check = check;
    onTestFinished(
      subscribe(
        "chat:context:compacted",
        ({ payload }) => void this.told.set(payload.compactionId, payload.leftOut ?? 0),
      ),
    );
    onTestFinished(() => this.#host?.stop());
  }

  /** A model of this process: what comes from one that was killed is nothing. */
  model() {
    const { power, modelId } = this;
    const hangs = { hang: "before" } as const;
    return scriptedModel((call) => (power.on ? this.#say(call) : hangs), { modelId });
  }

  /** The number of the turn that runs. */
  get turnSeq(): number {
    return this.agent?.[parts].chat.chat.running?.row.seq ?? -1;
  }

  /** What the model would be shown now. */
  async shown(): Promise<string[]> {
    const agent = await this.open();
    const { chat } = agent[parts].chat.room;
    const { base } = contextOf(chat, agent[parts].think.window.reader, agent.session.id, 0);
    // What was moved out of its message meanwhile is put back for the model.
    return (await agent.withMedia(base)).map((message) => JSON.stringify(message));
  }

  mark(kind: string): string {
    return `«${kind}${++this.#marks}»`;
  }

  words(kind: string, most: number): string {
    return `${this.mark(kind)} ${"abc ".repeat(this.chance.int(most))}`.trim();
  }

  /** The stub of the agent, which wakes it. */
  async open() {
    this.#host ??= createHost({
      ...{ agents: { Chance: chanceOf(this) }, storage: mortal(this.#storage, this.power) },
      ...{ idleMs: 1e9, graceMs: 0, log: false },
    });
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

  /** The process is gone at once, and another one takes over. */
  async kill(): Promise<void> {
    this.power.on = false;
    try {
      this.port?.abort(this.port.path, new Error("The power is off."));
    } catch {
      // That life has ended already.
    }
    if (this.own !== undefined && this.own.length > 0) this.own = undefined;
    await settle();
    // Nothing of it may be heard in later tests.
    await this.#host?.stop().catch(() => undefined);
    this.power = new Mains();
    this.#host = undefined;
    this.#killed = true;
    await this.open();
  }

  /** A life has begun. */
  begun(agent: Chance, port: AgentHost): void {
    this.agent = agent;
    this.port = port;
    if (!this.#killed) return;
    this.#killed = false;
    // Events go out behind the commit: one that the kill came before is lost, and the row has it all.
    const done = port.sql<{ id: string }>("SELECT id FROM perdure_compaction WHERE status = 'done'");
    for (const { id } of done) if (!this.told.has(id)) this.told.set(id, 1);
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
    if (isSummary(call)) return this.#summary(call);
    this.requests++;
    const tokens = sizeOf(call);
    const refused = tokens > SLACK * this.usable;
    this.#check(this, call);
    this.turn.push({ tokens, refused });
    if (refused) return { error: refusal(400, `This model's maximum context length is ${this.usable} tokens.`) };
    const usage = { inputTokens: tokens };
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
    const steps = this.turn.filter((one) => !one.refused).length;
    const count = steps < 5 ? chance.int(3) : 0;
    const toolCalls = Array.from({ length: count }, () => {
      const tool = chance.pick(TOOLS);
      const toolCallId = `call-${this.mark("c").slice(1, -1)}`;
      this.calls.set(toolCallId, { tool, output: undefined });
      return { toolCallId, toolName: tool, input: { tool, size: chance.pick(SIZES) } };
    });
    this.own?.push(step, text(said));
    for (const { toolCallId, toolName, input } of toolCalls) this.own?.push(called(toolName, toolCallId, "", input));
    return { text: said, toolCalls, usage };
  }

  #summary(call: ScriptedCall): ScriptedReply {
    const { mood } = this;
    if (mood === "failing") return { error: refusal(401, "invalid key") };
    if (mood === "full") return { error: refusal(400, "prompt is too long") };
    const asked = JSON.stringify(call.prompt);
    const [open] =
      this.port?.sql<{ seq: number }>("SELECT max(seq) AS seq FROM perdure_compaction WHERE status = 'started'") ?? [];
    const [, conversation = ""] = asked.split("<conversation>");
    const known = this.reads.get(open?.seq ?? -1) ?? [];
    this.reads.set(open?.seq ?? -1, [...known, conversation.match(/«\w+»/g) ?? []]);
    if (mood === "empty") return { text: " " };
    for (const [mark] of marksIn(asked)) this.read.add(mark);
    if (mood === "forgetful") return { text: "Go on as agreed." };
    return { text: mood === "long" ? long(this.mark("s"), 4_000) : `## Goal\n${this.mark("s")}` };
  }
}

/** What a provider counts. */
export function sizeOf({ prompt, tools }: Pick<ScriptedCall, "prompt" | "tools">): number {
  let sum = estimateTokens(prompt as ModelMessage[]);
  for (const one of tools) {
    if (one.type === "function") sum += unitsOfTool(one.name, { ...one, inputSchema: jsonSchema(one.inputSchema) });
  }
  return sum;
}

/** The marks of what people and models said. */
export function marksIn(text: string): IterableIterator<RegExpExecArray> {
  return text.matchAll(/«[ua]\d+»/g);
}

/** What was asked for before is superseded by what comes of it now. */
const SIZES = [10, 120, 400, 900, 1_500, 2_400] as const;
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
/** One for each process. */
const classes = new WeakMap<Power, new (host: AgentHost) => Chance>();

function chanceOf(world: World): new (host: AgentHost) => Chance {
  const { power } = world;
  const known = classes.get(power);
  if (known !== undefined) return known;
  const run = (tool: string) =>
    serverTool<{ size: number }>(
      ({ size }, { toolCallId }) => {
        power.check();
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
    override contextOverflow = { background: world.background };
    constructor(host: AgentHost) {
      super(host);
      // One that was killed may still try to wake it.
      if (power.on) world.begun(this, host);
    }
    override modelLimits = () => ({ window: 1_000_000, input: world.usable });
    override getModel() {
      return world.model();
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
  classes.set(power, Chance);
  return Chance;
}

function callIn(world: World, id: string): KnownCall {
  return world.calls.get(id) ?? { tool: "scan", output: "" };
}

function imageIn(output: unknown): string {
  return (output as { image: string }).image;
}
