import { randomUUID } from "node:crypto";
import { chmod, chown, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errorText, PerdureError } from "../../../../base/error.ts";
import { resolveLimits } from "../../limits.ts";
import type { Outcome, RunRequest } from "../../sandbox.ts";
import type { FilesReport } from "../files-report.ts";
import type { ProcessRunResult, ProcessSettings } from "../process-sandbox.ts";
import { checkIn } from "./checkin.ts";
import { checkOut, type Original } from "./checkout.ts";
import { jailFolder, programOf } from "./entry.ts";
import { type Machine, prepareMachine } from "./machine.ts";
import { removeTree } from "./remove-tree.ts";
import { runJail } from "./run-jail.ts";

/** More source than this is a mistake. */
const MAX_CODE = 1 << 20;
const environmentName = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The part of a process sandbox that needs Node. */
export function createJailer(settings: ProcessSettings) {
  let prepared: Promise<Machine | { readonly missing: string }> | undefined;
  const ending = new AbortController();
  const running = new Set<Promise<unknown>>();
  const prepare = async () => {
    prepared ??= prepareMachine(settings);
    const machine = await prepared;
    // What is missing may be installed later; what is there stays.
    if ("missing" in machine) prepared = undefined;
    return machine;
  };

  return {
    /** What there is, or what is missing. Never rejects. */
    async probe(): Promise<Pick<Machine, "detail" | "languages"> | { readonly missing: string }> {
      try {
        return await prepare();
      } catch (thrown) {
        prepared = undefined;
        return { missing: `The jail could not be tried out: ${errorText(thrown)}` };
      }
    },
    async run(request: RunRequest): Promise<ProcessRunResult> {
      const machine = await prepare();
      if ("missing" in machine) throw new PerdureError("bad_state", machine.missing);
      const run = runInJail(machine, settings, request, ending.signal);
      running.add(run);
      try {
        return await run;
      } finally {
        running.delete(run);
      }
    },
    /** Ends every run. */
    async dispose(): Promise<void> {
      ending.abort();
      await Promise.allSettled(running);
      const machine = await prepared?.catch(() => undefined);
      if (machine !== undefined && "remove" in machine) await machine.remove();
    },
  };
}

async function runInJail(
  machine: Machine,
  settings: ProcessSettings,
  request: RunRequest,
  ending: AbortSignal,
): Promise<ProcessRunResult> {
  const started = Date.now();
  const limits = resolveLimits(settings.limits, request.limits);
  checkRequest(request, settings);
  const program = programOf(request, machine, limits.memoryMB);
  const given = request.can?.files;
  const cwd = jailFolder(request.cwd, given !== undefined || settings.directory !== undefined);
  const signal = AbortSignal.any([ending, ...(request.signal === undefined ? [] : [request.signal])]);

  const { leaveRoot, folder: home } = machine.builder;
  const folder = join(home, randomUUID());
  const finish = (outcome: Outcome, logs: ProcessRunResult["logs"], files?: FilesReport): ProcessRunResult => ({
    ...outcome,
    ...{ logs, stats: { ms: Date.now() - started, toolCalls: 0 } },
    ...(files !== undefined && { files }),
  });
  try {
    await mkdir(folder, { mode: 0o700 });
    if (leaveRoot !== undefined) await chown(folder, leaveRoot.uid, leaveRoot.gid);
    await mkdir(join(folder, "code"), { mode: 0o755 });
    for (const [name, content] of Object.entries(program.files)) await writeSource(join(folder, "code", name), content);

    let originals = new Map<string, Original>();
    const copy = join(folder, "files");
    if (given !== undefined) {
      await mkdir(copy);
      originals = await checkOut(given.fs, copy, settings.checkout, leaveRoot, signal);
    }
    const workspace = given === undefined ? settings.directory : { path: copy, mode: given.mode };
    const leftMs = Math.max(1, limits.wallMs - (Date.now() - started));
    const { outcome, logs } = await runJail({
      ...{ machine, settings, request, limits, leftMs, words: program.words, cwd, folder, signal, workspace },
    });
    // A run that was cut has changed files too: as after any command that was cut.
    const back = given?.mode === "read-write" && outcome.status !== "crashed";
    return finish(outcome, logs, back ? await checkIn(given.fs, copy, originals, settings.checkout) : undefined);
  } catch (thrown) {
    if (signal.aborted) return finish({ status: "aborted" }, []);
    if (PerdureError.is(thrown, "bad_input")) throw thrown;
    // What the files are too many or too large for is for the model to mend; the rest is the operator's.
    if (PerdureError.is(thrown, "limit")) {
      return finish({ status: "error", error: { name: thrown.name, message: thrown.message } }, []);
    }
    return finish({ status: "crashed", message: errorText(thrown) }, []);
  } finally {
    await removeTree(folder);
  }
}

async function writeSource(path: string, content: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  await writeFile(path, content);
  await chmod(path, 0o644);
}

function checkRequest(request: RunRequest, settings: ProcessSettings): void {
  const refuse = (message: string): never => {
    throw new PerdureError("bad_input", message);
  };
  if (request.code.length > MAX_CODE)
    refuse(`The code has ${request.code.length} characters; at most ${MAX_CODE} are run.`);
  if (request.code.includes("\0")) refuse("The code has a NUL character in it.");
  if (request.can?.files !== undefined && settings.directory !== undefined) {
    refuse("This sandbox has a directory of its own: leave out `can.files`.");
  }
  for (const [name, value] of Object.entries(request.can?.env ?? {})) {
    if (!environmentName.test(name)) refuse(`"${name}" cannot be the name of an environment variable.`);
    if (typeof value !== "string" || value.includes("\0"))
      refuse(`The environment variable ${name} must be a string without NUL.`);
  }
}
