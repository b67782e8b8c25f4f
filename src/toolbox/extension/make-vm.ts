import { systemClock, type Clock } from "../../base/time.ts";
import { createEgress } from "../egress/egress.ts";
import { PerdureError } from "../../base/error.ts";
import type { Capabilities, Egress, Limits, Sandbox } from "../sandbox/sandbox.ts";
import { BRIDGE, guestProgram } from "./guest.ts";
import { bridgeFunctions, type ExtensionBridge, functionsFor } from "./host-functions.ts";
import type { ExtensionManifest } from "./manifest.ts";
import { sharedQuickJsSandbox } from "../sandbox/quickjs/create.ts";
import { ExtensionVm, TOOL_LIMITS } from "./vm.ts";

/** What the guests of an agent are made of. */
export interface VmOptions {
  /** What extensions run in; `true`: the QuickJS sandbox that all agents of the process share. */
  readonly loader: Sandbox | true | (() => Sandbox | Promise<Sandbox>);
  readonly host?: { readonly clock: Clock };
  /** What the agent does for extensions. Asked whenever it is needed. */
  bridge?(): ExtensionBridge;
  /** The way out for an extension that may use these hosts. Default: `createEgress({ allow: hosts })`. */
  egress?(hosts: readonly string[], extension: string): Egress;
  /** What one call of a tool may use. Default: 5 s of computing, 30 s in all, 200 host calls, 1 MB of output. */
  readonly limits?: Partial<Omit<Limits, "memoryMB">>;
}

/**
 * The guest of an extension, with the functions and the network that its permissions allow. They work only while
 * `isCurrent` says that it is the one that is loaded, and not before its source has run.
 */
export function makeVm(
  options: VmOptions,
  manifest: ExtensionManifest,
  source: string,
  { sends, isCurrent }: { readonly sends: number[]; readonly isCurrent: (vm: ExtensionVm) => boolean },
): ExtensionVm {
  const { loader, limits } = options;
  const sandbox = async (): Promise<Sandbox> => {
    if (loader === true) return sharedQuickJsSandbox();
    return typeof loader === "function" ? loader() : loader;
  };
  const bridge = () => options.bridge?.() ?? {};
  const standing = () => (vm.ready && isCurrent(vm) ? manifest : undefined);
  const functions = functionsFor(manifest, bridge());
  const clock = options.host?.clock ?? systemClock;
  const can: Capabilities = {
    ...(functions.length > 0 && {
      tools: { [BRIDGE]: bridgeFunctions(functions, { sends, manifest: standing, bridge, clock }) },
    }),
    ...(manifest.permissions?.network !== undefined && {
      network: networkOf(options, manifest, () => standing() !== undefined),
    }),
  };
  const vm: ExtensionVm = new ExtensionVm(sandbox, guestProgram(source, functions), can, { ...TOOL_LIMITS, ...limits });
  return vm;
}

function networkOf(options: VmOptions, { name, permissions }: ExtensionManifest, allowed: () => boolean): Egress {
  const hosts = permissions?.network ?? [];
  const make = () => options.egress?.(hosts, name) ?? createEgress({ allow: hosts });
  let made: Egress | undefined;
  return {
    fetch: async (url, request) => {
      if (!allowed()) throw new PerdureError("not_allowed", "This extension may not use the network now.");
      made ??= make();
      return made.fetch(url, request);
    },
    listen: async () => {
      throw new PerdureError("not_allowed", "Extensions have no sockets.");
    },
  };
}
