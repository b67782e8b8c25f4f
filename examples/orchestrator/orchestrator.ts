import type { ToolSet } from "ai";
import { type AgentEnv, callable, type StreamCallback, Think } from "perdure";
import { startMcpServer } from "./mcp-server.ts";
import { Session } from "./session.ts";

/** A child as every page sees it. */
export interface Entry {
  readonly name: string;
  readonly title: string;
  readonly status: "idle" | "working" | "failed";
  readonly tasks: number;
}

/** Makes children, gives them work, and lends them what it has: its files and the tools of its MCP server. */
export class Orchestrator extends Think<AgentEnv, { readonly children: readonly Entry[] }> {
  static {
    callable(this, "create");
    callable(this, "delegate");
    callable(this, "stop");
    callable(this, "remove");
  }
  override initialState: { readonly children: readonly Entry[] } = { children: [] };
  /** Children work on these files as on their own. */
  override shareWorkspace = "read-write" as const;
  #connected: Promise<unknown> | undefined;
  readonly #running = new Map<string, string>();

  override onStart(): void {
    this.#connected = this.#connect().catch((error: unknown) => this.onError(error));
    // What a child was told goes on there by itself. Who relayed it is gone.
    for (const { name, status } of this.state.children) if (status === "working") this.#watch(name);
  }

  // What the page calls

  async create(title: string): Promise<string> {
    const name = crypto.randomUUID();
    await this.subAgent(Session, name);
    this.setState({ children: [...this.state.children, { name, title, status: "idle", tasks: 0 }] });
    return name;
  }

  /** Gives a child a task and returns at once. What it says is relayed to every page. */
  delegate(name: string, task: string): void {
    const entry = this.state.children.find((child) => child.name === name);
    if (entry === undefined) throw new Error(`There is no child named ${name}.`);
    this.#change(name, { status: "working", tasks: entry.tasks + 1 });
    void this.keepAliveWhile(() => this.#work(name, task)).catch((error: unknown) => this.onError(error));
  }

  async stop(name: string): Promise<boolean> {
    const requestId = this.#running.get(name);
    return requestId !== undefined && (await this.subAgent(Session, name)).cancelChat(requestId);
  }

  async remove(name: string): Promise<void> {
    await this.deleteSubAgent(Session, name);
    this.setState({ children: this.state.children.filter((child) => child.name !== name) });
  }

  // What children ask for

  /** The tools of the MCP server. They run here, on one connection for all children. */
  async lentTools(): Promise<ToolSet> {
    await this.#connected;
    return this.mcp.getAITools();
  }

  /** The example's own server has another address each time. One that stays where it is needs no more than the last line. */
  async #connect(): Promise<void> {
    const url = await startMcpServer();
    await this.mcp.removeServer("weather");
    await this.addMcpServer("weather", url, { id: "weather" });
  }

  async #work(name: string, task: string): Promise<void> {
    const session = await this.subAgent(Session, name);
    const relay: StreamCallback = {
      onStart: ({ requestId }) => void this.#running.set(name, requestId),
      onEvent: (chunk) => this.broadcast(JSON.stringify({ type: "relay", name, chunk })),
      onDone: () => this.#change(name, { status: "idle" }),
      onError: () => this.#change(name, { status: "failed" }),
    };
    await session.chat(task, relay).finally(() => this.#running.delete(name));
  }

  /** A child that was at work when the process died: its turn goes on without us. */
  #watch(name: string): void {
    const settled = async () => {
      const session = await this.subAgent(Session, name);
      await session.waitUntilStable();
      this.#change(name, { status: "idle" });
    };
    void this.keepAliveWhile(settled).catch((error: unknown) => this.onError(error));
  }

  #change(name: string, change: Partial<Entry>): void {
    const children = this.state.children.map((child) => (child.name === name ? { ...child, ...change } : child));
    this.setState({ children });
  }
}
