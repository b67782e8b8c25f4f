// An agent whose sessions talk at the same time, for the crash matrix. Each turn calls a tool that may run only once, and then
// says so. "poison" ends the process whenever its model is asked; who says "patient …" is answered only after that.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { jsonSchema, tool, type UIMessage } from "ai";
import { Think } from "../../src/agent/think.ts";
import { createHost } from "../../src/host/node/create-host.ts";
import { programDir, report } from "../../src/testing/crash/child.ts";
import { scriptedModel } from "../../src/testing/scripted-model.ts";
import { obey, reportEvents, watchedOptions } from "../crash/watched-host.ts";

const textOf = ({ parts }: UIMessage) => parts.map((part) => (part.type === "text" ? part.text : "")).join("");

const model = scriptedModel(async ({ userText, step }) => {
  if (userText === "poison") process.kill(process.pid, "SIGKILL");
  if (userText.startsWith("patient")) await new Promise((resolve) => setTimeout(resolve, 100));
  return step === 0
    ? { text: ["Well. "], toolCalls: [{ toolName: "note", input: { text: userText } }], delayMs: 2 }
    : { text: ["Noted ", `${userText}.`], delayMs: 2 };
});

class Talker extends Think {
  override workspaceTools = false as const;

  override getModel() {
    return model;
  }

  override getTools() {
    return {
      note: tool({
        inputSchema: jsonSchema<{ text: string }>({ type: "object" }),
        execute: async ({ text }, { toolCallId }) => {
          appendFileSync(join(programDir(), "notes"), `${text} ${toolCallId}\n`);
          await new Promise((resolve) => setTimeout(resolve, 5));
          return "ok";
        },
      }),
    };
  }

  override onError(error: unknown): void {
    report({ type: "failed", error: String(error) });
  }

  /** Accepts a message in each of these sessions, and waits for no answer. */
  async say(texts: Readonly<Record<string, string>>): Promise<string[]> {
    const results = [];
    for (const [name, text] of Object.entries(texts)) {
      const known = name === "main" ? name : this.getSessions().find((one) => one.name === name)?.id;
      const session = known ?? this.createSession(name).id;
      results.push(await this.submitMessages(text, { session, idempotencyKey: text }));
    }
    return results.map(({ requestId }) => requestId);
  }

  async result() {
    await this.waitUntilStable();
    const histories = this.getSessions().map(({ id, name }) => [
      id === "main" ? id : name,
      this.getHistory(null, { session: id }).map((message) => textOf(message)),
    ]);
    const turns = this.listSubmissions().map(({ requestId, status, messages }) => {
      const [message] = messages;
      return { requestId, status, text: message === undefined ? "" : textOf(message) };
    });
    return { histories: Object.fromEntries(histories) as Record<string, string[]>, turns };
  }
}

const agents = { Talker };
reportEvents();
// How long a turn may be carried on is a matter of real time.
const { clock: _clock, ...options } = watchedOptions();
const host = createHost({ agents, ...options });
obey(host, agents);
