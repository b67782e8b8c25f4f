import fs from "node:fs";
import path from "node:path";
import { randomUUID } from "node:crypto";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import type { AgentCopy } from "../../admin/house.ts";
import { errorText } from "../../base/error.ts";
import { tryParseJson } from "../../base/json.ts";
import { listCells } from "../../store/cell.ts";
import { schemaVersion, migrations } from "../../store/migrations.ts";
import { checkRows } from "./newcomer.ts";
import { openSqlite, plainSql } from "./open-sqlite.ts";

/** Says what is wrong with one agent, by a copy of its rows: nobody waits for it but whoever asks. */
export async function findFlaws(scratch: string, blobDir: string, copy: () => Promise<AgentCopy>): Promise<string[]> {
  const file = path.join(scratch, `${randomUUID()}.check`);
  try {
    const { rows } = await copy();
    await pipeline(Readable.fromWeb(rows as Parameters<typeof Readable.fromWeb>[0]), fs.createWriteStream(file));
    return flawsOf(file, blobDir);
  } catch (thrown) {
    return [errorText(thrown)];
  } finally {
    for (const suffix of ["", "-wal", "-shm"]) await fs.promises.rm(file + suffix, { force: true });
  }
}

/** Says what is wrong with rows in a file that nobody else uses, and with the files that they name. @param blobDir undefined: not known */
export function flawsOf(file: string, blobDir: string | undefined): string[] {
  const db = openSqlite(file, { fileMustExist: true });
  try {
    db.pragma("locking_mode = EXCLUSIVE");
    const flaws = checkRows(db);
    const schema = schemaVersion(plainSql(db));
    const newest = migrations.at(-1)?.id ?? 0;
    if (schema > newest) flaws.push(`its schema is ${schema}, and this version knows schemas up to ${newest}`);
    if (flaws.length > 0 || blobDir === undefined) return flaws;
    const lost = filesNamed(db).filter((name) => !fs.existsSync(path.join(blobDir, name)));
    return lost.map((name) => `the file ${name} is missing`);
  } finally {
    db.close();
  }
}

/** Files that messages refer to. */
function filesNamed(db: Parameters<typeof plainSql>[0]): string[] {
  const prefix = "file:";
  return listCells(plainSql(db), prefix).flatMap(({ key, value }) => {
    const info = tryParseJson(value) as { pending?: boolean; expired?: boolean } | undefined;
    return info?.pending === true || info?.expired === true ? [] : [key.slice(prefix.length)];
  });
}
