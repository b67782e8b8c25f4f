import { PerdureError } from "../base/error.ts";
import { checkTop, exportAgent, importAgent } from "./agent-file.ts";
import { backUp } from "./backup.ts";
import { BackupFolder } from "./backup-folder.ts";
import { all, type Call, type Command, type Item, NotHeld, one, print } from "./call.ts";
import { findDamage, restoreAll, restoreOne } from "./restore.ts";
import { Progress } from "./progress.ts";
import { toFields, toTable } from "./table.ts";

/** Commands for whole agents: out of a host, into it, and whether they are whole. */
export const COPY_COMMANDS: readonly Command[] = [
  {
    ...{ name: "backup", operands: [], options: ["to", "keep"] },
    what: "copies all agents into a folder; needs --to",
    async run(call) {
      const keep = wholeNumber(call, "keep");
      const made = await backUp(call, given(call, "to", "perdure backup --to DIR"), keep);
      print(call, [made], ([item = {}]) => toFields(item));
    },
  },
  {
    ...{ name: "restore", operands: ["<folder>"], options: ["number", "agent", "rename", "erased"] },
    what: "puts a backup into an empty --dir, or one --agent",
    async run(call) {
      const [from = ""] = call.operands;
      const number = wholeNumber(call, "number");
      const { agent: id, rename } = call.values;
      if (typeof id !== "string") {
        if (rename !== undefined || call.values["erased"] === true)
          throw new PerdureError("bad_input", "--rename and --erased are for one agent. Name it with --agent.");
        if (call.isElsewhere)
          throw new PerdureError("bad_input", "A whole backup is restored into a directory: name it with --dir.");
        return print(call, [await restoreAll(call.dir, from, number)], ([item = {}]) => toFields(item));
      }
      const name = typeof rename === "string" ? rename : id;
      checkTop(id);
      checkTop(name);
      const agent = { id, name, evenDeleted: call.values["erased"] === true };
      print(call, [await restoreOne(call, from, number, agent)], ([item = {}]) => toFields(item));
    },
  },
  {
    ...{ name: "export", operands: ["<agent>"], options: ["to"], what: "writes an agent to a file; needs --to" },
    async run(call) {
      const [id = ""] = call.operands;
      const to = given(call, "to", `perdure export ${id} --to FILE`);
      print(call, [await exportAgent(call, id, to)], ([item = {}]) => toFields(item));
    },
  },
  {
    ...{ name: "import", operands: ["<file>"], options: ["rename"], what: "takes in an agent that was exported" },
    async run(call) {
      const [file = ""] = call.operands;
      const { rename } = call.values;
      if (typeof rename === "string") checkTop(rename);
      const name = typeof rename === "string" ? rename : undefined;
      print(call, [await importAgent(call, file, name)], ([item = {}]) => toFields(item));
    },
  },
  {
    ...{ name: "check", operands: [], options: ["backup"] },
    what: "whether all agents are whole, or those of a backup",
    run: (call) => (typeof call.values["backup"] === "string" ? checkBackup(call, call.values["backup"]) : check(call)),
  },
  {
    ...{ name: "migrate", operands: [], options: ["dry-run"] },
    what: "brings the rows of all agents up to date now",
    run: migrate,
  },
];

async function migrate(call: Call): Promise<void> {
  const old = await all(call, "migrate");
  const isDry = call.values["dry-run"] === true;
  const failed: Item[] = [];
  const progress = new Progress("agents", old.length);
  for (const { id } of isDry ? [] : old) {
    try {
      await one(call, "POST", `agents/${encodeURIComponent(String(id as string))}/migrate`, {});
    } catch (thrown) {
      if (!PerdureError.is(thrown)) throw thrown;
      failed.push({ id, error: thrown.message });
    }
    progress.step();
  }
  progress.end();
  const shown = isDry ? old : old.map((item) => ({ ...item, ...failed.find(({ id }) => id === item["id"]) }));
  print(call, shown, (rows) => toTable(rows, ["id", "schema", "newest", "error"]), "All rows are up to date.");
  if (failed.length > 0) throw new NotHeld(`Agents whose rows could not be brought up to date: ${failed.length}.`);
}

async function check(call: Call): Promise<void> {
  const items = await all(call, "check");
  const bad = items.filter(({ ok }) => ok !== true);
  const { orphans } = (await one(call, "GET", "check/files")) as { orphans: string[] };
  const lost = orphans.map((file): Item => ({ file, ok: false, error: "belongs to no agent" }));
  const schemas = [...Map.groupBy(items, ({ schema }) => schema)].map(
    ([schema, { length }]) => `${length} of ${String(schema)}`,
  );
  const whole = `Agents that are whole: ${items.length - bad.length} of ${items.length}. Schemas: ${schemas.join(", ") || "none"}.`;
  const shown = [...bad.map(({ id, error }): Item => ({ id, error })), ...lost];
  print(call, call.json ? [...items, ...lost] : shown, (rows) => toTable(rows, ["id", "file", "error"]), whole);
  // A file that nobody uses is no harm.
  if (bad.length > 0) throw new NotHeld(whole);
}

async function checkBackup(call: Call, from: string): Promise<void> {
  const folder = new BackupFolder(from);
  const { flawsOf } = await import("../host/node/flaws.ts");
  const items: Item[] = [];
  for (const number of folder.numbers()) {
    const backup = folder.read(number);
    const damaged = await findDamage(folder, backup);
    const hit = new Set(damaged.map(({ id }) => id));
    const flawed = backup.lines.flatMap(({ id, sha256 }) => {
      const flaws = hit.has(id) ? [] : flawsOf(folder.file(sha256), undefined);
      return flaws.length === 0 ? [] : [{ id, ok: false, error: flaws.join("; ") }];
    });
    items.push(...[...damaged, ...flawed].map((item) => ({ backup: number, ...item })));
  }
  const numbers = folder.numbers();
  const said = `Backups that are whole: ${numbers.filter((number) => !items.some(({ backup }) => backup === number)).length} of ${numbers.length}.`;
  print(call, items, (rows) => toTable(rows, ["backup", "id", "file", "error"]), said);
  if (items.length > 0) throw new NotHeld(said);
}

function given({ values }: Call, name: string, form: string): string {
  const value = values[name];
  if (typeof value === "string" && value !== "") return value;
  throw new PerdureError("bad_input", `Write: ${form}`);
}

function wholeNumber({ values }: Call, name: string): number | undefined {
  const text = values[name];
  if (text === undefined) return undefined;
  if (typeof text === "string" && /^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new PerdureError("bad_input", `--${name} must be a whole number from 1.`);
}
