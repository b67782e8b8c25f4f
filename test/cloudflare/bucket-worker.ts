// The conformance suite's Worker with a bucket: one in memory, in the place of the platform's.
import { env } from "cloudflare:workers";
import { conformanceProbe } from "../../src/testing/host-conformance.ts";
import { createCloudflareHost } from "../../src/host/cloudflare/create-host.ts";
import { fetchFrom } from "./called.ts";

const PAGE = 2;
const kept = new Map<string, Uint8Array>();
const bucket = {
  async put(key: string, bytes: Uint8Array) {
    kept.set(key, bytes.slice());
  },
  async get(key: string) {
    const bytes = kept.get(key);
    return bytes === undefined ? null : { arrayBuffer: async () => bytes.slice().buffer };
  },
  async delete(keys: string | string[]) {
    for (const key of [keys].flat()) kept.delete(key);
  },
  async list({ prefix }: { readonly prefix: string }) {
    const keys = [...kept.keys()].filter((key) => key.startsWith(prefix));
    return { objects: keys.slice(0, PAGE).map((key) => ({ key })) };
  },
};
Object.assign(env, { FILES: bucket });

const agents = { [conformanceProbe.className]: conformanceProbe.Agent };
const host = createCloudflareHost({ agents, bucket: "FILES", heartbeatMs: 500 });
export const { PerdureObject } = host;

const answer = fetchFrom(host, agents);
export default {
  fetch: (request: Request): Response | Promise<Response> =>
    new URL(request.url).pathname === "/kept" ? Response.json([...kept.keys()]) : answer(request),
};
