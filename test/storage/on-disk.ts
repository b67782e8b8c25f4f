// An agent on a real disk, with every byte counted that SQLite writes for it. Time is the test's.
import { statSync } from "node:fs";
import { Think } from "perdure";
import { createHost } from "perdure/node";
import { manualClock, scriptedModel, type Script } from "perdure/testing";
import { onTestFinished } from "vitest";
import { textIn } from "../chat/client.ts";
import { databaseFile, withDatabase } from "../host/agent-files.ts";
import { tempDir } from "../host/open-host.ts";
import { WalWatch, type Written } from "../support/wal-watch.ts";

/** What a conversation left on the disk, read after its host has stopped. */
export interface Left {
  readonly fileBytes: number;
  /** Bytes of the file that are free for what comes. */
  readonly freeBytes: number;
  /** How many rows each of the framework's tables has; those with none are left out. */
  readonly rows: Readonly<Record<string, number>>;
}

/** A `Think` agent on disk. */
export interface DiskAgent {
  /** Runs turns, one after the other, each with the next of these texts. */
  ask(...texts: readonly string[]): Promise<void>;
  /** Answers the last question anew. */
  again(): Promise<void>;
  clear(): Promise<void>;
  /** Forks the conversation so many times. @returns the ids of the new sessions. */
  fork(count: number): Promise<readonly string[]>;
  /** Deletes sessions. */
  forget(sessions: readonly string[]): Promise<void>;
  /** All text of the last answer. */
  lastText(): Promise<string>;
  /** Bytes, pages and commits since the first one. */
  written(): Written & { readonly commits: number };
  /** Stops the host and looks at the file. */
  left(): Promise<Left>;
}

const STEP_MS = 1;

/** @param window how many tokens the model reads; beyond it what was said is summarised. */
export function openOnDisk(script: Script, window = Number.MAX_SAFE_INTEGER): DiskAgent {
  const clock = manualClock();
  const model = scriptedModel(script, { clock });
  const dir = tempDir();
  let commits = 0;
  let watch: WalWatch | undefined;

  class Talk extends Think {
    override workspaceTools = false as const;
    override contextOverflow = { background: false };
    override modelLimits = () => ({ window });
    override getModel() {
      return model;
    }
    async ask(texts: readonly string[]): Promise<void> {
      for (const input of texts) await this.runTurn({ input });
    }
    forks(count: number): string[] {
      return Array.from({ length: count }, () => this.forkSession().id);
    }
    forget(sessions: readonly string[]): void {
      for (const id of sessions) this.deleteSession(id);
    }
    last(role: string) {
      return this.messages.findLast((message) => message.role === role);
    }
  }

  const host = createHost({
    agents: { Talk },
    dir,
    clock,
    idleMs: 1e9,
    onCommit(_count, agentId) {
      if (agentId === "") return;
      commits++;
      (watch ??= new WalWatch(databaseFile(dir, "one"))).look();
    },
  });
  let stopped: Promise<void> | undefined;
  const stop = () => (stopped ??= host.stop());
  onTestFinished(stop);
  const agent = host.getAgentByName(Talk, "one");

  /** Lets time pass until the work is done. */
  async function passing<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const done = work.finally(() => (settled = true));
    done.catch(() => undefined);
    while (!settled) await clock.advance(STEP_MS);
    return done;
  }

  async function again(): Promise<void> {
    const question = await agent.last("user");
    const response = await host.fetch(
      new Request("http://host/agents/talk/one/chat", {
        method: "POST",
        headers: { accept: "text/event-stream" },
        body: JSON.stringify({ messages: [question], trigger: "regenerate-message" }),
      }),
    );
    // Its end is the end of the turn.
    await response.text();
  }

  return {
    ask: (...texts) => passing(agent.ask(texts)),
    again: () => passing(again()),
    clear: () => passing(agent.clearMessages()),
    fork: (count) => passing(agent.forks(count)),
    forget: (sessions) => passing(agent.forget(sessions)),
    lastText: async () => textIn(await passing(agent.last("assistant"))),
    written: () => ({ ...(watch?.written ?? { bytes: 0, frames: 0, checkpoints: 0 }), commits }),
    async left() {
      await stop();
      const file = databaseFile(dir, "one");
      return withDatabase(file, (db) => {
        const names = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'perdure%'");
        const rows: Record<string, number> = {};
        for (const name of names.pluck().all() as string[]) {
          const count = db.prepare(`SELECT count(*) FROM ${name}`).pluck().get() as number;
          if (count > 0) rows[name] = count;
        }
        const pragma = (name: string) => db.pragma(name, { simple: true }) as number;
        return { fileBytes: statSync(file).size, freeBytes: pragma("freelist_count") * pragma("page_size"), rows };
      });
    },
  };
}
