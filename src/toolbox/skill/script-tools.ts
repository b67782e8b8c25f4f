import type { Tool } from "ai";
import { loadAiSdk } from "../../base/ai-sdk.ts";
import { PerdureError } from "../../base/error.ts";
import type { HostCall, Json } from "../sandbox/sandbox.ts";

/** A tool that scripts may call: one of the AI SDK's, or a function of one argument. */
export type ScriptTool = Tool | ((args: unknown, call: { readonly signal: AbortSignal }) => unknown);

/**
 * Calls a tool for a script. What it throws is the script's to read, and what it returns is JSON by then.
 * @throws PerdureError `bad_input` for a tool that is not there, and for arguments that its schema refuses
 */
export async function callScriptTool(
  tools: Readonly<Record<string, ScriptTool>>,
  name: unknown,
  args: Json,
  call: HostCall,
): Promise<Json | undefined> {
  const value = await run(tools, name, args, call);
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as Json);
}

async function run(
  tools: Readonly<Record<string, ScriptTool>>,
  name: unknown,
  args: Json,
  call: HostCall,
): Promise<unknown> {
  const tool = typeof name === "string" && Object.hasOwn(tools, name) ? tools[name] : undefined;
  if (tool === undefined) {
    const names = Object.keys(tools);
    const there = names.length === 0 ? "This runner gives scripts no tools." : `There are: ${names.join(", ")}.`;
    throw new PerdureError("bad_input", `There is no tool "${String(name)}". ${there}`);
  }
  if (typeof tool === "function") return tool(args, { signal: call.signal });
  const { needsApproval, execute } = tool as { needsApproval?: unknown; execute?: Tool["execute"] };
  if (execute === undefined || (needsApproval !== undefined && needsApproval !== false)) {
    throw new PerdureError("not_allowed", `"${String(name)}" needs approval, so a script cannot call it.`);
  }
  const { asSchema } = await loadAiSdk();
  const checked = await asSchema(tool.inputSchema).validate?.(args);
  if (checked?.success === false) {
    throw new PerdureError("bad_input", `The arguments of "${String(name)}" are wrong: ${checked.error.message}`);
  }
  const options = { toolCallId: `script-${call.call}`, messages: [], abortSignal: call.signal, context: {} };
  return execute(checked?.value ?? args, options);
}
