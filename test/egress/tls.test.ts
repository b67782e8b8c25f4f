import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createEgress } from "../../src/toolbox/egress/egress.ts";
import { createGuardedFetch } from "../../src/toolbox/egress/guarded-fetch.ts";
import { selfSigned } from "./certificate.ts";
import { listening, refusal } from "./servers.ts";

const { cert, key } = selfSigned("api.example.com");
let server: Server;
let port: number;
const seen: { servername: unknown; host: string | undefined; authorization: string | undefined }[] = [];

beforeAll(async () => {
  server = createServer({ cert, key }, (request, response) => {
    const { servername } = request.socket as TLSSocket & { servername?: unknown };
    seen.push({ servername, host: request.headers.host, authorization: request.headers.authorization });
    response.end("secure");
  });
  await listening(server, "127.0.0.1");
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const options = () => ({
  allow: [`api.example.com:${port}`, `other.example.com:${port}`],
  allowPrivate: [`127.0.0.1:${port}`],
  resolve: () => Promise.resolve(["127.0.0.1"]),
});

test("the name stays in the handshake, in Host and in the check of the certificate", async () => {
  const inject = [{ to: `api.example.com:${port}`, headers: { authorization: "Bearer host" } }];
  const out = createEgress({ ...options(), ca: cert, inject });
  expect((await out.fetch(`https://api.example.com:${port}/`)).status).toBe(200);
  expect(seen.at(-1)).toEqual({
    servername: "api.example.com",
    host: `api.example.com:${port}`,
    authorization: "Bearer host",
  });
  // The certificate is for another name.
  expect((await refusal(out.fetch(`https://other.example.com:${port}/`))).code).toBe("call_failed");
});

test("a certificate that nobody vouches for is refused", async () => {
  const { code, message } = await refusal(createEgress(options()).fetch(`https://api.example.com:${port}/`));
  expect(code).toBe("call_failed");
  expect(message).toContain("SELF_SIGNED");
});

test("the guarded fetch speaks TLS too", async () => {
  const guarded = createGuardedFetch({ ...options(), allow: undefined, ca: cert });
  expect(await (await guarded(`https://api.example.com:${port}/`)).text()).toBe("secure");
});
