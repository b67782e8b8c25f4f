// Rules of the app that throw, are slow or say something else later, and who is judged by them when.
import { subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { serverTool } from "../think/harness.ts";
import {
  ADA,
  ADA_AT_SLACK,
  ADA_THERE,
  BEN,
  BEN_AT_SLACK,
  BEN_THERE,
  DM,
  type HostKit,
  openKit,
  openSlack,
  openTelegram,
} from "./kit.ts";

const BOT = "<@UBOT>";
const EVE = { id: "U66", name: "Eve" };
type Terms = NonNullable<Parameters<typeof openKit>[0]> & { readonly manual?: boolean };

interface There {
  readonly kit: HostKit;
  adaSays(text: string): void;
  benSays(text: string): void;
  adas(): string[];
  bens(): string[];
  /** Connections to the network. */
  lines?(): number;
}

const NETWORKS: Readonly<Record<string, (terms: Terms) => Promise<There>>> = {
  async memory(terms) {
    const kit = await openKit(terms);
    return {
      ...{ kit, adas: () => kit.texts(), bens: () => kit.texts("memory:8") },
      adaSays: (text) => void kit.network.says(DM, ADA, text),
      benSays: (text) => void kit.network.says("memory:8", BEN, text),
    };
  },
  async Telegram(terms) {
    const kit = await openTelegram(terms as Parameters<typeof openTelegram>[0]);
    return {
      ...{ kit, adas: () => kit.texts(), bens: () => kit.texts(8) },
      adaSays: (text) => void kit.telegram.says(7, ADA_THERE, text),
      benSays: (text) => void kit.telegram.says(8, BEN_THERE, text),
    };
  },
  async Slack(terms) {
    const kit = await openSlack(terms as Parameters<typeof openSlack>[0]);
    return {
      ...{ kit, adas: () => kit.texts(), bens: () => kit.texts("D8"), lines: () => kit.slack.connections },
      adaSays: (text) => void kit.slack.says("D7", ADA_AT_SLACK, text),
      benSays: (text) => void kit.slack.says("D8", BEN_AT_SLACK, text),
    };
  },
};
const NAMES = Object.keys(NETWORKS);
const at = (name: string, terms: Terms) => {
  const open = NETWORKS[name];
  if (open === undefined) throw new Error(name);
  return open(terms);
};
const isAda = (id: string) => id === "7" || id === "U7";

test.each(NAMES)(
  "at %s a rule that is slow about one person holds up nobody else, and keeps their order",
  async (name) => {
    const slow = Promise.withResolvers<boolean>();
    const { kit, ...there } = await at(name, { allow: ({ author }) => (isAda(author.id) ? slow.promise : true) });
    there.adaSays("one");
    there.adaSays("two");
    there.benSays("hi");
    await kit.until(() => expect(there.bens()).toEqual(["Hello there."]));
    expect(there.adas()).toEqual([]);
    slow.resolve(true);
    await kit.until(() => expect(there.adas()).toHaveLength(2));
    const words = kit.model.calls.map(({ userText }) => userText).filter((text) => text !== "hi");
    expect(words).toEqual(["one", "two"]);
  },
);

test.each(NAMES)(
  "at %s a rule that thinks about one person holds up nothing that others say meanwhile",
  async (name) => {
    const asked = Promise.withResolvers<void>();
    const slow = Promise.withResolvers<boolean>();
    const { kit, ...there } = await at(name, {
      allow: ({ author }) => (isAda(author.id) ? (asked.resolve(), slow.promise) : true),
      script: ({ userText }) => `You said: ${userText}`,
    });
    there.adaSays("one");
    await asked.promise;
    for (const text of ["hi", "and this", "and that"]) {
      there.benSays(text);
      await kit.until(() => expect(there.bens().at(-1)).toBe(`You said: ${text}`));
    }
    there.adaSays("two");
    expect(there.adas()).toEqual([]);
    slow.resolve(true);
    await kit.until(() => expect(there.adas()).toEqual(["You said: one", "You said: two"]));
    expect(there.bens()).toHaveLength(3);
    expect(kit.model.calls).toHaveLength(5);
  },
);

test.each(NAMES)(
  "at %s a rule that throws about one person holds up nobody else; what they said comes again",
  async (name) => {
    let broken = true;
    const { kit, ...there } = await at(name, {
      allow({ author }) {
        if (broken && isAda(author.id)) throw new Error("no directory");
        return true;
      },
    });
    there.adaSays("one");
    await kit.until(() => expect(kit.errors).toContain("no directory"));
    there.benSays("hi");
    await kit.until(() => expect(there.bens()).toEqual(["Hello there."]));
    there.benSays("and again");
    await kit.until(() => expect(there.bens()).toHaveLength(2));
    // The line to the network is as it was.
    expect(there.lines?.() ?? 1).toBe(1);
    expect(kit.events.filter(({ type }) => type.startsWith("messenger"))).toEqual([]);
    broken = false;
    await kit.until(() => expect(there.adas()).toEqual(["Hello there."]));
    expect(kit.model.calls).toHaveLength(3);
    // However often it came, it is in the log once a minute.
    expect(kit.errors.splice(0)).toEqual(["no directory"]);
  },
);

test("a rule that never answers is given up, what it was asked about comes again, and is refused when that does not help", async () => {
  let answers = false;
  const kit = await openKit({
    manual: true,
    allow: ({ author }) => answers || author.id !== ADA.id || new Promise<boolean>(() => undefined),
  });
  kit.network.says(DM, ADA, "one");
  kit.network.says("memory:8", BEN, "hi");
  await kit.until(() => expect(kit.texts("memory:8")).toEqual(["Hello there."]));
  await kit.clock.advance(10_000);
  await kit.until(() =>
    expect(kit.errors).toEqual([expect.stringContaining('allow() of "memory" took longer than 10 s')]),
  );
  // Soon enough, it is answered.
  answers = true;
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  answers = false;
  kit.network.says(DM, ADA, "two");
  for (let i = 0; i < 62; i++) {
    await kit.clock.advance(10_000);
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  await kit.until(() => expect(kit.events).toContainEqual(expect.objectContaining({ type: "messenger:refused" })));
  await kit.until(() => expect(kit.texts().at(-1)).toBe("Sorry, I could not take that. Please try again later."));
  answers = true;
  kit.network.says(DM, ADA, "three");
  await kit.until(() => expect(kit.texts()).toHaveLength(3));
  expect(kit.model.calls.map(({ userText }) => userText)).toEqual(["hi", "one", "three"]);
  kit.errors.length = 0;
}, 60_000);

test("at Slack nobody asks who strangers are, nor who talks about something else", async () => {
  const kit = await openSlack({ allow: ["U7"] });
  const asked = () => kit.slack.calls.filter(({ method }) => method === "users.info").map(({ params }) => params.user);
  for (let i = 0; i < 3; i++) kit.slack.says("C1", EVE, `${BOT} hey ${i} <@U10${i}>`);
  kit.slack.says("C1", ADA_AT_SLACK, "we talk about <@U55>");
  await kit.until(() => expect(kit.texts("C1")).toHaveLength(1));
  await kit.until(() => expect(kit.slack.deliveries).toHaveLength(7));
  expect(asked()).toEqual([]);
  kit.slack.says("C1", ADA_AT_SLACK, `${BOT} hi`);
  await kit.until(() => expect(kit.texts("C1")).toContain("Hello there."));
  expect(JSON.stringify(kit.model.calls[0]?.prompt)).toContain("Ada: @fake_bot hi");
  expect(new Set(asked())).toEqual(new Set(["U7", "UBOT"]));
});

test("at Slack what happens in another workspace of the app is nothing to the bot", async () => {
  const kit = await openSlack({ signingSecret: "signing-secret" });
  const post = (body: object) => kit.slack.request(JSON.stringify({ type: "event_callback", event_id: "E", ...body }));
  const event = (text: string, ts: string) => ({
    event: { type: "message", channel: "D7", channel_type: "im", user: "U7", text, ts },
  });
  const elsewhere = { team_id: "T666", authorizations: [{ team_id: "T666", user_id: "UELSE" }] };
  expect((await post({ ...elsewhere, ...event("elsewhere", "5.000001") })).status).toBe(200);
  const body = new URLSearchParams({ command: "/stop", channel_id: "D7", user_id: "U7", team_id: "T666" }).toString();
  const command = await kit.slack.request(body, "good", "application/x-www-form-urlencoded");
  expect(command.status).toBe(200);
  // What is shared with ours is told with the name of either.
  const shared = { team_id: "T666", authorizations: [{ team_id: "T1", user_id: "UBOT" }] };
  expect((await post({ ...shared, ...event("shared", "5.000002") })).status).toBe(200);
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  kit.slack.says("D7", ADA_AT_SLACK, "ours");
  await kit.until(() => expect(kit.texts()).toHaveLength(2));
  expect(kit.model.calls.map(({ userText }) => userText)).toEqual(["shared", "ours"]);
});

test("whom `authorize` refuses gets no child, is told once, and is known when it comes again", async () => {
  const asked: string[] = [];
  let refuses = true;
  const kit = await openSlack({
    make: (Base) =>
      class extends Base {
        override authorize(identity: { id: string } | undefined, act: string) {
          asked.push(`${this.name === "main" ? "main" : "child"} ${identity?.id ?? ""} ${act}`);
          return !refuses || identity?.id !== "slack:U66";
        }
      },
  });
  const saids = [0, 1, 2].map((i) => kit.slack.says("C1", EVE, `${BOT} hey ${i}`));
  for (const said of saids) kit.slack.repeats(said);
  await kit.until(() => expect(kit.slack.deliveries).toHaveLength(12));
  await kit.until(() => expect(kit.texts("C1")).toEqual(['"chat.submit" is not allowed here.']));
  const root = kit.lives[0];
  expect(root?.listSubAgents()).toEqual([]);
  expect(kit.ports[0]?.sql("SELECT key FROM perdure_cell WHERE key LIKE 'messenger:thread:%'")).toEqual([]);
  // The rule is that of who would hold the conversation, and is asked once for each message.
  expect(asked).toEqual(Array(3).fill("child slack:U66 chat.submit"));
  refuses = false;
  kit.slack.says("C1", EVE, `${BOT} please`);
  await kit.until(() => expect(kit.texts("C1")).toContain("Hello there."));
  expect(root?.listSubAgents()).toHaveLength(1);
  expect(asked).toHaveLength(4);
});

const pays = {
  tools: { pay: serverTool(() => "paid", { needsApproval: true }) },
  script: ({ userText }: { readonly userText: string }) =>
    userText.includes("pay") ? { toolCalls: [{ toolName: "pay", input: {} }] } : `You said: ${userText}`,
};

/** Ben and Cy have said something while a question to Ada is open. */
async function openWaiting(allow: (id: string) => boolean, submits: (id: string) => boolean, manual = false) {
  const GROUP = "memory:-100";
  const kit = await openKit({
    ...{ ...pays, manual },
    allow: ({ author }) => allow(author.id),
    make: (Base) =>
      class extends Base {
        override authorize(identity: { id: string } | undefined, act: string) {
          return act !== "chat.submit" || submits(identity?.id ?? "");
        }
      },
  });
  const says = (who: typeof ADA, text: string) =>
    kit.network.says(GROUP, who, `@memory_bot ${text}`, { dm: false, title: "Group" });
  const held = () => kit.holder(GROUP).listDeliveries({ state: "held" });
  says(ADA, "pay");
  await kit.until(() => expect(kit.network.seen(GROUP, "agent").some(({ buttons }) => buttons.length > 0)).toBe(true));
  await kit.until(() => expect(held()).toHaveLength(1));
  says(BEN, "I am Ben");
  says({ id: "9", name: "Cy" }, "I am Cy");
  await kit.until(() => expect(held()).toHaveLength(3));
  return { kit, says, held, GROUP };
}

test("what waited for an answer in a group is judged again before it is said, by both rules, and its order is kept", async () => {
  let later = false;
  const { kit, says, held, GROUP } = await openWaiting(
    (id) => !later || id !== "9",
    (id) => !later || id !== "memory:8",
  );
  says({ id: "10", name: "Di" }, "I am Di");
  await kit.until(() => expect(held()).toHaveLength(4));
  later = true;
  says(ADA, "never mind");
  await kit.until(() => expect(kit.texts(GROUP).at(-1)).toContain("I am Di"));
  const said = kit.model.calls.map(({ userText }) => userText).join("\n");
  expect(said).not.toMatch(/I am (Ben|Cy)/);
  expect(held()).toEqual([]);
  expect(kit.events.filter(({ type }) => type === "messenger:refused")).toMatchObject([
    { payload: { by: "memory:8" } },
    { payload: { by: "memory:9", reason: "not allowed" } },
  ]);
  await kit.until(() => expect(kit.texts(GROUP)).toContain("Sorry, I may not talk with you."));
  // Delivered again, it is as it was.
  expect(kit.holder(GROUP).listDeliveries({ state: "open" })).toEqual([]);
});

test("what could not be judged waits on, and what is said after it waits behind it", async () => {
  let broken = false;
  const { kit, says, held, GROUP } = await openWaiting(
    (id) => {
      if (broken && id === "8") throw new Error("no directory");
      return true;
    },
    () => true,
    true,
  );
  broken = true;
  says(ADA, "never mind");
  await kit.until(() => expect(kit.errors.splice(0)).toContain("no directory"));
  says({ id: "10", name: "Di" }, "I am Di");
  await kit.until(() => expect(held().length).toBeGreaterThanOrEqual(3));
  broken = false;
  await kit.restart();
  // Nobody has said anything since: the agent wakes by itself.
  await kit.clock.advance(31_000);
  await kit.until(() => expect(kit.texts(GROUP).at(-1)).toContain("I am Di"));
  const order = kit.texts(GROUP).flatMap((text) => /I am (\w+)/.exec(text)?.[1] ?? []);
  expect(order).toEqual(["Ben", "Cy", "Di"]);
  kit.errors.length = 0;
});

test("what was not delivered, and deliveries that somebody else signed, are said once to who runs the host, in words", async () => {
  const log: string[] = [];
  const heard: unknown[] = [];
  onTestFinished(subscribe("messenger:unverified", ({ payload }) => heard.push(payload)));
  const kit = await openSlack({
    signingSecret: "signing-secret",
    host: { log: ({ error }) => log.push(error instanceof Error ? `${error.message}\n${error.stack ?? ""}` : "") },
  });
  const gone = { kind: "answer", status: 200, error: "is_archived" } as const;
  kit.slack.plan("chat.postMessage", gone, { times: 3 });
  for (const [channel, one] of [
    ["D7", ADA_AT_SLACK],
    ["D8", BEN_AT_SLACK],
    ["D66", EVE],
  ] as const)
    kit.slack.says(channel, one, "hi");
  const failed = () => kit.events.filter(({ type }) => type === "delivery:failed");
  await kit.until(() => expect(failed()).toHaveLength(3));
  expect(log).toEqual([
    expect.stringMatching(
      /^What the agent has to say at slack:D\d+ .*is_archived.*retryDelivery\(id\) tries again\.\n$/,
    ),
  ]);
  const body = JSON.stringify({ type: "event_callback", event: {} });
  for (let i = 0; i < 3; i++) expect((await kit.slack.request(body, "bad")).status).toBe(401);
  expect(heard).toEqual(Array(3).fill({ messenger: "slack", status: 401 }));
  expect(log).toHaveLength(2);
  expect(log[1]).toContain('the webhook of the messenger "slack" was refused (401)');
});
