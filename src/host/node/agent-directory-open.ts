import { PerdureError } from "../../base/error.ts";
import { type AgentClasses, namedClasses } from "../registry.ts";
import { findAgents } from "./agent-directory.ts";
import type { FoundAgents } from "./agent-directory.ts";
import { watchAgents } from "./agent-directory-watch.ts";
import type { Host } from "./create-host.ts";
import type { HostOptions } from "./options.ts";

type Classes = Pick<HostOptions, "agents" | "subAgents">;

/** What the agents of a host come from. */
interface AgentSource extends Pick<HostOptions, "subAgents"> {
  readonly agents: AgentClasses | string | URL;
  readonly watch?: boolean;
}

/** Classes that were found, and the watch that keeps a host up to date with them, if there is one. */
export interface OpenedAgents {
  readonly classes: Classes;
  /** From now on this host is given the classes that change. */
  follow(host: Pick<Host, "replaceAgents">): void;
  close(): void;
}

/** Loads and watches the agents directory, as far as that is wanted. @throws PerdureError `bad_config` */
export async function openAgents(source: AgentSource): Promise<OpenedAgents> {
  const { agents, subAgents = {} } = source;
  if (typeof agents !== "string" && !(agents instanceof URL)) {
    if (source.watch === true) {
      throw new PerdureError("bad_config", '`watch` needs `agents` to be a directory, such as "./agents".');
    }
    return { classes: { agents, subAgents }, follow: () => {}, close: () => {} };
  }
  const withOthers = (found: FoundAgents): Classes => ({
    agents: found.agents,
    subAgents: addTo(found.subAgents, subAgents),
  });
  if (!isWatched(source.watch)) {
    return { classes: withOthers(await findAgents(agents)), follow: () => {}, close: () => {} };
  }
  let host: Pick<Host, "replaceAgents"> | undefined;
  const watched = await watchAgents(agents, { onChange: (found) => host?.replaceAgents(withOthers(found)) });
  return {
    classes: withOthers(watched),
    follow: (one) => (host = one),
    close: () => watched.close(),
  };
}

/** Production never: old modules would pile up in memory, and a deploy would be taken apart file by file. */
function isWatched(wanted: boolean | undefined): boolean {
  const mode = process.env.NODE_ENV;
  return mode !== "production" && (wanted ?? mode === "development");
}

function addTo(found: FoundAgents["subAgents"], others: AgentClasses): FoundAgents["subAgents"] {
  const all = { ...found };
  for (const [name, cls] of namedClasses(others, "subAgents")) {
    if (Object.hasOwn(all, name) && all[name] !== cls) {
      throw new PerdureError(
        "bad_config",
        `"${name}" is in \`subAgents\` and in the agents directory. Register one of them under another name.`,
      );
    }
    all[name] = cls;
  }
  return all;
}
