import { expect, test } from "vitest";
import { loadableContext, loadableFrom, searchableFrom, staticContext } from "./providers.ts";

test("a static text is that text", async () => {
  expect(await staticContext("Be brief.").get()).toBe("Be brief.");
});

test("a list has a line for each key, in their order, and only its own keys can be loaded", async () => {
  const entries = {
    tea: { description: "How to\nmake tea", content: "Boil water." },
    apple: "Eat it.",
    later: { content: async () => "made when asked" },
  };
  for (const docs of [loadableContext(entries), loadableContext(new Map(Object.entries(entries)))]) {
    expect(await docs.get()).toBe("- apple\n- later\n- tea: How to make tea");
    expect(await docs.load("apple")).toBe("Eat it.");
    expect(await docs.load("tea")).toBe("Boil water.");
    expect(await docs.load("later")).toBe("made when asked");
    for (const key of ["constructor", "__proto__", "Tea", ""]) expect(await docs.load(key)).toBeUndefined();
  }
});

test("a map that grows has a longer list", async () => {
  const entries = new Map([["a", "A"]]);
  const docs = loadableContext(entries);
  entries.set("b", "B");
  expect(await docs.get()).toBe("- a\n- b");
});

test("functions can be a provider", async () => {
  const docs = loadableFrom({
    index: async () => [{ key: "b" }, { key: "a", description: "First" }],
    load: async (key) => (key === "a" ? "A" : undefined),
  });
  expect(await docs.get()).toBe("- a: First\n- b");
  expect(await docs.load("a")).toBe("A");
  expect(await docs.load("b")).toBeUndefined();
  const web = searchableFrom("The web.", async (query, { limit }) => [{ content: `${query} ${limit}` }]);
  expect(await web.get()).toBe("The web.");
  expect(await web.search("tea", { limit: 2 })).toEqual([{ content: "tea 2" }]);
});
