import type { Agent, AgentHost } from "perdure";
import { createHost, type Host, memoryStorage } from "perdure/node";
import type { LanguageModel, UIMessage } from "ai";
import { onTestFinished } from "vitest";

/** What the samples read from `this.env`. */
export interface Env {
  readonly AI: LanguageModel;
}

/** A host in memory with these classes, stopped at the end of the test. The first class is the one under test. */
export function open<A extends Agent<object>>(
  classes: Readonly<Record<string, new (host: AgentHost) => Agent<object>>> & {
    readonly Main: new (host: AgentHost) => A;
  },
  env: object,
) {
  const host: Host = createHost({ agents: classes, storage: memoryStorage(), env });
  onTestFinished(() => host.stop());
  return host.getAgentByName(classes.Main, "one");
}

/** A message of a person. */
export function ask(text: string): UIMessage {
  return { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] };
}

/** The text of a message. */
export function textOf(message: UIMessage | undefined): string {
  return (message?.parts ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
}
