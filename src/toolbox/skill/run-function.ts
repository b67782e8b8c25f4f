import { fromBase64 } from "../../base/bytes.ts";
import { errorText, PerdureError } from "../../base/error.ts";
import { isRecord } from "../../base/json.ts";
import type { Egress, HostFunction, Json, RunResult, Sandbox, SandboxFiles } from "../sandbox/sandbox.ts";
import { extensionOf, textOfBytes } from "./resource-path.ts";
import { ScriptOutput } from "./script-output.ts";
import { callScriptTool, type ScriptTool } from "./script-tools.ts";
import type { Skill, SkillScriptCall, SkillScriptResult } from "./types.ts";

/** What a runner lets scripts do. */
export interface ScriptRights {
  readonly files?: { readonly fs: SandboxFiles; readonly mode: "read" | "read-write" };
  readonly tools: Readonly<Record<string, ScriptTool>>;
  readonly network?: Egress;
  readonly timeoutMs: number;
}

export const functionExtensions = [".js", ".mjs", ".ts", ".mts"] as const;

/** The text resources that a script gets with its call. */
const MAX_FILES_CHARS = 2_000_000;
const CPU_SHARE_MS = 15_000;

/** What the script's own sandbox runs: it makes `ctx`, calls the function, and gives its value. */
const glue = `const module = await import(input.script);
if (typeof module.default !== "function") throw new Error("The script must export default async function run(input, ctx).");
const base64 = (bytes) => {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
};
const ctx = {
  skill: input.skill,
  files: input.files,
  ...(input.workspace && { workspace: files }),
  tools: { names: input.tools, call: (name, args) => skill_host.call({ name, args: args === undefined ? null : args }) },
  output: {
    writeFile: async (name, content) => {
      const bytes = typeof content === "string" ? new TextEncoder().encode(content) : new Uint8Array(content);
      await skill_host.output({ name, base64: base64(bytes) });
    },
  },
};
return await module.default(input.input, ctx);`;

/** Runs a script that exports a function. Never rejects for anything that the script does. */
export async function runFunction(
  sandbox: Sandbox,
  { skill, script, input, signal }: SkillScriptCall,
  rights: ScriptRights,
): Promise<SkillScriptResult> {
  const output = new ScriptOutput();
  const { files, modules } = await textsOf(skill);
  const names = Object.keys(rights.tools);
  const about = { name: skill.name, description: skill.description, metadata: skill.metadata };
  const call: HostFunction = async (args, host) => {
    const { name, args: given } = recordOf(args);
    return callScriptTool(rights.tools, name, given ?? null, host);
  };
  const keep: HostFunction = (args) => {
    const { name, base64 } = recordOf(args);
    if (typeof base64 !== "string") throw new PerdureError("bad_input", "An output needs content.");
    output.add(name, fromBase64(base64));
    return undefined;
  };
  const { timeoutMs, network } = rights;
  const result = await sandbox.run({
    language: "js",
    code: glue,
    input: { script, input: asJson(input), skill: about, files, tools: names, workspace: rights.files !== undefined },
    modules,
    can: { tools: { skill_host: { call, output: keep } }, files: rights.files, network },
    limits: { wallMs: timeoutMs, cpuMs: Math.min(timeoutMs, CPU_SHARE_MS), toolBytes: 4 << 20 },
    signal,
  });
  return resultOf(result, output, timeoutMs);
}

/** The glue sends records, but a script may call what the glue calls. */
function recordOf(args: Json): Readonly<Record<string, Json | undefined>> {
  return isRecord(args) ? (args as Record<string, Json>) : {};
}

function asJson(input: unknown): Json {
  return (JSON.parse(JSON.stringify(input ?? null)) ?? null) as Json;
}

async function textsOf(skill: Skill): Promise<{ files: Record<string, string>; modules: Record<string, string> }> {
  const files = new Map<string, string>();
  let chars = 0;
  for (const { path, text, size } of skill.resources) {
    if (!text || chars + size > MAX_FILES_CHARS) continue;
    const content = textOfBytes(await skill.read(path));
    if (content === undefined) continue;
    chars += content.length;
    files.set(path, content);
  }
  const isModule = (path: string): boolean => functionExtensions.some((ending) => ending === extensionOf(path));
  return {
    files: Object.fromEntries(files),
    // Scripts may import each other.
    modules: Object.fromEntries([...files].filter(([path]) => isModule(path))),
  };
}

function resultOf(result: RunResult, output: ScriptOutput, timeoutMs: number): SkillScriptResult {
  const logs = result.logs.map(({ level, text }) => (level === "log" ? text : `${level}: ${text}`));
  const rest = { ...(logs.length > 0 && { logs }), artifacts: output.list() };
  if (result.status === "ok") return { ok: true, ...(result.value !== undefined && { result: result.value }), ...rest };
  return { ok: false, error: failureText(result, timeoutMs), ...rest };
}

/** Why a run gave nothing, for the model to read. */
export function failureText(result: RunResult, timeoutMs: number): string {
  switch (result.status) {
    case "error":
      return `The script failed: ${result.error.name}: ${result.error.message}`;
    case "limit":
      return result.limit === "wall"
        ? `The script was stopped: it did not end within ${timeoutMs} ms.`
        : `The script was stopped by a limit (${result.limit}): ${result.message}`;
    case "aborted":
      return "The script was stopped: the turn ended.";
    case "crashed":
      return `The sandbox failed: ${errorText(result.message)}`;
    default:
      return "The script did not end as a script ends.";
  }
}
