import { PerdureError } from "../base/error.ts";
import { kebabCase } from "./kebab.ts";

/** The path segment between an agent and its child. No class may be called that. */
export const SUB_SEGMENT = "sub";

/** Finds the registered class name of a URL segment that was already percent-decoded. */
export type FindClass = (segment: string) => string | undefined;

/**
 * Makes the lookup from URL segments to registered class names.
 * @throws PerdureError `bad_config` when a name has no usable segment or two names share one.
 */
export function classTable(classNames: Iterable<string>): FindClass {
  const table = new Map<string, string>();
  for (const className of classNames) {
    const segment = kebabCase(className);
    if (segment === "" || segment === "." || segment === ".." || /[/\0]/.test(segment) || !segment.isWellFormed()) {
      throw new PerdureError(
        "bad_config",
        `The class name ${JSON.stringify(className)} cannot be used in a URL. Rename it.`,
      );
    }
    if (segment === SUB_SEGMENT) {
      throw new PerdureError(
        "bad_config",
        `The class name "${className}" becomes "${SUB_SEGMENT}" in URLs, which marks child agents. Rename it.`,
      );
    }
    const taken = table.get(segment);
    if (taken !== undefined && taken !== className) {
      throw new PerdureError(
        "bad_config",
        `The class names "${taken}" and "${className}" both become "${segment}" in URLs. Rename one of them.`,
      );
    }
    table.set(segment, className);
  }
  return (segment) => table.get(segment);
}
