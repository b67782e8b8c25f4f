import { untilAborted } from "../base/abort.ts";
import { PerdureError } from "../base/error.ts";
import { newId } from "../base/id.ts";
import { type Clock, sleep, systemClock } from "../base/time.ts";
import { CONTINUE_PROMPT } from "../turn/step/continue-prompt.ts";
import type { Model, ModelCallOptions, ModelPrompt, ModelStreamPart, ModelTool } from "./model-types.ts";
import { finishReasonOf, toContent, toPieces, usageOf, type ScriptedReply } from "./scripted-reply.ts";

/** What a script is asked: the call, and where in the conversation its prompt stands. */
export interface ScriptedCall {
  /** Which call of this model object it is, from 0. Starts again with every process. */
  readonly index: number;
  /** How many user messages came before the last one. */
  readonly turn: number;
  /** How many assistant messages the prompt has after its last user message: the step of the turn, from 0. */
  readonly step: number;
  /** The text of the last user message; empty if there is none. */
  readonly userText: string;
  readonly prompt: ModelPrompt;
  readonly tools: readonly ModelTool[];
  /** All settings of the call, with the prompt and the tools. */
  readonly options: ModelCallOptions;
}

/** A call that was made, for assertions. */
export interface RecordedCall extends ScriptedCall {
  readonly kind: "generate" | "stream";
  /** How it ended: `aborted` by the signal or by a reader that left. A stream that nobody reads stays `running`. */
  readonly status: "running" | "finished" | "failed" | "aborted";
}

/**
 * The replies in order, or a function of the call. One that looks only at the prompt (`turn`, `step`, `userText`) also fits after
 * a restart, where a list begins anew. It may be slow; what it throws fails the model call.
 */
export type Script =
  | readonly (string | ScriptedReply)[]
  | ((call: ScriptedCall) => string | ScriptedReply | Promise<string | ScriptedReply>);

/** How a {@link scriptedModel} is named and how it keeps time. */
export interface ScriptedModelOptions {
  /** Measures `delayMs`; real time by default. */
  readonly clock?: Clock;
  /** For replies that do not have their own. */
  readonly delayMs?: number;
  readonly provider?: string;
  readonly modelId?: string;
}

/** A model of the AI SDK that plays a script and keeps a record. */
export interface ScriptedModel extends Model {
  /** All calls so far, oldest first. */
  readonly calls: readonly RecordedCall[];
}

/**
 * A language model for tests: no network, no chance, every call recorded. A call beyond the list fails with `bad_state`. An abort
 * ends a call with the signal's reason.
 */
export function scriptedModel(script: Script, options: ScriptedModelOptions = {}): ScriptedModel {
  const { clock = systemClock, provider = "scripted", modelId = "scripted" } = options;
  const calls: (RecordedCall & { status: RecordedCall["status"] })[] = [];

  function record(kind: RecordedCall["kind"], settings: ModelCallOptions) {
    const recorded = { ...describe(calls.length, settings), kind, status: "running" as RecordedCall["status"] };
    calls.push(recorded);
    const end = (status: RecordedCall["status"]): void => {
      if (recorded.status !== "running") return;
      recorded.status = status === "failed" && settings.abortSignal?.aborted === true ? "aborted" : status;
    };
    return { recorded, end };
  }

  /** The reply, unless the call fails or hangs before there is a first byte. */
  async function begin(call: ScriptedCall): Promise<ScriptedReply> {
    const signal = call.options.abortSignal;
    signal?.throwIfAborted();
    const reply = await untilAborted(ask(script, call), signal);
    if (reply.hang === "before") await untilAborted(new Promise<never>(() => undefined), signal);
    if (reply.error !== undefined && reply.errorAfter === undefined) throw reply.error;
    return { delayMs: options.delayMs, ...reply };
  }

  return {
    specificationVersion: "v4",
    provider,
    modelId,
    supportedUrls: {},
    calls,
    async doGenerate(settings) {
      const { recorded, end } = record("generate", settings);
      try {
        const reply = await begin(recorded);
        for await (const part of play(reply, settings, clock)) if (part.type === "error") throw part.error;
        end("finished");
        return {
          content: toContent(reply),
          finishReason: { unified: finishReasonOf(reply), raw: undefined },
          usage: usageOf(reply, settings.prompt),
          warnings: [],
          response: { id: newId("response"), modelId, timestamp: new Date(clock.now()) },
        };
      } catch (error) {
        end("failed");
        throw error;
      }
    },
    async doStream(settings) {
      const { recorded, end } = record("stream", settings);
      try {
        const reply = await begin(recorded);
        const head: ModelStreamPart = {
          type: "response-metadata",
          id: newId("response"),
          modelId,
          timestamp: new Date(clock.now()),
        };
        return {
          stream: toStream((abortSignal) => play(reply, { ...settings, abortSignal }, clock, head), settings, end),
        };
      } catch (error) {
        end("failed");
        throw error;
      }
    },
  };
}

async function* play(
  reply: ScriptedReply,
  { abortSignal, prompt }: ModelCallOptions,
  clock: Clock,
  head?: ModelStreamPart,
): AsyncGenerator<ModelStreamPart> {
  yield { type: "stream-start", warnings: [] };
  if (head !== undefined) yield head;
  const { delayMs = 0, error, errorAfter = Infinity } = reply;
  const pieces = toPieces(reply);
  for (const piece of error === undefined ? pieces : pieces.slice(0, errorAfter)) {
    if (delayMs > 0) await sleep(clock, delayMs, abortSignal);
    abortSignal?.throwIfAborted();
    yield* piece;
  }
  if (reply.hang === true) await untilAborted(new Promise<never>(() => undefined), abortSignal);
  if (error !== undefined) {
    if (reply.errorAs === "cut") throw error;
    return yield { type: "error", error };
  }
  const finishReason = { unified: finishReasonOf(reply), raw: undefined };
  yield { type: "finish", finishReason, usage: usageOf(reply, prompt) };
}

/** `end` hears how the stream ended; the generator stops when the reader goes away. */
function toStream(
  start: (signal: AbortSignal) => AsyncGenerator<ModelStreamPart>,
  { abortSignal }: ModelCallOptions,
  end: (status: RecordedCall["status"]) => void,
): ReadableStream<ModelStreamPart> {
  const gone = new AbortController();
  const parts = start(abortSignal === undefined ? gone.signal : AbortSignal.any([abortSignal, gone.signal]));
  return new ReadableStream<ModelStreamPart>({
    async pull(controller) {
      try {
        const next = await parts.next();
        if (gone.signal.aborted) return;
        if (next.done === true) {
          controller.close();
          end("finished");
        } else {
          controller.enqueue(next.value);
          if (next.value.type === "error") end("failed");
        }
      } catch (error) {
        if (gone.signal.aborted) return;
        controller.error(error);
        end("failed");
      }
    },
    cancel(reason) {
      gone.abort(reason);
      end("aborted");
    },
  });
}

async function ask(script: Script, call: ScriptedCall): Promise<ScriptedReply> {
  const reply = typeof script === "function" ? await script(call) : script[call.index];
  if (reply === undefined) {
    const length = typeof script === "function" ? "no reply" : `${script.length} replies`;
    throw new PerdureError("bad_state", `The script has ${length} and this is call ${call.index + 1}: add a reply.`);
  }
  return typeof reply === "string" ? { text: reply } : reply;
}

function describe(index: number, options: ModelCallOptions): ScriptedCall {
  const { tools = [] } = options;
  const prompt = beforeTheCut(options.prompt);
  const last = prompt.findLastIndex((message) => message.role === "user");
  const turn = Math.max(0, prompt.filter((message) => message.role === "user").length - 1);
  const step = prompt.slice(last + 1).filter((message) => message.role === "assistant").length;
  const message = prompt[last];
  const content = message?.role === "user" ? message.content : [];
  const userText = content.map((part) => (part.type === "text" ? part.text : "")).join("");
  return { index, turn, step, userText, prompt: options.prompt, tools, options };
}

/** Without the part of an answer that was cut off and the request to go on with it: the same question is asked again. */
function beforeTheCut(prompt: ModelPrompt): ModelPrompt {
  const last = prompt.at(-1);
  const asked =
    last?.role === "user" && last.content.some((part) => part.type === "text" && part.text === CONTINUE_PROMPT);
  return asked ? prompt.slice(0, -2) : prompt;
}
