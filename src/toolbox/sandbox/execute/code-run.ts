import type { Tool } from "ai";
import { errorText, PerdureError } from "../../../base/error.ts";
import { newId } from "../../../base/id.ts";
import { cutMiddle } from "../../../message/cut-middle.ts";
import { cutText, cutValue } from "../../../message/cut-value.ts";
import { isRecord } from "../../../base/json.ts";
import type { DurableExecutionOptions } from "../../../tool/define.ts";
import { type NestedOutcome, type NestedQuestion, park, type ParkedCall } from "../../../tool/park.ts";
import { withoutTurn } from "../../../tool/runner.ts";
import {
  type CallAnswerInSandbox,
  type Egress,
  type HostFunction,
  type Json,
  type Limits,
  type LogLine,
  type OpenCall,
  type RunRequest,
  type RunResult,
  type Sandbox,
  type SandboxFiles,
  SUSPEND,
} from "../sandbox.ts";
import { type CatalogEntry, searchCatalog } from "./tool-catalog.ts";

/** What turns packages that code imports into modules. `createPackageBundler` makes one. */
export interface CodePackages {
  /** What can be imported. */
  readonly names: readonly string[];
  /** Rejects with a message for the model when the code imports what it may not. */
  bundle(
    code: string,
    language: "js" | "ts",
  ): Promise<{ readonly code: string; readonly modules?: Readonly<Record<string, string>> }>;
}

/** What the code that a model writes can do. What is absent it cannot. */
export interface ExecuteToolOptions {
  /**
   * The tools that code calls as `tools.name(args)`; those without `execute` are left out. A function is asked for the
   * description and per call.
   */
  readonly tools: Readonly<Record<string, Tool>> | (() => Readonly<Record<string, Tool>>);
  /** Where the code runs. Default: a QuickJS sandbox that all such tools of the process share. */
  readonly sandbox?: Sandbox;
  readonly limits?: Partial<Limits>;
  /** Gives the code `fetch`. */
  readonly network?: Egress;
  /** Gives the code `files`. What it writes there goes past the rules for tools: nobody is asked. */
  readonly workspace?: SandboxFiles;
  /** Default `read`. */
  readonly workspaceAccess?: "read" | "read-write";
  /** Packages that the code can import. */
  readonly packages?: CodePackages;
  /** What the model is told first, in the place of our own sentence. */
  readonly description?: string;
  /** Characters that the declarations of tools may take in the description. Default 12 000. Of the others names are given. */
  readonly maxDeclarationChars?: number;
}

/** What the model reads after the code has run. */
export interface ExecuteOutput {
  /** What the code returned. */
  readonly result?: Json;
  /** Why there is none. */
  readonly error?: string;
  /** What the code printed. */
  readonly logs?: string;
  readonly note?: string;
}

const LOG_LINES = 200;
const LOG_CHARS = 8_000;
const LONGEST_INPUT = 1_200;
const LONGEST_REASON = 400;
const LONGEST_RESULT = 2_000;

/** What `execute` leaves when a person has to be asked in the middle of its code. */
interface ParkedState {
  /** The call that the question is about. */
  readonly asked: OpenCall;
  /** Why other parked calls have to be asked about, by their number. */
  readonly questions: Readonly<Record<string, NestedQuestion>>;
  readonly logs: readonly LogLine[];
  readonly snapshot: Uint8Array;
}

const VERSION = 1;
const LENGTH_BYTES = 4;

function unasked(name: string): string {
  return (
    `"${name}" needs a person's approval, and there is no way to wait for one from inside of code here. ` +
    "Call it directly instead, as a tool of its own."
  );
}

interface CodeRunOptions {
  readonly options: ExecuteToolOptions;
  readonly sandbox: Sandbox;
  readonly tools: Readonly<Record<string, Tool>>;
  readonly catalog: readonly CatalogEntry[];
  /** Whether the model has read every declaration. */
  readonly complete: boolean;
  readonly handed: DurableExecutionOptions;
}

/** One call of the tool, from its start, or from where it was parked, to its end or the next question. */
export class CodeRun {
  readonly #given: CodeRunOptions;
  /** Why calls have to be asked about, by number. */
  readonly #questions = new Map<string, NestedQuestion>();
  #logs: LogLine[] = [];

  constructor(given: CodeRunOptions) {
    this.#given = given;
  }

  /** @throws PerdureError when the sandbox itself failed, or the turn was stopped */
  async run(code: string): Promise<ExecuteOutput | ParkedCall> {
    const { packages } = this.#given.options;
    let bundled: Pick<RunRequest, "code" | "modules"> = { code };
    try {
      if (packages !== undefined) bundled = await packages.bundle(code, "ts");
    } catch (thrown) {
      return { error: errorText(thrown) };
    }
    const { resumed } = this.#given.handed;
    if (resumed !== undefined) return this.#resume(resumed.state, bundled.modules);
    return this.#end(
      await this.#given.sandbox.run({ language: "ts", code: bundled.code, ...this.#request(bundled.modules) }),
    );
  }

  async #resume(bytes: Uint8Array, modules: RunRequest["modules"]): Promise<ExecuteOutput | ParkedCall> {
    const { sandbox } = this.#given;
    if (sandbox.resume === undefined) {
      throw new PerdureError("bad_config", `The sandbox "${sandbox.kind}" cannot resume a parked run.`);
    }
    const state = readParkedState(bytes);
    this.#logs = [...state.logs];
    for (const [call, question] of Object.entries(state.questions)) this.#questions.set(call, question);
    const { asked } = state;
    const outcome = await this.#callTool(asked.name, asked.args, asked.call, true, this.#signal());
    if (outcome.kind === "ask") return this.#question(asked, state.snapshot, outcome);
    const answer = this.#answerOf(asked.call, outcome);
    let result: RunResult;
    try {
      result = await sandbox.resume(state.snapshot, [answer], this.#request(modules));
    } catch (thrown) {
      // What was approved is done by now, and must not be lost together with the code.
      const done = answer.error ?? JSON.stringify(answer.value ?? null).slice(0, LONGEST_RESULT);
      return this.#output({
        error: `"${asked.name}" was approved and has run (it gave: ${done}), but the code cannot go on: ${errorText(thrown)}`,
      });
    }
    return this.#end(result);
  }

  #signal(): AbortSignal {
    return this.#given.handed.abortSignal ?? new AbortController().signal;
  }

  #request(modules: RunRequest["modules"]): Omit<RunRequest, "language" | "code"> {
    const { options, handed } = this.#given;
    const { network, workspace, workspaceAccess = "read", limits } = options;
    const functions = this.#functions();
    const files = workspace && { fs: workspace, mode: workspaceAccess };
    const can = { tools: { tools: functions, codemode: functions }, network, files };
    return { can, modules, limits, signal: handed.abortSignal };
  }

  #functions(): Record<string, HostFunction> {
    const { catalog, complete } = this.#given;
    const functions: Record<string, HostFunction> = {};
    if (!complete) {
      functions.search = (query) =>
        searchCatalog(catalog, typeof query === "string" ? query : "").map(({ name, summary }) => ({
          name,
          description: summary,
        }));
      functions.describe = (name) => {
        const found = catalog.find((entry) => entry.name === name);
        if (found === undefined) throw new PerdureError("not_found", `There is no tool ${JSON.stringify(name)}.`);
        return found.declaration;
      };
    }
    for (const { name } of catalog) {
      functions[name] = async (args, { call, signal }) => {
        const outcome = await this.#callTool(name, args, call, false, signal);
        if (outcome.kind === "ask") return this.#suspend(name, call, outcome);
        const answer = this.#answerOf(call, outcome);
        if (answer.error !== undefined) throw new PerdureError("call_failed", answer.error);
        return answer.value;
      };
    }
    return functions;
  }

  async #callTool(
    name: string,
    args: Json,
    index: number,
    approved: boolean,
    signal: AbortSignal,
  ): Promise<NestedOutcome> {
    const { tools, handed } = this.#given;
    const tool = Object.hasOwn(tools, name) ? tools[name] : undefined;
    if (tool === undefined) return { kind: "error", errorText: `There is no tool "${name}" any more.` };
    // Code calls a tool that needs nothing with nothing; schemas of tools are objects.
    const call = { toolName: name, tool, input: args ?? {}, index, signal, ...(approved && { approved }) };
    if (handed.turn !== undefined) return handed.turn.runNested(call);
    // Ids of providers come again in other turns: without a key of ours, no call is the same as another.
    const { toolCallId, messages, idempotencyKey = newId("call") } = handed;
    return withoutTurn(unasked, handed).nested({ toolCallId, name: "code", idempotencyKey }, messages).runNested(call);
  }

  #suspend(name: string, call: number, { reason, waitMs }: NestedQuestion): typeof SUSPEND {
    const { sandbox } = this.#given;
    if (!sandbox.supports.suspend || sandbox.resume === undefined) {
      throw new PerdureError(
        "not_allowed",
        `"${name}" needs a person's approval, and this sandbox cannot wait for one. Call it directly, as a tool.`,
      );
    }
    this.#questions.set(String(call), { reason, waitMs });
    return SUSPEND;
  }

  #answerOf(call: number, outcome: Exclude<NestedOutcome, { kind: "ask" }>): CallAnswerInSandbox {
    switch (outcome.kind) {
      case "output":
        return { call, value: (outcome.output ?? null) as Json };
      case "error":
        return { call, error: outcome.errorText };
      case "aborted":
        return { call, error: "The turn was stopped." };
    }
  }

  #end(result: RunResult): ExecuteOutput | ParkedCall {
    this.#logs.push(...result.logs);
    switch (result.status) {
      case "ok":
        if (result.value !== undefined) return this.#output({ result: result.value });
        return this.#output({ result: null, note: "The code returned nothing. Use `return` to see a value." });
      case "error":
        return this.#output({ error: `${result.error.name}: ${result.error.message}` });
      case "limit":
        return this.#output({ error: `The code was ended (limit: ${result.limit}). ${result.message}` });
      case "suspended": {
        const [asked] = result.calls;
        if (asked === undefined) throw new PerdureError("call_failed", "The sandbox parked the code without a reason.");
        return this.#question(asked, result.snapshot, this.#questions.get(String(asked.call)) ?? { reason: undefined });
      }
      case "aborted":
        this.#given.handed.abortSignal?.throwIfAborted();
        throw new PerdureError("call_failed", "The code was stopped.");
      case "crashed":
        throw new PerdureError("call_failed", `The sandbox failed, and the code did not finish: ${result.message}`);
    }
  }

  #question(asked: OpenCall, snapshot: Uint8Array, { reason, waitMs }: NestedQuestion): ParkedCall {
    this.#questions.delete(String(asked.call));
    const questions = Object.fromEntries(this.#questions);
    const state = writeParkedState({ asked, questions, logs: this.#logs, snapshot });
    const input = asked.args ?? {};
    // Who is asked sees the code, but not what its variables hold: a reason alone would be a yes to anything.
    // Long texts in it are cut, each with a note, so that none of them hides what comes behind.
    const shown = JSON.stringify(cutValue(input, LONGEST_INPUT));
    const why = reason === undefined ? "" : ` (${cutText(reason, LONGEST_REASON)})`;
    const summary = `The code wants to call "${asked.name}"${why} with ${shown}`;
    return park({ tool: asked.name, input, summary, waitMs, state });
  }

  #output(output: ExecuteOutput): ExecuteOutput {
    if (this.#logs.length === 0) return output;
    const lines = this.#logs.map(({ level, text }) =>
      level === "log" || level === "info" ? text : `[${level}] ${text}`,
    );
    const logs = cutMiddle(lines.join("\n"), LOG_LINES, LOG_CHARS, (chars) => `[… ${chars} characters left out …]`);
    return { ...output, logs };
  }
}

/** The state as bytes: the length of a JSON header, the header, the snapshot. */
function writeParkedState({ snapshot, ...head }: ParkedState): Uint8Array {
  const json = new TextEncoder().encode(JSON.stringify({ version: VERSION, ...head }));
  const bytes = new Uint8Array(LENGTH_BYTES + json.length + snapshot.length);
  new DataView(bytes.buffer).setUint32(0, json.length);
  bytes.set(json, LENGTH_BYTES);
  bytes.set(snapshot, LENGTH_BYTES + json.length);
  return bytes;
}

/** @throws PerdureError `bad_input` for what {@link writeParkedState} has not written */
function readParkedState(bytes: Uint8Array): ParkedState {
  try {
    const length = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0);
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(LENGTH_BYTES, LENGTH_BYTES + length));
    const head: unknown = JSON.parse(text);
    if (!isRecord(head) || head.version !== VERSION || !isRecord(head.asked)) throw new Error("another shape");
    const { asked, questions, logs } = head as unknown as Omit<ParkedState, "snapshot">;
    return { asked, questions, logs, snapshot: bytes.slice(LENGTH_BYTES + length) };
  } catch (thrown) {
    throw new PerdureError("bad_input", "The parked call cannot be read. Run the code again.", {
      cause: thrown,
    });
  }
}
