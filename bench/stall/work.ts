import { Agent, type AgentHost, callable } from "perdure";
import { createFetchTools, createWorkspaceTools, Workspace } from "perdure/tools";

const FILES = 10_000;
const READ_BYTES = 20_000_000;
const EDIT_BYTES = 3_900_000;
const LINE = `${"word ".repeat(15)}\n`;

/** Does what models have it do. `prepare` is not measured, `work` is. */
export class Work extends Agent {
  static {
    callable(this, "prepare");
    callable(this, "work");
  }
  readonly #workspace: Workspace;
  readonly #port: AgentHost;

  constructor(host: AgentHost) {
    super(host);
    this.#port = host;
    this.#workspace = new Workspace({ host });
  }

  async prepare(kind: string, far: string): Promise<void> {
    if (kind === "find" || kind === "grep") {
      for (let n = 0; n < FILES; n++) await this.#workspace.writeFile(`/d${n % 50}/f${n}.md`, LINE);
    }
    if (kind === "read" || kind === "edit") {
      const bytes = kind === "read" ? READ_BYTES : EDIT_BYTES;
      await this.#workspace.writeFile("/long", `${LINE.repeat(bytes / LINE.length)}the end`);
    }
    if (kind.startsWith("mcp ")) await this.addMcpServer("far", `${far}/mcp`, { id: "far" });
  }

  async work(kind: string, far: string): Promise<void> {
    if (kind.startsWith("mcp ")) await this.#askMcp(kind.slice("mcp ".length));
    else if (kind.startsWith("page ")) await this.#readPage(`${far}/${kind.slice("page ".length)}`);
    else await this.#useFiles(kind);
  }

  async #askMcp(name: string): Promise<void> {
    try {
      await this.mcp.callTool({ serverId: "far", name, arguments: {} });
    } catch (thrown) {
      if (name !== "refused") throw thrown;
    }
  }

  async #readPage(url: string): Promise<void> {
    const { fetch_url: tool } = createFetchTools({ allow: [new URL(url).origin], allowPrivate: [new URL(url).host] });
    const output: unknown = await tool?.execute?.({ url }, { toolCallId: "bench", messages: [], context: {} });
    if (!(output as { length?: number }).length) throw new Error(JSON.stringify(output));
  }

  async #useFiles(kind: string): Promise<void> {
    const tools = createWorkspaceTools(this.#workspace, { bash: false, breathe: () => this.#port.breathe() });
    const inputs: Readonly<Record<string, unknown>> = {
      find: { pattern: "*.md" },
      grep: { pattern: "no(t|w)here" },
      read: { path: "/long", offset: 100_000 },
      edit: { path: "/long", old_string: "the end", new_string: "an end" },
    };
    const options = { toolCallId: "bench", messages: [], context: {} };
    await tools[kind]?.execute?.(inputs[kind] as never, options);
  }
}
