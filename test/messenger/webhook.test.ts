import { type AgentHost, Think } from "perdure";
import { type Channel, defineMessengers, messenger, type MessengerEvent } from "perdure/messengers";
import { memoryStorage, serve } from "perdure/node";
import { MemoryNetwork, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test, vi } from "vitest";
import { ADA, DM } from "./kit.ts";

/** A network that delivers to a webhook, with a secret in a header. */
function hooked(network: MemoryNetwork): Channel {
  const { listen: _, ...channel } = network.channel();
  return {
    ...channel,
    verify: (request) =>
      Promise.resolve(request.headers.get("x-secret") === "s" ? undefined : new Response("no", { status: 401 })),
    read: (_request, body) => Promise.resolve({ input: JSON.parse(new TextDecoder().decode(body)) as unknown }),
  };
}

async function openHook(allowed: (act: string) => boolean = () => true) {
  const network = new MemoryNetwork();
  const acts: string[] = [];
  class Talk extends Think {
    override workspaceTools = false as const;
    override getModel() {
      return scriptedModel(() => "Hello there.");
    }
    override getMessengers() {
      return defineMessengers({ memory: messenger(hooked(network), { coalesceMs: 0, allow: () => true }) });
    }
    override authorize(_identity: unknown, act: string) {
      acts.push(act);
      return allowed(act);
    }
    override onRequest() {
      return new Response("the app's own");
    }
  }
  const host = await serve({ agents: { Talk }, storage: memoryStorage(), port: 0, signals: false, log: false });
  onTestFinished(() => host.stop());
  const event: MessengerEvent = network.says(DM, ADA, "hi");
  const post = (secret = "s", body: unknown = event, method = "POST") =>
    fetch(`${host.url}/agents/talk/main/messengers/memory/webhook`, {
      method,
      headers: { "x-secret": secret },
      ...(method === "POST" && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
  return { network, acts, post };
}

test("a webhook is answered when what it brings is stored; delivered again, it is the same", async () => {
  const { network, acts, post } = await openHook();
  expect((await post()).status).toBe(200);
  expect((await post()).status).toBe(200);
  await vi.waitFor(() => expect(network.seen(DM, "agent").map(({ text }) => text)).toEqual(["Hello there."]));
  expect(acts.filter((act) => act === "messenger.receive")).toHaveLength(2);
  expect(acts.filter((act) => act === "chat.submit")).toHaveLength(1);
});

test("without the secret nothing is read; other methods are the app's own", async () => {
  const { network, post } = await openHook();
  expect((await post("wrong")).status).toBe(401);
  expect(await (await post("s", undefined, "GET")).text()).toBe("the app's own");
  expect(network.seen(DM, "agent")).toEqual([]);
});

test("the app may refuse a webhook, and what it brings", async () => {
  const closed = await openHook((act) => act !== "messenger.receive");
  expect((await closed.post()).status).toBe(403);
  expect(closed.acts).toEqual(["messenger.receive"]);
  const picky = await openHook((act) => act !== "chat.submit");
  expect((await picky.post()).status).toBe(200);
  await vi.waitFor(() => expect(picky.network.seen(DM, "agent")).toHaveLength(1));
  expect(picky.network.seen(DM, "agent")[0]?.text).toBe('"chat.submit" is not allowed here.');
});

test("a body that cannot be read is refused, and does not come again for ever", async () => {
  const { network, post } = await openHook();
  expect((await post("s", "{")).status).toBe(400);
  expect(network.calls).toEqual([]);
});

test("a channel that finds out by itself what there is to store answers in its own words, once that is stored", async () => {
  const network = new MemoryNetwork();
  let breaks = true;
  const { channel, ...hook } = hookedBy(network, async (body, accept) => {
    await accept(JSON.parse(body) as unknown);
    return new Response("its own words");
  });
  class Talk extends Think {
    override workspaceTools = false as const;
    override getModel() {
      return scriptedModel(() => "Hello there.");
    }
    override getMessengers() {
      const allow = () => {
        if (breaks) throw new Error("The disk is full.");
        return true;
      };
      return defineMessengers({ memory: messenger(channel, { coalesceMs: 0, allow }) });
    }
    override onError() {}
  }
  const post = await hook.serve(Talk);
  const event = network.says(DM, ADA, "hi");
  expect((await post(event)).status).toBe(503);
  breaks = false;
  expect(await (await post(event)).text()).toBe("its own words");
  expect((await post(event)).status).toBe(200);
  await vi.waitFor(() => expect(network.seen(DM, "agent").map(({ text }) => text)).toEqual(["Hello there."]));
});

/** A network whose webhook is answered by this. */
function hookedBy(
  network: MemoryNetwork,
  answer: (body: string, accept: (input: unknown) => Promise<void>) => Promise<Response>,
) {
  const { listen: _, ...rest } = network.channel();
  const channel: Channel = {
    ...rest,
    verify: () => Promise.resolve(undefined),
    read: async (_request, body, accept) => ({ answer: await answer(new TextDecoder().decode(body), accept) }),
  };
  return {
    channel,
    async serve(Talk: new (host: AgentHost) => Think) {
      const host = await serve({ agents: { Talk }, storage: memoryStorage(), port: 0, signals: false, log: false });
      onTestFinished(() => host.stop());
      const url = `${host.url}/agents/talk/main/messengers/memory/webhook`;
      return (event: unknown) => fetch(url, { method: "POST", body: JSON.stringify(event) });
    },
  };
}
