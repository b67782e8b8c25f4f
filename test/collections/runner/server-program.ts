// A Durable Streams server in a process of its own: killed and started again, it has other keys and no subscriptions.
import { DurableStreamTestServer } from "@durable-streams/server";
import { programDir, report } from "../../../src/testing/crash/child.ts";

const { PORT, KIND } = process.env;
const place = KIND === "file" ? { dataDir: programDir() } : {};
const server = new DurableStreamTestServer({ port: Number(PORT), host: "127.0.0.1", webhooks: true, ...place });
report({ type: "up", url: await server.start() });
