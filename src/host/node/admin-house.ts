import fs from "node:fs";
import type { AdminHouse, AgentCopies, RunningHouse } from "../../admin/house.ts";
import type { AgentEvent } from "../../base/event.ts";
import { leafOf, parseAgentId } from "../../wire/agent-path.ts";
import { packageVersion } from "./package-root.ts";
import type { Registry } from "../registry.ts";
import type { Publish } from "../reach.ts";
import type { Residents } from "../residents.ts";
import type { Storage } from "../storage.ts";

/** Events of one host for those who watch it. */
interface EventTap {
  readonly publish: Publish;
  readonly follow: RunningHouse["follow"];
}

/** Has events go on as before, and to whoever follows. Costs nothing while nobody does. */
export function tapEvents(publish: Publish, now: () => number): EventTap {
  const listeners = new Set<(event: AgentEvent) => void>();
  return {
    publish(path, id, type, payload) {
      publish(path, id, type, payload);
      if (listeners.size === 0) return;
      const leaf = path[path.length - 1] ?? path[0];
      const event = { type, agent: leaf.className, name: leaf.name, id, payload, timestamp: now() } as AgentEvent;
      for (const listener of listeners) listener(event);
    },
    follow(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** What a running host opens to operators. */
export function runningHouse(parts: {
  readonly residents: Residents;
  readonly registry: Registry;
  readonly storage: Storage;
  readonly tap: EventTap;
  readonly dir: string | undefined;
}): AdminHouse {
  const { residents, registry, storage, tap, dir } = parts;
  return {
    describe: () => ({
      ...place(dir),
      running: true,
      ok: !residents.stopping,
      ...residents.counts,
      classes: registry.names,
      pid: process.pid,
      uptimeMs: Math.round(process.uptime() * 1000),
      memoryBytes: process.memoryUsage().rss,
    }),
    list: (after, limit) => storage.index.list(after, limit),
    has: (id) => storage.index.has(id),
    isAwake: (id) => residents.isAwake(id),
    look: (id, read) => residents.look(id, read),
    breathe: residents.breathe,
    remove: (path) => residents.remove(path),
    audit: storage.audit,
    copies: storage.copies && copiesOf(storage.copies, residents, registry),
    running: {
      call: (path, method, args) => residents.call(path, method, args),
      request: (path, request, rest, identity) => residents.request(path, request, rest, identity, false),
      follow: tap.follow,
    },
  };
}

/** Agents that are taken in go on with what they did, if they are to. */
function copiesOf(copies: AgentCopies, residents: Residents, registry: Registry): AgentCopies {
  return {
    ...copies,
    async adopt(newcomer, rows) {
      await copies.adopt(newcomer, rows);
      const path = parseAgentId(newcomer.id);
      const goesOn = newcomer.awake || newcomer.due !== null;
      if (goesOn && registry.has(leafOf(path).className)) residents.resident(path).wakeUp();
    },
  };
}

/** Where a host or a directory is, and what reads it. */
export function place(dir: string | undefined) {
  return { version: packageVersion(), node: process.version, dir: dir === undefined ? null : fs.realpathSync(dir) };
}
