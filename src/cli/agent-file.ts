import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import { PerdureError } from "../base/error.ts";
import { packageVersion } from "../host/node/package-root.ts";
import { FILE_MODE } from "../host/node/private-files.ts";
import { all, answered, type Call, type Item } from "./call.ts";
import { fetchRows, piecesOf, renamed } from "./copy-agents.ts";
import { send } from "./restore.ts";
import { readTar, TarWriter } from "./tar.ts";

/*
 * One agent, with all below it, as a tar: for each a folder with `agent.json`, `rows.db` and `blobs/`, which are taken in again, and
 * `messages.jsonl`, for people and other programs.
 */

/** What `agent.json` says. */
interface Told {
  readonly perdure: string;
  readonly id: string;
  readonly schema: number;
}

const NAMES = /^(\d+)\/(agent\.json|rows\.db|messages\.jsonl|blobs\/[0-9a-f]{64})$/;

/** Writes an agent to a file, which must be new. */
export async function exportAgent(call: Call, id: string, to: string): Promise<Item> {
  const { messagesOf } = await import("../host/node/messages-of.ts");
  const { schemaOf } = await import("../host/node/newcomer.ts");
  const ids = ((await all(call, "backup")) as { id: string }[]).map((one) => one.id);
  const tree = ids.filter((one) => renamed(one, id, id) !== undefined);
  checkTop(id);
  if (!tree.includes(id)) throw new PerdureError("not_found", `There is no agent ${id}. Ids are Class/name.`);
  if (fs.existsSync(to)) throw new PerdureError("bad_config", `${to} is there already. Name a new file with --to.`);
  return inFolder(async (folder) => {
    const draft = `${to}.draft`;
    const tar = new TarWriter(draft);
    try {
      for (const [at, one] of tree.entries()) {
        const rows = path.join(folder, "rows.db");
        const { about, bytes } = await fetchRows(call, one);
        await pipeline(Readable.from(bytes), fs.createWriteStream(rows, { mode: FILE_MODE }));
        const told: Told = { perdure: packageVersion(), id: one, schema: schemaOf(rows) };
        tar.add(`${at}/agent.json`, `${JSON.stringify(told, null, 2)}\n`);
        tar.add(
          `${at}/messages.jsonl`,
          messagesOf(rows)
            .map((line) => `${JSON.stringify(line)}\n`)
            .join(""),
        );
        tar.addFile(`${at}/rows.db`, rows);
        for (const name of about.blobs) {
          const file = path.join(folder, name);
          const sent = await answered(call, "GET", `agents/${encodeURIComponent(one)}/blobs/${name}`);
          await pipeline(Readable.from(piecesOf(sent)), fs.createWriteStream(file, { mode: FILE_MODE }));
          tar.addFile(`${at}/blobs/${name}`, file);
          fs.rmSync(file);
        }
        fs.rmSync(rows);
      }
      tar.end();
      fs.renameSync(draft, to);
    } finally {
      tar.close();
      fs.rmSync(draft, { force: true });
    }
    return { id, agents: tree.length, bytes: fs.statSync(to).size };
  });
}

/** Takes in an agent from a file. @param name what it is to be called; undefined: as it was */
export async function importAgent(call: Call, file: string, name: string | undefined): Promise<Item> {
  return inFolder(async (folder) => {
    const found = new Map<string, { told?: Told; rows?: string; blobs: [string, string][] }>();
    readTar(file, (entry) => {
      const [, at = "", what = ""] = NAMES.exec(entry) ?? [];
      if (at === "" || what === "messages.jsonl") return undefined;
      const known = found.get(at) ?? { blobs: [] };
      found.set(at, known);
      const into = path.join(folder, `${at}-${path.basename(what)}`);
      if (what === "rows.db") known.rows = into;
      else if (what !== "agent.json") known.blobs.push([path.basename(what), into]);
      return {
        into,
        done: () => what === "agent.json" && (known.told = JSON.parse(fs.readFileSync(into, "utf8")) as Told),
      };
    });
    const agents = [...found.values()];
    const top = agents[0]?.told?.id;
    if (top === undefined || agents.some(({ told, rows }) => told === undefined || rows === undefined))
      throw new PerdureError("bad_input", `${file} is no agent that "perdure export" wrote, or it is cut off.`);
    for (const { told, rows = "", blobs } of agents) {
      const id = renamed(told?.id ?? "", top, name ?? top);
      if (id === undefined) throw new PerdureError("bad_input", `${file} holds agents that do not belong together.`);
      // Under its own name it goes on with what is due.
      await send(call, id, { rows, blobs }, { from: told?.id ?? id, ...(name === undefined && { awake: "true" }) });
    }
    return { id: name ?? top, agents: agents.length };
  });
}

/** Children come with the agent at the top, which lists them. @throws PerdureError `bad_input` */
export function checkTop(id: string): void {
  if (id.split("/").length === 2) return;
  throw new PerdureError(
    "bad_input",
    `${id} is no agent at the top. Children come with theirs: name that one, as Class/name.`,
  );
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "perdure-agent-"));
  try {
    return await work(folder);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}
