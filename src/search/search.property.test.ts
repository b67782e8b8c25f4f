// Whatever is said, changed, deleted and forked between searches: what is found is what a look at every message finds.
import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { type Random, seeded } from "../../test/support/seeded.ts";
import { say, user } from "../../test/support/tree-messages.ts";
import type { AgentHost } from "../port.ts";
import { deleteMessage, messagesUp, readMessageAt, updateMessage } from "../store/message.ts";
import { insertSession, readSession } from "../store/session.ts";
import { SessionSearch } from "./search.ts";

const RUNS = 25;
const STEPS = 60;
/** None is the beginning of another, and all are too short to have other forms. */
const WORDS = ["red", "blue", "été", "дом", "犬", "東京", "고양", "ขาว", "قلب", "👍", "x1", "b2é"];

interface World {
  readonly host: AgentHost;
  readonly search: SessionSearch;
  readonly random: Random;
  readonly sessions: string[];
  messages: number;
}

function pick<T>(random: Random, list: readonly T[]): T {
  const item = list[random(list.length)];
  if (item === undefined) throw new Error("The list is empty.");
  return item;
}

function text({ random }: World): string {
  return Array.from({ length: 1 + random(5) }, () => pick(random, WORDS)).join(" ");
}

function anyMessage({ host, random }: World): number | undefined {
  const rows = host.sql<{ seq: number }>("SELECT seq FROM perdure_message");
  return rows.length === 0 ? undefined : pick(random, rows).seq;
}

const actions: readonly ((world: World) => void)[] = [
  (world) => void say(world.host, pick(world.random, world.sessions), user(`m${world.messages++}`, text(world))),
  (world) => {
    const row = readMessageAt(world.host, anyMessage(world) ?? 0);
    if (row !== undefined) updateMessage(world.host, row.seq, "user", JSON.stringify(user(row.id, text(world))));
  },
  (world) => {
    const row = readMessageAt(world.host, anyMessage(world) ?? 0);
    if (row !== undefined) deleteMessage(world.host, row.seq, row.parent);
  },
  (world) => {
    const leaf = readSession(world.host, pick(world.random, world.sessions))?.leaf ?? null;
    const id = `s${world.sessions.length}`;
    insertSession(world.host, { id, leaf }, 0);
    world.sessions.push(id);
  },
];

/** By looking at every message. */
function expected({ host }: World, words: readonly string[], session: string | undefined): Set<string> {
  const leaf = session === undefined ? undefined : (readSession(host, session)?.leaf ?? 0);
  const rows =
    leaf === undefined
      ? host.sql<{ id: string; body: string }>("SELECT id, body FROM perdure_message")
      : messagesUp(host, leaf, 10_000);
  const fits = rows.filter(({ body }) => {
    const [part] = (JSON.parse(body) as { parts: { text: string }[] }).parts;
    const said = new Set(part?.text.split(" "));
    return words.every((word) => said.has(word));
  });
  return new Set(fits.map(({ id }) => id));
}

test.each(Array.from({ length: RUNS }, (_, seed) => seed))("run %i", async (seed) => {
  const { host } = await probeHost();
  const world: World = { host, search: new SessionSearch(host), random: seeded(seed), sessions: ["main"], messages: 0 };
  insertSession(host, { id: "main" }, 0);
  say(host, "main", user("first", "red"));
  for (let step = 0; step < STEPS; step++) {
    pick(world.random, actions.slice(0, world.random(4) + 1))(world);
    if (world.random(3) > 0) continue;
    const words = [pick(world.random, WORDS), ...(world.random(2) === 0 ? [pick(world.random, WORDS)] : [])];
    const session = world.random(2) === 0 ? undefined : pick(world.random, world.sessions);
    const hits = await world.search.search(words.join(" "), { limit: 100, ...(session !== undefined && { session }) });
    const found = new Set(hits.map(({ messageId }) => messageId));
    expect(found, `step ${step}: ${words.join(" ")} in ${session ?? "all"}`).toEqual(expected(world, words, session));
    expect(hits.every(({ excerpt }) => words.some((word) => excerpt.includes(`**${word}**`)))).toBe(true);
  }
});
