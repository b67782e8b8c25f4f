import { PerdureError } from "../../base/error.ts";
import { InOrderByKey } from "../../base/in-order.ts";
import type { AgentHost } from "../../port.ts";
import { Bodies } from "./bodies.ts";
import { blobFiles, type LargeFiles } from "./large-files.ts";
import type { Realm } from "./restore.ts";
import { Tree } from "./tree.ts";
import type { WorkspaceChange } from "./types.ts";
import { Versions } from "./versions.ts";

const NAMESPACE = /^[A-Za-z0-9_.-]{1,64}$/;

/** What a workspace needs of an agent. */
type WorkspaceHost = Pick<
  AgentHost,
  "id" | "sql" | "tx" | "clock" | "blobs" | "durable" | "afterTx" | "breathe" | "keepAwake"
>;

/** Hears of changes. Must not throw. */
export type WorkspaceListener = (change: WorkspaceChange) => void;

/** One namespace of an agent: the same object for all who work on it, because some of what it knows is in memory. */
export interface SharedRealm extends Realm {
  readonly host: WorkspaceHost;
  readonly largeFiles: LargeFiles;
  /** Deletes what a crash left, the first time that this is called. */
  sweepOnce(): void;
  /** Changes of one file that others were quicker than. */
  readonly turns: InOrderByKey<string>;
}

const realms = new WeakMap<WorkspaceHost, Map<string, SharedRealm>>();
const listeners = new WeakMap<WorkspaceHost, Map<string, Set<WorkspaceListener>>>();

/** @throws PerdureError `bad_config` for a name that cannot be one */
export function checkNamespace(ns: string): string {
  if (typeof ns === "string" && NAMESPACE.test(ns)) return ns;
  throw new PerdureError(
    "bad_config",
    `A namespace is 1 to 64 letters, digits, "_", "." and "-", not ${JSON.stringify(ns)}.`,
  );
}

/** Those who hear of changes in a namespace, whoever makes them. */
export function listenersOf(host: WorkspaceHost, ns: string): Set<WorkspaceListener> {
  return entryOf(listeners, host, ns, () => new Set<WorkspaceListener>());
}

/**
 * Opens a namespace. Whoever is first says where large files are.
 * @throws PerdureError `bad_config` when somebody else said another place
 */
export function realmOf(host: WorkspaceHost, ns: string, largeFiles: LargeFiles | undefined): SharedRealm {
  const realm = entryOf(realms, host, ns, () => openRealm(host, ns, largeFiles));
  if (largeFiles === undefined || realm.largeFiles === largeFiles) return realm;
  throw new PerdureError(
    "bad_config",
    `The namespace "${ns}" is already used with another place for large files. Create one Workspace and share it.`,
  );
}

function openRealm(host: WorkspaceHost, ns: string, largeFiles = blobFiles(host)): SharedRealm {
  const versions = new Versions(host, ns);
  const bodies = new Bodies(host, ns, largeFiles);
  const changed = (change: WorkspaceChange) => {
    for (const listener of listenersOf(host, ns)) listener(change);
  };
  const tree = new Tree({ host, ns, versions, bodies, changed });
  let isSwept = false;
  return {
    ...{ host, ns, versions, bodies, tree, largeFiles, turns: new InOrderByKey<string>() },
    sweepOnce() {
      if (isSwept) return;
      isSwept = true;
      const swept = bodies.sweep();
      // What cannot be deleted now is found again in the next life.
      swept.catch(() => {});
      host.keepAwake(swept).catch(() => {});
    },
  };
}

function entryOf<T>(all: WeakMap<WorkspaceHost, Map<string, T>>, host: WorkspaceHost, ns: string, make: () => T): T {
  let own = all.get(host);
  if (own === undefined) all.set(host, (own = new Map<string, T>()));
  let entry = own.get(ns);
  if (entry === undefined) own.set(ns, (entry = make()));
  return entry;
}
