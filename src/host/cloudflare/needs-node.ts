import { PerdureError } from "../../base/error.ts";

// Stands in a Worker in the place of each module that needs Node, which are loaded only when something asks for them.
throw new PerdureError(
  "bad_config",
  "This needs Node, which is not there on this platform. Leave it out of agents that run as Durable Objects.",
);
