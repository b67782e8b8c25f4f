// An agent that keeps collections, for the crash matrix.
import { serve } from "../../../src/host/node/serve.ts";
import { report } from "../../../src/testing/crash/child.ts";
import { obey, reportEvents, Watched, watchedOptions } from "../../crash/watched-host.ts";

class Keeper extends Watched {
  override getCollections() {
    return { jobs: {}, log: {} };
  }
}

const agents = { Keeper };
reportEvents();
const host = await serve({ agents, ...watchedOptions(), port: 0, signals: false });
obey(host, agents);
report({ type: "listening", port: host.port });
