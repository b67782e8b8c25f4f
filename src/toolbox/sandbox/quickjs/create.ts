import { PerdureError } from "../../../base/error.ts";
import { checkNumbers, namesOf, refuseUnknown } from "../../../base/known-options.ts";
import { resolveLimits } from "../limits.ts";
import type { Limits, Sandbox } from "../sandbox.ts";

/** How {@link createQuickJsSandbox} runs code. */
export interface QuickJsOptions {
  /**
   * `thread` (default): in this process, for code that one tenant answers for. `process`: one without permissions per lane, for
   * code of several tenants. The guest sees no difference.
   */
  readonly host?: "thread" | "process";
  /** The limits of runs that say nothing. */
  readonly limits?: Partial<Limits>;
  readonly lanes?: {
    /** How many guests compute at the same time; those that wait for a tool do not count. Default 4. */
    readonly max?: number;
    /** How many lanes stay ready once they were needed. Default 1. */
    readonly warm?: number;
    /** Others end after so many milliseconds without work. Default 30 000. */
    readonly idleMs?: number;
  };
  /** Seals snapshots (HMAC-SHA256). Share one key where others can write to the store; without it only damage is detected. */
  readonly snapshotKey?: string | Uint8Array;
  /** Puts another program in front of a lane's process, such as a jail. Gets and returns the words of the command. */
  readonly wrapProcess?: (argv: readonly string[]) => readonly string[];
}

const quickJsOptionsNames = namesOf<QuickJsOptions>()("host limits lanes snapshotKey wrapProcess");

/** A sandbox that can park runs and keep guests. */
export type ParkingSandbox = Sandbox & Required<Pick<Sandbox, "resume" | "open">>;

/**
 * Runs JavaScript and TypeScript in QuickJS, one engine per run. Nothing starts before the first run. Needs Node; elsewhere runs
 * reject. `dispose` ends its lanes; idle lanes do not keep a process alive.
 * @throws PerdureError `bad_config` for options that cannot work
 */
export function createQuickJsSandbox(options: QuickJsOptions = {}): ParkingSandbox {
  refuseUnknown(options, quickJsOptionsNames, "createQuickJsSandbox()");
  checkOptions(options);
  let loaded: Promise<Omit<ParkingSandbox, "kind" | "supports">> | undefined;
  const load = async () => {
    loaded ??= import("./node/sandbox.ts").then(
      (module) => new module.QuickJsSandbox(options),
      (cause: unknown) => {
        // The reason names files of this machine, and models read what runs reject with.
        throw new PerdureError("bad_config", "The sandbox cannot be loaded here: it needs Node.", { cause });
      },
    );
    return loaded;
  };
  return {
    kind: "quickjs",
    supports: { languages: ["js", "ts"], network: true, files: true, suspend: true },
    probe: async () => (await load()).probe(),
    run: async (request) => (await load()).run(request),
    resume: async (snapshot, answers, request) => (await load()).resume(snapshot, answers, request),
    open: async (request) => (await load()).open(request),
    dispose: async () => (await load()).dispose(),
  };
}

function checkOptions(options: QuickJsOptions): void {
  const { lanes = {}, limits } = options;
  const host: unknown = options.host;
  if (host !== undefined && host !== "thread" && host !== "process") {
    throw new PerdureError("bad_config", `host must be "thread" or "process", not ${JSON.stringify(host)}.`);
  }
  checkNumbers("createQuickJsSandbox: lanes", lanes, ["max"], { whole: true });
  checkNumbers("createQuickJsSandbox: lanes", lanes, ["warm", "idleMs"], { whole: true, least: 0 });
  try {
    resolveLimits(limits);
  } catch (thrown) {
    throw new PerdureError("bad_config", thrown instanceof Error ? thrown.message : String(thrown));
  }
}

let shared: ParkingSandbox | undefined;

/** The sandbox that everything in this process uses that was given none of its own. Idle, it holds nothing. */
export function sharedQuickJsSandbox(): ParkingSandbox {
  return (shared ??= createQuickJsSandbox());
}
