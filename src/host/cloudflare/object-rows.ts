import { concat } from "../../base/bytes.ts";
import { sha256 } from "../../base/hash.ts";
import type { Blobs } from "../../port.ts";
import type { ObjectStorage } from "./platform.ts";

/** A value holds at most 2 MB on this platform. */
const PART_BYTES = 1024 * 1024;

const TABLE = `CREATE TABLE IF NOT EXISTS perdure_blob (
  name TEXT NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (name, part)) STRICT, WITHOUT ROWID`;

/** Whether something was ever stored: an address that was only looked at has no tables. */
export function hasTables({ sql }: ObjectStorage): boolean {
  return sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'perdure_migration'").toArray().length > 0;
}

/** An agent's large bytes as rows beside its others. @param wrote something was stored or deleted */
export function rowBlobs(storage: ObjectStorage, wrote: () => void): Blobs {
  const hasTable = () =>
    storage.sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'perdure_blob'").toArray().length > 0;
  return {
    async put(given) {
      // Its owner may change it while it is hashed.
      const bytes = given.slice();
      const name = await sha256(bytes);
      storage.transactionSync(() => {
        storage.sql.exec(TABLE);
        for (let part = 0; part === 0 || part * PART_BYTES < bytes.length; part++) {
          const some = bytes.slice(part * PART_BYTES, (part + 1) * PART_BYTES);
          storage.sql.exec("INSERT OR IGNORE INTO perdure_blob (name, part, bytes) VALUES (?, ?, ?)", name, part, some);
        }
      });
      wrote();
      await storage.sync();
      return name;
    },
    get(name) {
      const parts = hasTable()
        ? storage.sql.exec("SELECT bytes FROM perdure_blob WHERE name = ? ORDER BY part", name).toArray()
        : [];
      if (parts.length === 0) return Promise.resolve(undefined);
      return Promise.resolve(concat(parts.map(({ bytes }) => new Uint8Array(bytes as ArrayBuffer))));
    },
    delete(name) {
      if (hasTable()) storage.sql.exec("DELETE FROM perdure_blob WHERE name = ?", name);
      return Promise.resolve();
    },
  };
}
