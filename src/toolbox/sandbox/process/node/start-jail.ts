import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, constants, openSync } from "node:fs";
import { open, readdir, readFile, rm } from "node:fs/promises";
import { Socket } from "node:net";
import { join } from "node:path";
import { PassThrough, type Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { bubblewrapArguments, type JailProfile } from "../profile.ts";

/** What has to be there before a jail can be built. */
export interface Builder {
  readonly bwrap: string;
  /** Set when the host is root: the jail's processes are this user's. */
  readonly leaveRoot: { readonly setpriv: string; readonly uid: number; readonly gid: number } | undefined;
  /** A folder of the host's own, for short-lived files. */
  readonly folder: string;
  readonly filter: Uint8Array;
  readonly mkfifo: string;
}

/** What runs, and in what. */
interface JailStart {
  readonly profile: Omit<JailProfile, "seccompFd" | "infoFd">;
  readonly command: readonly string[];
  /** A file to which the id of the first process is written before anything else: a group to join. */
  readonly join?: string | undefined;
}

/** A jail with processes in it. */
export type RunningJail = Awaited<ReturnType<typeof startJail>>;

const ARGUMENTS_FD = 3;
const SECCOMP_FD = 4;
const INFO_FD = 5;
/** Where what runs in a jail may answer, beside what it prints. */
export const ANSWER_FD = 6;
const GONE_WITHIN_MS = 10_000;
const GONE_POLL_MS = 2;

const run = promisify(execFile);

/** Starts a jail. Failures of the start show in what it prints and in how it ends. */
export async function startJail(builder: Builder, start: JailStart) {
  const profile = { ...start.profile, seccompFd: SECCOMP_FD, infoFd: INFO_FD };
  // Arguments in a file: on the command line, everybody on the machine and in the jail could read them.
  const argumentBytes = new TextEncoder().encode(bubblewrapArguments(profile).join("\0"));
  const argumentFile = await openBytes(builder.folder, argumentBytes);
  const filterFile = await openBytes(builder.folder, builder.filter);
  const nothing = await open("/dev/null", "r");
  const [stdout, stderr] = await makeOutputPipes(builder.mkfifo, builder.folder);
  try {
    const words = [
      ...(start.join === undefined ? [] : joinWords(start.join)),
      ...[...leaveRootWords(builder), builder.bwrap, "--args", `${ARGUMENTS_FD}`, "--", ...start.command],
    ];
    const child = spawn(words[0] ?? "", words.slice(1), {
      // bubblewrap's own environment can be read inside, as that of process 1.
      env: {},
      cwd: "/",
      detached: true,
      stdio: await withoutInherited(
        ["pipe", stdout.end, stderr.end, argumentFile.fd, filterFile.fd, "pipe", "pipe"],
        nothing.fd,
      ),
    });
    const answer = keep(pipeOf(child, ANSWER_FD));
    return { child, stdout: stdout.stream, stderr: stderr.stream, answer, ...watchChild(child) };
  } finally {
    closeSync(stdout.end);
    closeSync(stderr.end);
    await argumentFile.close();
    await filterFile.close();
    await nothing.close();
  }
}

/** What starts a program as the jail's user, where the host is root. */
export function leaveRootWords({ leaveRoot }: Builder): string[] {
  if (leaveRoot === undefined) return [];
  return [leaveRoot.setpriv, `--reuid=${leaveRoot.uid}`, `--regid=${leaveRoot.gid}`, "--clear-groups", "--"];
}

type Stdio = ("pipe" | "ignore" | number)[];
/** The flag of descriptors that a child does not get, as the kernel shows it. */
const CLOSE_ON_EXEC = 0o2000000;

/** Node passes on what it inherited: sockets and pipes of whoever started this process. The jail gets an empty file instead. */
async function withoutInherited(stdio: Stdio, nothing: number): Promise<Stdio> {
  for (const name of await readdir("/proc/self/fd")) {
    const fd = Number(name);
    if (fd < stdio.length && stdio[fd] !== "ignore") continue;
    const info = await readFile(`/proc/self/fdinfo/${name}`, "utf8").catch(() => "");
    const flags = /^flags:\s*([0-7]+)$/m.exec(info)?.[1];
    if (flags === undefined || (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) !== 0) continue;
    while (stdio.length < fd) stdio.push("ignore");
    stdio[fd] = nothing;
  }
  return stdio;
}

/** A file that has lost its name: nobody else can open it. */
async function openBytes(folder: string, bytes: Uint8Array) {
  const path = join(folder, randomUUID());
  const writer = await open(path, "wx", 0o600);
  try {
    await writer.writeFile(bytes);
    return await open(path, "r");
  } finally {
    await writer.close();
    await rm(path, { force: true });
  }
}

function joinWords(file: string): string[] {
  return ["/bin/sh", "-c", 'echo $$ >"$1" || exit 125; shift; exec "$@"', "sh", file];
}

/** Node throws away what nobody has begun to read when the process ends, and on a busy machine it may end first. */
function keep(pipe: Readable): Readable {
  const kept = new PassThrough();
  const end = () => kept.end();
  pipe.once("error", end).once("close", end);
  return pipe.pipe(kept);
}

function watchChild(child: ChildProcess) {
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal }));
    child.once("error", () => resolve({ code: null, signal: null }));
  });
  let pid: number | undefined;
  let killed = false;
  const kill = () => {
    killed = true;
    for (const id of [child.pid === undefined ? undefined : -child.pid, pid]) {
      if (id === undefined) continue;
      try {
        process.kill(id, "SIGKILL");
      } catch {
        // Ended by itself.
      }
    }
  };
  /** What `bwrap` said about the first process inside; `undefined` when it did not get that far. */
  const firstProcess = readInfo(pipeOf(child, INFO_FD)).then((found) => {
    pid = found;
    if (killed) kill();
    return found;
  });
  return {
    firstProcess,
    /** Settles when the outer process has ended and its pipes are drained. */
    ended,
    /** Ends everything in it, at once. May be called again. */
    kill,
    /** Settles when no process is left inside: only then is what they wrote at rest. @throws when they do not go */
    async gone(): Promise<void> {
      await ended;
      const first = await firstProcess;
      if (first === undefined) return;
      const deadline = Date.now() + GONE_WITHIN_MS;
      // A zombie counts as gone: the kernel makes process 1 one only after it has ended all the others.
      while (await isAlive(first)) {
        if (Date.now() > deadline) throw new Error("The processes of a jail did not end.");
        await sleep(GONE_POLL_MS);
      }
    },
  };
}

/** What the child writes to one of its pipes. The types of Node know the first five only. */
function pipeOf(child: ChildProcess, fd: number): Readable {
  const pipes: readonly unknown[] = child.stdio;
  return pipes[fd] as Readable;
}

async function readInfo(stream: Readable): Promise<number | undefined> {
  let text = "";
  try {
    for await (const chunk of stream) text += String(chunk);
  } catch {
    // The process ended.
  }
  return firstProcessIn(text);
}

/** The first process in a jail, as `bwrap --info-fd` says it. */
export function firstProcessIn(info: string): number | undefined {
  const found = /"child-pid"\s*:\s*(\d+)/.exec(info)?.[1];
  return found === undefined ? undefined : Number(found);
}

async function isAlive(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  const state = stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3);
  return state !== "" && state !== "Z" && state !== "X";
}

/**
 * Real pipes for what a jail prints: Node's are sockets, on which opening `/dev/stdout` or `/dev/stderr` fails. They have no
 * names left when this settles. The child gets each `end`; close it here then.
 */
async function makeOutputPipes(mkfifo: string, folder: string) {
  const paths = [join(folder, randomUUID()), join(folder, randomUUID())] as const;
  try {
    // Everybody may open what has no name any more: the jail's user is not who made it.
    await run(mkfifo, ["-m", "666", ...paths], { env: {} });
    return [openPipe(paths[0]), openPipe(paths[1])] as const;
  } finally {
    for (const path of paths) await rm(path, { force: true });
  }
}

/** Neither side waits for the other: the reader does not block, and when the writer opens there is a reader. */
function openPipe(path: string): { readonly end: number; readonly stream: Readable } {
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const end = openSync(path, constants.O_WRONLY);
  return { end, stream: new Socket({ fd: reader, readable: true, writable: false }) };
}
