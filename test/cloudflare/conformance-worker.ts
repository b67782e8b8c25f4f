// The Worker that the conformance suite runs in.
import { conformanceProbe } from "../../src/testing/host-conformance.ts";
import { createCloudflareHost } from "../../src/host/cloudflare/create-host.ts";
import { fetchFrom } from "./called.ts";

const agents = { [conformanceProbe.className]: conformanceProbe.Agent };
const host = createCloudflareHost({ agents, heartbeatMs: 500 });
export const { PerdureObject } = host;

export default { fetch: fetchFrom(host, agents) };
