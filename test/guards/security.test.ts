import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { MCP_ROUTES } from "../../src/parts/mcp.ts";
import { ADMIN_ROUTES } from "../../src/admin/routes.ts";
import { ACTS, ADMIN_ACTS, FRAME_ACTS } from "../../src/door/authorize.ts";
import { CHAT_ROUTES } from "../../src/parts/chat.ts";
import { MESSENGER_ROUTES } from "../../src/parts/messengers.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const page = readFileSync(`${root}docs/security.md`, "utf8");

/** The tables of the page by heading: rows of cells. */
function rowsUnder(text: string, heading: string): string[][] {
  const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const namesIn = (cell = "") => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? "");

/** What the page lacks, has too much of, or says wrongly. */
function gapsIn(text: string): string[] {
  const gaps: string[] = [];
  const compare = (what: string, real: Readonly<Record<string, string>>, told: ReadonlyMap<string, string>) => {
    for (const [name, value] of Object.entries(real)) {
      if (!told.has(name)) gaps.push(`${what} ${name} has no line`);
      else if (told.get(name) !== value) gaps.push(`${what} ${name} is ${value}, not ${told.get(name) ?? ""}`);
    }
    for (const name of told.keys()) if (!Object.hasOwn(real, name)) gaps.push(`there is no ${what} ${name}`);
  };
  const acts = rowsUnder(text, "Acts").flatMap(([names, effect]) => namesIn(names).map((name) => [name, effect ?? ""]));
  compare("act", ACTS, new Map(acts as [string, string][]));

  const kinds = Object.entries(FRAME_ACTS).map(([kind, actOf]) => {
    const ask = { op: "…" };
    const told = (actOf as (frame: object) => { act: string })({ ask, since: new Map(), write: { changes: [] } });
    return [kind, told.act];
  });
  const frames = rowsUnder(text, "Frames").map(([kind, act]) => [namesIn(kind)[0] ?? "", namesIn(act)[0] ?? ""]);
  compare("frame", Object.fromEntries(kinds) as Record<string, string>, new Map(frames as [string, string][]));

  const lines = [...CHAT_ROUTES, ...MCP_ROUTES, ...MESSENGER_ROUTES].map(({ method, shape, acts }) => [
    `${method} …/${shape}`,
    acts.join(),
  ]);
  const routes = rowsUnder(text, "Routes").filter(([route]) => route !== "all others");
  const told = routes.map(([route, acts]) => [namesIn(route)[0] ?? "", namesIn(acts).join()]);
  compare("route", Object.fromEntries(lines) as Record<string, string>, new Map(told as [string, string][]));

  const operators = rowsUnder(text, "Operators").filter(([, act]) => (act ?? "").startsWith("`admin."));
  const doors = ADMIN_ROUTES.map(({ method, shape, act }) => [`${method} ${shape}`, `${act} ${ADMIN_ACTS[act]}`]);
  const opened = operators.map(([route, act, role]) => [namesIn(route)[0] ?? "", `${namesIn(act)[0]} ${role}`]);
  compare("door", Object.fromEntries(doors) as Record<string, string>, new Map(opened as [string, string][]));
  for (const act of Object.keys(ADMIN_ACTS))
    if (!ADMIN_ROUTES.some((route) => route.act === act)) gaps.push(`nothing asks for ${act}`);

  for (const name of new Set([...text.matchAll(/`((?:test|src)\/[^`\s]*)`/g)].map(([, file]) => file ?? "")))
    if (!existsSync(root + name)) gaps.push(`${name} is not there`);
  return gaps;
}

test("every act, frame and route has its line in the page on security, and every test that it names is there", () => {
  expect(gapsIn(page)).toEqual([]);
});

test("a frame, a route, an act without a line is found, and so is a line that is not true", () => {
  const without = (start: string) =>
    page
      .split("\n")
      .filter((line) => !line.startsWith(start))
      .join("\n");
  expect(gapsIn(without("| `chat-clear`"))).toEqual(["frame chat-clear has no line"]);
  expect(gapsIn(without("| `DELETE …/chat` "))).toEqual(["route DELETE …/chat has no line"]);
  expect(gapsIn(without("| `rows.write`"))).toEqual(["act rows.write has no line"]);
  expect(gapsIn(without("| `DELETE agents/{id}`"))).toEqual(["door DELETE agents/{id} has no line"]);
  expect(gapsIn(page.replace("| `chat-cancel`      | `chat.cancel`", "| `chat-cancel` | `chat.read`"))).toEqual([
    "frame chat-cancel is chat.cancel, not chat.read",
  ]);
  expect(gapsIn(page.replaceAll("test/chat/malformed-requests.test.ts", "test/chat/gone.test.ts"))).toEqual([
    "test/chat/gone.test.ts is not there",
  ]);
});
