import { createHash, randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { AgentCopies, AgentCopy, CopyAbout, Newcomer } from "../../admin/house.ts";
import { errorText, PerdureError } from "../../base/error.ts";
import { toSqlError } from "../sql-error.ts";
import { migrations } from "../../store/migrations.ts";
import { agentFileName } from "./agent-file.ts";
import type { AgentDatabase } from "./database.ts";
import { prepareNewcomer, schemaOf } from "./newcomer.ts";
import type { HostDb } from "./host-db.ts";
import type { Erasure } from "./host-db-erased.ts";
import { findFlaws } from "./flaws.ts";
import { FILE_MODE, makePrivateFile } from "./private-files.ts";
import { makeDirectory, syncDirectory } from "./wal-sync.ts";

/** Up to this size rows are copied in one piece, in about two milliseconds. */
const PIECE_BYTES = 1024 * 1024;
/** Some file systems note times this roughly. What changed later than this before now may have changed again unseen. */
const UNSURE_MS = 2_000;
/** An agent whose life ends in the middle of a long copy is copied anew, at most so often. */
const MAX_TRIES = 5;
const NAME = /^[0-9a-f]{64}$/;
/** As the list of erasures says that all of an agent was deleted. */
const WHOLE = "agent";

/** What copies ask of a directory that is open. */
interface CopiesPlace {
  readonly dir: string;
  readonly index: HostDb;
  /** Databases that are in use, by the ids of their agents. */
  readonly inUse: ReadonlyMap<string, AgentDatabase>;
  /** Opens the rows of an agent that nobody has open; lets go of them when somebody does. */
  open(id: string): AgentDatabase;
  /** Where an agent's files are. */
  blobDir(id: string): string;
  /** For files of a moment; emptied when the directory is opened. */
  readonly scratch: string;
}

/** Copies of the agents of a directory that is open, and agents taken into it. */
export function diskCopies(place: CopiesPlace): AgentCopies {
  const { index } = place;
  const blobDir = (id: string) => place.blobDir(id);
  const blobFile = (id: string, name: string) => path.join(blobDir(id), name);
  return {
    versionOf: (id) => versionOf(place, id),
    copy: (id) => copy(place, id),
    async blob(id, name) {
      if (!NAME.test(name)) return undefined;
      const file = await fs.promises.open(blobFile(id, name), "r").catch(() => undefined);
      return file && (Readable.toWeb(file.createReadStream()) as ReadableStream<Uint8Array>);
    },
    async putBlob(id, name, bytes) {
      if (!NAME.test(name)) throw new PerdureError("bad_input", "A file is named by its SHA-256.");
      refuseKnown(place, id);
      const draft = await receive(place, bytes);
      try {
        if (draft.sha256 !== name)
          throw new PerdureError("bad_input", `The bytes of the file ${name} have another SHA-256.`);
        makeDirectory(blobDir(id));
        await fs.promises.rename(draft.file, blobFile(id, name));
        await syncDirectory(blobDir(id));
      } finally {
        await fs.promises.rm(draft.file, { force: true });
      }
    },
    schemaOf(id) {
      const newest = migrations.at(-1)?.id ?? 0;
      // Whoever opens rows brings them up to date.
      const isNew = place.inUse.has(id) || !fs.existsSync(fileOf(place, id));
      return { schema: isNew ? newest : schemaOf(fileOf(place, id)), newest };
    },
    isErased: (id, erased) => isWhole(index.erasures.of(id, erased)),
    adopt: (newcomer, rows) => adopt(place, newcomer, rows),
    host: () => index.copy(),
    flaws: (id) => findFlaws(place.scratch, blobDir(id), () => copy(place, id)),
    orphans: () => orphansIn(place),
    backedUp: (at) => index.backedUp(at),
    lastBackup: () => index.lastBackup(),
  };
}

function fileOf({ dir }: CopiesPlace, id: string): string {
  return path.join(dir, agentFileName(id));
}

/** What a file system says of rows that nobody has open. */
function versionOf(place: CopiesPlace, id: string): string | null {
  if (place.inUse.has(id)) return null;
  const file = fileOf(place, id);
  const found = fs.statSync(file, { bigint: true, throwIfNoEntry: false });
  if (found === undefined || logged(file)) return null;
  if (Number(found.mtimeMs) > Date.now() - UNSURE_MS) return null;
  return `${found.ino}-${found.size}-${found.mtimeNs}`;
}

/** A log that a process which died has left. */
function logged(file: string): boolean {
  return (fs.statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

async function copy(place: CopiesPlace, id: string): Promise<AgentCopy> {
  for (let tries = 1; ; tries++) {
    const copied = copyAtOnce(place, id) ?? (await copyInPieces(place, id, tries));
    if (copied !== undefined) return copied;
  }
}

function aboutNow({ index, ...place }: CopiesPlace, id: string): CopyAbout {
  return {
    id,
    ...index.entry(id),
    erased: index.count,
    version: versionOf({ index, ...place }, id),
    blobs: namesIn(place.blobDir(id)).filter((name) => NAME.test(name)),
  };
}

/** Small rows: nothing happens between their copy and what is said about them. Undefined: they are not small. */
function copyAtOnce(place: CopiesPlace, id: string): AgentCopy | undefined {
  refuseUnknown(place, id);
  const file = fileOf(place, id);
  const size = fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size > PIECE_BYTES) return undefined;
  const about = aboutNow(place, id);
  const used = place.inUse.get(id);
  if (used !== undefined) return toCopy(about, used.serialize());
  // Nobody has it open, and nobody can open it before this returns.
  if (size > 0 && !logged(file)) return toCopy(about, fs.readFileSync(file));
  const looking = place.open(id);
  try {
    return toCopy(about, looking.serialize());
  } finally {
    void looking.release();
  }
}

function toCopy(about: CopyAbout, bytes: Uint8Array): AgentCopy {
  return { about, bytes: bytes.byteLength, rows: new Blob([Uint8Array.from(bytes)]).stream() };
}

/** Large rows, by way of a file. Undefined: they were let go of meanwhile, so it is to be tried again. */
async function copyInPieces(place: CopiesPlace, id: string, tries: number): Promise<AgentCopy | undefined> {
  const draft = path.join(place.scratch, `${randomUUID()}.copy`);
  makePrivateFile(draft);
  const used = place.inUse.get(id);
  // Whoever needs the agent meanwhile takes its rows away from this.
  const from = used ?? place.open(id);
  try {
    await from.copyTo(draft);
    refuseUnknown(place, id);
    const about = aboutNow(place, id);
    const handle = await fs.promises.open(draft, "r");
    const { size } = await handle.stat();
    await fs.promises.rm(draft);
    return { about, bytes: size, rows: Readable.toWeb(handle.createReadStream()) as ReadableStream<Uint8Array> };
  } catch (thrown) {
    await fs.promises.rm(draft, { force: true });
    if (from.isReleased && tries < MAX_TRIES) return undefined;
    if (!from.isReleased) throw toSqlError(thrown, id);
    throw new PerdureError("conflict", `${id} left memory again and again while it was copied. Try again later.`);
  } finally {
    if (used === undefined) void from.release();
  }
}

function isWhole(erasures: readonly Erasure[]): boolean {
  return erasures.some(({ scope }) => scope === WHOLE);
}

async function adopt(place: CopiesPlace, newcomer: Newcomer, rows: ReadableStream<Uint8Array>): Promise<void> {
  const { id, from, erased, evenDeleted, awake, due } = newcomer;
  const { index } = place;
  refuseKnown(place, id);
  const again = erased === null ? [] : index.erasures.of(from, erased);
  if (isWhole(again) && !evenDeleted)
    throw new PerdureError(
      "conflict",
      `${from} was deleted here after this copy was made, so it is not taken in. Where it was deleted by mistake, say so: --erased.`,
    );
  const draft = await receive(place, rows);
  try {
    const scopes = again.flatMap(({ scope }) => (scope === WHOLE ? [] : [scope]));
    await prepareNewcomer({ id, file: draft.file, blobDir: place.blobDir(id), again: scopes });
    // Again: it may have come into being meanwhile. From here on nothing interleaves.
    refuseKnown(place, id);
    const file = fileOf(place, id);
    makeDirectory(path.dirname(file));
    // What an agent of that name left, which was moved away by hand, is no log of these rows.
    for (const suffix of ["-wal", "-shm"]) fs.rmSync(file + suffix, { force: true });
    if (awake) index.wake(id);
    else index.settle(id, due);
    fs.renameSync(draft.file, file);
    await syncDirectory(path.dirname(file));
    await index.durable();
  } finally {
    await fs.promises.rm(draft.file, { force: true });
  }
}

function refuseUnknown({ index }: CopiesPlace, id: string): void {
  if (!index.has(id)) throw new PerdureError("not_found", `There is no agent ${id}.`);
}

function refuseKnown(place: CopiesPlace, id: string): void {
  const { index } = place;
  if (!index.has(id) && !index.isDoomed(id) && !place.inUse.has(id) && !fs.existsSync(fileOf(place, id))) return;
  throw new PerdureError(
    "conflict",
    `There is an agent ${id} already. Delete it first, or take another name: --rename.`,
  );
}

/** Bytes as a file of a moment, synced. */
async function receive(
  { scratch }: CopiesPlace,
  bytes: ReadableStream<Uint8Array>,
): Promise<{ readonly file: string; readonly sha256: string }> {
  const file = path.join(scratch, `${randomUUID()}.draft`);
  const hash = createHash("sha256");
  const hashing = new Transform({
    transform(piece: Uint8Array, _encoding, done) {
      hash.update(piece);
      done(null, piece);
    },
  });
  try {
    const into = fs.createWriteStream(file, { mode: FILE_MODE, flush: true });
    await pipeline(Readable.fromWeb(bytes as Parameters<typeof Readable.fromWeb>[0]), hashing, into);
  } catch (thrown) {
    await fs.promises.rm(file, { force: true });
    throw new PerdureError("bad_input", `The bytes did not arrive as a whole: ${errorText(thrown)}`);
  }
  return { file, sha256: hash.digest("hex") };
}

function orphansIn({ dir, index }: CopiesPlace): string[] {
  const known = new Set<string>();
  for (let after = ""; ;) {
    const ids = index.list(after, 1000);
    for (const id of ids) known.add(agentFileName(id));
    after = ids.at(-1) ?? "";
    if (ids.length === 0) break;
  }
  for (const id of index.doomed()) known.add(agentFileName(id));
  const bases = new Set([...known].map((file) => path.basename(file, ".db")));
  const files = namesIn(path.join(dir, "agents")).flatMap((folder) =>
    namesIn(path.join(dir, "agents", folder)).map((name) => path.join("agents", folder, name)),
  );
  const isLost = (file: string) => !known.has(file.replace(/-(?:wal|shm)$/, ""));
  const folders = namesIn(path.join(dir, "blobs")).filter((name) => !bases.has(name));
  return [...files.filter(isLost), ...folders.map((name) => path.join("blobs", name))].sort();
}

function namesIn(folder: string): string[] {
  try {
    return fs.readdirSync(folder);
  } catch {
    return [];
  }
}
