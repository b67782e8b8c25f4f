import { jsonSchema } from "ai";
import { action, Agent, agent, agentTool, AIChatAgent, callable, durableTool, Think } from "perdure";
import { createMcpHandler } from "perdure/mcp";
import { createHost, memoryStorage, serve, watchAgents } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import {
  createBashSandbox,
  createBashTool,
  createEgress,
  createExecuteTool,
  createFetchTools,
  createGuardedFetch,
  createProcessSandbox,
  createQuickJsSandbox,
  createSandboxTools,
  createWorkspaceTools,
  sessionSearchTool,
} from "perdure/tools";
import { expect, onTestFinished, test } from "vitest";

class Plain extends Agent {
  tick(): void {}

  async plan(option: object): Promise<unknown> {
    return this.schedule(60, "tick", undefined, option);
  }

  async line(option: object): Promise<unknown> {
    return this.queue("tick", undefined, option);
  }

  fiber(option: object): unknown {
    return this.spawnFiber("tick", undefined, option);
  }

  async start(option: object): Promise<unknown> {
    return this.startFiber("x", () => 1, option);
  }

  async again(option: object): Promise<unknown> {
    return this.retry(() => 1, option);
  }

  async mcpServer(option: object): Promise<unknown> {
    return this.addMcpServer("x", "https://mcp.example.com", option);
  }

  async run(option: object): Promise<unknown> {
    return this.runAgentTool(Chat, { input: 1, ...option });
  }
}

class Chat extends Think {}

const storage = memoryStorage();
const schema = jsonSchema({ type: "object" });

/** Options with one name that there is not: the places that take options are given it as it is. */
function wrong(name: string): never {
  return { [name]: 1 } as never;
}

const places: readonly (readonly [string, string, () => unknown])[] = [
  ["idleMS", "idleMs", () => createHost({ agents: { Plain }, storage, ...(wrong("idleMS") as object) })],
  ["Dir", "dir", () => createHost({ agents: { Plain }, storage, ...(wrong("Dir") as object) })],
  ["prt", "port", () => serve({ agents: { Plain }, storage, ...(wrong("prt") as object) })],
  ["frameByte", "frameBytes", () => createHost({ agents: { Plain }, storage, limits: wrong("frameByte") })],
  ["onchange", "onChange", () => watchAgents("nowhere", wrong("onchange"))],
  [
    "instruction",
    "instructions",
    () => agent({ model: scriptedModel(() => ({ text: [] })), ...(wrong("instruction") as object) }),
  ],
  ["stream", "streaming", () => callable(Plain, "tick", wrong("stream"))],
  ["stream", "streaming", () => callable(wrong("stream"))],
  ["timeout", "timeoutMs", () => durableTool({ inputSchema: schema }, wrong("timeout"))],
  [
    "permission",
    "permissions",
    () => action({ ...(wrong("permission") as object), description: "x", inputSchema: schema, execute: () => 1 }),
  ],
  [
    "timeoutMS",
    "timeoutMs",
    () => agentTool(Chat, { description: "x", inputSchema: schema, ...(wrong("timeoutMS") as object) }),
  ],
  ["scopes", "scope", () => sessionSearchTool(wrong("scopes"))],
  ["limit", "limits", () => createExecuteTool({ tools: {}, ...(wrong("limit") as object) })],
  ["memory", "memoryMB", () => createBashSandbox(wrong("memory"))],
  ["readonly", "readOnly", () => createBashTool({} as never, wrong("readonly"))],
  ["readonly", "readOnly", () => createWorkspaceTools({} as never, wrong("readonly"))],
  ["memory", "", () => createQuickJsSandbox(wrong("memory"))],
  ["directry", "directory", () => createProcessSandbox(wrong("directry"))],
  ["sandboxx", "sandbox", () => createSandboxTools(wrong("sandboxx"))],
  ["alow", "allow", () => createEgress(wrong("alow"))],
  ["redirect", "redirects", () => createEgress({ allow: [], limits: wrong("redirect") })],
  ["alow", "allow", () => createFetchTools(wrong("alow"))],
  ["alow", "allow", () => createFetchTools({ named: { docs: wrong("alow") } })],
  ["header", "", () => createGuardedFetch(wrong("header"))],
  ["session", "sessions", () => createMcpHandler(() => ({}) as never, wrong("session"))],
];

test.each(places)("the option %s is refused, and %s is named", async (name, near, place) => {
  const refusal = {
    code: "bad_config",
    message: expect.stringMatching(new RegExp(`no option "${name}". Did you mean "${near}`)) as string,
  };
  await expect((async () => place())()).rejects.toThrow(expect.objectContaining(refusal));
});

test.each([
  ["plan", "timezone", "timeZone"],
  ["line", "retries", "retry"],
  ["fiber", "maxRetry", "maxRetries"],
  ["start", "idempotencykey", "idempotencyKey"],
  ["again", "maxAttempt", "maxAttempts"],
  ["mcpServer", "callbackhost", "callbackHost"],
  ["run", "runID", "runId"],
] as const)("an agent that gives %s() the option %s is told of %s", async (method, name, near) => {
  const host = createHost({ agents: { Plain }, subAgents: { Chat }, storage: memoryStorage() });
  onTestFinished(() => host.stop());
  const call = host.getAgentByName(Plain, "one")[method](wrong(name));
  await expect(call).rejects.toThrow(`has no option "${name}". Did you mean "${near}"?`);
});

test.each([
  ["chatRecovery", { maxAttempt: 3 }, "maxAttempts"],
  ["contextOverflow", { proactiv: true }, "proactive"],
  ["contextOverflow", { proactive: { treshold: 0.5 } }, "threshold"],
  ["mediaRetention", { keepInMessage: 3 }, "keepInMessages"],
  ["budgets", { turns: {} }, "turn"],
  ["budgets", { turn: { maxToken: 3 } }, "maxTokens"],
  ["titles", { afters: 3 }, "after"],
  ["messageConcurrency", { strategy: "debounce", debounceMS: 3 }, "debounceMs"],
  ["waitForMcpConnections", { timeoutMs: 3 }, "timeout"],
])("an agent with %s %j does not start, and %s is named", async (setting, value, near) => {
  class Set extends Think {
    constructor(host: ConstructorParameters<typeof Think>[0]) {
      super(host);
      Object.assign(this, { [setting]: value });
    }
    override onError(): void {}
  }
  const host = createHost({ agents: { Set }, storage: memoryStorage() });
  onTestFinished(() => host.stop());
  await expect(host.getAgentByName(Set, "one").getCallableMethods()).rejects.toThrow(
    expect.objectContaining({
      code: "bad_config",
      message: expect.stringMatching(new RegExp(`^${setting}.* of Set has no option .* mean "${near}"`)) as string,
    }),
  );
});

test.each([
  [{ allowClientStates: true }, "allowClientState"],
  [{ retry: { maxAttempt: 2 } }, "maxAttempts"],
])("static options %j keep an agent from starting, and %s is named", async (options, near) => {
  class Set extends AIChatAgent {
    static override readonly options = options as object;
    override onError(): void {}
  }
  const host = createHost({ agents: { Set }, storage: memoryStorage() });
  onTestFinished(() => host.stop());
  await expect(host.getAgentByName(Set, "one").getCallableMethods()).rejects.toThrow(`Did you mean "${near}"?`);
});

test.each([
  [{ agents: { X: class {} } }, "X is no agent class"],
  [{ agents: { A: Plain, B: Plain } }, 'registered as "A" and as "B"'],
  [{}, "`agents` must be the classes of the host by name"],
  [undefined, "`agents` must be the classes of the host by name"],
])("serve(%j) says what is wrong", async (options, words) => {
  const given = options && { storage: memoryStorage(), port: 0, signals: false, ...options };
  const refusal = { code: "bad_config", message: expect.stringContaining(words) as string };
  await expect(serve(given as never)).rejects.toThrow(expect.objectContaining(refusal));
});
