// A Durable Streams server that keeps its streams in files, in a process of its own that can be killed.
// Arguments: port, directory.
import { DurableStreamTestServer } from "@durable-streams/server";

const [port, dataDir] = process.argv.slice(2);
const server = new DurableStreamTestServer({ port: Number(port), dataDir: String(dataDir) });
process.send?.(await server.start());
