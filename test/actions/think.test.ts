import { jsonSchema } from "ai";
import { action, type ActionAuthorization, type AnyAction } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { toolParts } from "../../src/message/types.ts";
import { textIn } from "../chat/client.ts";
import { openThink } from "../think/harness.ts";

interface Payment {
  readonly to: string;
  readonly cents: number;
}
const inputSchema = jsonSchema<Payment>({ type: "object" });

/** The model calls `pay` once in each turn, then says what it read. */
const pay =
  (input: Payment = { to: "ada", cents: 500 }): Script =>
  ({ step, userText }) =>
    step === 0 ? { toolCalls: [{ toolName: "pay", input, toolCallId: `call-${userText}` }] } : "Done.";

interface Setup {
  readonly script?: Script;
  readonly options?: Partial<Parameters<typeof action<Payment, unknown>>[0]>;
  readonly grants?: ActionAuthorization;
  readonly idleMs?: number;
}

async function paying({ script = pay(), options = {}, grants = true, idleMs = 1e9 }: Setup = {}) {
  const model = scriptedModel(script);
  const paid: string[] = [];
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getActions(): Record<string, AnyAction> {
          const one = action<Payment, unknown>({
            description: "Pays somebody.",
            inputSchema,
            execute: ({ to }, { attachReply }) => {
              paid.push(to);
              attachReply({ type: "card", title: `Paid ${to}` });
              return { paid: to };
            },
            ...options,
          });
          return { pay: one };
        }
        override authorizeTurn() {
          return grants;
        }
      },
    { host: { idleMs } },
  );
  const outputs = async () =>
    (await kit.stored())
      .flatMap((message) => toolParts(message))
      .map((part) => part.output ?? part.errorText ?? part.state);
  return Object.assign(kit, { model, paid, outputs });
}

test("the same key in another turn, after a restart, gives the stored output; what was attached came once", async () => {
  const kit = await paying({ options: { idempotencyKey: ({ to }) => to } });
  await kit.ask("one");
  await kit.restart();
  await kit.ask("two");
  expect(kit.paid).toEqual(["ada"]);
  expect(await kit.outputs()).toEqual([{ paid: "ada" }, { paid: "ada" }]);
  const cards = (await kit.stored()).flatMap(({ parts }) =>
    parts.filter(({ type }) => type === "data-reply-attachment"),
  );
  expect(cards).toMatchObject([{ data: { type: "card", title: "Paid ada" } }]);
  // The model did not read it.
  expect(JSON.stringify(kit.model.calls.at(-1)?.prompt)).not.toContain("Paid ada");
  expect((await kit.agent()).listActions()).toMatchObject([{ key: "action:pay:ada", attempts: 1 }]);
});

test("a durable pause waits for weeks and restarts, and goes on from anywhere", async () => {
  const options = {
    durablePause: true,
    approval: ({ to, cents }: Payment) => cents > 100 && { summary: `Pay ${to} ${cents} cents`, risk: "high" as const },
  };
  const kit = await paying({ options });
  await kit.ask("one");
  expect(kit.paid).toEqual([]);
  const [question] = (await kit.agent()).pendingApprovals();
  expect(question).toMatchObject({ toolCallId: "call-one", tool: "pay", summary: "Pay ada 500 cents (risk: high)" });
  expect(JSON.stringify((await kit.last())?.parts.at(-1))).toContain("(risk: high)");
  const days = ((question?.expiresAt ?? 0) - (question?.askedAt ?? 0)) / (24 * 3_600_000);
  expect(Math.round(days)).toBe(30);
  await kit.restart();
  const agent = await kit.agent();
  expect(agent.approveExecution("call-one")).toBe(true);
  expect(agent.approveExecution("call-one")).toBe(false);
  await expect.poll(() => kit.paid).toEqual(["ada"]);
  await kit.stable();
  expect(await kit.outputs()).toEqual([{ paid: "ada" }]);
  expect(textIn(await kit.last())).toBe("Done.");
});

test("what a person rejects does not run", async () => {
  const kit = await paying({ options: { approval: true } });
  await kit.ask("one");
  expect((await kit.agent()).rejectExecution("call-one", "Not this month.")).toBe(true);
  await kit.stable();
  expect(kit.paid).toEqual([]);
  expect(JSON.stringify(kit.model.calls.at(-1)?.prompt)).toContain("Not this month.");
});

test("without its permissions an action is denied, nobody is asked, and the turn goes on", async () => {
  const grants = { allowed: true, grantedPermissions: ["pay:read"] };
  const kit = await paying({ grants, options: { approval: true, permissions: ["pay:send"] } });
  expect(await kit.ask("one")).toMatchObject({ status: "completed" });
  expect((await kit.agent()).pendingApprovals()).toEqual([]);
  expect(kit.paid).toEqual([]);
  expect(await kit.outputs()).toEqual([
    { error: { name: "ActionAuthorizationError", message: expect.stringContaining("pay:send") } },
  ]);
  expect(textIn(await kit.last())).toBe("Done.");
});

test("a failed action is a result that the model reads, and may be tried again in the next turn", async () => {
  let closed = true;
  const execute = ({ to }: Payment) => {
    if (closed) throw new Error("The bank is closed.");
    return { paid: to };
  };
  const kit = await paying({ options: { idempotencyKey: "once", execute } });
  await kit.ask("one");
  closed = false;
  await kit.ask("two");
  expect(await kit.outputs()).toEqual([{ error: { name: "Error", message: "The bank is closed." } }, { paid: "ada" }]);
});

test("an action that goes on after its turn was stopped is written down when it ends: its agent waits for it", async () => {
  const begun = Promise.withResolvers<void>();
  const work = Promise.withResolvers<string>();
  const execute = () => (begun.resolve(), work.promise);
  const kit = await paying({ options: { execute, idempotencyKey: ({ to }) => to }, idleMs: 20 });
  const stop = new AbortController();
  const asked = kit.ask("one", { signal: stop.signal });
  await begun.promise;
  stop.abort();
  expect(await asked).toMatchObject({ status: "aborted" });
  // Longer than an agent stays that nobody uses.
  await new Promise((resolve) => setTimeout(resolve, 400));
  work.resolve("paid late");
  await expect.poll(async () => (await kit.agent()).listActions()).toMatchObject([{ settledAt: expect.any(Number) }]);
  await kit.ask("two");
  expect(await kit.outputs()).toContain("paid late");
});
