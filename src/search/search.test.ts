import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { assistant, say, user } from "../../test/support/tree-messages.ts";
import type { AgentHost, SqlValue } from "../port.ts";
import { deleteMessage, readMessage, updateMessage } from "../store/message.ts";
import { insertSession } from "../store/session.ts";
import { SessionSearch } from "./search.ts";
import type { SearchHit } from "../wire/session-types.ts";

const ids = (hits: readonly SearchHit[]) => hits.map(({ messageId }) => messageId);

async function withMessages(...texts: readonly string[]): Promise<{ host: AgentHost; search: SessionSearch }> {
  const { host } = await probeHost();
  for (const [n, text] of texts.entries()) say(host, "main", user(`m${n}`, text), n);
  return { host, search: new SessionSearch(host) };
}

const tablesOf = (host: AgentHost) =>
  host.sql<{ name: string }>("SELECT name FROM sqlite_master WHERE name LIKE 'perdure_search%'");

test("an agent that never searches has no index", async () => {
  const { host, search } = await withMessages("hello");
  expect(tablesOf(host)).toEqual([]);
  expect(ids(await search.search("hello"))).toEqual(["m0"]);
  expect(tablesOf(host)).not.toEqual([]);
});

test("an agent in which nothing was said finds nothing and writes nothing", async () => {
  const probe = await probeHost();
  expect(await new SessionSearch(probe.host).search("anything")).toEqual([]);
  expect(probe.commits()).toBe(0);
});

test("a hit says where, when, by whom and with what around it", async () => {
  const { host } = await probeHost();
  insertSession(host, { id: "trip", name: "Holidays" }, 1);
  say(host, "trip", user("q", "Where shall we go? I would like to see Lisbon in spring."), 5);
  expect(await new SessionSearch(host).search("lisbon spring")).toEqual([
    {
      sessionId: "trip",
      sessionName: "Holidays",
      messageId: "q",
      role: "user",
      createdAt: 5,
      excerpt: "Where shall we go? I would like to see **Lisbon** in **spring**.",
      rank: 1,
    },
  ]);
});

test.each([
  ["Japanese", "明日は東京タワーに行きます。", "東京", "明日は**東京**タワーに行きます。"],
  ["Japanese kana", "コンピューターを買いました", "ピュ", "コン**ピュ**ーターを買いました"],
  ["Chinese", "我们在北京大学学习人工智能", "大学", "我们在北京**大学**学习人工智能"],
  ["Korean", "우리는 서울에서 만났습니다", "서울", "우리는 **서울**에서 만났습니다"],
  ["Korean inside of a word", "대한민국의 수도", "민국", "대한**민국**의 수도"],
  ["Thai", "ผมกินข้าวที่ร้านอาหาร", "ข้าว", "ผมกิน**ข้าว**ที่ร้านอาหาร"],
  ["Arabic without vowel signs", "ذَهَبَ أحمد إلى المدرسة", "احمد", "ذَهَبَ **أحمد** إلى المدرسة"],
  ["Cyrillic", "Ёлка стоит в углу", "елка", "**Ёлка** стоит в углу"],
  ["Hebrew", "שלום עולם", "עולם", "שלום **עולם**"],
  ["Hindi", "मुझे हिन्दी पसंद है", "हिन्दी", "मुझे **हिन्दी** पसंद है"],
  ["Greek", "Η Αθήνα είναι μεγάλη", "αθηνα", "Η **Αθήνα** είναι μεγάλη"],
  ["accents", "Crème brûlée for dessert", "creme brulee", "**Crème** **brûlée** for dessert"],
  ["emoji", "great 👍🏽 work 🥰", "🥰", "great 👍🏽 work **🥰**"],
  ["a flag", "from 🇵🇹 with love", "🇵🇹", "from **🇵🇹** with love"],
  ["two scripts in one word", "新しいiPhone15を買った", "iphone15", "新しい**iPhone15**を買った"],
  ["a path", "look at src/store/search.ts please", "store/search.ts", "look at src/**store/search.ts** please"],
  ["letters written in two pieces", "Cafe\u0301 au lait", "caf\u00e9", "**Caf\u00e9** au lait"],
])("finds %s", async (_, text, query, excerpt) => {
  const { search } = await withMessages("nothing here", text, "other words");
  const hits = await search.search(query);
  expect(hits.map((hit) => [hit.messageId, hit.excerpt])).toEqual([["m1", excerpt]]);
});

test("the last word may be only begun, the others may not", async () => {
  const { search } = await withMessages("deployment of the service", "deploy the serviceable part");
  expect(ids(await search.search("the serv"))).toEqual(["m1", "m0"]);
  expect(ids(await search.search("th service"))).toEqual([]);
});

test("words in other forms are found behind the exact ones", async () => {
  const { search } = await withMessages("we are deploying today", "the deployments failed", "they deployed it", "one");
  expect(ids(await search.search("deployments failed"))).toEqual(["m1"]);
  expect(new Set(ids(await search.search("deployed")))).toEqual(new Set(["m0", "m1", "m2"]));
  expect((await search.search("deployed"))[0]?.messageId).toBe("m2");
});

test("of equal matches the newer comes first", async () => {
  const { search } = await withMessages("the red boat", "nothing", "the red boat", "nothing", "the red boat");
  expect(ids(await search.search("red boat"))).toEqual(["m4", "m2", "m0"]);
});

test.each([
  ['red" OR "blue', ["m3"]],
  ["red AND NOT blue", ["m2"]],
  ["said: red", []],
  ["NEAR(red blue)", []],
  ["red* ^boat -blue", []],
  ["{said done}: red", []],
  ["red'); DROP TABLE perdure_message; --", []],
  ["red \\ \u0000 boat", ["m0"]],
])("nothing in a query is an operator: %s", async (query, expected) => {
  const { search } = await withMessages("a red boat", "a blue car", "red and not blue", "red or blue");
  expect(ids(await search.search(query))).toEqual(expected);
  expect(ids(await search.search("boat"))).toEqual(["m0"]);
});

test("tools, their input and output, and names of files are found; reasoning and data are not", async () => {
  const { host } = await probeHost();
  const secret = Buffer.from("unfindable words ".repeat(40)).toString("base64");
  const file = {
    type: "file",
    mediaType: "image/png",
    filename: "harbour.png",
    url: `data:image/png;base64,${secret}`,
  };
  const call = {
    type: "tool-readWeather",
    toolCallId: "c",
    state: "output-available",
    input: { town: "Reykjavik" },
    output: { report: "drizzle", picture: `data:image/png;base64,${secret}` },
  };
  const parts = [{ type: "reasoning", text: "pondering" }, call, file, { type: "text", text: "It is wet." }];
  say(host, "main", assistant("a", ...(parts as Parameters<typeof assistant>[1][])));
  const search = new SessionSearch(host);
  for (const word of ["readWeather", "reykjavik", "drizzle", "harbour", "wet"])
    expect(ids(await search.search(word)), word).toEqual(["a"]);
  for (const word of ["pondering", secret.slice(0, 60), secret.slice(100, 130)])
    expect(ids(await search.search(word)), word).toEqual([]);
  expect((await search.search("drizzle"))[0]?.excerpt).toContain("**drizzle**");
});

test("what changed, came and went since the last search is noticed", async () => {
  const { host, search } = await withMessages("apples", "pears");
  expect(ids(await search.search("apples"))).toEqual(["m0"]);
  const first = readMessage(host, "m0");
  updateMessage(host, first?.seq ?? 0, "user", JSON.stringify(user("m0", "cherries")));
  say(host, "main", user("m2", "plums"));
  expect(ids(await search.search("apples"))).toEqual([]);
  expect(ids(await search.search("cherries"))).toEqual(["m0"]);
  expect(ids(await search.search("plums"))).toEqual(["m2"]);
  deleteMessage(host, first?.seq ?? 0, null);
  expect(ids(await search.search("cherries"))).toEqual([]);
  expect(host.sql("SELECT key FROM perdure_cell WHERE key LIKE 'search:stale%'")).toEqual([]);
});

test("a session finds what it shows, also from before its fork, and not what came after it", async () => {
  const { host } = await probeHost();
  say(host, "main", user("m1", "tulips one"));
  const at = say(host, "main", user("m2", "tulips two"));
  insertSession(host, { id: "fork", name: "Other way", leaf: at, parent: "main", forkAt: at }, 1);
  say(host, "main", user("m3", "tulips three"));
  say(host, "fork", user("f1", "tulips four"));
  insertSession(host, { id: "tab", leaf: at, viewOf: "main" }, 1);
  say(host, "tab", user("t1", "tulips five"));
  const search = new SessionSearch(host);
  const found = async (session?: string) => new Set(ids(await search.search("tulips", session ? { session } : {})));
  expect(await found("main")).toEqual(new Set(["m1", "m2", "m3"]));
  expect(await found("fork")).toEqual(new Set(["m1", "m2", "f1"]));
  expect(await found("tab")).toEqual(new Set(["m1", "m2", "t1"]));
  expect(await found()).toEqual(new Set(["m1", "m2", "m3", "f1", "t1"]));
  expect((await search.search("four"))[0]).toMatchObject({ sessionId: "fork", sessionName: "Other way" });
  expect((await search.search("five"))[0]).toMatchObject({ sessionId: "main" });
  expect((await search.search("one", { session: "fork" }))[0]).toMatchObject({ sessionId: "fork" });
});

test("hits of a session are found behind many better ones of another", async () => {
  const { host } = await probeHost();
  say(host, "main", user("old", "the lighthouse, which is far away from here and hard to reach on foot"));
  for (let n = 0; n < 500; n++) say(host, "other", user(`o${n}`, "lighthouse"));
  expect(ids(await new SessionSearch(host).search("lighthouse", { session: "main" }))).toEqual(["old"]);
});

test("role, time and limit narrow a search", async () => {
  const { host } = await probeHost();
  say(host, "main", user("u1", "ships"), 10);
  say(host, "main", assistant("a1", { type: "text", text: "ships" }), 20);
  say(host, "main", user("u2", "ships"), 30);
  const search = new SessionSearch(host);
  expect(ids(await search.search("ships", { role: "user" }))).toEqual(["u2", "u1"]);
  expect(ids(await search.search("ships", { before: 30 }))).toEqual(["a1", "u1"]);
  expect(ids(await search.search("ships", { limit: 1 }))).toEqual(["u2"]);
});

test.each([
  ["", {}],
  ["  …  ", {}],
  ['"', {}],
  ["x".repeat(1_001), {}],
  [7 as never, {}],
  ["x", { limit: 0 }],
  ["x", { limit: 101 }],
  ["x", { limit: 1.5 }],
  ["x", { role: "robot" as never }],
  ["x", { before: Number.NaN }],
  ["x", { session: 3 as never }],
])("refuses %j with %j", async (query, options) => {
  const { search } = await withMessages("x");
  await expect(search.search(query, options)).rejects.toMatchObject({ code: "bad_input" });
});

test("a session that is not there is refused", async () => {
  const { search } = await withMessages("x");
  await expect(search.search("x", { session: "nobody" })).rejects.toMatchObject({ code: "not_found" });
});

test("an aborted search rejects with the reason and leaves a usable index", async () => {
  const { search } = await withMessages(...Array.from({ length: 300 }, (_, n) => `word${n} common`));
  const stop = new AbortController();
  const given = search.search("common", { signal: stop.signal });
  stop.abort(new Error("enough"));
  await expect(given).rejects.toThrow("enough");
  expect(await search.search("word299")).toHaveLength(1);
});

test("many messages are indexed in slices, with others having their turn between them", async () => {
  const { host } = await probeHost();
  host.tx(() => {
    for (let n = 0; n < 2_000; n++) say(host, "main", user(`m${n}`, `entry number${n} of many`));
  });
  let breaths = 0;
  const counting: AgentHost = new Proxy(host, {
    get(target, key) {
      if (key === "breathe") return () => (breaths++, host.breathe());
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  const search = new SessionSearch(counting);
  const [one, two] = await Promise.all([search.search("number7"), search.search("number1999")]);
  expect(one[0]?.messageId).toBe("m7");
  expect(ids(two)).toEqual(["m1999"]);
  expect(breaths).toBeGreaterThan(2_000 / 64);
  const before = breaths;
  await search.search("number8");
  expect(breaths - before).toBeLessThan(5);
});

test("a message that cannot be read is passed over", async () => {
  const { host, search } = await withMessages("fine words");
  host.sql("INSERT INTO perdure_message (id, role, body, created_at) VALUES ('bad', 'user', '{broken', 0)");
  expect(ids(await search.search("words"))).toEqual(["m0"]);
});

test("a long message is read in pages that together are all of it", async () => {
  const text = Array.from({ length: 4_000 }, (_, n) => `line${n} 😀`).join("\n");
  const { search } = await withMessages(text);
  const first = await search.read("m0");
  expect(first).toMatchObject({ messageId: "m0", role: "user", page: 1 });
  let all = "";
  for (let page = 1; page <= (first?.pages ?? 0); page++) all += (await search.read("m0", { page }))?.text;
  expect(all).toBe(text);
  await expect(search.read("m0", { page: 99 })).rejects.toMatchObject({ code: "bad_input" });
  expect(await search.read("nobody")).toBeUndefined();
});

test("a message is read only if the session shows it", async () => {
  const { host, search } = await withMessages("x");
  say(host, "other", user("o", "y"));
  expect(await search.read("o", { session: "main" })).toBeUndefined();
  expect(await search.read("o", { session: "other" })).toMatchObject({ text: "y" });
});

test("a loose search also finds what has only some of the words, behind the rest", async () => {
  const { search } = await withMessages("green tea with milk", "black coffee with milk", "昨日は京都の寺を見た");
  expect(ids(await search.search("green coffee"))).toEqual([]);
  expect(new Set(ids(await search.searchLoosely("green coffee")))).toEqual(new Set(["m0", "m1"]));
  expect(ids(await search.searchLoosely("京都の神社"))).toEqual(["m2"]);
});

test("no query makes a statement that looks at everything: a begun word stands for 64, and words of many messages are taken newest first", async () => {
  const { host } = await probeHost();
  const COUNT = 400;
  // Many words with the same beginning, and one that is everywhere.
  for (let n = 0; n < COUNT; n++) {
    const words = Array.from({ length: 60 }, (_, at) => `prefix${n}x${at}`);
    say(host, "main", user(`m${n}`, `common ${words.join(" ")}`), n);
  }
  const asked: string[] = [];
  let breaths = 0;
  const seen = new Proxy(host, {
    get(target, key) {
      if (key === "breathe") return () => (breaths++, target.breathe());
      if (key !== "sql") {
        const value: unknown = Reflect.get(target, key);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      }
      return (query: string, ...args: SqlValue[]) => {
        if (query.includes("MATCH")) asked.push(...args.filter((arg): arg is string => typeof arg === "string"));
        return target.sql(query, ...args);
      };
    },
  });
  const search = new SessionSearch(seen);
  const hostile = Array.from({ length: 80 }, (_, n) => `prefix${"x".repeat(n % 5)}${n}`).join(" ");
  for (const query of ["prefix", "p", hostile, "common common common common"]) await search.searchLoosely(query);
  const words = asked.map((expression) => expression.split('"').length / 2);
  expect(Math.max(...words)).toBeLessThan(300);
  expect(asked.filter((expression) => expression.endsWith('"p" *'))).toEqual([]);
  expect(breaths).toBeGreaterThan(10);
  expect(ids(await search.search("common", { limit: 2 }))).toEqual(["m399", "m398"]);
  expect(ids(await search.search("prefix7x3"))).toContain("m7");
});
