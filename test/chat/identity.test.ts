import { getCurrentAgent, type Identity } from "perdure";
import type { BeforeHook } from "perdure/node";
import { expect, test } from "vitest";
import { connectTo, user } from "./client.ts";
import { openChat } from "./harness.ts";

const ANNA: Identity = { id: "u1", name: "Anna" };
const BEN: Identity = { id: "u2", name: "Ben" };
const PEOPLE: Readonly<Record<string, Identity>> = { anna: ANNA, ben: BEN };
const byToken: BeforeHook = (request) => {
  const identity = PEOPLE[new URL(request.url).searchParams.get("token") ?? ""];
  return identity && { identity };
};
const host = { onBeforeConnect: byToken, onBeforeRequest: byToken };

test("onChatMessage is told for whom it answers, over a socket and over HTTP", async () => {
  const told: unknown[] = [];
  const after: unknown[] = [];
  const kit = await openChat({
    host,
    responded: () => void after.push(getCurrentAgent().identity),
    respond: ({ identity }) => {
      told.push([identity, getCurrentAgent().identity]);
      return new Response("Hello.");
    },
  });
  const anna = await connectTo(`${kit.url}?token=anna`);
  anna.request("r1", [user("m1", "Hi.")], { identity: BEN });
  await anna.done("r1");
  const body = JSON.stringify({ messages: [user("m2", "Hi.")], identity: ANNA });
  await fetch(`${kit.url}/chat?token=ben`, { method: "POST", body });
  await kit.stable();
  await fetch(`${kit.url}/chat`, { method: "POST", body: body.replace("m2", "m3") });
  await kit.stable();
  expect(told).toEqual([
    [ANNA, ANNA],
    [BEN, BEN],
    [undefined, undefined],
  ]);
  expect(kit.responses.map(({ identity }) => identity?.id)).toEqual(["u1", "u2", undefined]);
  expect(after).toEqual([ANNA, BEN, undefined]);
  const agent = await kit.agent();
  expect(["m1", "m2", "m3"].map((id) => agent.getMessageIdentity(id))).toEqual([ANNA, BEN, undefined]);
});

test("after a restart it is told the same, and so is onChatRecovery", async () => {
  const told: (Identity | undefined)[] = [];
  const kit = await openChat({ host, recover: ({ identity }) => void told.push(identity) });
  await fetch(`${kit.url}/chat?token=anna`, {
    method: "POST",
    body: JSON.stringify({ messages: [user("m1", "Hi.")] }),
  });
  const first = await kit.stage();
  expect(first.options.identity).toEqual(ANNA);
  first.say("Well, ");
  await kit.restart();
  const second = await kit.stage();
  expect(second.options.identity).toEqual(ANNA);
  expect(told).toEqual([ANNA]);
  second.say("hello.");
  second.end();
  await kit.stable();
});
