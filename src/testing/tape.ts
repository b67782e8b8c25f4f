import { readFileSync } from "node:fs";
import { experimental_streamLanguageModelCall, jsonSchema, tool as toTool, type ToolSet } from "ai";
import { tapeOf } from "../admin/tape.ts";
import type { Think } from "../agent/think.ts";
import { PerdureError } from "../base/error.ts";
import { sameJson } from "../base/json.ts";
import { createHost } from "../host/node/create-host.ts";
import { memoryStorage } from "../host/node/memory-storage.ts";
import type { AgentHost } from "../port.ts";
import { type Difference, diffRequests, firstDifference } from "../model/request-diff.ts";
import {
  describeDifference,
  diffTapes,
  parseTape,
  type Tape,
  type TapeCall,
  type TapeDifference,
  type TapeSaid,
  type TapeTool,
} from "../model/tape.ts";
import type { ModelPrompt } from "./model-types.ts";
import { type RecordedCall, type ScriptedModel, scriptedModel } from "./scripted-model.ts";
import type { ScriptedReply } from "./scripted-reply.ts";

/** Reads a tape that `perdure tape` has made. @throws PerdureError `bad_input` for what is none */
export function readTape(file: string | URL): Tape {
  return parseTape(readFileSync(file, "utf8"), String(file));
}

/** How what a model is asked is compared with the tape. */
export interface TapeMatch {
  /**
   * `strict`: each request must be the recorded one. `drift`: the answer at that place is given all the same, and what is different
   * is in {@link TapeModel.changes}. Default: `strict`.
   */
  readonly match?: "strict" | "drift";
}

/** A model that says what a tape has. */
export interface TapeModel extends ScriptedModel {
  /** What requests had that the tape has not, in words. */
  readonly changes: readonly string[];
}

/**
 * A model that answers from a tape and asks nobody: each call gets the answer that is recorded for its place, if it is sent what was
 * sent then. A request that is made again, by a later life too, gets its answer again. Anything else fails the call with `bad_state`, which
 * names the recorded call and the first difference.
 */
export function tapeModel(tape: Tape, { match = "strict" }: TapeMatch = {}): TapeModel {
  const changes: string[] = [];
  const recorded = recordedCalls(tape);
  const handed = new Map<TapeCall, Promise<Handed>>();
  const handedFor = (call: TapeCall) => {
    const known = handed.get(call) ?? handOver(call);
    handed.set(call, known);
    return known;
  };
  let next = 0;
  const model = scriptedModel(async (asked): Promise<ScriptedReply> => {
    const now = toHanded(asked as RecordedCall);
    const order = [...recorded.keys()].map((_, i) => (next + i) % Math.max(1, recorded.length));
    for (const at of order) {
      const one = recorded[at];
      if (one === undefined || !sameJson(await handedFor(one.call), now)) continue;
      next = at + 1;
      return replyOf(one.said);
    }
    const place = recorded[next];
    if (place === undefined)
      throw new PerdureError("bad_state", `The tape has ${recorded.length} model calls, and this is one more.`);
    const { turn, step } = place.call;
    const difference = firstDifference(await handedFor(place.call), now);
    const words = describeDifference({ ...(difference as Difference), at: `call of turn ${turn}, step ${step}` });
    if (!changes.includes(words)) changes.push(words);
    if (match === "strict")
      throw new PerdureError("bad_state", `The tape has no answer to this. The nearest is the ${words}.`);
    next++;
    return replyOf(place.said);
  });
  return Object.assign(model, { changes });
}

/** What came of a replay. */
export interface Replay {
  /** What has happened this time, as a tape. */
  readonly tape: Tape;
  /** Where it parts from the tape; undefined: it does not. */
  readonly difference: TapeDifference | undefined;
  /** The same in words, or why the tape had no answer; empty where there is none. */
  readonly text: string;
  /** What requests had that the tape has not. */
  readonly changes: readonly string[];
}

/** How a tape is replayed. */
export interface ReplayOptions extends TapeMatch {
  /** The classes of the app, by the names that it serves them under. */
  readonly agents: Readonly<Record<string, new (host: AgentHost) => Think>>;
  /** `recorded`: tools answer from the tape, by name and input, and none runs. `live`: they run. Default: `recorded`. */
  readonly tools?: "recorded" | "live";
}

/**
 * Plays the user's part of a tape to the agent of now, in memory: says what was said, gives the answers to its questions, and lets the tape
 * be its model and its tools. Never reaches a model or, with recorded tools, anything else.
 * @throws PerdureError `bad_config` when the class is not among `agents`, or has actions that would run
 */
export async function replay(
  tape: Tape,
  { agents, tools = "recorded", match = "strict" }: ReplayOptions,
): Promise<Replay> {
  const { head } = tape;
  const name = head.agent.split("/").at(-2) ?? "";
  const Class = agents[name];
  if (Class === undefined)
    throw new PerdureError("bad_config", `The tape is of the class ${name}, which is not in agents.`);
  const model = tapeModel(tape, { match });
  const outputs = recordedOutputs(tape);
  let port: AgentHost | undefined;
  const classes = {
    [name]: class extends (Class as new (host: AgentHost) => Think) {
      constructor(host: AgentHost) {
        super(host);
        port = host;
      }
      override getModel() {
        return model;
      }
      override async getTools(): Promise<ToolSet> {
        const own = await super.getTools();
        return tools === "live" ? own : withRecorded(own, outputs);
      }
      override async getActions() {
        const own = await super.getActions();
        if (tools === "live" || Object.keys(own).length === 0) return own;
        throw new PerdureError("bad_config", 'This agent has actions, which would run. Replay it with tools: "live".');
      }
    },
  };
  const host = createHost({ agents: classes, storage: memoryStorage(), log: false });
  try {
    const agent = host.getAgentByName(classes[name] as new (host: AgentHost) => Think, "replay");
    for (const event of tape.events) {
      if (event.t === "answer") await agent.answerApproval(event.toolCallId, event.approved);
      else if (event.t === "turn" && event.trigger !== "continuation")
        await agent.runTurn({ input: event.messages as never });
      if (event.t === "answer" || event.t === "end") await agent.waitUntilStable();
    }
    const rows = port as AgentHost | undefined;
    if (rows === undefined) throw new PerdureError("bad_input", "The tape has no turn.");
    const lines: string[] = [];
    for await (const line of tapeOf((read) => read(rows), head.agent, "main")) lines.push(JSON.stringify(line));
    const played = parseTape(lines.join("\n"), "The replay");
    const difference = diffTapes(tape, played);
    const [miss] = match === "strict" ? model.changes : [];
    const text = miss ?? (difference === undefined ? "" : describeDifference(difference));
    return { tape: played, difference, text, changes: model.changes };
  } finally {
    await host.stop();
  }
}

/**
 * Holds a conversation to a prompt that providers can cache: each call must begin with all of the call before, tools and instructions
 * included. @throws PerdureError `bad_state`, which names the first call that does not, and where
 */
export function promptLock(tape: Tape): void {
  let before: TapeCall | undefined;
  for (const event of tape.events) {
    if (event.t !== "call") continue;
    const diff = before && diffRequests(before, event);
    before = event;
    if (diff === undefined || diff.extends) continue;
    const [difference] = diff.differences;
    const at = `call of turn ${event.turn}, step ${event.step}`;
    const words = describeDifference({ ...(difference as Difference), at });
    throw new PerdureError("bad_state", `A provider must read this anew: ${words}.`);
  }
}

interface Recorded {
  readonly call: TapeCall;
  readonly said: TapeSaid;
}

function recordedCalls({ events }: Tape): Recorded[] {
  return events.flatMap((event, i) => {
    const said = events[i + 1];
    return event.t === "call" && said?.t === "said" ? [{ call: event, said }] : [];
  });
}

function replyOf({ text, reasoning, toolCalls, usage }: TapeSaid): ScriptedReply {
  return {
    ...(reasoning !== undefined && { reasoning }),
    ...(text !== undefined && { text }),
    ...(toolCalls !== undefined && { toolCalls }),
    usage,
  };
}

/** What a provider is handed. */
interface Handed {
  readonly prompt: ModelPrompt;
  readonly tools: readonly object[];
}

function toHanded({ prompt, tools }: Pick<RecordedCall, "prompt" | "tools">): Handed {
  const shown = tools.map((one) => JSON.parse(JSON.stringify(one)) as object);
  return { prompt: JSON.parse(JSON.stringify(prompt)) as ModelPrompt, tools: shown };
}

/** What a provider was handed for a recorded call, as the AI SDK makes it. */
async function handOver({ instructions, tools, messages }: TapeCall): Promise<Handed> {
  const probe = scriptedModel(["-"]);
  const set = Object.fromEntries(
    Object.entries(tools as Record<string, { inputSchema?: object }>).map(([name, shown]) => [
      name,
      toTool({ ...shown, inputSchema: jsonSchema(shown.inputSchema ?? {}) } as never),
    ]),
  ) as ToolSet;
  const { stream } = await experimental_streamLanguageModelCall({
    ...{ model: probe, messages, ...(Object.keys(set).length > 0 && { tools: set }), allowSystemInMessages: true },
    ...(instructions !== null && { instructions }),
  } as never);
  for await (const _ of stream) continue;
  return toHanded(probe.calls[0] ?? { prompt: [], tools: [] });
}

function recordedOutputs({ events }: Tape): TapeTool[] {
  return events.filter((event) => event.t === "tool");
}

/** Tools that answer as they did. The first with the same name and input answers, once. */
function withRecorded(tools: ToolSet, outputs: TapeTool[]): ToolSet {
  return Object.fromEntries(
    Object.entries(tools).map(([name, own]) => {
      if (own.execute === undefined) return [name, own];
      const execute = (input: unknown) => {
        const at = outputs.findIndex((one) => one.toolName === name && sameJson(one.input, input));
        const [found] = at === -1 ? [] : outputs.splice(at, 1);
        if (found === undefined) throw new Error(missOf(name, input, outputs));
        if (found.error !== undefined) throw new Error(found.error);
        return found.output;
      };
      return [name, { ...own, execute }];
    }),
  ) as ToolSet;
}

function missOf(name: string, input: unknown, outputs: readonly TapeTool[]): string {
  const nearest = outputs.find(({ toolName }) => toolName === name);
  if (nearest === undefined) return `The tape has no call of ${name} left.`;
  const difference = firstDifference(nearest.input, input) ?? { path: "", before: nearest.input, after: input };
  const words = describeDifference({ ...difference, at: `call ${nearest.toolCallId} of ${name}` });
  return `The tape has no such call. The nearest is the ${words}.`;
}
