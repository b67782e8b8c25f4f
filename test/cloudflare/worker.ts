// The Worker of the tests: agents that do what the tests ask.
import {
  Agent,
  type AgentOptions,
  agentTool,
  callable,
  type StreamingResponse,
  type Connection,
  type ConnectionContext,
  Think,
  type WSMessage,
} from "perdure";
import { parts } from "../../src/parts/part.ts";
import type { AgentHost } from "../../src/port.ts";
import { createCloudflareHost } from "../../src/host/cloudflare/create-host.ts";
import { scriptedModel } from "../../src/testing/scripted-model.ts";
import { tool } from "ai";
import { z } from "zod";
import { fetchFrom } from "./called.ts";

/** What the host gave to an agent. */
const portOf = (agent: Agent): AgentHost => agent[parts].host;

class Notes extends Agent {
  readonly born = crypto.randomUUID();
  override onConnect(connection: Connection, { request }: ConnectionContext): void {
    const size = Number(new URL(request.url).searchParams.get("size") ?? 1);
    connection.setState({ kept: "x".repeat(size) });
  }
  override getConnectionTags(): string[] {
    return ["reader"];
  }
  override onMessage(connection: Connection, message: WSMessage): void {
    const size = (connection.state as { kept: string } | null)?.kept.length;
    const tagged = [...this.getConnections("reader")].length;
    connection.send(JSON.stringify({ echo: String(message), born: this.born, size, tagged }));
  }
  add(text: string): number {
    this.sql`CREATE TABLE IF NOT EXISTS note (text TEXT)`;
    this.sql`INSERT INTO note VALUES (${text})`;
    return this.count();
  }
  count(): number {
    const [table] = this.sql`SELECT 1 FROM sqlite_master WHERE name = 'note'`;
    return table === undefined ? 0 : this.sql`SELECT 1 FROM note`.length;
  }
  isBlank(): boolean {
    return portOf(this).blank;
  }
  async blobTrip(size: number): Promise<{ same: boolean; gone: boolean }> {
    const { blobs } = portOf(this);
    const bytes = Uint8Array.from({ length: size }, (_, i) => (i * 7) % 256);
    const name = await blobs.put(bytes);
    const read = await blobs.get(name);
    const same = read?.length === size && read.every((byte, i) => byte === bytes[i]);
    await blobs.delete(name);
    return { same, gone: (await blobs.get(name)) === undefined };
  }
  async later(ms: number): Promise<void> {
    await this.schedule(new Date(Date.now() + ms), "add", "rang");
  }
  async addBelow(name: string, text: string): Promise<number> {
    return (await this.subAgent(Notes, name)).add(text);
  }
  async forget(): Promise<void> {
    await this.destroy();
  }
  same(value: unknown): unknown {
    return value;
  }
  @callable()
  hello(name: string): string {
    return `hello ${name}`;
  }
}

/** What the page of a hook shows. */
class Tally extends Agent<object, { count: number }> {
  static override options: AgentOptions = { allowClientState: true };
  override initialState = { count: 0 };
  @callable()
  add(by: number): number {
    this.setState({ count: this.state.count + by });
    return this.state.count;
  }
  @callable({ streaming: true })
  tell(stream: StreamingResponse, count: number): void {
    for (let i = 0; i < count; i++) stream.send(i);
    stream.end("over");
  }
}

const words = Array.from({ length: 40 }, (_, i) => `word${i} `);

class Helper extends Think {
  override getModel() {
    return scriptedModel(() => ({ text: ["found ", "it"], delayMs: 20 }));
  }
}

class Chat extends Think {
  override getModel() {
    return scriptedModel(({ prompt, step }) =>
      JSON.stringify(prompt).includes("ask the helper") && step === 0
        ? { toolCalls: [{ toolName: "help", input: { query: "why" } }] }
        : JSON.stringify(prompt).includes("delete it") && step === 0
          ? { toolCalls: [{ toolName: "remove", input: { what: "it" } }] }
          : { text: words, delayMs: 50 },
    );
  }
  async found(words: string): Promise<number> {
    return (await this.search(words)).length;
  }
  async forget(): Promise<boolean> {
    return (await this.erase({ session: "main" })) !== undefined;
  }
  async keep(path: string, text: string): Promise<void> {
    await this.workspace.writeFile(path, text);
  }
  async kept(path: string): Promise<string | null> {
    return this.workspace.readFile(path);
  }
  override getTools() {
    const remove = tool({
      description: "Deletes.",
      inputSchema: z.object({ what: z.string() }),
      needsApproval: true,
      execute: ({ what }) => `${what} is gone`,
    });
    return { remove, help: agentTool(Helper, { description: "Helps.", inputSchema: z.object({ query: z.string() }) }) };
  }
}

const host = createCloudflareHost({ agents: { Notes, Chat, Tally }, subAgents: { Helper }, heartbeatMs: 1_000 });
export const { PerdureObject } = host;

export default { fetch: fetchFrom(host, { Notes, Chat, Tally }) };
