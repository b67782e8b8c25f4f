// An agent with several sessions, for the crash matrix.
import type { UIMessage } from "ai";
import { AIChatAgent } from "../../src/agent/ai-chat-agent.ts";
import { createHost } from "../../src/host/node/create-host.ts";
import { report } from "../../src/testing/crash/child.ts";
import { obey, reportEvents, watchedOptions } from "../crash/watched-host.ts";

const textOf = ({ parts }: UIMessage) => parts.map((part) => (part.type === "text" ? part.text : "")).join("");

class Talker extends AIChatAgent {
  override onChatMessage() {
    const last = this.messages.at(-1);
    // One that is carried on was said in one piece.
    return last?.role === "user" ? new Response(`re ${last.id}`) : undefined;
  }

  override onError(error: unknown): void {
    report({ type: "failed", error: String(error) });
  }

  async say(id: string, session: string): Promise<string> {
    const message: UIMessage = { id, role: "user", parts: [{ type: "text", text: id }] };
    return (await this.saveMessages([message], { session })).status;
  }

  fork(id: string, at: string): string {
    this.session.pin(at);
    return this.forkSession("main", { id, at }).id;
  }

  switchTo(id: string): string {
    return this.switchSession(id).id;
  }

  branch(id: string, parentId: string): string {
    this.session.appendMessage({ id, role: "user", parts: [{ type: "text", text: id }] }, parentId);
    return id;
  }

  back(messageId: string): string {
    return this.switchBranch(messageId);
  }

  drop(id: string): boolean {
    return this.deleteSession(id);
  }

  async result() {
    await this.waitUntilStable();
    const sessions = this.getSessions().map(({ id, name, parent, forkedAt }) => {
      const session = this.sessions.of(id);
      const history = session.getHistory();
      const pins = history.filter((message) => session.isPinned(message.id)).map(textOf);
      return { id, name, parent, forkedAt, history: history.map(textOf), pins };
    });
    return { current: this.getCurrentSessionId(), sessions };
  }
}

const agents = { Talker };
reportEvents();
const host = createHost({ agents, ...watchedOptions() });
obey(host, agents);
