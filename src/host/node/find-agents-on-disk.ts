import fs from "node:fs";
import path from "node:path";
import type Database from "better-sqlite3";
import type { AgentPath } from "../../port.ts";
import { readAgentId } from "../../store/agent-id.ts";
import { listChildren } from "../../store/child.ts";
import { agentId, parseAgentId } from "../../wire/agent-path.ts";
import { agentFileName, plainIdOf } from "./agent-file.ts";
import { openSqlite } from "./open-sqlite.ts";
import { plainSql } from "./open-sqlite.ts";

/** The agents whose files are in a directory. */
interface FoundAgents {
  readonly ids: readonly string[];
  /** Files, relative to the directory, of which nothing tells whose they are. */
  readonly unknown: readonly string[];
}

/**
 * Finds all agents from the files alone: by a file's name, by what stands in it, or, for old files that say nothing, by what
 * their parents call them. The hash in the name has to agree. Blocks; nothing may have one of the files open.
 */
export function findAgentsOnDisk(dir: string): FoundAgents {
  const unknown = new Set(listFiles(dir));
  const ids: string[] = [];
  const found = (id: string | undefined): boolean => {
    if (id === undefined || !unknown.delete(agentFileName(id))) return false;
    ids.push(id);
    return true;
  };
  for (const file of [...unknown]) {
    const id = plainIdOf(file) ?? look(path.join(dir, file), (db) => readAgentId(plainSql(db)));
    if (id !== undefined && isAgentId(id) && agentFileName(id) === file) found(id);
  }
  // Grows while it is gone through: children have children.
  for (const id of ids) {
    if (unknown.size === 0) break;
    const above = parseAgentId(id);
    const children = look(path.join(dir, agentFileName(id)), (db) => listChildren(plainSql(db))) ?? [];
    for (const { className, name } of children) found(childId(above, className, name));
  }
  return { ids: ids.toSorted(), unknown: [...unknown].toSorted() };
}

function listFiles(dir: string): string[] {
  const files: string[] = [];
  for (const folder of entriesOf(path.join(dir, "agents"))) {
    if (!folder.isDirectory()) continue;
    for (const { name } of entriesOf(path.join(dir, "agents", folder.name))) {
      if (name.endsWith(".db")) files.push(path.join("agents", folder.name, name));
    }
  }
  return files;
}

function entriesOf(folder: string): fs.Dirent[] {
  try {
    return fs.readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** @returns undefined also for a file that cannot be read: whoever uses the agent hears of that. */
function look<T>(file: string, read: (db: Database.Database) => T): T | undefined {
  let db: Database.Database | undefined;
  try {
    db = openSqlite(file, { fileMustExist: true });
    db.pragma("locking_mode = EXCLUSIVE");
    return read(db);
  } catch {
    return undefined;
  } finally {
    db?.close();
  }
}

function childId(above: AgentPath, className: string, name: string): string | undefined {
  try {
    return agentId([...above, { className, name }]);
  } catch {
    return undefined;
  }
}

function isAgentId(id: string): boolean {
  try {
    parseAgentId(id);
    return true;
  } catch {
    return false;
  }
}
