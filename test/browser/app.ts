import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { AssistantMessage } from "../../examples/start/contract.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import { type PageKind, pageFolder } from "./page-folder.ts";

const main = new URL("../../examples/start/main.ts", import.meta.url);
const skills = fileURLToPath(new URL("../../examples/skills", import.meta.url));

/** What `npm start` runs, as a process of its own in a folder of its own. */
export interface App {
  readonly url: string;
  readonly port: number;
  readonly dir: string;
  /** What it complained about so far, over all of its lives. */
  complaints(): string;
  /** Ends it as a power cut does: no handler runs. */
  kill(): Promise<void>;
  /** Starts it again where it was: same folder, same port. */
  restart(): Promise<void>;
  /** What the server has stored of a conversation, or of the helper at this address below it. */
  stored(conversation: string, helper?: string): Promise<AssistantMessage[]>;
  /** Kills it and forgets the folder. */
  close(): Promise<void>;
}

/** Settings of the app for a test. */
export interface AppOptions {
  /** Pause between two words of the built-in guide. */
  readonly delayMs?: number;
  /** How the page is built. Default: so that React warns of mistakes, which fails the test. */
  readonly page?: PageKind;
  /** More settings of the process. */
  readonly env?: () => Readonly<Record<string, string>>;
  /** A folder that has data in it already; it is removed at the end. */
  readonly dir?: string;
}

/** Starts the app and waits until it says where it is. @throws with its output when it ends instead */
export async function startApp(options: AppOptions = {}): Promise<App> {
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), "perdure-browser-")));
  const page = await pageFolder(options.page ?? "development");
  // As one file, because it starts again and again; `test/start` runs it as it is.
  const program = fileURLToPath(await bundleProgram(main));
  let output = "";
  let complaints = "";
  let life = start(0);
  const url = await whenRunning(life).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  const port = Number(new URL(url).port);

  function start(atPort: number): ChildProcess {
    const child = spawn(process.execPath, [program], {
      cwd: dir,
      env: {
        ...process.env,
        // Whoever runs the tests may have keys; the guide answers all the same.
        ...{
          OPENAI_BASE_URL: undefined,
          OPENAI_API_KEY: undefined,
          ANTHROPIC_API_KEY: undefined,
          PERDURE_MODEL: undefined,
        },
        PERDURE_GUIDE_DELAY: String(options.delayMs ?? 0),
        PERDURE_DIR: ".perdure",
        PERDURE_PAGE: page,
        PERDURE_SKILLS: skills,
        PORT: String(atPort),
        ...{ TELEGRAM_BOT_TOKEN: undefined, ...options.env?.() },
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (data: Buffer) => (output += data.toString()));
    }
    child.stderr.on("data", (data: Buffer) => (complaints += data.toString()));
    return child;
  }

  function whenRunning(child: ChildProcess): Promise<string> {
    const before = output.length;
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = /\b(http:\/\/\S+)/.exec(output.slice(before))?.[1];
        if (found !== undefined) resolve(found.replace(/\/$/, ""));
      };
      for (const stream of [child.stdout, child.stderr]) stream?.on("data", look);
      child.once("error", reject);
      child.once("close", () => reject(new Error(`The app ended before it ran:\n${output}`)));
    });
  }

  async function kill(): Promise<void> {
    if (life.exitCode !== null || life.signalCode !== null) return;
    const gone = new Promise((resolve) => life.once("close", resolve));
    life.kill("SIGKILL");
    await gone;
  }

  async function close(): Promise<void> {
    await kill();
    await rm(dir, { recursive: true, force: true });
  }

  return {
    url,
    port,
    dir,
    complaints: () => complaints,
    kill,
    async restart() {
      await kill();
      life = start(port);
      await whenRunning(life);
    },
    async stored(conversation, helper) {
      const below = helper === undefined ? "" : `/sub/${helper}`;
      const path = `/agents/conversations/main/sub/assistant/${conversation}${below}/get-messages`;
      const answer = await fetch(url + path);
      if (!answer.ok) throw new Error(`get-messages: ${answer.status} ${await answer.text()}`);
      return (await answer.json()) as AssistantMessage[];
    },
    close,
  };
}
