// The workspace beside a plain map: whatever is done, in whatever order, both hold the same, at every point.
import { expect, test } from "vitest";
import { Workspace } from "../../src/toolbox/workspace/workspace.ts";
import { probeHost } from "../chat/probe-host.ts";
import { seeded } from "../support/seeded.ts";

type Model = Map<string, string>;

const DIRECTORY = "dir";
const NAMES = ["a", "b", "c"];
const STEPS = 400;
/** Small ones in rows, longer ones in chunks, the longest outside of the database. */
const SIZES = [0, 10, 9_000, 300_000, 600_000];
const INLINE_LIMIT = 500_000;
const MAX_POINTS = 12;

async function dump(workspace: Workspace): Promise<Model> {
  const found: Model = new Map();
  for (const { path, type, target } of await workspace.glob("/**")) {
    if (type === "symlink") found.set(path, `-> ${target}`);
    else if (type === "directory") found.set(path, DIRECTORY);
    else {
      const text = await workspace.readFile(path);
      found.set(path, `file ${text?.length} ${text?.slice(0, 20)}`);
    }
  }
  return found;
}

const sorted = (model: Model) => [...model].sort(([a], [b]) => (a < b ? -1 : 1));
const below = (model: Model, dir: string) => [...model.keys()].filter((path) => path.startsWith(`${dir}/`));
const parents = (path: string) =>
  path
    .split("/")
    .slice(1, -1)
    .map((_, at, all) => `/${all.slice(0, at + 1).join("/")}`);

async function expectSame(workspace: Workspace, model: Model): Promise<void> {
  expect(sorted(await dump(workspace))).toEqual(sorted(model));
}

async function expectRefused(work: Promise<unknown>, message: RegExp): Promise<void> {
  await expect(work).rejects.toThrow(message);
}

function remove(model: Model, path: string): void {
  for (const one of [path, ...below(model, path)]) model.delete(one);
}

/** Whether an entry can be made at `path`: what is above it is a directory, or not there. */
const canHold = (model: Model, path: string) =>
  parents(path).every((dir) => (model.get(dir) ?? DIRECTORY) === DIRECTORY);

function put(model: Model, path: string, entry: string): void {
  for (const dir of parents(path)) model.set(dir, DIRECTORY);
  model.set(path, entry);
}

test.each([1, 2, 3, 4])(
  "anything done to the files, with points, restores and forgotten points (seed %i)",
  async (seed) => {
    const { host } = await probeHost();
    const random = seeded(seed);
    const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T;
    const anyPath = () => `/${Array.from({ length: 1 + random(3) }, () => pick(NAMES)).join("/")}`;
    const workspace = new Workspace({ host, inlineLimit: INLINE_LIMIT, maxPoints: MAX_POINTS });
    const points = new Map<string, Model>();
    let model: Model = new Map();

    const steps: readonly (() => Promise<void>)[] = [
      async () => {
        const path = anyPath();
        const text = `${random(5)}`.padEnd(pick(SIZES), "x");
        if (model.get(path) === DIRECTORY || !canHold(model, path))
          return expectRefused(workspace.writeFile(path, text), /^(EISDIR|ENOTDIR): /);
        await workspace.writeFile(path, text);
        put(model, path, `file ${text.length} ${text.slice(0, 20)}`);
      },
      async () => {
        const path = anyPath();
        if (model.has(path) || !canHold(model, path)) return;
        await workspace.mkdir(path, { recursive: true });
        put(model, path, DIRECTORY);
      },
      async () => {
        const path = anyPath();
        const removing = workspace.rm(path, { recursive: true, force: true });
        if (!canHold(model, path)) return expectRefused(removing, /^ENOTDIR: /);
        await removing;
        remove(model, path);
      },
      async () => {
        const [from, to] = [anyPath(), anyPath()];
        const target = model.get(to);
        const isBad =
          !model.has(from) || from === to || to.startsWith(`${from}/`) || target !== undefined || !canHold(model, to);
        if (isBad) return;
        await workspace.rename(from, to);
        const moved = [from, ...below(model, from)].map((path) => [path, model.get(path) ?? ""] as const);
        remove(model, from);
        for (const [path, entry] of moved) put(model, to + path.slice(from.length), entry);
      },
      async () => {
        const [from, to] = [anyPath(), anyPath()];
        if (!model.has(from) || to === from || to.startsWith(`${from}/`) || model.has(to) || !canHold(model, to))
          return;
        await workspace.cp(from, to, { recursive: true });
        const copied = [from, ...below(model, from)].map((path) => [path, model.get(path) ?? ""] as const);
        for (const [path, entry] of copied) put(model, to + path.slice(from.length), entry);
      },
      async () => {
        const id = `m${random(40)}`;
        workspace.mark(id);
        points.delete(id);
        points.set(id, new Map(model));
        // What is trimmed is the workspace's choice, but it takes the oldest.
        const left = new Set(workspace.points().map(({ messageId }) => messageId));
        expect(left.size).toBeLessThanOrEqual(MAX_POINTS);
        for (const known of points.keys()) if (!left.has(known)) points.delete(known);
      },
      async () => {
        if (points.size === 0) return;
        const id = pick([...points.keys()]);
        points.delete(id);
        expect(workspace.forgetPoint(id)).toBe(true);
      },
      async () => {
        if (points.size === 0) return;
        const id = pick([...points.keys()]);
        const then = points.get(id) ?? new Map<string, string>();
        const { undo } = workspace.restore(id);
        if (random(3) === 0) {
          await expectSame(workspace, then);
          workspace.restore(undo);
        } else model = new Map(then);
        const left = new Set(workspace.points().map(({ messageId }) => messageId));
        for (const known of points.keys()) if (!left.has(known)) points.delete(known);
      },
    ];
    for (let step = 0; step < STEPS; step++) {
      await pick(steps)();
      if (step % 20 === 0) await expectSame(workspace, model);
    }
    await expectSame(workspace, model);
    for (const [id, then] of points) {
      const { undo } = workspace.restore(id);
      expect(sorted(await dump(workspace)), id).toEqual(sorted(then));
      workspace.restore(undo);
    }
    await expectSame(workspace, model);
    await expectNoWaste(host, workspace);
    await workspace.deleteAll();
    const rows = (table: string) => host.sql<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)[0]?.n;
    expect([rows("perdure_file"), rows("perdure_file_body")]).toEqual([0, 0]);
    expect(host.sql("SELECT key FROM perdure_cell WHERE key LIKE 'workspace%'")).toEqual([]);
  },
);

/** No row that neither now nor a point needs, and every body counted right. */
async function expectNoWaste(host: Awaited<ReturnType<typeof probeHost>>["host"], workspace: Workspace): Promise<void> {
  await workspace.sweep();
  const versions = workspace.points().map(({ version }) => version);
  const ended = host.sql<{ since: number; until: number }>("SELECT since, until FROM perdure_file WHERE until < 9e15");
  for (const { since, until } of ended) expect(versions.some((point) => since <= point && point < until)).toBe(true);
  const counted = host.sql("SELECT hash, refs FROM perdure_file_body WHERE n = -1 ORDER BY hash");
  const real = host.sql(
    "SELECT hash, count(*) AS refs FROM perdure_file WHERE hash IS NOT NULL GROUP BY hash ORDER BY hash",
  );
  expect(counted).toEqual(real);
  const large = host.sql<{ hash: string }>("SELECT hash FROM perdure_file_body WHERE large = 1");
  const blobs = host.sql<{ value: string }>("SELECT value FROM perdure_cell WHERE key LIKE 'workspace-blob:%'");
  expect(blobs).toHaveLength(large.length);
  for (const { value } of blobs) expect(await host.blobs.get(value)).toBeDefined();
  expect(host.sql("SELECT key FROM perdure_cell WHERE key LIKE 'workspace-large:%'")).toEqual([]);
}
