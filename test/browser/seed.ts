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
  async seed(id: string, messages: readonly AssistantMessage[]): Promise<void> {
    const conversation = await this.subAgent(Assistant, id);
    for (let at = 0; at < messages.length; at += CHUNK)
      await conversation.persistMessages(messages.slice(at, at + CHUNK));
  }
}

/** A folder for the app in which this conversation was held already. */
export async function seedConversation(id: string, messages: readonly AssistantMessage[]): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "perdure-browser-"));
  const host = createHost({
    agents: { Conversations: Seeder },
    subAgents: { Assistant, ...helpers },
    dir: join(dir, ".perdure"),
  });
  await host.getAgentByName(Seeder, "main").seed(id, messages);
  await host.stop();
  return dir;
}
