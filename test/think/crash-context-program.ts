// A Think agent with context blocks, for the crash matrix: it remembers what it is told, and its prompt is frozen. What
// each model call was given as its system prompt, all lives write into one file.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import type { Session } from "perdure";
import type { Fact } from "perdure/testing";
import { Think } from "../../src/agent/think.ts";
import { subscribe } from "../../src/host/node/publish-events.ts";
import { createHost } from "../../src/host/node/create-host.ts";
import { crashPoint, onCommand, programDir, report } from "../../src/testing/crash/child.ts";
import { scriptedModel } from "../../src/testing/scripted-model.ts";

export type ContextCommand = { readonly type: "tell" };

/** How things stand when all was told. */
export interface ContextLook extends Fact {
  readonly memory: string;
  readonly team: string;
  readonly prompt: string;
  /** Of every model call of every life. */
  readonly systems: readonly string[];
  readonly texts: readonly string[];
}

const dir = programDir();
const systemsFile = join(dir, "systems");
const append = (label: string, content: string) => ({
  toolName: "set_context",
  input: { label, content, action: "append" },
});

const model = scriptedModel(({ userText, step, prompt }) => {
  const system = prompt.map((message) => (message.role === "system" ? message.content : "")).join("");
  appendFileSync(systemsFile, `${JSON.stringify(system)}\n`);
  if (step > 0) return { text: `Noted ${userText}.` };
  return { toolCalls: [append("memory", userText), append("memory", `${userText} again`), append("team", userText)] };
});

class Keeper extends Think {
  override workspaceTools = false as const;
  override configureSession(session: Session) {
    return (
      session
        .withContext("memory", { maxTokens: 1000 })
        .withContext("team", { shared: true })
        // Another text in every life.
        .withContext("life", { provider: { get: () => `${process.pid}` } })
        .withCachedPrompt()
    );
  }

  override getModel() {
    return model;
  }

  override onError(error: unknown): void {
    report({ type: "failed", error: String(error) });
  }

  async tell(): Promise<void> {
    for (const text of ["one", "two"]) {
      const message = { id: text, role: "user" as const, parts: [{ type: "text" as const, text }] };
      await this.submitMessages([message], { idempotencyKey: text });
    }
  }

  async look(): Promise<ContextLook> {
    await this.waitUntilStable();
    return {
      type: "look",
      memory: this.session.getContextBlock("memory")?.content ?? "",
      team: this.session.getContextBlock("team")?.content ?? "",
      prompt: await this.session.systemPrompt(),
      systems: existsSync(systemsFile)
        ? readFileSync(systemsFile, "utf8")
            .trimEnd()
            .split("\n")
            .map((line) => JSON.parse(line) as string)
        : [],
      texts: this.messages.map((message) =>
        message.parts.map((part) => (part.type === "text" ? part.text : "")).join(""),
      ),
    };
  }
}

subscribe("agent:failed", ({ payload }) => report({ type: "failed", ...payload }));
flushCompileCache();
const host = createHost({ agents: { Keeper }, dir, idleMs: 1e9, onCommit: crashPoint() });

onCommand(async () => {
  const agent = host.getAgentByName(Keeper, "one");
  await agent.tell();
  report({ ...(await agent.look()) });
});
report({ type: "ready" });
