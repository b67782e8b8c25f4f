import { PerdureError } from "../../../base/error.ts";
import { type Capabilities, type HostFunction, type Json, type Limits, SUSPEND } from "../sandbox.ts";
import { answerFileCall, type BashMount, exactBytes } from "./file-calls.ts";
import type { Call, FetchCall, ToolCall } from "./protocol.ts";

/** What the calls of one run are checked against. */
export interface CallScope {
  readonly can: Capabilities;
  readonly mounts: readonly BashMount[];
  readonly maxFileBytes: number;
  readonly limits: Pick<Limits, "toolCalls" | "toolBytes">;
  /** Aborts when the run ends. */
  readonly signal: AbortSignal;
  /** Host functions called and pages fetched. */
  toolCalls: number;
}

/** Does what the shell asks for, if it may. What it rejects with goes through {@link callErrorText}. */
export async function answerCall(call: Call, scope: CallScope): Promise<unknown> {
  if (call.kind === "file") return answerFileCall(call, scope.mounts, scope.maxFileBytes);
  const number = scope.toolCalls++;
  if (number >= scope.limits.toolCalls) {
    throw new PerdureError("limit", `No more than ${scope.limits.toolCalls} calls are allowed in one run.`);
  }
  return call.kind === "fetch" ? fetchFor(call, scope) : callTool(call, scope, number);
}

async function fetchFor(call: FetchCall, { can, signal }: CallScope): Promise<unknown> {
  if (can.network === undefined) throw new PerdureError("not_allowed", "There is no network here.");
  const { url, method, headers, body } = call;
  const got = await can.network.fetch(url, { method, headers, signal, body });
  return { status: got.status, headers: { ...got.headers }, url: got.url, body: exactBytes(got.body) };
}

async function callTool(call: ToolCall, scope: CallScope, number: number): Promise<unknown> {
  const tool = toolOf(scope.can, call.name);
  if (tool === undefined) {
    throw new PerdureError(
      "bad_input",
      `There is no tool "${call.name}". There are: ${toolNames(scope.can).join(", ")}.`,
    );
  }
  const { toolBytes } = scope.limits;
  if (call.args.length > toolBytes)
    throw new PerdureError("limit", `Arguments may have at most ${toolBytes} characters.`);
  const value = await tool(parseArgs(call), { signal: scope.signal, call: number });
  if (value === SUSPEND) {
    throw new PerdureError("not_allowed", `"${call.name}" must wait for a person, which a shell cannot do.`);
  }
  const text = JSON.stringify(value ?? null);
  if (text.length > toolBytes) throw new PerdureError("limit", `The result has more than ${toolBytes} characters.`);
  return text;
}

function parseArgs({ name, args }: ToolCall): Json {
  try {
    return JSON.parse(args) as Json;
  } catch {
    throw new PerdureError("bad_input", `The arguments of "${name}" are not JSON.`);
  }
}

/** `namespace.name` of each host function that the run may call. */
export function toolNames(can: Capabilities): string[] {
  return Object.entries(can.tools ?? {}).flatMap(([space, tools]) =>
    Object.keys(tools).map((name) => `${space}.${name}`),
  );
}

function toolOf(can: Capabilities, name: string): HostFunction | undefined {
  if (!toolNames(can).includes(name)) return undefined;
  const [space = "", ...rest] = name.split(".");
  return can.tools?.[space]?.[rest.join(".")];
}

const NAMED = /^E[A-Z0-9]{2,14}: /;

/** What the shell is told of a failure: messages that were written to be read, and nothing of any other. */
export function callErrorText(thrown: unknown, call: Call): string {
  if (PerdureError.is(thrown)) return thrown.message;
  // A host function may say what it likes; a file system of the host would tell its own paths.
  if (call.kind === "tool" && thrown instanceof Error) return thrown.message;
  if (call.kind === "file") {
    const name = thrown instanceof Error && NAMED.exec(thrown.message)?.[0];
    return `${name || "EIO: "}the file system refused it, '${call.path}'`;
  }
  return "The host could not do this.";
}
