import { PerdureError } from "../../../base/error.ts";
import { namesOf, refuseUnknown } from "../../../base/known-options.ts";
import type { BundleLimits, createBench } from "./node/bench.ts";
import { checkPackages, type PackageList } from "./package-names.ts";

/** Which packages code in the sandbox may import, and where they are. */
export interface PackageBundlerOptions {
  /** Names of packages, each with the version that must be there, or `true`. What is not listed cannot be imported. */
  readonly packages: PackageList;
  /** An absolute path to the folder that holds `node_modules`, outside of any workspace. `installPackages` fills it. */
  readonly store: string;
  readonly limits?: Partial<BundleLimits>;
}

const packageBundlerOptionsNames = namesOf<PackageBundlerOptions>()("packages store limits");

/** Code, and what it imports. */
export interface BundledCode {
  readonly code: string;
  readonly modules: Readonly<Record<string, string>>;
}

/** Makes modules for the sandbox of packages. */
export interface PackageBundler {
  /** What can be imported. */
  readonly names: readonly string[];
  /**
   * The code unchanged, and each package that it imports as one ES module by its import name: both for a `RunRequest`. `own` are
   * further modules of the run; the result has them and what they import. No package code runs here.
   * @throws PerdureError `not_allowed` for an import that is refused (for the model to read), `limit`, `timeout`, `bad_input` for
   *   code that cannot be read, `bad_config` when esbuild or a package is missing
   */
  bundle(code: string, language?: "js" | "ts", own?: Readonly<Record<string, string>>): Promise<BundledCode>;
  /** Ends its process. It starts again when it is needed. */
  close(): Promise<void>;
}

const DEFAULT_LIMITS: BundleLimits = { timeoutMs: 20_000, bundleBytes: 4 << 20, cacheBytes: 32 << 20 };

/**
 * Lets code in the sandbox import listed packages. esbuild (an optional peer) bundles them in its own process, which reads only
 * the store. `installPackages` installs them.
 * @throws PerdureError `bad_config` for names, versions or a store that cannot work
 */
export function createPackageBundler(options: PackageBundlerOptions): PackageBundler {
  refuseUnknown(options, packageBundlerOptionsNames, "createPackageBundler()");
  const { packages, store } = options;
  checkPackages(packages);
  if (!/^(?:\/|[A-Za-z]:[\\/])/.test(store)) {
    throw new PerdureError(
      "bad_config",
      "createPackageBundler: `store` must be an absolute path to the folder of the packages.",
    );
  }
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  let bench: ReturnType<typeof createBench> | undefined;
  return {
    names: Object.keys(packages),
    async bundle(code, _language, own = {}) {
      const sources = [code, ...Object.values(own)];
      // Without one of these words nothing can be imported, and no process is needed.
      if (!sources.some((source) => /\b(?:import|require|export)\b/.test(source))) return { code, modules: own };
      const it = await import("./node/bench.ts");
      bench ??= it.createBench(packages, store, limits);
      return { code, modules: { ...own, ...(await bench.bundle(code, own)) } };
    },
    async close() {
      await bench?.close();
    },
  };
}
