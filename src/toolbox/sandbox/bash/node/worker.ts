import { parentPort } from "node:worker_threads";
import { Bash, type BashOptions, decodeBytesToUtf8, defineCommand, InMemoryFs, MountableFs } from "just-bash";
import type { EgressResponse } from "../../sandbox.ts";
import type { ShellEnd } from "../outcome.ts";
import type { AnswerMessage, Call, RunMessage } from "../protocol.ts";
import { hostFiles } from "./host-files.ts";

type Ask = (call: Call) => Promise<unknown>;

/** What fits into `/tmp`, and into `/` when the host gave none. */
const SCRATCH_BYTES = 64 << 20;

/** The shell's own hardened profile, but for loops: it has a deadline and a thread of its own, and files have lines. */
const LOOPS = 50_000;

/** What commands may print altogether, into files and pipes too: the shell counts these alike. */
const WRITTEN_BYTES = 32 << 20;

const PYTHON_FILE = "/tmp/main.py";

/** The entry of a shell's worker thread: waits for a run, answers with its end. */
const port = parentPort;
if (port === null) throw new Error("This file runs in a worker thread.");
const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
let calls = 0;

port.on("message", (message: RunMessage | AnswerMessage) => {
  if (message.type === "answer") return answered(message);
  const { run } = message;
  runShell(message, (call) => ask(run, call)).then(
    (end) => port.postMessage({ type: "done", run, ...end }),
    (thrown: unknown) => {
      const text = thrown instanceof Error ? thrown.message : String(thrown);
      // Scripts and models read this; where the packages of the host are is not theirs to know.
      const message = text.replaceAll(/(file:\/\/)?\/\S*node_modules\S*|file:\/\/\S+/g, "<path>");
      port.postMessage({ type: "failed", run, message });
    },
  );
});
port.postMessage({ type: "ready" });

/** Asks the host, and waits for the answer. @throws Error with the host's message */
function ask(run: number, ask: Call): Promise<unknown> {
  const call = calls++;
  return new Promise((resolve, reject) => {
    waiting.set(call, { resolve, reject });
    port?.postMessage({ type: "call", run, call, ask });
  });
}

function answered({ call, value, error }: AnswerMessage): void {
  const open = waiting.get(call);
  waiting.delete(call);
  if (error === undefined) open?.resolve(value);
  else open?.reject(new Error(error));
}

/** Runs one script in a shell of its own. Nothing is left of it but what it wrote to the host's files. */
async function runShell(message: RunMessage, ask: Ask): Promise<ShellEnd> {
  const scratch = new InMemoryFs({}, { maxTotalBytes: SCRATCH_BYTES });
  const bash = new Bash({
    fs: shellFiles(message, ask, scratch),
    cwd: message.cwd,
    env: { HOME: "/", ...message.env },
    python: message.python,
    javascript: false,
    executionLimitProfile: "hardened",
    executionLimits: {
      maxExecutionTimeMs: message.wallMs,
      maxPythonTimeoutMs: message.wallMs,
      maxSqliteTimeoutMs: Math.min(message.wallMs, 10_000),
      maxOutputSize: Math.max(message.outputBytes, WRITTEN_BYTES),
      maxCommandCount: LOOPS,
      maxLoopIterations: LOOPS,
      maxAwkIterations: LOOPS,
      maxSedIterations: LOOPS,
    },
    ...(message.network && { fetch: shellFetch(ask) }),
    ...(message.tools.length > 0 && { customCommands: [toolCommand(message.tools, ask)] }),
  });
  const { code, stdin } = message;
  if (message.language === "bash") return endOf(await bash.exec(code, { rawScript: true, stdin }), message);
  await scratch.writeFile(PYTHON_FILE.slice("/tmp".length), code);
  const launch = pythonLauncher(PYTHON_FILE, [message.cwd]);
  return endOf(await bash.exec("python3", { args: ["-c", launch], stdin }), message);
}

function endOf(result: Omit<ShellEnd, "cut">, { outputBytes }: RunMessage): ShellEnd {
  const stdout = result.stdout.slice(0, outputBytes);
  const stderr = result.stderr.slice(0, outputBytes - stdout.length);
  const cut = stdout.length + stderr.length < result.stdout.length + result.stderr.length;
  return { exitCode: result.exitCode, stdout, stderr, cut };
}

function shellFiles(message: RunMessage, ask: Ask, scratch: InMemoryFs): MountableFs {
  const at = (path: string): number => message.mounts.indexOf(path);
  const base = at("/") === -1 ? new InMemoryFs({}, { maxTotalBytes: SCRATCH_BYTES }) : hostFiles(at("/"), ask);
  const devices = new InMemoryFs({ "/null": "", "/zero": "", "/stdin": "", "/stdout": "", "/stderr": "" });
  return new MountableFs({
    base,
    mounts: [
      { mountPoint: "/tmp", filesystem: scratch },
      { mountPoint: "/dev", filesystem: devices },
      ...message.mounts
        .filter((path) => path !== "/")
        .map((path) => ({ mountPoint: path, filesystem: hostFiles(at(path), ask) })),
    ],
  });
}

function shellFetch(ask: Ask): NonNullable<BashOptions["fetch"]> {
  return async (url, options = {}) => {
    const { method = "GET", headers = {}, body } = options;
    const plain = headers instanceof Headers ? Object.fromEntries(headers) : headers;
    const got = (await ask({ kind: "fetch", url, method, headers: plain, body })) as EgressResponse;
    return { ...got, headers: { ...got.headers }, statusText: "" };
  };
}

/** `tool namespace.name '{"a":1}'`, or the JSON on standard input. Prints the result as JSON. */
function toolCommand(names: readonly string[], ask: Ask): ReturnType<typeof defineCommand> {
  return defineCommand("tool", async ([name, given], { stdin }) => {
    if (name === undefined || name === "--help") {
      const usage = `usage: tool NAME [JSON]\ntools: ${names.join(", ")}\n`;
      return {
        stdout: name === undefined ? "" : usage,
        stderr: name === undefined ? usage : "",
        exitCode: name ? 0 : 2,
      };
    }
    const args = given ?? (decodeBytesToUtf8(stdin).trim() || "{}");
    try {
      return { stdout: `${String(await ask({ kind: "tool", name, args }))}\n`, stderr: "", exitCode: 0 };
    } catch (thrown) {
      return { stdout: "", stderr: `tool: ${thrown instanceof Error ? thrown.message : "failed"}\n`, exitCode: 1 };
    }
  });
}

/**
 * Python source that runs a file as `__main__`, so that tracebacks name its lines and it can import what lies beside it. (The
 * interpreter sees the shell's files below `/host`.)
 */
function pythonLauncher(path: string, importFrom: readonly string[]): string {
  const folders = importFrom.map((folder) => `/host${folder === "/" ? "" : folder}`);
  return `import sys as _sys, linecache as _lines, traceback as _trace
_path = ${JSON.stringify(path)}
_sys.path[:0] = ${JSON.stringify(folders)}
_sys.argv = [_path]
with open(_path, encoding="utf-8") as _file:
    _source = _file.read()
_lines.cache[_path] = (len(_source), None, _source.splitlines(True), _path)
try:
    exec(compile(_source, _path, "exec"), {"__name__": "__main__", "__file__": _path, "__builtins__": __builtins__})
except SystemExit:
    raise
except BaseException as _error:
    _trace.print_exception(_error.with_traceback(_error.__traceback__.tb_next))
    _sys.exit(1)
`;
}
