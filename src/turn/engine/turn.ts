import type { ToolSet } from "ai";
import { defer } from "../../base/defer.ts";
import type { RecoveryFacts } from "../../base/event.ts";
import { takeChunk } from "../../message/admit.ts";
import { builderFrom, type MessageBuilder, newBuilder, standIn, toMessage } from "../../message/builder.ts";
import { applyChunk, isBoundary } from "../../message/fold.ts";
import { parseChunk } from "../../message/parse-chunk.ts";
import { askRepair, INTERRUPTED_TEXT, repairMessage, type RepairOptions } from "../../message/repair.ts";
import {
  isTerminal,
  isToolPart,
  type Part,
  toolName,
  toolParts,
  type UIMessage,
  type UIMessageChunk,
} from "../../message/types.ts";
import { newId } from "../../base/id.ts";
import { type Identity, readIdentity } from "../../base/identity.ts";
import type { AgentHost } from "../../port.ts";
import type { Transcript } from "../../session/transcript.ts";
import { insertCallId, isCallIdTaken } from "../../store/call-id.ts";
import { readStored } from "../../store/damaged.ts";
import { nameAnswer, type TurnRow } from "../../store/turn.ts";
import type { CallIdSource } from "./call-ids.ts";
import { checkChunk } from "./chunk-bounds.ts";
import type { SourceChunk } from "./by-stream.ts";
import { passWaiting } from "./history.ts";
import type { ChatErrorClassification } from "../../store/usage.ts";
import type { Origin } from "../policy.ts";
import type { ChatErrorContext, ChatErrorStage, ChatTurnOptions } from "../step/config.ts";
import { type LoggedChunk, StreamLog } from "./stream-log.ts";

/** Chunks that show nothing by themselves. */
const FRAME: ReadonlySet<string> = new Set(["start", "start-step", "finish-step", "finish"]);

/** How much an unsaved answer may grow, against what is saved, before a part's end saves it again. */
const SAVE_GROWTH = 0.5;

/** Chunks that settle something: they must survive the loss of power before anyone sees them. */
const FACTS: ReadonlySet<string> = new Set([
  "tool-input-available",
  "tool-output-available",
  "tool-output-error",
  "tool-output-denied",
  "tool-approval-request",
  "tool-approval-response",
]);

/**
 * How far an attempt is. `stopped`: for good. `stalled`: no chunk for too long, the turn goes on. `cleared`: its conversation is
 * gone, write nothing. `halted`: this life is over.
 */
type TurnState =
  | { readonly at: "silent" | "streaming" }
  | {
      readonly at: "cut";
      readonly why: "stopped" | "stalled" | "cleared" | "halted";
      /** Where it was before. */
      readonly from: "silent" | "streaming";
    };

/** What is cut stays so; only what leaves less of it counts after that. */
const WEIGHT = { stalled: 0, stopped: 0, cleared: 1, halted: 2 } as const;

/** Where a turn writes, and who hears of it. */
interface TurnSurroundings {
  readonly host: AgentHost;
  readonly transcripts: { of(session: string): Transcript };
  readonly output: { chunks(turn: TurnRow, chunks: readonly LoggedChunk[]): void };
  readonly origins: ReadonlyMap<string, Origin>;
}

/** A running turn. What enters by {@link Turn.take} is admitted, folded into the answer, logged and sent, in this order. */
export class Turn {
  readonly row: TurnRow;
  readonly origin: Origin;
  /** For whom it is run. */
  readonly identity: Identity | undefined;
  readonly abort = new AbortController();
  readonly builder: MessageBuilder;
  readonly log: StreamLog;
  readonly #host: AgentHost;
  readonly #transcript: Transcript;
  #filter: ((chunk: UIMessageChunk) => UIMessageChunk[]) | undefined;
  /** What came before there was anything to see; undefined after that. */
  #opening: SourceChunk[] | undefined = [];
  #named: boolean;
  #saved = 0;
  #unsaved = 0;
  /** Whether there is a word of it that clients can read. */
  #spoken = false;
  #state: TurnState = { at: "silent" };
  /** What it may call, once that is known; undefined where it does not run step by step. */
  tools: ToolSet | undefined;
  /** The interruption that it is carried on after. */
  incident: RecoveryFacts | undefined;
  /** Where calls were that another part stands for now. */
  readonly stoodIn = new Set<number>();
  /** Something is under way that takes its time without a chunk: it does not stall meanwhile. */
  busy = 0;
  /** Instead of the class's bound on the time without a chunk. */
  stallTimeoutMs: number | undefined;
  /** Called before the first chunk that anybody can see. */
  beforeFirstChunk: (() => void) | undefined;
  /** That bound has changed. */
  watchAnew: () => void = () => {};
  lastChunkAt: number;
  /** What clients have said about calls whose step is not over, by call: the first counts. */
  readonly #held = new Map<string, () => void>();
  #stepOpen = false;
  /** The type of the last chunk that an earlier attempt left. */
  readonly leftAt: string | undefined;
  /** Steps that earlier attempts have ended. */
  readonly stepsEnded: number;

  constructor({ host, transcripts, output, origins }: TurnSurroundings, row: TurnRow) {
    const transcript = transcripts.of(row.session);
    this.#host = host;
    this.#transcript = transcript;
    this.row = row;
    this.#named = row.answerId !== null;
    this.origin = origins.get(row.id);
    this.identity = readIdentity(row.identity);
    this.lastChunkAt = host.clock.now();
    this.builder = openAnswer(transcript, row);
    this.log = new StreamLog(host, row.seq, (chunks) => output.chunks(row, chunks));
    let leftAt: string | undefined;
    let stepsEnded = 0;
    for (const json of row.attempts > 0 ? this.log.read() : []) {
      const chunk = readLogged(json);
      if (chunk === undefined) continue;
      applyChunk(this.builder, chunk);
      leftAt = chunk.type;
      this.#stepOpen = isStepOpen(chunk, this.#stepOpen);
      if (chunk.type === "finish-step") stepsEnded++;
    }
    this.leftAt = leftAt;
    this.stepsEnded = stepsEnded;
    if (this.builder.started) this.#opening = undefined;
  }

  /** Whether clients can take its stream, or could when it was cut. */
  get streams(): boolean {
    return (this.#state.at === "cut" ? this.#state.from : this.#state.at) === "streaming";
  }

  /** Why the attempt was cut; undefined while it was not. */
  get cutBy(): Extract<TurnState, { at: "cut" }>["why"] | undefined {
    return this.#state.at === "cut" ? this.#state.why : undefined;
  }

  /** From now on clients can take its stream. @returns whether that is new. */
  open(): boolean {
    if (this.streams || this.cutBy === "cleared" || this.cutBy === "halted") return false;
    this.#state = this.#state.at === "cut" ? { ...this.#state, from: "streaming" } : { at: "streaming" };
    return true;
  }

  /** Ends the attempt. */
  cut(why: Extract<TurnState, { at: "cut" }>["why"], reason: unknown): void {
    const was = this.#state;
    if (was.at !== "cut") this.#state = { at: "cut", why, from: was.at };
    else if (WEIGHT[why] > WEIGHT[was.why]) this.#state = { ...was, why };
    if (why === "cleared") this.log.close();
    this.abort.abort(reason);
  }

  /** What ids its calls may have. */
  get callIds(): CallIdSource {
    const host = this.#host;
    const { builder, row } = this;
    return { builder, turn: row.seq, isTakenElsewhere: (id) => isCallIdTaken(host, id, builder.id) };
  }

  get continuation(): boolean {
    return this.row.continuation === 1;
  }

  /** The answer as it is now. */
  get message(): UIMessage {
    return toMessage(this.builder);
  }

  /** What the client sent along with it, as far as that can be read. */
  sentAlong(): Pick<ChatTurnOptions, "body" | "clientTools"> {
    const { id, body, clientTools, messageIds } = this.row;
    const read = (stored: string | null, what: string) => readStored(this.#host, stored, `${what} the turn ${id}`);
    // Read elsewhere, where nobody could be told.
    read(messageIds, "the messages of");
    return {
      body: read(body, "what came along with") as ChatTurnOptions["body"],
      clientTools: read(clientTools, "the tools of the client of") as ChatTurnOptions["clientTools"],
    };
  }

  /** What `onChatError` is told. */
  failure(stage: ChatErrorStage, classification?: ChatErrorClassification): ChatErrorContext {
    const partial = this.empty ? undefined : this.message;
    const { identity, row } = this;
    return { stage, requestId: row.id, identity, messagesPersisted: true, classification, partial };
  }

  /** Whether there is nothing of the answer yet that anybody could read. */
  get empty(): boolean {
    return this.builder.inherited === 0 && !hasContent(this.builder);
  }

  /** From now on chunks come from another attempt, and are fitted behind what is there. */
  carryOn(repair: RepairOptions): void {
    this.close(repair);
    if (this.builder.started) this.#filter = continuationFilter(this.builder);
  }

  /** Something takes its time without a chunk: until the scope is left, the turn does not stall. */
  working(): Disposable {
    this.busy++;
    return defer(() => {
      this.busy--;
      this.lastChunkAt = this.#host.clock.now();
    });
  }

  /** Closes what a cut stream left open; an open text stays. */
  close(repair: RepairOptions): void {
    const others = new Map<string, Part>();
    const chunks = closingChunks(this.builder, repair, (toolCallId, part) => others.set(toolCallId, part));
    for (const chunk of chunks) this.#put(chunk);
    for (const [toolCallId, part] of others) this.standIn(toolCallId, part);
  }

  /** Puts what the app made of a call that was cut off in its place. Clients have the call with its error until the end. */
  standIn(toolCallId: string, part: Part): void {
    const index = standIn(this.builder, toolCallId, part);
    if (index !== undefined) this.stoodIn.add(index);
  }

  /** The log knows only that calls were cut off: asks again what stands in their places. */
  standInAgain(repair: RepairOptions): void {
    const { message } = this;
    for (const part of toolParts({ ...message, parts: this.builder.parts.slice(this.builder.inherited) })) {
      if (part.state !== "output-error" || part.errorText !== INTERRUPTED_TEXT) continue;
      const { errorText: _errorText, ...call } = part;
      const own = askRepair({ ...call, state: "input-available" }, message, repair);
      if (own !== undefined && !isToolPart(own)) this.standIn(part.toolCallId, own);
    }
  }

  /** Whether a call is in the step under way: nobody knows yet who runs it. */
  isInOpenStep(toolCallId: string): boolean {
    const { tools, inherited, stepAt } = this.builder;
    const at = tools.get(toolCallId)?.index ?? -1;
    return this.#stepOpen && at >= inherited && at >= stepAt;
  }

  /** Keeps a client's answer to a call, in memory, until its step is over. @returns false when there is one: the first counts */
  hold(toolCallId: string, apply: () => void): boolean {
    if (this.#held.has(toolCallId)) return false;
    this.#held.set(toolCallId, apply);
    return true;
  }

  /** Applies held answers once the step is over and shows whose call it is. A result of the server refuses the client's. */
  releaseHeld(): void {
    if (this.#stepOpen || this.#held.size === 0) return;
    const held = [...this.#held.values()];
    this.#held.clear();
    for (const apply of held) apply();
  }

  /** Nothing more comes: no step is under way. */
  endStep(): void {
    this.#stepOpen = false;
  }

  /** Ends texts that are still open. */
  endTexts(): void {
    for (const id of [...this.builder.openText.keys()]) this.#put({ type: "text-end", id });
  }

  /** Takes a chunk of the model. @returns whether the producer should let others have a turn. */
  take({ chunk, json }: SourceChunk): boolean {
    this.lastChunkAt = this.#host.clock.now();
    if (chunk.type === "abort") return false;
    if (this.#filter !== undefined) {
      let crowded = false;
      for (const fitted of this.#filter(chunk))
        crowded = this.#put(fitted, fitted === chunk ? json : undefined) || crowded;
      return crowded;
    }
    // Clients show a message from its `start` on. It waits for something to see, so that a turn that is stopped or
    // fails before that leaves no empty message on any screen.
    if (this.#opening !== undefined) {
      this.#opening.push({ chunk, json });
      if (FRAME.has(chunk.type)) return false;
      const opening = this.#opening;
      this.#opening = undefined;
      if (opening[0]?.chunk.type !== "start") this.#put({ type: "start" });
      let crowded = false;
      for (const one of opening) crowded = this.#put(one.chunk, one.json) || crowded;
      return crowded;
    }
    return this.#put(chunk, json);
  }

  /** Notes what a client answered while the stream runs. The answer has been applied already. */
  note(chunks: readonly UIMessageChunk[]): void {
    for (const chunk of chunks) this.log.append(JSON.stringify(chunk), { keep: true, level: "sync" });
    this.save();
  }

  /** Stores the answer as it is, with what is pending in the log. */
  save(): void {
    this.#saveSoon();
    this.log.flush();
  }

  /**
   * Stores the answer at the next flush. What a continuation adds is otherwise in the log alone until its end, and a page that
   * comes meanwhile can go on only with the message as it was before.
   */
  #saveSoon(): void {
    if (!this.#named && !this.continuation) this.#name();
    else if (!this.continuation) this.log.also(() => this.#write());
    this.#saved += this.#unsaved;
    this.#unsaved = 0;
  }

  #put(chunk: UIMessageChunk, json?: string): boolean {
    let crowded = false;
    this.beforeFirstChunk?.();
    this.beforeFirstChunk = undefined;
    const options = {
      continuation: this.continuation,
      isTaken: (id: string) => this.#transcript.role(id) !== undefined,
    };
    const whole = json ?? JSON.stringify(chunk);
    checkChunk(this.builder, chunk, whole.length);
    const isNewCall = "toolCallId" in chunk && !this.builder.tools.has(chunk.toolCallId);
    for (const admitted of takeChunk(this.builder, chunk, options)) {
      const body = admitted === chunk ? whole : JSON.stringify(admitted);
      const keep = !("transient" in admitted && admitted.transient === true);
      crowded = this.log.append(body, { keep, level: isFact(admitted) ? "sync" : "commit" }) || crowded;
      this.#unsaved += body.length;
      this.#stepOpen = isStepOpen(admitted, this.#stepOpen);
      // Together with the chunk: nobody has seen an id that another call may get.
      if (isNewCall && "toolCallId" in admitted) this.log.also(() => this.#noteCall(admitted.toolCallId));
      if (admitted.type === "start") this.#name();
      else if (admitted.type === "tool-approval-request") this.save();
      else if (this.#unsaved > this.#saved * SAVE_GROWTH && isBoundary(admitted)) this.#saveSoon();
      // The first word leaves alone: what comes after it in the same breath does not hold it up.
      if (!this.#spoken && "delta" in admitted) {
        this.#spoken = true;
        this.log.flush();
      }
    }
    return crowded;
  }

  #noteCall(toolCallId: string): void {
    insertCallId(this.#host, toolCallId, this.builder.id);
  }

  /** The answer exists from its first chunk on, under the id that clients are told: both are in one commit. */
  #name(): void {
    this.log.also(() => {
      nameAnswer(this.#host, this.row.seq, this.builder.id, this.builder.inherited);
      if (this.continuation) return;
      this.#write();
      passWaiting(this.#host, this.#transcript, this.row, this.builder.id);
    });
    this.#named = true;
  }

  /** In the transaction of a flush. */
  #write(): void {
    this.#host.afterTx((committed) => {
      // What was undone is still in memory, under a number that the next message gets.
      if (!committed) this.#transcript.reload();
    });
    this.#transcript.put(this.message, this.row.identity);
  }
}

/** What settles something. An output that is not the last one settles nothing. */
function isFact(chunk: UIMessageChunk): boolean {
  return FACTS.has(chunk.type) && !("preliminary" in chunk && chunk.preliminary === true);
}

/** Whether a step with calls is under way behind a chunk. */
function isStepOpen({ type }: UIMessageChunk, before: boolean): boolean {
  if (type === "tool-input-start" || type === "tool-input-available") return true;
  return before && type !== "finish-step" && type !== "finish";
}

/** A row that is damaged costs what it held, not the turn. */
function readLogged(json: string): UIMessageChunk | undefined {
  try {
    return parseChunk(JSON.parse(json));
  } catch {
    return undefined;
  }
}

function openAnswer(transcript: Transcript, row: TurnRow): MessageBuilder {
  if (row.continuation === 0) return newBuilder(row.answerId ?? newId("msg"));
  const base = row.answerId === null ? undefined : transcript.get(row.answerId);
  if (base?.role !== "assistant") return newBuilder(row.answerId ?? newId("msg"));
  // What an earlier attempt had added is in the log, and comes from there again.
  return builderFrom({ ...base, parts: base.parts.slice(0, row.baseParts) });
}

/*
 * Carrying on a stream that was cut
 *
 * The log is the truth: clients have seen it. A second attempt starts no stream of its own; its chunks are fitted behind those of
 * the first. An open text goes on in the same part, reasoning ends, a tool call without a result gets the error that it was
 * interrupted, and a repeated start of the message is left out.
 */

/** Chunks that close a cut stream, except open text. `replaced`: is told of calls that another part stands for. */
export function closingChunks(
  builder: MessageBuilder,
  options: RepairOptions = {},
  replaced: (toolCallId: string, part: Part) => void = () => {},
): UIMessageChunk[] {
  const chunks: UIMessageChunk[] = [];
  for (const id of builder.openReasoning.keys()) chunks.push({ type: "reasoning-end", id });
  const message: UIMessage = { id: builder.id, role: "assistant", parts: builder.parts };
  for (const part of builder.parts) {
    if (!isToolPart(part) || isTerminal(part)) continue;
    const isCut = part.state === "input-streaming" || options.isCut?.(part) === true;
    if (options.keepPending === true && !isCut) continue;
    const { toolCallId } = part;
    const ending = { ...options, keepPending: options.keepPending === true && !isCut };
    const [repaired] = repairMessage({ ...message, parts: [part] as UIMessage["parts"] }, ending).parts;
    if (part.state === "input-streaming") {
      const name = toolName(part);
      chunks.push({ type: "tool-input-available", toolCallId, toolName: name, input: part.input ?? {} });
    }
    if (repaired !== undefined && isToolPart(repaired) && repaired.state === "output-available") {
      chunks.push({ type: "tool-output-available", toolCallId, output: repaired.output });
    } else {
      const text = repaired !== undefined && isToolPart(repaired) ? repaired.errorText : undefined;
      chunks.push({ type: "tool-output-error", toolCallId, errorText: text ?? INTERRUPTED_TEXT });
      if (repaired !== undefined && !isToolPart(repaired)) replaced(toolCallId, repaired);
    }
  }
  return chunks;
}

/** Whether the cut stream brought anything that a model could go on from. */
export function hasContent(builder: MessageBuilder): boolean {
  return builder.parts.slice(builder.inherited).some((part) => {
    if (part.type === "text" || part.type === "reasoning") return part.text !== "";
    return part.type !== "step-start";
  });
}

/** Fits the chunks of a second attempt behind those of the first. One per attempt: it remembers. */
export function continuationFilter(builder: MessageBuilder): (chunk: UIMessageChunk) => UIMessageChunk[] {
  const [openId] = builder.openText.keys();
  const renamed = new Map<string, string>();
  let open = openId;
  // A step that had only just begun is the one that the second attempt begins with.
  let inStep = open !== undefined || builder.parts.at(-1)?.type === "step-start";
  return (chunk) => {
    switch (chunk.type) {
      case "start":
        return chunk.messageMetadata === undefined
          ? []
          : [{ type: "message-metadata", messageMetadata: chunk.messageMetadata }];
      case "start-step": {
        const first = !inStep;
        inStep = false;
        return first ? [chunk] : [];
      }
      case "text-start": {
        if (open === undefined) return [chunk];
        renamed.set(chunk.id, open);
        open = undefined;
        return [];
      }
      case "text-delta": {
        const id = renamed.get(chunk.id);
        return id === undefined ? [chunk] : [{ ...chunk, id }];
      }
      case "text-end": {
        const id = renamed.get(chunk.id);
        renamed.delete(chunk.id);
        return id === undefined ? [chunk] : [{ ...chunk, id }];
      }
      default: {
        if (open === undefined || !opensPart(chunk)) return [chunk];
        const end: UIMessageChunk = { type: "text-end", id: open };
        open = undefined;
        return [end, chunk];
      }
    }
  };
}

/** The model goes on with something else than the text that was cut. */
function opensPart(chunk: UIMessageChunk): boolean {
  return (
    chunk.type === "reasoning-start" ||
    chunk.type === "tool-input-start" ||
    chunk.type === "tool-input-available" ||
    chunk.type === "finish-step"
  );
}
