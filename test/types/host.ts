// Checked by the compiler (`npm run check`), never run.
import { Agent, type AgentEnv, PerdureError } from "perdure";
import type { AgentEvent, PerdureErrorCode } from "perdure";
import type { AgentEvents } from "perdure/host";
import { createHost, memoryStorage, serve, subscribe } from "perdure/node";
import type { Host, ServedHost, Storage } from "perdure/node";
import { expectTypeOf } from "vitest";

class Counter extends Agent<AgentEnv, { count: number }> {}

expectTypeOf(createHost({ agents: { Counter }, dir: "data" })).toEqualTypeOf<Host>();
expectTypeOf(serve({ agents: [Counter], storage: memoryStorage(), port: 0 })).resolves.toEqualTypeOf<ServedHost>();
expectTypeOf(memoryStorage()).toEqualTypeOf<Storage>();
// @ts-expect-error agents are what a host is for
createHost({ dir: "data" });
// @ts-expect-error not an agent class
createHost({ agents: { Date }, dir: "data" });
// @ts-expect-error a misspelt limit must not be taken for none
createHost({ agents: { Counter }, dir: "data", limits: { frameByte: 1 } });

// Events
expectTypeOf(subscribe("state:changed", () => undefined)).toEqualTypeOf<() => void>();
subscribe("state:changed", ({ type, payload, agent, name, timestamp }) => {
  expectTypeOf(type).toEqualTypeOf<"state:changed">();
  expectTypeOf(payload).toEqualTypeOf<AgentEvents["state:changed"]>();
  expectTypeOf(payload.source).toBeString();
  expectTypeOf([agent, name]).toEqualTypeOf<string[]>();
  expectTypeOf(timestamp).toBeNumber();
});
subscribe("rpc:called", ({ payload }) => {
  expectTypeOf(payload.durationMs).toBeNumber();
  expectTypeOf(payload.error).toEqualTypeOf<string | undefined>();
  // @ts-expect-error of another event
  void payload.source;
});
// @ts-expect-error no such event
subscribe("state:forgotten", () => undefined);
subscribe("state:*", ({ type }) => expectTypeOf(type).toEqualTypeOf<"state:changed" | "state:refused">());
subscribe("state", (event) => {
  expectTypeOf(event.type).toEqualTypeOf<"state:changed" | "state:refused">();
  if (event.type === "state:refused") expectTypeOf(event.payload.reason).toBeString();
});
subscribe("*", (event) => expectTypeOf(event).toEqualTypeOf<AgentEvent>());
// @ts-expect-error no such family
subscribe("forgotten:*", () => undefined);

/** A switch over the type knows the payload. */
export function text(event: AgentEvent): string {
  switch (event.type) {
    case "connection:closed":
      expectTypeOf(event.payload.code).toBeNumber();
      return event.payload.reason;
    case "fiber:settled":
      return event.payload.status;
    default:
      return event.type;
  }
}

// Errors
export function codes(error: unknown): PerdureErrorCode | undefined {
  if (PerdureError.is(error, "disk_full")) expectTypeOf(error).toEqualTypeOf<PerdureError>();
  // @ts-expect-error no such code
  PerdureError.is(error, "disk_empty");
  // @ts-expect-error no such code
  void new PerdureError("disk_empty", "text");
  return PerdureError.is(error) ? error.code : undefined;
}
