import { expect, test } from "vitest";
import { type Random, seeded } from "../../test/support/seeded.ts";
import { boundOutput, boundPreview, type KeepText, MAX_MEDIA_CHARS } from "./bound-output.ts";

const LIMITS = { maxOutputLines: 2_000, maxOutputChars: 50_000 };

/** Keeps texts under `kept-<n>`. */
function keeper(): { keep: KeepText; kept: string[] } {
  const kept: string[] = [];
  return { kept, keep: async (text) => `kept-${kept.push(text) - 1}` };
}

async function bound(output: unknown, limits = LIMITS): Promise<{ output: unknown; kept: string[] }> {
  const { keep, kept } = keeper();
  return { output: await boundOutput(output, limits, keep), kept };
}

const lines = (count: number) => Array.from({ length: count }, (_, n) => `line ${n}`).join("\n");
/** Base64 of a file of some kind. */
const base64 = (chars: number) => "iVBORw0KGgoAAAANSUhEUgAA+/b9".repeat(Math.ceil(chars / 28)).slice(0, chars);

test.each<[string, unknown]>([
  ["null", null],
  ["a short text", "hello"],
  ["a text at the limits", `${"x\n".repeat(2_000)}`],
  ["small JSON", { rows: [{ a: 1, b: "two" }], ok: true }],
  ["a picture", { type: "content", value: [{ type: "media", mediaType: "image/png", data: base64(400_000) }] }],
  ["a data URL", `data:image/png;base64,${base64(400_000)}`],
])("within the limits it is the same value and nothing is kept: %s", async (_name, before) => {
  const after = await bound(before);
  expect(after.output).toBe(before);
  expect(after.kept).toEqual([]);
});

test("a text of too many lines keeps its ends; the note counts what is missing and names the whole", async () => {
  const text = lines(5_000);
  const { output, kept } = await bound(text);
  expect(kept).toEqual([text]);
  const after = (output as string).split("\n");
  expect(after).toHaveLength(2_000);
  expect([after[0], after[999], after.at(-1)]).toEqual(["line 0", "line 999", "line 4999"]);
  const left = text.indexOf("line 4001") - text.indexOf("line 1000");
  expect(after[1_000]).toBe(`[… ${left} characters (3001 lines) left out; the whole text is in kept-0 …]`);
});

test("a text of too many characters is cut to the limit", async () => {
  const text = "a".repeat(100_000) + "b".repeat(100_000);
  const { output, kept } = await bound(text);
  expect(kept).toEqual([text]);
  expect((output as string).length).toBeLessThanOrEqual(50_000);
  expect((output as string).length).toBeGreaterThan(49_800);
  expect(output).toMatch(/^a+\n\[… \d+ characters left out; the whole text is in kept-0 …\]\nb+$/);
});

test("the one long text of an object gets all the room, and is kept as it is", async () => {
  const stdout = lines(20_000);
  const { output, kept } = await bound({ stdout, stderr: "warning: x", exitCode: 0, timing: { ms: [1, 2] } });
  expect(kept).toEqual([stdout]);
  expect(output).toMatchObject({ stderr: "warning: x", exitCode: 0, timing: { ms: [1, 2] } });
  const cut = (output as { stdout: string }).stdout;
  expect(cut).toContain("left out; the whole text is in kept-0 …]");
  expect(cut.startsWith("line 0\n") && cut.endsWith("\nline 19999")).toBe(true);
  expect(JSON.stringify(output).length).toBeLessThanOrEqual(50_100);
  expect(cut.split("\n").length).toBe(2_000);
});

test("several long texts share the room; the whole is kept as JSON, once", async () => {
  const before = { pages: ["a", "b", "c"].map((text) => ({ url: text, text: text.repeat(90_000) })), ok: true };
  const { output, kept } = await bound(before);
  expect(kept.map((text) => JSON.parse(text) as unknown)).toEqual([before]);
  const { pages, ok } = output as typeof before;
  expect(ok).toBe(true);
  expect(pages.map(({ url }) => url)).toEqual(["a", "b", "c"]);
  for (const { text } of pages) {
    expect(text).toContain("the whole output, as JSON, is in kept-0");
    expect(text.length).toBeGreaterThan(15_000);
  }
  expect(JSON.stringify(output).length).toBeLessThanOrEqual(50_500);
});

test("a huge list keeps its first items and says how many more there were", async () => {
  const rows = Array.from({ length: 20_000 }, (_, n) => ({ n, name: `row ${n}` }));
  const { output, kept } = await bound({ rows, total: 20_000 });
  expect(kept.map((text) => JSON.parse(text) as unknown)).toEqual([{ rows, total: 20_000 }]);
  const after = output as { rows: unknown[]; total: number };
  expect(after.total).toBe(20_000);
  const shown = after.rows.length - 1;
  expect(after.rows.slice(0, shown)).toEqual(rows.slice(0, shown));
  expect(after.rows.at(-1)).toBe(
    `[… ${20_000 - shown} more items left out; the whole output, as JSON, is in kept-0 …]`,
  );
  expect(JSON.stringify(output).length).toBeLessThanOrEqual(51_000);
  expect(shown).toBeGreaterThan(1_000);
});

test.each<[string, KeepText]>([
  ["gives no name", async () => undefined],
  ["rejects", () => Promise.reject(new Error("disk full"))],
  [
    "throws",
    () => {
      throw new Error("no workspace");
    },
  ],
])("a keeper that %s costs the middle, not the call", async (_name, keep) => {
  const output = await boundOutput("x".repeat(60_000), LIMITS, keep);
  expect(output).toMatch(/^x+\n\[… \d+ characters left out; the rest was not kept …\]\nx+$/);
});

test("media are whole beside a text that is cut, and do not count", async () => {
  const picture = { type: "file", mediaType: "image/png", data: { type: "data", data: base64(300_000) } };
  const legacy = { type: "image-data", mediaType: "image/png", data: base64(90_000) };
  const mcp = { type: "image", mimeType: "image/jpeg", data: base64(90_000) };
  const url = `data:image/png;base64,${base64(90_000)}`;
  const parts = [{ type: "text", text: lines(9_000) }, picture, legacy, mcp, { type: "text", text: "end" }];
  const { output, kept } = await bound({ type: "content", value: parts, url, thumb: base64(60_000) });
  const after = output as { type: string; value: unknown[]; url: string; thumb: string };
  expect(after.type).toBe("content");
  expect(after.value.slice(1)).toEqual([picture, legacy, mcp, { type: "text", text: "end" }]);
  expect([after.url, after.thumb]).toEqual([url, base64(60_000)]);
  expect(after.value[0]).toMatchObject({ type: "text", text: expect.stringContaining("kept-0") as string });
  expect(kept).toEqual([lines(9_000)]);
});

test("media that no row could hold are left out whole, and parts stay parts", async () => {
  const large = base64(MAX_MEDIA_CHARS + 1);
  const small = { type: "media", mediaType: "audio/wav", data: base64(20_000) };
  const { output, kept } = await bound({
    value: [{ type: "media", mediaType: "video/mp4", data: large }, small],
    url: `data:image/png;base64,${large}`,
  });
  expect(kept).toEqual([large, `data:image/png;base64,${large}`]);
  expect(output).toEqual({
    value: [
      {
        type: "text",
        text: `[video/mp4, ${large.length} characters, left out because it is too large; it is in kept-0]`,
      },
      small,
    ],
    url: `[image/png, ${large.length + 22} characters, left out because it is too large; it is in kept-1]`,
  });
});

test("a list of parts that is too long ends in a part", async () => {
  const parts = Array.from({ length: 3_000 }, (_, n) => ({ type: "text", text: `${n} ${"word ".repeat(60)}` }));
  const { output } = await bound({ type: "content", value: parts });
  const { value } = output as { value: { type: string; text: string }[] };
  expect(value.length).toBeLessThan(3_000);
  for (const part of value) expect(part).toEqual({ type: "text", text: expect.any(String) as string });
  expect(value.at(-1)?.text).toContain("more items left out");
});

test("long words and hex are no media: they are cut", async () => {
  for (const text of ["x".repeat(60_000), "0123456789abcdef".repeat(4_000), `${base64(60_000)} `]) {
    expect(((await bound({ text })).output as { text: string }).text).toContain("left out");
  }
});

test("a text that looks like a mark of ours is not spared", async () => {
  const { output } = await bound({ text: `\ue000media 0${"x".repeat(60_000)}`, url: `data:a/b,${base64(9)}` });
  expect((output as { text: string }).text).toContain("left out");
});

test("a preview is cut in the same way and keeps nothing", () => {
  expect(boundPreview({ ok: 1 }, LIMITS)).toEqual({ ok: 1 });
  expect(boundPreview("x".repeat(60_000), LIMITS)).toContain("the rest was not kept");
});

test("any output: bounded, of the same shape, and nothing is missing without a note", async () => {
  const rand = seeded(31);
  let cuts = 0;
  for (let run = 0; run < 600; run++) {
    const limits = { maxOutputLines: 1 + rand(30), maxOutputChars: 400 + rand(2_000) };
    const before = anything(rand, 4);
    const snapshot = JSON.stringify(before);
    const { output, kept } = await bound(before, limits);
    expect(JSON.stringify(before)).toBe(snapshot);
    const same = output === before;
    expect(same).toBe(fits(before, limits));
    expect(kept).toHaveLength(same ? 0 : 1);
    if (same) continue;
    cuts++;
    const size = typeof output === "string" ? output.length : JSON.stringify(output).length;
    expect(size).toBeLessThan(limits.maxOutputChars * 1.5 + 200);
    expect(difference(before, output, limits)).toBeUndefined();
    expect(JSON.stringify(output)).toMatch(/left out/);
  }
  expect(cuts).toBeGreaterThan(100);
});

function anything(rand: Random, depth: number): unknown {
  const kind = rand(depth === 0 ? 3 : 6);
  if (kind === 0) return [null, true, 7, -1.25, ""][rand(5)];
  if (kind === 1) return "word ".repeat(rand(8));
  if (kind === 2) return 'say "hi"\n😀'.repeat(rand(4) === 0 ? rand(150) : rand(5));
  const size = rand(3) === 0 ? rand(40) : rand(6);
  if (kind === 3) return Array.from({ length: size }, () => anything(rand, depth - 1));
  return Object.fromEntries(Array.from({ length: size }, (_, n) => [`key${n}`, anything(rand, depth - 1)]));
}

function fits(value: unknown, limits: typeof LIMITS): boolean {
  if (typeof value === "string") return value.length <= limits.maxOutputChars && linesFit(value, limits);
  return JSON.stringify(value).length <= limits.maxOutputChars && texts(value).every((text) => linesFit(text, limits));
}

function linesFit(text: string, { maxOutputLines }: typeof LIMITS): boolean {
  return text.replace(/\n$/, "").split("\n").length <= maxOutputLines;
}

function texts(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(texts) : [];
}

/** How `after` differs from `before` other than by what its notes say. */
function difference(before: unknown, after: unknown, limits: typeof LIMITS): string | undefined {
  if (typeof before === "string" && typeof after === "string") return textDifference(before, after, limits);
  if (Array.isArray(before)) {
    if (!Array.isArray(after)) return "a list became something else";
    const last: unknown = after.at(-1);
    const cut = typeof last === "string" && last.includes("more items left out");
    const kept = cut ? after.slice(0, -1) : after;
    const missing = before.length - kept.length;
    if (cut ? !last.startsWith(`[… ${missing} more items left out`) : missing !== 0)
      return `${missing} items, ${String(last)}`;
    return kept.map((item, at) => difference(before[at], item, limits)).find((fault) => fault !== undefined);
  }
  if (typeof before === "object" && before !== null) {
    if (typeof after !== "object" || after === null) return "an object became something else";
    const { "…": note, ...kept } = after as Record<string, unknown>;
    const missing = Object.keys(before).length - Object.keys(kept).length;
    if (missing === 0 ? note !== undefined : !String(note).startsWith(`[${missing} more fields left out`)) {
      return `${missing} fields, ${String(note)}`;
    }
    const fields = before as Record<string, unknown>;
    return Object.entries(kept)
      .map(([key, item]) => difference(fields[key], item, limits))
      .find((fault) => fault !== undefined);
  }
  return before === after ? undefined : `${String(before)} became ${String(after)}`;
}

function textDifference(before: string, after: string, limits: typeof LIMITS): string | undefined {
  if (!linesFit(after, limits) || !after.isWellFormed()) return `bad text: ${after}`;
  if (before === after) return undefined;
  const [head, tail] = after.split(/\n?\[… [^\]]*left out[^\]]*…\]\n?/);
  const own = before.startsWith(head ?? "?") && before.endsWith(tail ?? "?");
  return own ? undefined : `${before} became ${after}`;
}
