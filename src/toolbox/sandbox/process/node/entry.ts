import { PerdureError } from "../../../../base/error.ts";
import type { Json, RunRequest } from "../../sandbox.ts";
import { rewriteImports } from "../../quickjs/rewrite-imports.ts";
import { shellWord } from "../profile.ts";
import { JAIL_CODE, JAIL_EGRESS, JAIL_NODE, JAIL_WORKSPACE } from "./jail-paths.ts";
import type { Machine } from "./machine.ts";
import { ANSWER_FD } from "./start-jail.ts";

const PROXY_PORT = 3128;
/** The first line on the pipe of results: what follows comes from the guest. */
export const STARTED = "started\n";

/** The script that runs first in every jail. Everything in it is ours; words of the request are quoted. */
export function entryScript(
  words: readonly string[],
  options: { readonly cwd: string; readonly proxy: string | undefined; readonly keepPipe: boolean },
): string {
  return [
    `echo started >&${ANSWER_FD}`,
    ...(options.keepPipe ? [] : [`exec ${ANSWER_FD}>&-`]),
    "umask 022",
    ...(options.proxy === undefined ? [] : proxyLines(options.proxy)),
    `cd -- ${shellWord(options.cwd)} || exit 126`,
    `exec ${words.map(shellWord).join(" ")}`,
    "",
  ].join("\n");
}

/** Brings the egress to a port of the jail's own loopback, and waits until it listens. */
function proxyLines(socat: string): string[] {
  const port = PROXY_PORT.toString(16).toUpperCase().padStart(4, "0");
  return [
    `${shellWord(socat)} TCP-LISTEN:${PROXY_PORT},bind=127.0.0.1,fork,reuseaddr,backlog=64 UNIX-CONNECT:${JAIL_EGRESS} </dev/null >/dev/null 2>&1 ${ANSWER_FD}>&- &`,
    "tries=0",
    `until grep -q ":${port} .* 0A " /proc/net/tcp; do tries=$((tries+1)); [ $tries -lt 500 ] || exit 125; sleep 0.01; done`,
  ];
}

/** The proxy as the jail sees it. */
const PROXY_URL = `http://127.0.0.1:${PROXY_PORT}`;

/** What programs that know a proxy look for. */
export const proxyEnvironment: Readonly<Record<string, string>> = {
  http_proxy: PROXY_URL,
  https_proxy: PROXY_URL,
  HTTP_PROXY: PROXY_URL,
  HTTPS_PROXY: PROXY_URL,
  no_proxy: "",
  NODE_USE_ENV_PROXY: "1",
};

/** The command and the files of a request. @throws PerdureError `bad_input` */
export function programOf(
  request: RunRequest,
  machine: Machine,
  memoryMB: number,
): { readonly words: readonly string[]; readonly files: Readonly<Record<string, string>> } {
  const { language, code } = request;
  switch (language) {
    case "argv":
      return { words: parseWords(code), files: {} };
    case "bash":
      return { words: [machine.bash ?? "bash", `${JAIL_CODE}/main.sh`], files: { "main.sh": code } };
    case "python":
      return { words: [machine.python ?? "python3", "-B", `${JAIL_CODE}/main.py`], files: { "main.py": code } };
    case "js":
    case "ts": {
      const node = machine.node?.startsWith("/usr/") === true ? machine.node : JAIL_NODE;
      // Below what the kernel allows, so that the guest reads an error of its own.
      const heap = `--max-old-space-size=${Math.max(16, Math.floor(memoryMB * 0.75))}`;
      return {
        words: [node, "--no-warnings", heap, `${JAIL_CODE}/runner.mjs`],
        files: { ...functionFiles(request), ...moduleFiles(request) },
      };
    }
  }
}

function parseWords(code: string): string[] {
  let words: unknown;
  try {
    words = JSON.parse(code) as Json;
  } catch {
    words = undefined;
  }
  if (
    !Array.isArray(words) ||
    words.length === 0 ||
    !words.every((word) => typeof word === "string" && !word.includes("\0"))
  ) {
    throw new PerdureError("bad_input", 'For "argv", code must be a JSON array of words, such as ["ls", "-l"].');
  }
  if (words[0] === "") throw new PerdureError("bad_input", "The first word must name a program.");
  return words as string[];
}

const moduleName = /^(@[\w.-]+\/)?[\w-][\w.-]*$/;

function moduleFiles(request: RunRequest): Record<string, string> {
  const files: Record<string, string> = {};
  for (const [name, source] of Object.entries(request.modules ?? {})) {
    if (!moduleName.test(name)) throw new PerdureError("bad_input", `"${name}" cannot be the name of a module.`);
    files[`node_modules/${name}/package.json`] = JSON.stringify({ name, type: "module", exports: "./module.mjs" });
    files[`node_modules/${name}/module.mjs`] = source;
  }
  return files;
}

/** A directory of the jail for a path of the workspace, or of the jail. @throws PerdureError `bad_input` */
export function jailFolder(cwd: string | undefined, hasWorkspace: boolean): string {
  if (cwd === undefined || cwd === "/" || cwd === "") return hasWorkspace ? JAIL_WORKSPACE : "/tmp";
  if (!cwd.startsWith("/") || cwd.includes("\0") || cwd.split("/").includes("..")) {
    throw new PerdureError("bad_input", `cwd must be an absolute path without "..", not ${JSON.stringify(cwd)}.`);
  }
  if (cwd === "/tmp" || cwd.startsWith("/tmp/") || !hasWorkspace) return cwd;
  return cwd === JAIL_WORKSPACE || cwd.startsWith(`${JAIL_WORKSPACE}/`) ? cwd : JAIL_WORKSPACE + cwd;
}

/** The body of the guest's function, its input, and what runs it in the jail. */
function functionFiles(request: RunRequest): Record<string, string> {
  return {
    "runner.mjs": RUNNER,
    "input.json": JSON.stringify(request.input ?? null),
    // On one line with the code, so that lines count as in what was given.
    [`main.${request.language}`]: `export default async function (input) { ${rewriteImports(request.code)}\n}\n`,
  };
}

/** Types are taken off inside. What it says the guest can forge: it is the guest's own answer. */
const RUNNER = `
import { existsSync, readFileSync, symlinkSync, writeFileSync, writeSync, mkdtempSync } from "node:fs";
import * as nodeModule from "node:module";
const say = (answer) => {
  let bytes = Buffer.from(JSON.stringify(answer));
  while (bytes.length > 0) {
    try { bytes = bytes.subarray(writeSync(${ANSWER_FD}, bytes)); }
    catch (error) { if (error.code !== "EAGAIN") throw error; }
  }
};
const load = () => {
  const isTyped = existsSync("${JAIL_CODE}/main.ts");
  const source = readFileSync(isTyped ? "${JAIL_CODE}/main.ts" : "${JAIL_CODE}/main.js", "utf8");
  if (!isTyped) return source;
  if (nodeModule.stripTypeScriptTypes === undefined) throw new Error("TypeScript needs Node 22.13 or newer in the jail.");
  try { return nodeModule.stripTypeScriptTypes(source); }
  catch (error) {
    const line = /^[^\\n]*:(\\d+)\\n/.exec(String(error.stack))?.[1];
    throw new SyntaxError(error.message + (line === undefined ? "" : " (line " + line + ")"));
  }
};
const input = JSON.parse(readFileSync("${JAIL_CODE}/input.json", "utf8"));
try {
  const folder = mkdtempSync("/tmp/main-");
  writeFileSync(folder + "/main.mjs", load());
  if (existsSync("${JAIL_CODE}/node_modules")) symlinkSync("${JAIL_CODE}/node_modules", folder + "/node_modules");
  const { default: main } = await import(folder + "/main.mjs");
  const value = await main(input);
  say({ value: value === undefined ? undefined : JSON.parse(JSON.stringify(value) ?? "null"), ok: true });
} catch (error) {
  const isError = error instanceof Error;
  say({ ok: false, name: isError ? String(error.name) : "Error", message: isError ? String(error.message) : String(error) });
}
process.exit();
`;
