import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import zlib from "node:zlib";
import type Database from "better-sqlite3";
import { PerdureError } from "../../../base/error.ts";
import { refuseUnknown } from "../../../base/known-options.ts";
import { atLeast } from "../../route-rules.ts";
import { openSqlite } from "../open-sqlite.ts";
import { type HostOptions, resolveLimits } from "../options.ts";
import { FOLDER_MODE } from "../private-files.ts";
import { ClusterStorage } from "./cluster-storage.ts";
import { PgEngine } from "./pg-engine.ts";

/** Where a host keeps its agents, if not in its own directory: a PostgreSQL database. */
export interface ClusterOptions {
  /** `postgres://user:password@host/database`. Its tables are made at the first start; their names begin with `perdure_`. */
  readonly url: string;
  /** How long a process may be silent before another one takes its agents over. Default 3 s. */
  readonly ttlMs?: number;
}

const DEFAULT_TTL_MS = 3_000;
const LEAST_TTL_MS = 500;
const IDLE_MS = 30_000;
/** A whole database is read when an agent is first used, so here it may not be as large as on a disk. */
const DATABASE_BYTES = 256 * 1024 * 1024;
const QUEUE_BYTES = 64 * 1024 * 1024;
const LOCK = "cluster-cache.db";

/** Enters a cluster. @throws PerdureError `bad_config`, `database_newer`, `directory_locked` */
export async function openCluster(options: ClusterOptions, host: HostOptions): Promise<ClusterStorage> {
  refuseUnknown(options, { url: true, ttlMs: true }, "serve(): cluster");
  const { url } = options;
  if (typeof (url as unknown) !== "string" || !/^postgres(ql)?:\/\//.test(url)) {
    throw new PerdureError("bad_config", "`cluster.url` must be the address of a PostgreSQL database: postgres://…");
  }
  if (host.storage !== undefined) {
    throw new PerdureError("bad_config", "`cluster` and `storage` are two places for the same agents. Leave one out.");
  }
  if (!("zstdCompressSync" in zlib)) {
    throw new PerdureError("bad_config", `\`cluster\` needs Node 22.15 or later; this is ${process.version}.`);
  }
  const ttlMs = atLeast(LEAST_TTL_MS, options.ttlMs ?? DEFAULT_TTL_MS, "cluster.ttlMs");
  const limits = resolveLimits({ databaseBytes: DATABASE_BYTES, ...host.limits });
  const cache = openCache(host.dir);
  const { onCommit } = host;
  let commits = 0;
  try {
    const engine = await PgEngine.open(url);
    try {
      const storage = await ClusterStorage.open({
        engine,
        dir: cache.dir,
        address: os.hostname(),
        ttlMs,
        idleMs: host.idleMs ?? IDLE_MS,
        openDatabases: limits.openDatabases,
        databaseBytes: limits.databaseBytes,
        queueBytes: QUEUE_BYTES,
        closed: cache.close,
        ...(onCommit !== undefined && { onCommit: (id: string) => onCommit(++commits, id) }),
      });
      return storage;
    } catch (thrown) {
      await engine.close();
      throw thrown;
    }
  } catch (thrown) {
    cache.close();
    throw thrown;
  }
}

/** Takes a directory for files that may be lost at any time, and empties it. Default: one of its own, which goes in the end. */
function openCache(given: string | undefined): { readonly dir: string; readonly close: () => void } {
  if (given === undefined) {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), "perdure-cache-"));
    return { dir, close: () => fs.rmSync(dir, { recursive: true, force: true }) };
  }
  fs.mkdirSync(given, { recursive: true, mode: FOLDER_MODE });
  const names = fs.readdirSync(given);
  if (names.length > 0 && !names.includes(LOCK)) {
    throw new PerdureError(
      "bad_config",
      `The directory ${given} holds other things. With \`cluster\`, \`dir\` is a cache that is emptied at each start: give an empty one, or none.`,
    );
  }
  const lock = takeLock(path.join(given, LOCK), given);
  fs.rmSync(path.join(given, "agents"), { recursive: true, force: true });
  return { dir: given, close: () => lock.close() };
}

/** The system frees it however the process dies. */
function takeLock(file: string, dir: string): Database.Database {
  const db = openSqlite(file, { timeout: 0 });
  try {
    db.pragma("locking_mode = EXCLUSIVE");
    // A write: only that takes the lock.
    db.pragma("user_version = 1");
    return db;
  } catch (thrown) {
    db.close();
    throw new PerdureError(
      "directory_locked",
      `The cache directory ${dir} is in use by another process. Give each its own.`,
      {
        cause: thrown,
      },
    );
  }
}
