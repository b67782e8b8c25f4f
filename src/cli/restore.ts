import fs from "node:fs";
import path from "node:path";
import { PerdureError } from "../base/error.ts";
import { type Backup, BackupFolder, type BackupLine, namesOf, placeOf } from "./backup-folder.ts";
import { type Call, type Item, NotHeld, one } from "./call.ts";
import { renamed } from "./copy-agents.ts";
import { inParallel, Progress } from "./progress.ts";

const AT_ONCE = 8;

/** Says which bytes of a backup are missing or damaged, by reading all of them. @param list what was erased, of a newer backup */
export async function findDamage(folder: BackupFolder, { head, lines }: Backup, list = head.host): Promise<Item[]> {
  const owner = new Map<string, string>([head.host, list].map((name) => [name, "host.db"]));
  for (const { id, sha256, blobs } of lines) for (const name of [sha256, ...blobs]) owner.set(name, id);
  const names = [...new Set([...namesOf({ head, lines }), list])];
  const progress = new Progress("files checked", names.length);
  const { digestOfFile } = await import("../host/node/restored.ts");
  const bad: Item[] = [];
  await inParallel(names, AT_ONCE, async (name) => {
    const digest = await digestOfFile(folder.file(name));
    const id = owner.get(name);
    if (digest !== name)
      bad.push({ id, ok: false, file: placeOf(name), error: digest === undefined ? "missing" : "damaged" });
    progress.step();
  });
  progress.end();
  return bad;
}

/** Reads a backup, all of whose bytes are right. @throws NotHeld */
async function readWhole(from: string, number: number | undefined, only: (line: BackupLine) => boolean) {
  const folder = new BackupFolder(from);
  const backup = folder.read(number);
  const lines = backup.lines.filter(only);
  const newest = folder.read().head;
  const [bad, ...more] = await findDamage(folder, { head: backup.head, lines }, newest.host);
  if (bad !== undefined)
    throw new NotHeld(
      `The backup cannot be used: ${String(bad["file"])} is ${String(bad["error"])}${more.length > 0 ? `, and ${more.length} more` : ""}. Nothing was restored.`,
    );
  return { folder, head: backup.head, lines, newest };
}

/** Puts a backup into a directory, which is empty or new. What was erased since stays erased. */
export async function restoreAll(dir: string, from: string, number: number | undefined): Promise<Item> {
  const names = fs.existsSync(dir) ? fs.readdirSync(dir) : [];
  if (names.length > 0)
    throw new PerdureError(
      "bad_config",
      `${path.resolve(dir)} is not empty. A backup is restored into an empty directory: name another with --dir, or one agent with --agent.`,
    );
  const { folder, head, lines, newest } = await readWhole(from, number, () => true);
  const { openRestoring } = await import("../host/node/restored.ts");
  const place = openRestoring(dir, folder.file(newest.host));
  let erased = 0;
  try {
    const progress = new Progress("agents restored", lines.length);
    await inParallel(lines, AT_ONCE, async (line) => {
      const file = (name: string) => folder.file(name);
      if (!(await place.adopt(line, file))) erased++;
      progress.step();
    });
    progress.end();
  } catch (thrown) {
    await place.close("cut off");
    throw thrown;
  }
  await place.close(`backup ${head.backup}`);
  return { backup: head.backup, at: head.at, agents: lines.length - erased, erased };
}

/** Puts one agent of a backup, with all below it, into a host or a directory that has none of that name. */
export async function restoreOne(
  call: Call,
  from: string,
  number: number | undefined,
  agent: { readonly id: string; readonly name: string; readonly evenDeleted: boolean },
): Promise<Item> {
  const { folder, head, lines } = await readWhole(from, number, ({ id }) => renamed(id, agent.id, "") !== undefined);
  if (lines.length === 0)
    throw new PerdureError("not_found", `The backup ${head.backup} has no agent ${agent.id}. Ids are Class/name.`);
  for (const line of lines) {
    const { id, sha256, blobs, erased, awake, due } = line;
    const files = { rows: folder.file(sha256), blobs: blobs.map((name) => [name, folder.file(name)] as const) };
    await send(call, renamed(id, agent.id, agent.name) ?? id, files, {
      from: id,
      erased: String(erased),
      ...(agent.evenDeleted && { deleted: "true" }),
      // Under another name it is to be looked at, and does nothing that the first one has done or will do.
      ...(agent.id === agent.name && { awake: String(awake), ...(due !== null && { due: String(due) }) }),
    });
  }
  return { backup: head.backup, at: head.at, agents: lines.length, erased: 0 };
}

/** Sends an agent to a host: its files, then its rows, which make it one. */
export async function send(
  call: Call,
  id: string,
  files: { readonly rows: string; readonly blobs: readonly (readonly [name: string, file: string])[] },
  about: Readonly<Record<string, string>>,
): Promise<void> {
  const place = `agents/${encodeURIComponent(id)}`;
  for (const [name, file] of files.blobs) await one(call, "PUT", `${place}/blobs/${name}`, await fs.openAsBlob(file));
  const asked = new URLSearchParams(about);
  await one(call, "PUT", `${place}/rows?${asked.toString()}`, await fs.openAsBlob(files.rows));
}
