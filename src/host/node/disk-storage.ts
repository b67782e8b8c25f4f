import fs from "node:fs";
import path from "node:path";
import { PerdureError } from "../../base/error.ts";
import type { Storage, TxListener } from "../storage.ts";
import { onlyLooks } from "../look-into.ts";
import { agentFileName, DiskAgentFile } from "./agent-file.ts";
import { AgentDatabase, type DatabaseEvents } from "./database.ts";
import { diskBlobs } from "./disk-blobs.ts";
import { diskCopies } from "./disk-copies.ts";
import { HandlePool } from "./handle-pool.ts";
import { HostDb } from "./host-db.ts";
import { closeToOthers, FOLDER_MODE } from "./private-files.ts";
import { SpareFiles } from "./spare-files.ts";
import { toStartError } from "./start-error.ts";
import { openEmpty, templateBytes } from "./open-sqlite.ts";

/** Stands in a directory while a backup is put into it. */
export const RESTORING = "restoring";

/** Bounds of a storage on disk. */
interface DiskLimits {
  /** The most databases open at a time. */
  readonly openDatabases: number;
  /** The largest database of one agent, in bytes. */
  readonly databaseBytes: number;
  /** How long to wait for another process to let go of the directory. Default 0. */
  readonly lockWaitMs?: number;
  /** A backup is being put into it. */
  readonly isRestored?: boolean;
}

/**
 * Everything in one directory: `host.db` (index and lock), `agents/` (a database each) and `blobs/`. @throws PerdureError
 * `directory_locked`, `directory_read_only`, `disk_full`, `database_corrupt`, `bad_config` when it cannot be used
 */
export function openDiskStorage(dir: string, limits: DiskLimits, onCommit?: (id: string) => void): Storage {
  const { index, spares } = openFiles(dir, limits, onCommit);
  const pool = new HandlePool(limits.openDatabases, openEmpty());
  pool.onCommit = onCommit;
  const fileOf = (id: string) => new DiskAgentFile(dir, id, spares, limits.databaseBytes);
  const blobDir = (id: string) => path.join(dir, "blobs", path.basename(agentFileName(id), ".db"));
  const inUse = new Map<string, AgentDatabase>();
  const copied = new Map<string, AgentDatabase>();
  const openIn = (known: Map<string, AgentDatabase>, id: string, listener: TxListener): AgentDatabase => {
    // A file has one owner: whoever only copies it gives way.
    void copied.get(id)?.release();
    const released = () => void (known.get(id) === opened && known.delete(id));
    const events = { ...indexed(index, id, listener), released };
    const opened = new AgentDatabase(id, fileOf(id), pool, diskBlobs(blobDir(id)), events);
    known.set(id, opened);
    return opened;
  };

  return {
    index,
    notices: index.notices,
    audit: index.audit,
    copies: diskCopies({
      ...{ dir, index, inUse, blobDir, scratch: path.join(dir, "spare") },
      open: (id) => openIn(copied, id, onlyLooks),
    }),
    open: (id, listener) => openIn(inUse, id, listener),
    async remove(id) {
      await fileOf(id).remove();
      await fs.promises.rm(blobDir(id), { recursive: true, force: true });
      index.removed(id);
    },
    durable: () => index.durable(),
    async close() {
      await spares.close();
      pool.closeAll();
      index.close();
    },
  };
}

function openFiles(dir: string, limits: DiskLimits, onCommit: ((id: string) => void) | undefined) {
  let index: HostDb | undefined;
  try {
    fs.mkdirSync(dir, { recursive: true, mode: FOLDER_MODE });
    if (limits.isRestored !== true && fs.existsSync(path.join(dir, RESTORING)))
      throw new PerdureError(
        "bad_config",
        `A backup was being put into ${dir}, and that was cut off. Delete all that is in it, and restore again.`,
      );
    closeToOthers(dir);
    index = new HostDb(dir, onCommit && (() => onCommit("")), limits.lockWaitMs);
    return { index, spares: new SpareFiles(path.join(dir, "spare"), templateBytes()) };
  } catch (thrown) {
    try {
      index?.close();
    } catch {
      // What was thrown first says why.
    }
    throw toStartError(thrown, dir);
  }
}

/** The index hears of an agent before its first row is there. */
export function indexed(
  index: { has(id: string): boolean; wake(id: string): void; durable(): Promise<void> },
  id: string,
  listener: TxListener,
): DatabaseEvents {
  let created: Promise<void> | undefined;
  return {
    refusal: () => listener.refusal(),
    mark: () => listener.mark(),
    rolledBack: (mark: number) => listener.rolledBack(mark),
    committed: () => listener.committed(),
    firstWrite() {
      if (!index.has(id)) created = listener.created?.();
      index.wake(id);
    },
    async sync(rows) {
      if (created !== undefined) await created;
      // Together: nobody is told of the rows before both are there.
      await Promise.all([index.durable(), rows()]);
    },
  };
}
