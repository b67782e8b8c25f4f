import { PerdureError } from "../../../base/error.ts";
import { namesOf, refuseUnknown } from "../../../base/known-options.ts";
import { checkPackages, type PackageList } from "./package-names.ts";

/** What to install, and where. */
export interface InstallPackagesOptions {
  readonly packages: PackageList;
  /** An absolute path of a folder of its own, outside of workspaces and of your project. It is made if it is missing. */
  readonly store: string;
  /** Versions that were published less than this many days ago are not taken. Default: no bound. */
  readonly minimumAgeDays?: number;
  /** Default: 5 minutes. */
  readonly timeoutMs?: number;
  /** The program and its first arguments. Default: `npm`. */
  readonly npm?: readonly string[];
}

const installPackagesOptionsNames = namesOf<InstallPackagesOptions>()("packages store minimumAgeDays timeoutMs npm");

/** What is in the store now. */
export interface InstalledPackages {
  readonly installed: Readonly<Record<string, string>>;
}

const DEFAULT_TIMEOUT_MS = 300_000;

/**
 * Installs packages for `createPackageBundler`, with npm and without their scripts. For the operator, ahead of use: when an app
 * is built or started, never in a turn. The lockfile stays in the store.
 * @throws PerdureError `bad_config` for names, versions or a store that cannot work, `call_failed` with npm's words, `timeout`
 */
export async function installPackages(options: InstallPackagesOptions): Promise<InstalledPackages> {
  refuseUnknown(options, installPackagesOptionsNames, "installPackages()");
  checkPackages(options.packages);
  if (!/^(?:\/[^/]|[A-Za-z]:[\\/][^\\/])/.test(options.store)) {
    throw new PerdureError("bad_config", "installPackages: `store` must be an absolute path to a separate folder.");
  }
  const { install } = await import("./node/install.ts");
  return install({ ...options, timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS, npm: options.npm ?? ["npm"] });
}
