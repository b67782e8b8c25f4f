import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** The body of an interface. */
function bodyOf(source: string, name: string): string {
  const body = new RegExp(`export interface ${name}[^{]*\\{\\n([\\s\\S]*?)\\n\\}`).exec(source)?.[1];
  if (body === undefined) throw new Error(`There is no interface ${name}.`);
  return body;
}

/** The rows of the tables of a page, by what stands first in them. */
function rowsOf(page: string): Map<string, string> {
  return new Map([...read(page).matchAll(/^\| `([^`]+)`\s*(\|.*)$/gm)].map(([, name = "", rest = ""]) => [name, rest]));
}

test("docs/events.md has every event with every field of its payload, and none that there is not", () => {
  const source = read("src/base/event.ts").replaceAll(/\/\*\*[\s\S]*?\*\//g, "");
  const shared = ["RecoveryFacts", "CallFacts", "ToolFacts"];
  const body = shared.reduce(
    (text, name) => text.replaceAll(name, `{ ${bodyOf(source, name)} }`),
    bodyOf(source, "AgentEvents"),
  );
  const events = [...body.matchAll(/^ {2}"([^"]+)": (\{[\s\S]*?\}|Record<[^>]*>);$/gm)];
  expect(events).toHaveLength(body.match(/^ {2}"/gm)?.length ?? 0);
  expect(events.length).toBeGreaterThan(30);
  const rows = rowsOf("docs/events.md");
  const missing = events.flatMap(([, type = "", payload = ""]) => {
    const fields = [...payload.matchAll(/(\w+)\??: /g)].map(([, field]) => field);
    const row = rows.get(type) ?? "";
    if (!rows.has(type)) return [type];
    return fields.filter((field) => !row.includes(`\`${field}\``)).map((field) => `${field} of ${type}`);
  });
  expect(missing).toEqual([]);
  expect([...rows.keys()].filter((name) => !events.some(([, type]) => type === name))).toEqual([]);
});

test("docs/serve.md has every option of serve() and createHost(), and every limit", () => {
  const options = read("src/host/node/options.ts");
  const interfaces = [
    bodyOf(options, "HostOptions"),
    bodyOf(options, "HostLimits"),
    bodyOf(read("src/host/route.ts"), "RouteOptions"),
    bodyOf(read("src/host/node/serve.ts"), "ServeOptions"),
  ];
  const names = interfaces.flatMap((body) => [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, name]) => name));
  expect(names.length).toBeGreaterThan(25);
  const rows = rowsOf("docs/serve.md");
  expect(names.filter((name) => name === undefined || !rows.has(name))).toEqual([]);
});

test("the README leads to every page", () => {
  const readme = read("README.md");
  for (const page of ["agent", "events", "serve", "testing"]) expect(readme).toContain(`(docs/${page}.md)`);
});
