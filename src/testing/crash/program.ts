import { spawn, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { createInterface } from "node:readline";
import { PerdureError } from "../../base/error.ts";
import { ENV, parseLine, type Fact } from "./protocol.ts";

/** How a process ended. */
export interface Ending {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A program in a process of its own: one life. */
export interface Program {
  readonly pid: number | undefined;
  readonly dir: string;
  /** What the program reported and the driver noted so far, in the order it arrived here. */
  readonly facts: readonly Fact[];
  /** Commits so far. */
  readonly commits: number;
  /** The end of what the program printed, for people. */
  readonly output: string;
  /** Resolves when the process is gone and everything that it reported has arrived. Never rejects. */
  readonly exited: Promise<Ending>;
  /** Adds a fact that the driver saw itself, such as a frame on its own socket. */
  note(fact: Fact): void;
  /**
   * The first fact, past or future, of that type or that `matches`. Rejects with `agent_gone` when the process
   * ends without it and with `timeout` after `timeoutMs` (30 seconds by default).
   */
  waitFor(matches: string | ((fact: Fact) => boolean), timeoutMs?: number): Promise<Fact>;
  /** Hands `command` (JSON) to `onCommand` of the program. Rejects if the process is gone. */
  send(command: unknown): Promise<void>;
  /** Ends it now with SIGKILL, also if it ended already, and waits until it is gone. */
  kill(): Promise<Ending>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What a life of a program is given. */
export interface ProgramOptions {
  /** Where the program keeps its data; it reads this with `programDir()`. */
  readonly dir: string;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** The commit after which the program kills itself. */
  readonly killAt?: number;
}

const DEFAULT_WAIT_MS = 30_000;
const OUTPUT_LIMIT = 8_000;
/** A process that is gone has its pipes closed at once, unless it left children of its own that hold them. */
const CLOSE_GRACE_MS = 2_000;

const living = new Set<Program>();
process.once("exit", () => {
  for (const program of living) void program.kill();
});

/** Kills every program that this process started and that still lives. For `afterEach`. Returns how many. */
export async function killPrograms(): Promise<number> {
  const left = [...living];
  await Promise.all(left.map((program) => program.kill()));
  return left.length;
}

/**
 * Starts `file` (a path or file URL; TypeScript is fine) with the Node that runs now. It dies when
 * {@link Program.kill} is called, when it is disposed, and when this process ends in any way.
 */
export function startProgram(file: string | URL, options: ProgramOptions): Program {
  const { dir, killAt } = options;
  const path = file instanceof URL || file.startsWith("file:") ? fileURLToPath(file) : file;
  const child = spawn(process.execPath, [...nodeFlags(), path], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    env: {
      ...process.env,
      ...options.env,
      [ENV.program]: "1",
      [ENV.dir]: dir,
      [ENV.killAt]: killAt === undefined ? undefined : String(killAt),
    },
  });
  const facts: Fact[] = [];
  const watchers = new Set<() => void>();
  let commits = 0;
  let output = "";
  let ending: Ending | undefined;

  const print = (text: string): void => void (output = (output + text).slice(-OUTPUT_LIMIT));
  const add = (fact: Fact): void => {
    facts.push(fact);
    for (const check of [...watchers]) check();
  };
  child.stderr?.setEncoding("utf8").on("data", print);
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on("line", (text) => {
      const line = parseLine(text);
      if (line === undefined) print(`${text}\n`);
      else if (line.kind === "commit") commits = line.count;
      else add(line.fact);
    });
  }
  const exited = whenGone(child, print).then((how) => {
    ending = how;
    living.delete(program);
    for (const check of [...watchers]) check();
    return how;
  });

  const program: Program = {
    pid: child.pid,
    dir,
    facts,
    get commits() {
      return commits;
    },
    get output() {
      return output;
    },
    exited,
    note: add,
    waitFor(matches, timeoutMs = DEFAULT_WAIT_MS) {
      const test = typeof matches === "string" ? (fact: Fact) => fact.type === matches : matches;
      const wanted = typeof matches === "string" ? `"${matches}"` : "the fact waited for";
      return new Promise((resolve, reject) => {
        const stop = (): void => {
          watchers.delete(check);
          clearTimeout(timer);
        };
        const fail = (code: "agent_gone" | "timeout", why: string): void => {
          stop();
          reject(new PerdureError(code, `${why} ${wanted}. Facts: ${JSON.stringify(facts)}\n${output}`));
        };
        const timer = setTimeout(() => fail("timeout", `After ${timeoutMs} ms there was not`), timeoutMs);
        const check = (): void => {
          const fact = facts.find(test);
          if (fact !== undefined) {
            stop();
            resolve(fact);
          } else if (ending !== undefined) {
            fail("agent_gone", `The program ended (${endingText(ending)}) without`);
          }
        };
        watchers.add(check);
        check();
      });
    },
    send(command) {
      return new Promise((resolve, reject) => {
        if (!child.connected)
          return reject(new PerdureError("agent_gone", "The program is gone: nothing can be sent."));
        child.send({ command }, (error) => (error === null ? resolve() : reject(error)));
      });
    },
    kill() {
      if (ending === undefined) child.kill("SIGKILL");
      return exited;
    },
    async [Symbol.asyncDispose]() {
      await program.kill();
    },
  };
  living.add(program);
  return program;
}

export function endingText({ code, signal }: Ending): string {
  return signal === null ? `exit code ${code}` : signal;
}

function whenGone(child: ChildProcess, print: (text: string) => void): Promise<Ending> {
  return new Promise((resolve) => {
    child.once("error", (error) => {
      print(`${error.message}\n`);
      if (child.pid === undefined) resolve({ code: null, signal: null });
    });
    child.once("exit", (code, signal) => {
      const timer = setTimeout(() => resolve({ code, signal }), CLOSE_GRACE_MS);
      child.once("close", () => {
        clearTimeout(timer);
        resolve({ code, signal });
      });
    });
  });
}

/** In this repository everything runs from source; in an installed package from `dist`, where Node strips no types. */
function nodeFlags(): string[] {
  const fromSource = import.meta.url.endsWith(".ts");
  const guard = new URL(fromSource ? "./guard.ts" : "./guard.js", import.meta.url).href;
  return [...(fromSource ? ["--conditions=perdure-source"] : []), "--import", guard];
}
