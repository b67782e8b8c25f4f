// The chat inside of an agent under test, for what no client and no public method can do yet at that moment.
import { ChatPart } from "../../src/parts/chat.ts";
import type { ChatRoom } from "../../src/live/chat-room.ts";
import { parts } from "../../src/parts/part.ts";
import type { TestChat } from "./harness.ts";

export async function roomOf(chat: TestChat): Promise<ChatRoom> {
  const agent = await chat.agent();
  const part = agent[parts].parts.find((one) => one instanceof ChatPart);
  if (part === undefined) throw new Error("The agent has no chat.");
  return part.room;
}
