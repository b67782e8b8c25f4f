// A Think agent that moves a picture out of its messages, searches and erases, for the crash matrix.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { UIMessage } from "ai";
import { type AgentHost, type EraseReceipt, Think } from "perdure";
import { createHost } from "perdure/node";
import { programDir, report, scriptedModel } from "perdure/testing";
import { parts } from "../../src/parts/part.ts";
import { filesOf } from "../../src/media/files.ts";
import { referencesOf } from "../../src/message/media-ref.ts";
import { obey, watchedOptions } from "../crash/watched-host.ts";
import { type EraseResult, SECRET } from "./crash-erase-types.ts";

const model = scriptedModel(() => "Fine.");
const picture = Buffer.from(`${SECRET} `.repeat(3_000));

class Desk extends Think {
  /** By the fast clock, a few seconds between two lives on a busy machine are minutes without progress. */
  override chatRecovery = { noProgressTimeoutMs: 1e9, maxAgeMs: 1e9 };
  override workspaceTools = false as const;
  override mediaRetention = { keepInMessages: 1 };
  readonly #port: AgentHost;

  constructor(port: AgentHost) {
    super(port);
    this.#port = port;
  }

  override getModel() {
    return model;
  }

  override onError(error: unknown): void {
    report({ type: "failed", error: error instanceof Error ? error.message : String(error) });
  }

  async fill(): Promise<number> {
    const url = `data:image/png;base64,${picture.toString("base64")}`;
    const said: UIMessage["parts"] = [
      { type: "text", text: `Look at ${SECRET}` },
      { type: "file", mediaType: "image/png", url },
    ];
    await this.saveMessages([{ id: "u1", role: "user", parts: said }]);
    await this[parts].chat.media.idle();
    return (await this.search(SECRET)).length;
  }

  wipe(): Promise<EraseReceipt> {
    return this.erase({ session: "main" });
  }

  async result(): Promise<EraseResult> {
    // What an earlier life left is finished in the background.
    while (this.eraseReceipts().some(({ done }) => !done)) await new Promise((resolve) => setTimeout(resolve, 5));
    await this[parts].chat.media.idle();
    const rows = this.#port.sql<{ body: string }>("SELECT body FROM perdure_message ORDER BY seq");
    const messages = rows.map(({ body }) => JSON.parse(body) as UIMessage);
    let lost = 0;
    for (const { name } of messages.flatMap(referencesOf))
      if (!(await filesOf(this.#port).read(name))?.bytes.every((byte, at) => byte === picture[at])) lost++;
    const files = globSync(join(programDir(), "**/*"), { withFileTypes: true }).filter((entry) => entry.isFile());
    const secret = files.filter(({ parentPath, name }) => {
      const bytes = readFileSync(join(parentPath, name));
      return [SECRET, SECRET.toLowerCase(), btoa(`${SECRET} `).slice(0, 12)].some((text) => bytes.includes(text));
    });
    const receipts = this.eraseReceipts();
    return { messages: messages.length, lost, secret: secret.map(({ name }) => name), receipts };
  }
}

const agents = { Desk };
obey(createHost({ agents, ...watchedOptions() }), agents);
