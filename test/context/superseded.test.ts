// Outputs that newer ones stand for, in whole turns.
import { jsonSchema, tool } from "ai";
import { durableTool } from "perdure";
import { subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { toolParts } from "../../src/message/types.ts";
import { long, openSmall, reader, shown } from "./compacting.ts";

const NOTE =
  /\[Superseded: the output of read, call (\S+), is out of date\. The newer one is that of call (\S+) in message (\S+)\.\]/g;
const window = (usable: number) => ({ modelLimits: { "scripted/*": { window: 2 * usable, input: usable } } });

/** Reads the file that the user names, and says so. */
const readsWhatIsAsked = ({ step, userText }: { step: number; userText: string }) =>
  step === 0 && userText.startsWith("read ")
    ? { toolCalls: [{ toolName: "read", input: { name: userText.slice(5), tokens: 1_000 } }] }
    : "Done.";

test("a file that was read again is shown once, from the turn on in which a third of the request is out of date", async () => {
  const events: unknown[] = [];
  onTestFinished(subscribe("chat:context:compacted", ({ payload }) => void events.push(payload)));
  const kit = await openSmall({ settings: window(12_000), answer: readsWhatIsAsked, tools: { read: reader } });
  for (const words of ["read a", "read b", "read c", "read a"]) await kit.ask(words);
  expect(await kit.compactions()).toEqual([]);
  const before = shown(kit.turns().at(-1));
  await kit.ask("read b");
  // Every request begins as the one before it did.
  expect(await kit.compactions()).toEqual([]);
  expect(shown(kit.turns().at(-1)).startsWith(before.slice(0, -1))).toBe(true);
  await kit.ask("go on");
  const [row] = await kit.compactions();
  expect(row).toMatchObject({ kind: "prune", status: "done", trigger: "after" });
  expect(events).toMatchObject([{ compactionId: row?.id, kind: "prune", superseded: 2 }]);
  const request = shown(kit.turns().at(-1));
  // What is left out can be read again.
  expect(kit.turns().map(({ tools }) => tools.some(({ name }) => name === "session_search"))).toEqual([
    ...Array.from({ length: kit.turns().length - 1 }, () => false),
    true,
  ]);
  for (const file of ["a", "b", "c"]) expect(request.match(new RegExp(`contents of ${file} abc`, "g"))).toHaveLength(1);
  const agent = await kit.agent();
  const calls = agent.messages.flatMap((message) =>
    toolParts(message).map(({ toolCallId }) => [toolCallId, message.id]),
  );
  expect([...request.matchAll(NOTE)].map(([, old, newer, message]) => [old, newer, message])).toEqual([
    [calls[0]?.[0], ...(calls[3] ?? [])],
    [calls[1]?.[0], ...(calls[4] ?? [])],
  ]);
  // After a restart it is the same, and it only grows.
  await kit.restart();
  await kit.ask("and on");
  expect(shown(kit.turns().at(-1)).startsWith(request.slice(0, -1))).toBe(true);
  expect(await kit.compactions()).toHaveLength(1);
  expect(kit.summaries()).toEqual([]);
  // Undone, everything is there again, in the same bytes as before.
  await (await kit.agent()).undoCompaction(row?.id ?? "");
  (await kit.agent()).contextOverflow = false;
  await kit.ask("still");
  expect(shown(kit.turns().at(-1)).startsWith(before.slice(0, -1))).toBe(true);
});

test("in the middle of a turn, what is out of date goes before anything is summarised", async () => {
  const kit = await openSmall({
    settings: { ...window(8_000), maxSteps: 40 },
    answer: ({ step }) =>
      step < 24 ? { toolCalls: [{ toolName: "read", input: { name: `f${step % 3}`, tokens: 800 } }] } : "Done.",
    tools: { read: reader },
  });
  expect(await kit.ask("Work on three files.")).toMatchObject({ status: "completed" });
  expect(kit.summaries()).toEqual([]);
  const rows = await kit.compactions();
  expect(rows.length).toBeGreaterThan(0);
  expect(rows.length).toBeLessThan(6);
  expect(rows.every(({ kind, status, trigger }) => `${kind} ${status} ${trigger}` === "prune done before")).toBe(true);
  const requests = kit.turns().map(shown);
  expect(requests).toHaveLength(25);
  for (const file of ["f0", "f1", "f2"]) expect(requests.at(-1)).toContain(`contents of ${file} abc`);
  // Between two rows, requests only grow.
  const grown = requests.slice(1).filter((request, at) => request.startsWith((requests[at] ?? "").slice(0, -1)));
  expect(grown).toHaveLength(24 - rows.length);
});

test("a window of 16,000: outputs are cleared in it too, and no summary is needed", async () => {
  const kit = await openSmall({
    settings: { modelLimits: { "scripted/*": { window: 16_000 } } },
    answer: readsWhatIsAsked,
    tools: { read: reader },
  });
  for (let i = 0; i < 11; i++) expect(await kit.ask(`read f${i}`)).toMatchObject({ status: "completed" });
  expect((await kit.compactions()).map(({ kind, status }) => `${kind} ${status}`)).toEqual([
    ...["prune done", "prune done"],
  ]);
  expect(kit.summaries()).toEqual([]);
});

test("a tool says what its outputs are about: pages of a thing, all of it, or nothing", async () => {
  const look = durableTool(
    tool({
      inputSchema: jsonSchema<{ id: string; page?: number; log?: boolean }>({ type: "object" }),
      execute: ({ id, page = 0 }) => long(`thing ${id} ${page}`, 1_000),
    }),
    {
      supersedes({ id, page, log }, output: string) {
        if (log === true || !output.startsWith("thing")) return undefined;
        return page === undefined ? id : { of: id, piece: String(page) };
      },
    },
  );
  const inputs = [
    { id: "a", page: 1 },
    { id: "a", page: 2 },
    { id: "x", log: true },
    { id: "x", log: true },
    { id: "a" },
  ];
  const kit = await openSmall({
    settings: window(10_000),
    answer: ({ step, userText }) => {
      const input = inputs[Number(userText)];
      return step === 0 && input !== undefined ? { toolCalls: [{ toolName: "look", input }] } : "Done.";
    },
    tools: { look },
  });
  for (const index of inputs.keys()) await kit.ask(String(index));
  await kit.ask("go on");
  const request = shown(kit.turns().at(-1));
  expect(request.match(/Superseded/g)).toHaveLength(2);
  expect(request.match(/thing x 0/g)).toHaveLength(2);
  expect(request).toContain("thing a 0");
});
