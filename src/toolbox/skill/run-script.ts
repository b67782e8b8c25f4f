import { printedText } from "../sandbox/printed.ts";
import type { BashMount } from "../sandbox/bash/file-calls.ts";
import type { BashRunRequest, BashSandbox } from "../sandbox/bash/bash-sandbox.ts";
import { MemoryFiles } from "../sandbox/memory-files.ts";
import { shellWord } from "../sandbox/process/profile.ts";
import type { HostFunction, RunResult } from "../sandbox/sandbox.ts";
import { PerdureError } from "../../base/error.ts";
import { extensionOf, textOfBytes } from "./resource-path.ts";
import { failureText, type ScriptRights } from "./run-function.ts";
import { MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, ScriptOutput } from "./script-output.ts";
import { callScriptTool } from "./script-tools.ts";
import type { Skill, SkillScriptCall, SkillScriptResult } from "./types.ts";

export const shellExtensions = [".sh", ".bash", ".py"] as const;

const MAX_PRINTED = 64_000;
const MAX_SKILL_FILES = 64 << 20;

/**
 * Runs a script in Bash or Python, which finds `/input.json`, `/context.json`, the skill in `/skill`, room for outputs in
 * `/output`, and the workspace, if allowed, in `/workspace`. Never rejects for anything that it does.
 */
export async function runScript(
  sandbox: BashSandbox,
  call: SkillScriptCall,
  rights: ScriptRights,
): Promise<SkillScriptResult> {
  const { skill, script, signal } = call;
  const python = extensionOf(script) === ".py";
  const input = JSON.stringify(call.input ?? null);
  const context = contextOf(skill, rights);
  const root = new MemoryFiles({ files: { "/input.json": input, "/context.json": JSON.stringify(context) } });
  // A little more than is taken over, so that what is too large is named and not only refused.
  const output = new MemoryFiles({ maxBytes: 2 * MAX_ARTIFACTS * MAX_ARTIFACT_BYTES, maxEntries: 4 * MAX_ARTIFACTS });
  const returned = new MemoryFiles({ maxBytes: 4 << 20, maxEntries: 4 });
  const mounts: BashMount[] = [
    { path: "/skill", fs: await filesOf(skill), mode: "read" },
    { path: "/output", fs: output, mode: "read-write" },
    { path: "/returned", fs: returned, mode: "read-write" },
    ...(rights.files === undefined ? [] : [{ path: "/workspace", ...rights.files }]),
  ];
  const request: BashRunRequest = {
    language: python ? "python" : "bash",
    code: python ? pythonCode(script) : `bash ${shellWord(`/skill/${script}`)}`,
    cwd: "/skill",
    stdin: input,
    mounts,
    can: {
      files: { fs: root, mode: "read" },
      env: { SKILL: "/skill", OUTPUT: "/output", INPUT: "/input.json" },
      network: rights.network,
      ...(Object.keys(rights.tools).length > 0 && { tools: { tools: hostTools(rights) } }),
    },
    limits: { wallMs: rights.timeoutMs, outputBytes: 4 << 20 },
    signal,
  };
  return resultOf(await sandbox.run(request), output, returned, rights.timeoutMs);
}

function hostTools({ tools }: ScriptRights): Record<string, HostFunction> {
  const call =
    (name: string): HostFunction =>
    (args, host) =>
      callScriptTool(tools, name, args ?? null, host);
  return Object.fromEntries(Object.keys(tools).map((name) => [name, call(name)]));
}

function contextOf(skill: Skill, rights: ScriptRights): Record<string, unknown> {
  return {
    skill: { name: skill.name, description: skill.description, metadata: skill.metadata },
    files: skill.resources.map(({ path }) => path),
    workspace: rights.files === undefined ? null : { path: "/workspace", mode: rights.files.mode },
    tools: Object.keys(rights.tools),
    output: "/output",
  };
}

async function filesOf(skill: Skill): Promise<MemoryFiles> {
  const files: Record<string, Uint8Array | string> = { "/SKILL.md": skill.instructions };
  for (const { path } of skill.resources) files[`/${path}`] = await skill.read(path);
  return new MemoryFiles({ files, maxBytes: MAX_SKILL_FILES, maxEntries: 5_000 });
}

/** Calls `run(input, ctx)` where the script has such a function, and runs it as a program where it has none. */
function pythonCode(script: string): string {
  return `import ast, json, linecache, sys, traceback
path = ${JSON.stringify(`/skill/${script}`)}
sys.path[:0] = ["/host/skill/scripts", "/host/skill"]
with open(path, encoding="utf-8") as file:
    source = file.read()
linecache.cache[path] = (len(source), None, source.splitlines(True), path)

class Context(dict):
    def __getattr__(self, name):
        if name in self: return self[name]
        raise AttributeError(name)

def call():
    tree = compile(source, path, "exec", ast.PyCF_ONLY_AST)
    is_function = any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body)
    space = {"__name__": "skill_script" if is_function else "__main__", "__file__": path, "__builtins__": __builtins__}
    sys.argv = [path]
    exec(compile(source, path, "exec"), space)
    if not is_function: return
    with open("/context.json", encoding="utf-8") as file: ctx = json.load(file, object_hook=Context)
    with open("/input.json", encoding="utf-8") as file: given = json.load(file)
    result = space["run"](given, ctx)
    with open("/returned/result.json", "w", encoding="utf-8") as file: json.dump(result, file)

try:
    call()
except SystemExit:
    raise
except BaseException as error:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path: trace = trace.tb_next
    traceback.print_exception(error.with_traceback(trace))
    sys.exit(1)
`;
}

async function resultOf(
  result: RunResult,
  output: MemoryFiles,
  returned: MemoryFiles,
  timeoutMs: number,
): Promise<SkillScriptResult> {
  const kept = new ScriptOutput();
  const left: string[] = [];
  for (const { path, bytes } of output.files()) {
    try {
      kept.add(path.slice(1), bytes);
    } catch (thrown) {
      left.push(PerdureError.is(thrown) ? thrown.message : path);
    }
  }
  const [stdout, stderr] = [printedText(result, "stdout", MAX_PRINTED), printedText(result, "stderr", MAX_PRINTED)];
  const rest = { stdout, stderr, ...(left.length > 0 && { logs: left }), artifacts: kept.list() };
  if (result.status !== "ok") return { ok: false, error: failureText(result, timeoutMs), ...rest };
  const exitCode = result.exitCode ?? 0;
  if (exitCode !== 0) return { ok: false, error: `The script ended with exit code ${exitCode}.`, exitCode, ...rest };
  const value = (await returned.stat("/result.json")) === null ? undefined : await valueOf(returned);
  return { ok: true, ...(value !== undefined && { result: value }), exitCode, ...rest };
}

async function valueOf(returned: MemoryFiles): Promise<unknown> {
  try {
    return JSON.parse(textOfBytes(await returned.readFileBytes("/result.json")) ?? "null");
  } catch {
    return undefined;
  }
}
