import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { seeded } from "../support/seeded.ts";
import type { Known } from "./frames.ts";
import { makeRequest } from "./routes.ts";

const known: Known = { fresh: () => "f1", messages: ["m1"], calls: ["c1"], sessions: ["s1"], turns: ["t1"] };
const AGENT = "/agents/talk/a";

/** Every `GET …/path` of the docs, behind an agent's address. */
function documented(): string[] {
  const found = globSync("docs/*.md").flatMap((page) =>
    [...readFileSync(page, "utf8").matchAll(/`(GET|POST|PATCH|PUT|DELETE) …(\/[^`]*)`/g)].map(
      ([, method = "", path = ""]) => `${method} ${path.replace(/\?.*/, "").replaceAll(/\{\w+\}|<\w+>/g, "*")}`,
    ),
  );
  return [...new Set(found)];
}

test("requests are made to every route that the docs name", () => {
  const random = seeded(1);
  const made = new Set<string>();
  for (let round = 0; round < 4_000; round++) {
    const { method, path } = makeRequest(random, known, AGENT);
    if (path.startsWith(AGENT)) made.add(`${method} ${path.slice(AGENT.length).replace(/\?.*/, "")}`);
  }
  const routes = documented();
  expect(routes.length).toBeGreaterThan(10);
  const isMade = (route: string) => {
    const pattern = new RegExp(`^${route.replaceAll(/[/.]/g, "\\$&").replaceAll("*", "[^/]+")}$`);
    return [...made].some((one) => pattern.test(one));
  };
  expect(routes.filter((route) => !isMade(route))).toEqual([]);
});
