import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { errorText, PerdureError } from "../../base/error.ts";
import { type HostedAgentClass, isAgentClass } from "../../port.ts";
import { shownPath } from "./agent-directory-scan.ts";

/**
 * Imports a file and finds its agent: the default export, or the one exported class that is an agent.
 * @throws PerdureError `bad_config` when the import fails (what it threw is the `cause`), or when there is no agent, or
 *   more than one and none is the default.
 */
export async function loadAgentFile(file: string): Promise<HostedAgentClass> {
  let exported: Readonly<Record<string, unknown>>;
  try {
    exported = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as typeof exported;
  } catch (thrown) {
    const words = `${shownPath(file)} could not be loaded: ${errorText(thrown)}${decoratorHint(file, thrown)}`;
    throw new PerdureError("bad_config", words, { cause: thrown });
  }
  if (isAgentClass(exported["default"])) return exported["default"];
  const candidates = new Map<HostedAgentClass, string>();
  for (const [name, value] of Object.entries(exported)) if (isAgentClass(value)) candidates.set(value, name);
  const [only] = candidates.keys();
  if (only !== undefined && candidates.size === 1) return only;
  if (only === undefined) {
    throw new PerdureError(
      "bad_config",
      `${shownPath(file)} exports no agent. Export a class that extends Agent, or the result of agent({ … }). If it is a helper, start its name with _.`,
    );
  }
  throw new PerdureError(
    "bad_config",
    `${shownPath(file)} exports several agents: ${[...candidates.values()].join(", ")}. Make one the default export, or give each its own file.`,
  );
}

/** Node only takes types away, and calls a decorator a wrong character. */
function decoratorHint(file: string, thrown: unknown): string {
  if (!(thrown instanceof SyntaxError) || !/^\s*@callable\b/m.test(readFileSync(file, "utf8"))) return "";
  return '. Node does not run decorators: compile the file, or write static { callable(this, "name"); } instead of @callable().';
}
