import { Chat } from "@ai-sdk/react";
import type { ChatTransport, UIMessage } from "ai";
import { expect } from "vitest";
import { atEnd, eventually } from "../clients/harness.ts";
import { toLine } from "./to-line.ts";

/** The AI SDK's own chat, without a page, over one of our transports. */
export function chatOver(transport: ChatTransport<UIMessage>, messages: UIMessage[] = []) {
  const data: unknown[] = [];
  const chat = new Chat<UIMessage>({ transport, messages, onData: (part) => void data.push(part) });
  atEnd(() => transport.close?.());
  return {
    chat,
    data,
    lines: () => chat.messages.map(toLine),
    shows: (...lines: string[]) => eventually(() => expect(chat.messages.map(toLine)).toEqual(lines)),
    settles: (lines: string[], status = "ready") =>
      eventually(() => expect({ lines: chat.messages.map(toLine), status: chat.status }).toEqual({ lines, status })),
  };
}
