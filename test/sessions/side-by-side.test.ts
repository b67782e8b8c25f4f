// Turns of different sessions run side by side, and what happens in one of them is its own.
import { jsonSchema } from "ai";
import { action, type AgentHost, type Think, type TurnContext } from "perdure";
import { type ScriptedCall, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { connectTo, textIn, user } from "../chat/client.ts";
import { eventually } from "../host/open-host.ts";
import { openThink, serverTool, type ThinkBase } from "../think/harness.ts";

interface Gates {
  /** Lets the tool of this name go on. */
  open(name: string): void;
  /** Those whose tool runs now. */
  readonly inside: ReadonlySet<string>;
  /** The most that ever ran at once. */
  readonly most: number;
}

/** "slow x": its tool waits until the test opens x. All else has an answer at once. */
async function talking(extend: (Base: ThinkBase) => ThinkBase = (Base) => Base) {
  const doors = new Map<string, PromiseWithResolvers<void>>();
  const inside = new Set<string>();
  let most = 0;
  const door = (name: string) => {
    const known = doors.get(name) ?? Promise.withResolvers<void>();
    doors.set(name, known);
    return known;
  };
  const model = scriptedModel(({ userText, step }: ScriptedCall) =>
    userText.startsWith("slow ") && step === 0
      ? { toolCalls: [{ toolName: "wait", input: { name: userText.slice(5) } }] }
      : `re ${userText}`,
  );
  const kit = await openThink((Base) => {
    class Talk extends Base {
      override getModel() {
        return model;
      }
      override getTools() {
        return {
          wait: serverTool<{ name: string }>(async ({ name }) => {
            inside.add(name);
            most = Math.max(most, inside.size);
            await door(name).promise;
            inside.delete(name);
            return "opened";
          }),
        };
      }
    }
    return extend(Talk);
  });
  const gates: Gates = {
    open: (name) => door(name).resolve(),
    inside,
    get most() {
      return most;
    },
  };
  return { kit, model, gates };
}

const texts = (agent: Think, session: string) => agent.getHistory(null, { session }).map((one) => textIn(one));

test("a quick turn in a second session ends while a tool of the first session still runs", async () => {
  const { kit, gates } = await talking();
  const agent = await kit.agent();
  const { id } = agent.createSession();
  const slow = agent.runTurn({ input: "slow a", session: "main" });
  await eventually(() => gates.inside.has("a"), "the tool");
  expect(await agent.runTurn({ input: "quick", session: id })).toMatchObject({ status: "completed" });
  expect(texts(agent, id)).toEqual(["quick", "re quick"]);
  expect(gates.inside.has("a")).toBe(true);
  gates.open("a");
  expect(await slow).toMatchObject({ status: "completed" });
  expect(texts(agent, "main")).toEqual(["slow a", "re slow a"]);
});

test("turns of one session wait for each other, whatever runs elsewhere", async () => {
  const { kit, gates, model } = await talking();
  const agent = await kit.agent();
  const { id } = agent.createSession();
  const turns = ["main", id].flatMap((session) =>
    ["slow 1", "2", "3"].map((text) => agent.runTurn({ input: `${text} ${session}`, session })),
  );
  await eventually(() => gates.inside.size === 2, "both tools");
  expect(model.calls).toHaveLength(2);
  gates.open("1 main");
  await eventually(() => texts(agent, "main").length === 6, "the first session");
  expect(texts(agent, id).filter((text) => text.startsWith("re "))).toEqual([]);
  gates.open(`1 ${id}`);
  expect((await Promise.all(turns)).map(({ status }) => status)).toEqual(Array(6).fill("completed"));
  for (const session of ["main", id])
    expect(texts(agent, session)).toEqual(
      ["slow 1", "2", "3"].flatMap((text) => [`${text} ${session}`, `re ${text} ${session}`]),
    );
});

test.each([1, 2, 3])("at most %i run at once where the class says so", async (width) => {
  const { kit, gates } = await talking(
    (Base) =>
      class extends Base {
        override maxConcurrentTurns = width;
      },
  );
  const agent = await kit.agent();
  const sessions = ["main", ...Array.from({ length: 4 }, () => agent.createSession().id)];
  const turns = sessions.map((session) => agent.runTurn({ input: `slow ${session}`, session }));
  for (const [i, session] of sessions.entries()) {
    await eventually(() => gates.inside.size === Math.min(width, sessions.length - i), "as many as may run");
    gates.open(session);
    await turns[i];
  }
  expect(gates.most).toBe(width);
  for (const session of sessions) expect(texts(agent, session)).toEqual([`slow ${session}`, `re slow ${session}`]);
});

test("a stop ends the turn of its session alone; so does clearing one", async () => {
  const { kit, gates } = await talking();
  const agent = await kit.agent();
  const [stopped, cleared, kept] = ["stopped", "cleared", "kept"].map((name) => agent.createSession(name).id) as [
    string,
    string,
    string,
  ];
  const stop = new AbortController();
  const turns = [
    agent.runTurn({ input: "slow s", session: stopped, signal: stop.signal }),
    agent.runTurn({ input: "slow c", session: cleared }),
    agent.runTurn({ input: "slow k", session: kept }),
  ];
  await eventually(() => gates.inside.size === 3, "all tools");
  stop.abort();
  expect(await turns[0]).toMatchObject({ status: "aborted" });
  agent.clearMessages({ session: cleared });
  expect(await turns[1]).toMatchObject({ status: "aborted" });
  expect(texts(agent, cleared)).toEqual([]);
  gates.open("k");
  expect(await turns[2]).toMatchObject({ status: "completed" });
  expect(texts(agent, kept)).toEqual(["slow k", "re slow k"]);
  // Calls of the others are not closed with those of the session that is gone.
  const open = await kit.rows("SELECT id FROM perdure_usage WHERE status = 'open'");
  expect(open).toEqual([]);
  for (const name of ["s", "c"]) gates.open(name);
});

test("a turn in one session is refused inside a turn of another: at the limit they would wait for each other", async () => {
  const refused: string[] = [];
  const { kit } = await talking(
    (Base) =>
      class extends Base {
        override async beforeTurn() {
          const session = this.getSessions().find(({ id }) => id !== "main")?.id ?? "none";
          await this.runTurn({ input: "inner", session }).catch((error: unknown) => refused.push(String(error)));
        }
      },
  );
  const agent = await kit.agent();
  agent.createSession();
  await kit.ask("outer");
  expect(refused).toEqual([expect.stringContaining("inside a turn of the same agent")]);
});

test("a message steers the turn of its own session, and takes nothing of another", async () => {
  const { kit, gates } = await talking(
    (Base) =>
      class extends Base {
        override messageConcurrency = "steer" as const;
      },
  );
  const agent = await kit.agent();
  const { id } = agent.createSession();
  const [here, there] = await Promise.all([kit.connect(), connectTo(`${kit.url}?_session=${id}`)]);
  here.request("r1", [user("u1", "slow a")]);
  there.request("r2", [user("u2", "slow b")]);
  await eventually(() => gates.inside.size === 2, "both tools");
  here.request("r3", [user("u1", "slow a"), user("u3", "more")]);
  await eventually(() => agent.listInbox().length === 1, "what waits");
  gates.open("b");
  await there.done("r2");
  expect(texts(agent, id)).toEqual(["slow b", "re slow b"]);
  expect(agent.listInbox().map(({ requestId }) => requestId)).toEqual(["r3"]);
  gates.open("a");
  await here.done("r1");
  await here.done("r3");
  expect(texts(agent, "main").join(" ")).toContain("more");
});

test("what is turned away in a session that is busy is taken in one that is not", async () => {
  const { kit, gates } = await talking(
    (Base) =>
      class extends Base {
        override messageConcurrency = "drop" as const;
      },
  );
  const agent = await kit.agent();
  const { id } = agent.createSession();
  const [here, there] = await Promise.all([kit.connect(), connectTo(`${kit.url}?_session=${id}`)]);
  here.request("r1", [user("u1", "slow a")]);
  await eventually(() => gates.inside.size === 1, "the tool");
  here.request("r2", [user("u1", "slow a"), user("u2", "again")]);
  expect(await here.done("r2")).toMatchObject({ outcome: "skipped" });
  there.request("r3", [user("u3", "free")]);
  expect(await there.done("r3")).toMatchObject({ outcome: "completed" });
  gates.open("a");
  await here.done("r1");
  expect(texts(agent, id)).toEqual(["free", "re free"]);
});

test("who comes to a session while its turn runs is given all of it, whatever has begun and ended elsewhere meanwhile", async () => {
  const { kit, gates } = await talking();
  const agent = await kit.agent();
  const { id } = agent.createSession();
  const slow = agent.runTurn({ input: "slow a", session: "main" });
  await eventually(() => gates.inside.has("a"), "the tool");
  const before = await kit.rows("SELECT turn, chunks FROM perdure_stream ORDER BY seq");
  expect(before.length).toBeGreaterThan(0);
  for (const text of ["one", "two"]) await agent.runTurn({ input: text, session: id });
  expect(await kit.rows("SELECT turn, chunks FROM perdure_stream ORDER BY seq")).toEqual(before);
  const late = await kit.connect();
  const { id: offered } = await late.probe();
  late.ack(offered ?? "");
  gates.open("a");
  const { requestId } = await slow;
  await late.done(requestId);
  expect(late.of(requestId).flatMap(({ seq }) => seq ?? [])).toEqual(
    late
      .of(requestId)
      .flatMap(({ seq }) => seq ?? [])
      .map((_, i) => i),
  );
  expect(
    late
      .of(requestId)
      .map(({ body }) => body)
      .join(""),
  ).toContain("opened");
});

test("what one turn is granted decides nothing in another that runs at the same time", async () => {
  const paid: string[] = [];
  const begun = new Set<string>();
  const bothBegun = Promise.withResolvers<void>();
  const { kit } = await talking((Base) => {
    class Paying extends Base {
      override getModel() {
        return scriptedModel(async ({ userText, step }: ScriptedCall) => {
          begun.add(userText);
          if (begun.size === 2) bothBegun.resolve();
          await bothBegun.promise;
          return step === 0 ? { toolCalls: [{ toolName: "pay", input: { who: userText } }] } : "Done.";
        });
      }
      override getActions() {
        return {
          pay: action<{ who: string }, string>({
            description: "Pays.",
            inputSchema: jsonSchema({ type: "object" }),
            permissions: ["pay"],
            execute: async ({ who }) => {
              paid.push(who);
              return "paid";
            },
          }),
        };
      }
      override authorizeTurn({ messages }: TurnContext) {
        const isRich = JSON.stringify(messages).includes("rich");
        return { allowed: true, grantedPermissions: isRich ? ["pay"] : [] } as const;
      }
    }
    return Paying;
  });
  const agent = await kit.agent();
  const { id } = agent.createSession();
  const turns = [agent.runTurn({ input: "rich", session: "main" }), agent.runTurn({ input: "poor", session: id })];
  expect((await Promise.all(turns)).map(({ status }) => status)).toEqual(["completed", "completed"]);
  expect(paid).toEqual(["rich"]);
  expect(JSON.stringify(agent.getHistory(null, { session: id }))).toContain("ActionAuthorizationError");
});

test("both are carried on after the life that they ran in", async () => {
  const { kit, gates } = await talking();
  const agent = await kit.agent();
  const { id } = agent.createSession();
  for (const session of ["main", id]) void agent.runTurn({ input: `slow ${session}`, session }).catch(() => {});
  await eventually(() => gates.inside.size === 2, "both tools");
  await kit.restart();
  const again = await kit.agent();
  await kit.stable();
  for (const session of ["main", id]) {
    expect(texts(again, session)).toEqual([`slow ${session}`, `re slow ${session}`]);
    gates.open(session);
  }
  expect(kit.responses.map(({ sessionId, status }) => [sessionId, status]).sort()).toEqual(
    [
      ["main", "completed"],
      [id, "completed"],
    ].sort(),
  );
});

test("code that names no session is in that of its own turn", async () => {
  const seen: [string, string[]][] = [];
  const { kit, gates } = await talking(
    (Base) =>
      class extends Base {
        override beforeStep() {
          seen.push([this.session.id, this.messages.map((one) => textIn(one))]);
        }
      },
  );
  const agent = await kit.agent();
  const { id } = agent.createSession();
  const turns = ["main", id].map((session) => agent.runTurn({ input: `slow ${session}`, session }));
  await eventually(() => gates.inside.size === 2, "both tools");
  for (const session of [id, "main"]) gates.open(session);
  await Promise.all(turns);
  expect(seen.filter(([session]) => session === id).map(([, said]) => said[0])).toEqual([`slow ${id}`, `slow ${id}`]);
  expect(seen.filter(([session]) => session === "main").map(([, said]) => said[0])).toEqual(["slow main", "slow main"]);
});

test("files are not restored while a turn of another session works on them", async () => {
  const { kit, gates } = await talking(
    (Base) =>
      class extends Base {
        constructor(host: AgentHost) {
          super(host);
          Object.assign(this, { workspaceTools: {} });
        }
      },
  );
  const agent = await kit.agent();
  const { id } = agent.createSession();
  await agent.workspace.writeFile("/note.txt", "one");
  await agent.runTurn({ input: "quick", session: "main" });
  await agent.workspace.writeFile("/note.txt", "two");
  const answer = agent.getHistory(null, { session: "main" }).at(-1)?.id ?? "";
  const slow = agent.runTurn({ input: "slow a", session: id });
  await eventually(() => gates.inside.has("a"), "the tool");
  await expect(agent.restoreFiles(answer)).rejects.toMatchObject({ code: "bad_state" });
  expect(await agent.workspace.readFile("/note.txt")).toBe("two");
  gates.open("a");
  await slow;
  await agent.restoreFiles(answer);
  expect(await agent.workspace.readFile("/note.txt")).toBe("one");
});
