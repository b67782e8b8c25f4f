// For tests of extensions: a manager in a real sandbox, and an agent's side that notes what it was asked to do.
import type { Tool } from "ai";
import { ExtensionManager } from "perdure/extensions";
import type { ExtensionBridge, ExtensionManagerOptions, ExtensionPermissions } from "perdure/extensions";
import type { Egress } from "perdure/tools";
import { afterAll } from "vitest";
import { errorText } from "../../src/base/error.ts";
import type { AgentHost } from "../../src/port.ts";
import { createQuickJsSandbox } from "../../src/toolbox/sandbox/quickjs/create.ts";
import type { WorkspaceLike } from "../../src/toolbox/workspace/types.ts";

export const sandbox = createQuickJsSandbox();
afterAll(() => sandbox.dispose());

/** What the agent was asked to do. */
export interface Asked {
  readonly files: Map<string, string>;
  readonly deleted: string[];
  readonly context: Map<string, string>;
  readonly sent: string[];
  readonly limits: number[];
  readonly fetched: { readonly hosts: readonly string[]; readonly url: string }[];
  readonly failures: string[];
}

export interface ExtensionKit {
  readonly manager: ExtensionManager;
  readonly asked: Asked;
  /** Loads an extension whose tool does `body`, and calls it. */
  run(permissions: ExtensionPermissions, body: string, args?: object): Promise<unknown>;
}

let count = 0;

export function openKit(more: Partial<ExtensionManagerOptions> & { readonly host?: AgentHost } = {}): ExtensionKit {
  const asked: Asked = {
    files: new Map([["/a.txt", "content of a"]]),
    deleted: [],
    context: new Map([
      ["memory", "what the agent remembers"],
      ["soul", "who the agent is"],
    ]),
    sent: [],
    limits: [],
    fetched: [],
    failures: [],
  };
  const bridge: ExtensionBridge = {
    workspace: filesIn(asked),
    getContext: (label) => asked.context.get(label) ?? null,
    setContext: (label, text) => void asked.context.set(label, text),
    getMessages: (limit) => {
      asked.limits.push(limit);
      return Array.from({ length: 500 }, (_, index) => ({ id: `m${index}`, role: "user", parts: [] }));
    },
    sendMessage: (text) => void asked.sent.push(text),
    getSessionInfo: () => ({ sessionId: "s1", messageCount: 3 }),
  };
  const egress = (hosts: readonly string[]): Egress => ({
    fetch: async (url) => {
      asked.fetched.push({ hosts, url });
      return { status: 200, headers: {}, url, body: new TextEncoder().encode("body") };
    },
    listen: async () => ({ close: async () => {} }),
  });
  const manager = new ExtensionManager({
    ...{ loader: sandbox, bridge: () => bridge, egress },
    failed: (error) => asked.failures.push(errorText(error)),
    ...more,
  });
  return {
    manager,
    asked,
    async run(permissions, body, args = {}) {
      const name = `x${++count}`;
      const source = `({ tools: { run: { description: "Runs.", execute: async (args, host) => { ${body} } } } })`;
      await manager.load({ name, version: "1", permissions }, source);
      return callTool(manager, `${name}_run`, args);
    },
  };
}

export async function callTool(manager: ExtensionManager, name: string, args: object = {}): Promise<unknown> {
  const tool: Tool | undefined = manager.getTools()[name];
  if (tool?.execute === undefined) throw new Error(`There is no ${name}.`);
  return tool.execute(args, { toolCallId: "c1", messages: [], context: {} } as never) as unknown;
}

function filesIn({ files, deleted }: Asked): WorkspaceLike {
  const never = async (): Promise<never> => {
    throw new Error("No extension can ask for this.");
  };
  return {
    readFile: async (path) => files.get(path) ?? null,
    readFileBytes: never,
    writeFile: async (path, content) => void files.set(path, content),
    readDir: async () =>
      [...files.keys()].map((path) => ({
        ...{ path, name: path.slice(1), type: "file" as const, size: 1, mtimeMs: 0, mode: 0o644 },
      })),
    rm: async (path) => void (deleted.push(path), files.delete(path)),
    glob: never,
    mkdir: never,
    stat: never,
  };
}
