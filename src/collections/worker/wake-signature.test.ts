import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { parseWakePayload } from "./control.ts";
import { durableStreamsWebhookAdapter } from "./webhook.ts";
import { handleDurableStreamsWake } from "./webhook.ts";
import type { WakeKey } from "./wake-signature.ts";

/** A pair of keys as a server has it. */
async function signer(kid: string) {
  const pair = (await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"])) as CryptoKeyPair;
  const { x = "" } = await crypto.subtle.exportKey("jwk", pair.publicKey);
  const key: WakeKey = { kid, kty: "OKP", crv: "Ed25519", x };
  const sign = async (body: string, t = Math.floor(Date.now() / 1000)) => {
    const signed = await crypto.subtle.sign("Ed25519", pair.privateKey, new TextEncoder().encode(`${t}.${body}`));
    return `t=${t},kid=${kid},ed25519=${Buffer.from(signed).toString("base64url")}`;
  };
  return { key, sign };
}

const wake = {
  subscription_id: "s",
  wake_id: "w_1",
  generation: 3,
  streams: [
    { path: "a", link_type: "explicit", acked_offset: "0", tail_offset: "1", has_pending: true },
    { path: "b", link_type: "glob", acked_offset: "0", tail_offset: "0", has_pending: false },
  ],
  callback_url: "http://127.0.0.1:1/v1/stream/__ds/subscriptions/s/callback",
  callback_token: "secret",
};
const body = JSON.stringify(wake);

/** What the set of keys at `url` is now, and how often it was asked for. */
const jwks: { keys: WakeKey[]; asked: number; status: number; url: string } = {
  keys: [],
  asked: 0,
  status: 200,
  url: "",
};
const server = createServer((_request, response) => {
  jwks.asked++;
  response.writeHead(jwks.status, { "content-type": "application/jwk-set+json" });
  response.end(JSON.stringify({ keys: jwks.keys }));
});
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  jwks.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const requestOf = (text: string, signature?: string, method = "POST") =>
  new Request("http://here/wake", {
    method,
    ...(method === "POST" ? { body: text } : {}),
    headers: signature === undefined ? {} : { "webhook-signature": signature },
  });

/** What a delivery is answered with, and whether anything ran. */
async function deliver(request: Request, adapter: ReturnType<typeof durableStreamsWebhookAdapter>) {
  let ran = 0;
  const run = async () => void ran++;
  const response = await handleDurableStreamsWake({ request, adapter, mode: { type: "request-bound" }, run });
  return { status: response.status, text: await response.text(), ran };
}

test("a signed delivery runs; a tampered one, another's key, an old one and one without a signature do not", async () => {
  const [good, other] = [await signer("k1"), await signer("k1")];
  const adapter = durableStreamsWebhookAdapter({ keys: [good.key] });
  expect(await deliver(requestOf(body, await good.sign(body)), adapter)).toMatchObject({ status: 200, ran: 1 });
  const hour = 3600;
  const now = Math.floor(Date.now() / 1000);
  const refused = [
    requestOf(body.replace('"w_1"', '"w_2"'), await good.sign(body)),
    requestOf(`${body} `, await good.sign(body)),
    requestOf(body, await other.sign(body)),
    requestOf(body, await (await signer("k2")).sign(body)),
    requestOf(body, await good.sign(body, now - hour)),
    requestOf(body, await good.sign(body, now + hour)),
    requestOf(body, (await good.sign(body)).replace(/t=\d+/, `t=${now - 1}`)),
    requestOf(body, "t=1,kid=k1"),
    requestOf(body, `t=${now},kid=k1,ed25519=A`),
    requestOf(body),
  ];
  for (const request of refused) expect(await deliver(request, adapter)).toMatchObject({ status: 401, ran: 0 });
});

test("what is signed and no wake is answered with 400, by name", async () => {
  const { key, sign } = await signer("k1");
  const adapter = durableStreamsWebhookAdapter({ keys: [key] });
  const without = (name: string) => JSON.stringify({ ...wake, [name]: undefined });
  const bodies = ["{", "[]", "null", '"text"', ...Object.keys(wake).map(without)];
  for (const text of bodies) {
    expect(await deliver(requestOf(text, await sign(text)), adapter)).toMatchObject({ status: 400, ran: 0 });
  }
  for (const name of Object.keys(wake)) expect(() => parseWakePayload(without(name))).toThrow(`"${name}"`);
  expect(() => parseWakePayload(JSON.stringify({ ...wake, streams: [{ path: "a" }] }))).toThrow('"acked_offset"');
  expect(() => parseWakePayload(JSON.stringify({ ...wake, callback_url: "file:///etc" }))).toThrow('"callback_url"');
  expect(() => parseWakePayload(JSON.stringify({ ...wake, generation: 0.5 }))).toThrow('"generation"');
  expect(parseWakePayload(body)).toEqual(wake);
  expect(await deliver(requestOf(body, undefined, "GET"), adapter)).toMatchObject({ status: 405, ran: 0 });
});

test("a key that was changed is asked for again; unknown ones do not make it ask without end", async () => {
  const [first, second] = [await signer("first"), await signer("second")];
  jwks.keys = [first.key];
  const adapter = durableStreamsWebhookAdapter({ jwksUrl: jwks.url });
  expect(await deliver(requestOf(body, await first.sign(body)), adapter)).toMatchObject({ status: 200 });
  expect(await deliver(requestOf(body, await first.sign(body)), adapter)).toMatchObject({ status: 200 });
  expect(jwks.asked).toBe(1);
  jwks.keys = [second.key];
  expect(await deliver(requestOf(body, await second.sign(body)), adapter)).toMatchObject({ status: 200, ran: 1 });
  expect(jwks.asked).toBe(2);
  // The old one is good no more: the server does not have it.
  expect(await deliver(requestOf(body, await first.sign(body)), adapter)).toMatchObject({ status: 401, ran: 0 });
  const asked = jwks.asked;
  for (let n = 0; n < 10; n++) {
    const stranger = await signer(`stranger${n}`);
    expect(await deliver(requestOf(body, await stranger.sign(body)), adapter)).toMatchObject({ status: 401 });
  }
  expect(jwks.asked).toBe(asked);
});

test("keys that cannot be had are no reason to refuse for good: 503, and the next delivery asks again", async () => {
  const { key, sign } = await signer("k");
  jwks.keys = [key];
  jwks.status = 500;
  const adapter = durableStreamsWebhookAdapter({ jwksUrl: jwks.url });
  expect(await deliver(requestOf(body, await sign(body)), adapter)).toMatchObject({ status: 503, ran: 0 });
  jwks.status = 200;
  expect(await deliver(requestOf(body, await sign(body)), adapter)).toMatchObject({ status: 200, ran: 1 });
});

test("an app's own check is asked with the body as it came", async () => {
  const adapter = durableStreamsWebhookAdapter({
    verifySignature: async (request, text) => {
      if (request.headers.get("webhook-signature") !== `mine ${text.length}`) throw new Error("no");
    },
  });
  expect(await deliver(requestOf(body, `mine ${body.length}`), adapter)).toMatchObject({ status: 200, ran: 1 });
  expect(await deliver(requestOf(body, "mine 0"), adapter)).toMatchObject({ status: 401, ran: 0 });
  expect(() => durableStreamsWebhookAdapter({})).toThrow("jwksUrl");
});

test("deliveries that come together, when the keys are too old, ask for them once", async () => {
  const { key, sign } = await signer("k1");
  jwks.keys = [key];
  const adapter = durableStreamsWebhookAdapter({ jwksUrl: jwks.url });
  const signature = await sign(body);
  const hours = 3_600_000;
  const now = vi.spyOn(performance, "now").mockImplementation(() => hours);
  onTestFinished(() => now.mockRestore());
  for (const asked of [1, 2]) {
    const before = jwks.asked;
    await Promise.all(Array.from({ length: 5 }, () => adapter.verify(requestOf(body, signature))));
    expect(jwks.asked - before).toBe(1);
    now.mockImplementation(() => hours * (asked + 1));
  }
});
