import { PerdureError } from "../error.ts";
import type { AgentHost } from "../port.ts";
import { Bodies } from "./bodies.ts";
import { blobFiles, type LargeFiles } from "./large-files.ts";
import type { Realm } from "./restore.ts";
import { Tree } from "./tree.ts";
import type { WorkspaceChange } from "./types.ts";
import { Versions } from "./versions.ts";

const NAMESPACE = /^[A-Za-z0-9_.-]{1,64}$/;

/** What a workspace needs of an agent. */
export type WorkspaceHost = Pick<
  AgentHost,
  "id" | "sql" | "tx" | "clock" | "blobs" | "durable" | "afterTx" | "breathe" | "keepAwake"
>;

/** Hears of changes. Must not throw. */
export type WorkspaceListener = (change: WorkspaceChange) => void;

/** One namespace of an agent: the same object for all who work on it, because some of what it knows is in memory. */
export interface SharedRealm extends Realm {
  readonly host: WorkspaceHost;
  readonly listeners: Set<WorkspaceListener>;
  /** Deletes what a crash left, the first time that this is called. */
  sweepOnce(): void;
}

const known = new WeakMap<WorkspaceHost, Map<string, SharedRealm>>();

/** How a namespace keeps what is large. Those who open it first say so. */
export interface RealmOptions {
  readonly largeFiles: LargeFiles | undefined;
  readonly inlineLimit: number;
}

/** @throws PerdureError `bad_config` for a name that cannot be one */
export function realmOf(host: WorkspaceHost, ns: string, options: RealmOptions): SharedRealm {
  if (typeof ns !== "string" || !NAMESPACE.test(ns))
    throw new PerdureError(
      "bad_config",
      `A namespace is 1 to 64 letters, digits, "_", "." and "-", not ${JSON.stringify(ns)}.`,
    );
  let realms = known.get(host);
  if (realms === undefined) known.set(host, (realms = new Map<string, SharedRealm>()));
  let realm = realms.get(ns);
  if (realm === undefined) realms.set(ns, (realm = openRealm(host, ns, options)));
  return realm;
}

function openRealm(host: WorkspaceHost, ns: string, { largeFiles, inlineLimit }: RealmOptions): SharedRealm {
  const versions = new Versions(host, ns);
  const bodies = new Bodies(host, ns, largeFiles ?? blobFiles(host), inlineLimit);
  const listeners = new Set<WorkspaceListener>();
  const tree = new Tree(host, ns, versions, bodies, (change) => {
    for (const listener of listeners) listener(change);
  });
  let isSwept = false;
  return {
    ...{ host, ns, versions, bodies, tree, listeners },
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
