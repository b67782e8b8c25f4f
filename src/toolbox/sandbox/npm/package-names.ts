import { PerdureError } from "../../../base/error.ts";

/** Which packages there are: their names with an exact version, a range, or `true` for any. */
export type PackageList = Readonly<Record<string, string | true>>;

const namePart = /^[a-z0-9][a-z0-9._-]{0,100}$/;
/** Only what is in a registry: no folders, archives, repositories or other names for packages. */
const versionText = /^(?:latest|[\^~]?\d{1,6}(?:\.\d{1,6}){0,2}(?:-[0-9A-Za-z.-]{1,60})?)$/;
const exactVersion = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/;

/** @throws PerdureError `bad_config` for names and versions that an installer might take for something else */
export function checkPackages(packages: PackageList): void {
  for (const [name, version] of Object.entries(packages)) {
    if (packageOf(name) !== name) throw new PerdureError("bad_config", `"${name}" is not the name of a package.`);
    if (version !== true && !versionText.test(version)) {
      throw new PerdureError(
        "bad_config",
        `The version of "${name}" must be like 4.1.0, ^4.1.0 or latest, not "${String(version)}".`,
      );
    }
  }
}

/** Whether a version in the list is one version and no range. */
export function isExact(version: string | true): version is string {
  return version !== true && exactVersion.test(version);
}

/** The package an import names (`@a/b` of `@a/b/c`); `undefined` for paths, URLs, Node modules and escapes from a package. */
export function packageOf(specifier: string): string | undefined {
  const parts = specifier.split("/");
  const scoped = specifier.startsWith("@");
  const name = parts.slice(0, scoped ? 2 : 1);
  const [first = "", second = ""] = name;
  const isName = scoped ? namePart.test(first.slice(1)) && namePart.test(second) : namePart.test(first);
  if (!isName || name.some((part) => part === "node_modules")) return undefined;
  const rest = parts.slice(name.length);
  const plain = rest.every(
    (part) => /^[\w.@~+-]{1,100}$/.test(part) && !/^\.{1,2}$/.test(part) && part !== "node_modules",
  );
  return plain ? name.join("/") : undefined;
}
