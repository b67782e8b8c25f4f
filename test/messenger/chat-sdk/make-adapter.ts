import type { Logger } from "chat";
import type { ChatSdkAdapter } from "perdure/messengers/chat-sdk";

const quiet = () => undefined;
const logger: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet, child: () => logger };

/** The published adapter of a network. Others are not loaded. */
export async function makeAdapter(name: string, config: Record<string, unknown>): Promise<ChatSdkAdapter> {
  const made = { ...config, logger };
  if (name === "telegram") return (await import("@chat-adapter/telegram")).createTelegramAdapter(made as never);
  if (name === "slack") return (await import("@chat-adapter/slack")).createSlackAdapter(made as never);
  if (name === "discord") return (await import("@chat-adapter/discord")).createDiscordAdapter(made as never);
  return (await import("@chat-adapter/github")).createGitHubAdapter(made as never);
}
