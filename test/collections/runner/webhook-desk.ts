import type { DurableStreamsWakePayload, RunnerSession, WebhookExecutionMode } from "perdure/collections";
import type { DurableStreamsWebhookAdapter } from "perdure/collections/worker";
import { durableStreamsWebhookAdapter, handleDurableStreamsWake, runWithLifecycle } from "perdure/collections";
import { ensureWakeSubscription } from "perdure/collections/worker";
import { inbox, startHook } from "./desk.ts";
import type { StreamServer } from "./desk.ts";

export type Session = RunnerSession<DurableStreamsWakePayload>;
export type Handler = (session: Session) => Promise<unknown>;

/** Makes streams with a subscription of their own each, delivered to a hook of their own, which end with the server. */
export const webhookDesks =
  (server: StreamServer) =>
  async (id: string, leaseTtlMs = 30_000) => {
    const hook = await startHook();
    server.onStop(() => hook.stop());
    const log = await server.open(id);
    const errors: unknown[] = [];
    const adapterOf = (more: object = {}) =>
      durableStreamsWebhookAdapter({ jwksUrl: `${server.url}/v1/stream/__ds/jwks.json`, ...more });
    return {
      hook,
      log,
      errors,
      adapterOf,
      messages: inbox(log),
      subscribe: () =>
        ensureWakeSubscription({ baseUrl: server.url, id, streams: [log.source], webhook: hook.url, leaseTtlMs }),
      /** Has wakes handled so. */
      serve(mode: WebhookExecutionMode, handler: Handler, adapter: DurableStreamsWebhookAdapter = adapterOf()) {
        hook.handle = (request) =>
          handleDurableStreamsWake({
            request,
            adapter,
            mode,
            run: (wake, { signal }) => runWithLifecycle(wake, adapter, handler, { signal }),
            onError: (error) => errors.push(error),
          });
      },
    };
  };
