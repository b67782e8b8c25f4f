import { PerdureError } from "../../../base/error.ts";
import { checkNumbers, namesOf, refuseUnknown } from "../../../base/known-options.ts";
import type { Language, Limits, Probe, RunRequest, RunResult, Sandbox } from "../sandbox.ts";
import { type CheckoutBounds, DEFAULT_CHECKOUT, type FilesReport } from "./files-report.ts";

/** What {@link createProcessSandbox} may be told. Everything has a default. */
export interface ProcessSandboxOptions {
  /** For requests that do not say. Default: a minute, a minute of computing, 512 MB, 1 MB of output. */
  readonly limits?: Partial<Limits>;
  /** Processes and threads of one run. Default 64. */
  readonly processes?: number;
  /** Files that one process may have open. Default 256. */
  readonly openFiles?: number;
  /** Size of `/tmp` in the jail, in megabytes of memory. Default 64. */
  readonly tmpMB?: number;
  /** What one run may add to its `/workspace`. Looked at ten times a second, so a fast writer gets somewhat further. Default 512. */
  readonly diskMB?: number;
  /** Bounds of copying `can.files` in and out. Default: 10,000 entries, 256 MB, 32 MB for one file. */
  readonly checkout?: Partial<CheckoutBounds>;
  /** A real directory as `/workspace`, in place of `can.files`. The user that the jail runs as must be able to reach it. */
  readonly directory?: { readonly path: string; readonly mode: "read" | "read-write" };
  /** More of the host's files, to read, at the same paths. Must not be a system folder such as `/etc`. */
  readonly readOnly?: readonly string[];
  /** Where the programs are, if not in the usual places. */
  readonly programs?: ProcessPrograms;
  /** Who the jail runs as on the host when the host is root. Default: 65534, `nobody`. Never 0. */
  readonly runAs?: { readonly uid: number; readonly gid: number };
  /** A cgroup directory that this process may make groups in. Default: the process's own one, where it is delegated. */
  readonly cgroup?: string;
  /** Where working copies are made. Default: the system's folder for temporary files, or `/dev/shm` where that is read-only. */
  readonly temporary?: string;
}

const processSandboxOptionsNames = namesOf<ProcessSandboxOptions>()(
  "limits processes openFiles tmpMB diskMB checkout directory readOnly programs runAs cgroup temporary",
);

/** Paths of programs on the host. */
export interface ProcessPrograms {
  readonly bwrap?: string;
  readonly socat?: string;
  readonly prlimit?: string;
  readonly setpriv?: string;
  readonly bash?: string;
  readonly python?: string;
  readonly node?: string;
}

/** How a jailed run ended, and what became of its files. */
export type ProcessRunResult = RunResult & {
  /** Present when `can.files` was given to read and write. */
  readonly files?: FilesReport;
};

/** A {@link Sandbox} of real processes. */
export interface ProcessSandbox extends Sandbox {
  run(request: RunRequest): Promise<ProcessRunResult>;
}

/** The options with all defaults. */
export type ProcessSettings = Required<Omit<ProcessSandboxOptions, "directory" | "cgroup" | "temporary">> &
  Pick<ProcessSandboxOptions, "directory" | "cgroup" | "temporary"> & {
    readonly checkout: CheckoutBounds;
  };

/** More room than a guest of the first tier has: these are whole programs. */
const PROCESS_LIMITS: Partial<Limits> = { wallMs: 60_000, cpuMs: 60_000, memoryMB: 512 };
const NOBODY = 65_534;
const LANGUAGES: readonly Language[] = ["argv", "bash", "python", "js", "ts"];

/**
 * Runs programs of the machine in a bubblewrap jail: Linux only. They see `/usr` read-only, an empty `/tmp`, and `/workspace`, a
 * copy of `can.files` whose changes are brought back after the run. No network; with `can.network` they reach what it allows,
 * through `http_proxy`. If the machine lacks something, {@link Sandbox.probe} says what, and every run ends as `crashed`: nothing
 * ever runs without the jail.
 *
 * `supports.languages` lists all five until the first probe or run, and then what the machine has programs for.
 * @throws PerdureError `bad_config` for options that cannot work
 */
export function createProcessSandbox(options: ProcessSandboxOptions = {}): ProcessSandbox {
  refuseUnknown(options, processSandboxOptionsNames, "createProcessSandbox()");
  const settings = settingsOf(options);
  let languages = LANGUAGES;
  const load = async () => (await import("./node/jailer.ts")).createJailer(settings);
  let jailer: ReturnType<typeof load> | undefined;
  let disposed = false;
  const open = () => (jailer ??= load());

  const probe = async (): Promise<Probe> => {
    if (disposed) return { ok: false, missing: "This sandbox was disposed." };
    try {
      const found = await (await open()).probe();
      if (!("detail" in found)) return { ok: false, missing: found.missing };
      ({ languages } = found);
      return { ok: true, detail: found.detail };
    } catch {
      // The import itself: a platform without these modules.
      jailer = undefined;
      return { ok: false, missing: "The process sandbox needs Node.js on Linux." };
    }
  };

  return {
    kind: "bubblewrap",
    supports: {
      get languages() {
        return languages;
      },
      ...{ network: true, files: true, suspend: false },
    },
    probe,
    async run(request) {
      if (request.can?.tools !== undefined && Object.keys(request.can.tools).length > 0) {
        throw new PerdureError("bad_input", "The process sandbox has no host functions: leave out `can.tools`.");
      }
      if (!LANGUAGES.includes(request.language)) {
        throw new PerdureError(
          "bad_input",
          `The process sandbox runs ${LANGUAGES.join(", ")}, not "${request.language}".`,
        );
      }
      const usable = await probe();
      const ended = { logs: [], stats: { ms: 0, toolCalls: 0 } };
      if (!usable.ok) return { status: "crashed", message: usable.missing, ...ended };
      if (!languages.includes(request.language)) {
        throw new PerdureError(
          "bad_input",
          `There is no program for "${request.language}" here. There is one for: ${languages.join(", ")}.`,
        );
      }
      if (request.signal?.aborted === true) return { status: "aborted", ...ended };
      return await (await open()).run(request);
    },
    async dispose() {
      disposed = true;
      await (await jailer)?.dispose();
    },
  };
}

function settingsOf(options: ProcessSandboxOptions): ProcessSettings {
  const settings: ProcessSettings = {
    processes: 64,
    openFiles: 256,
    tmpMB: 64,
    diskMB: 512,
    readOnly: [],
    programs: {},
    runAs: { uid: NOBODY, gid: NOBODY },
    ...options,
    limits: { ...PROCESS_LIMITS, ...options.limits },
    checkout: { ...DEFAULT_CHECKOUT, ...options.checkout },
  };
  checkNumbers("createProcessSandbox", settings, ["processes", "openFiles", "tmpMB", "diskMB"], { whole: true });
  const { uid, gid } = settings.runAs;
  if (!Number.isSafeInteger(uid) || !Number.isSafeInteger(gid) || uid < 1 || gid < 1) {
    throw new PerdureError("bad_config", "createProcessSandbox: runAs must name a user and a group other than root.");
  }
  const paths = [...settings.readOnly, ...(settings.directory === undefined ? [] : [settings.directory.path])];
  for (const path of paths) {
    if (!path.startsWith("/") || path === "/" || path.includes("\0")) {
      throw new PerdureError("bad_config", `createProcessSandbox: "${path}" must be an absolute path below the root.`);
    }
  }
  return settings;
}
