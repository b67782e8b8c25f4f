// A Durable Streams server that keeps files, for tests that kill it: after the append that the harness chose.
import { DurableStreamTestServer } from "@durable-streams/server";
import { crashPoint, programDir, report } from "../../../src/testing/crash/child.ts";

const server = new DurableStreamTestServer({ port: Number(process.env.PORT), dataDir: programDir() });
const { store } = server;
const commit = crashPoint();

// Counted when it is on the disk, and before whoever sent it hears of it.
const append = store.append.bind(store) as (...args: unknown[]) => unknown;
Object.assign(store, {
  append: async (...args: unknown[]) => {
    const result = await append(...args);
    commit();
    return result;
  },
});

report({ type: "listening", url: await server.start() });
