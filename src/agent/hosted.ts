import { errorText, PerdureError } from "../error.ts";
import type { HostedAgent, Socket } from "../port.ts";
import { encodeFrame } from "../wire/encode.ts";
import { kebabCase } from "../wire/kebab.ts";
import { parseFrame } from "../wire/parse.ts";
import type { Agent } from "./agent.ts";
import type { Connection } from "./connection.ts";
import { runAs } from "./context.ts";
import { parts } from "./parts.ts";
import { answerCall } from "./rpc.ts";

const NO_MCP = { servers: {}, tools: [], prompts: [], resources: [] };

/** Joins an agent to its host: every way in, each run as that agent, none of them throwing what a user did. */
export function createHosted(agent: Agent): HostedAgent {
  const own = agent[parts];
  const { host, connections, features, works } = own;
  const options = () => (agent.constructor as typeof Agent).options;
  const as = <T>(work: () => T, connection?: Connection, request?: Request): T =>
    runAs(host.context, { agent, connection, request }, work);
  const report = async (error: unknown, connection?: Connection): Promise<void> => {
    try {
      await agent.onError(error, connection);
    } catch (thrown) {
      host.emit("agent:failed", { stage: "onError", error: errorText(thrown) });
    }
  };

  function greet(connection: Connection): void {
    for (const feature of features) feature.connecting?.(connection);
    if (connection.isQuiet) return;
    const state = own.state.frame();
    if (options().sendIdentityOnConnect ?? true) {
      const leaf = host.path.at(-1) ?? host.path[0];
      const identity = { type: "cf_agent_identity", name: leaf.name, agent: kebabCase(leaf.className) } as const;
      connection.send(encodeFrame(state === undefined ? identity : { ...identity, stateFollows: true }));
    }
    if (state !== undefined) connection.send(state);
    connection.send(encodeFrame({ type: "cf_agent_mcp_servers", mcp: NO_MCP }));
  }

  async function connect(connection: Connection, socket: Socket, request: Request): Promise<void> {
    const context = { request };
    connection.isReadonly = agent.shouldConnectionBeReadonly(connection, context);
    connection.isQuiet = !agent.shouldSendProtocolMessages(connection, context);
    const tags = await agent.getConnectionTags(connection, context);
    greet(connection);
    socket.join([...tags]);
    host.emit("connection:opened", { connectionId: connection.id });
    await agent.onConnect(connection, context);
  }

  async function receive(connection: Connection, data: string | Uint8Array): Promise<void> {
    const frame = parseFrame(data);
    if (frame.kind === "rpc") return answerCall(host, agent, connection, frame);
    if (frame.kind === "state") {
      return own.state.setFromClient(frame.state, connection, options().allowClientState ?? false);
    }
    if (frame.kind === "refused")
      return host.emit("frame:refused", { connectionId: connection.id, reason: frame.reason });
    if (frame.kind !== "other") {
      for (const feature of features) if (await feature.frame?.(connection, frame)) return;
    } else if (frame.reason !== undefined) {
      host.emit("frame:refused", { connectionId: connection.id, reason: frame.reason });
    }
    await agent.onMessage(connection, data);
  }

  async function respond(request: Request): Promise<Response> {
    for (const feature of features) {
      const response = await feature.request?.(request);
      if (response !== undefined) return response;
    }
    return agent.onRequest(request);
  }

  return {
    async start(props) {
      try {
        await as(() => agent.onStart(props));
      } catch (thrown) {
        await report(thrown);
        throw thrown;
      }
      for (const feature of features) feature.started?.();
      if (!host.blank) own.fibers.recover();
      own.rearm();
    },
    async request(request) {
      try {
        return await as(() => respond(request), undefined, request);
      } catch (thrown) {
        await report(thrown);
        throw thrown;
      }
    },
    async connect(socket, request) {
      const connection = connections.of(socket);
      try {
        await as(() => connect(connection, socket, request), connection, request);
      } catch (thrown) {
        await report(thrown, connection);
        throw thrown;
      }
    },
    async message(socket, data) {
      const connection = connections.of(socket);
      try {
        await as(() => receive(connection, data), connection);
      } catch (thrown) {
        await report(thrown, connection);
      }
    },
    async close(socket, code, reason, wasClean) {
      const connection = connections.of(socket);
      host.emit("connection:closed", { connectionId: connection.id, code, reason });
      for (const feature of features) feature.closed?.(connection);
      try {
        await as(() => agent.onClose(connection, code, reason, wasClean), connection);
      } catch (thrown) {
        await report(thrown, connection);
      }
    },
    alarm() {
      for (const work of works) as(() => work.value.runDue());
      own.rearm();
      return Promise.resolve();
    },
    async invoke(method, args) {
      const target: unknown = method in Object.prototype ? undefined : Reflect.get(agent, method);
      if (typeof target !== "function") {
        throw new PerdureError("not_found", `${host.id} has no method "${method}".`);
      }
      return as(() => Reflect.apply(target, agent, args) as unknown);
    },
    async admitChild(request, child) {
      try {
        const answer = await as(() => agent.onBeforeSubAgent(request, child), undefined, request);
        if (!(answer instanceof Response)) own.children.admit(child);
        return answer ?? undefined;
      } catch (thrown) {
        await report(thrown);
        throw thrown;
      }
    },
    childRemoved: (child) => own.children.forget(child.className, child.name),
    drain() {
      own.draining = true;
    },
    halt(reason) {
      own.draining = true;
      own.halted = true;
      for (const work of works) work.made?.halt(reason);
    },
  };
}
