import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHost } from "perdure/node";
import { Assistant } from "../../examples/start/assistant.ts";
import type { AssistantMessage } from "../../examples/start/contract.ts";
import { Conversations } from "../../examples/start/conversations.ts";
import { helpers } from "../../examples/start/helpers.ts";

const CHUNK = 500;

class Seeder extends Conversations {
  /** Has a helper do something that no message asked for. */
  async work(id: string, topic: string): Promise<void> {
    const conversation = await this.subAgent(Assistant, id);
    await conversation.runAgentTool(helpers.Researcher, { input: { topic }, display: { name: "Researcher" } });
  }

  async seed(id: string, messages: readonly AssistantMessage[]): Promise<void> {
    const conversation = await this.subAgent(Assistant, id);
    for (let at = 0; at < messages.length; at += CHUNK)
      await conversation.persistMessages(messages.slice(at, at + CHUNK));
  }
}

/** A folder for the app in which this conversation was held already, and a helper has worked for it without a call. */
export async function seedConversation(
  id: string,
  messages: readonly AssistantMessage[],
  topic?: string,
): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "perdure-browser-"));
  const host = createHost({
    agents: { Conversations: Seeder },
    subAgents: { Assistant, ...helpers },
    dir: join(dir, ".perdure"),
  });
  const list = host.getAgentByName(Seeder, "main");
  await list.seed(id, messages);
  if (topic !== undefined) await list.work(id, topic);
  await host.stop();
  return dir;
}
