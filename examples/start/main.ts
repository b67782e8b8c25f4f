// What `npm start` runs: the agents, kept in `.perdure/`, and the page that talks to them.
import { join } from "node:path";
import { PerdureError } from "perdure";
import { serve, type ServedHost } from "perdure/node";
import { Assistant } from "./assistant.ts";
import { type Info, LIST_NAME } from "./contract.ts";
import { Conversations } from "./conversations.ts";
import { helpers } from "./helpers.ts";
import { Library } from "./library.ts";
import { logLine } from "./log-line.ts";
import { chooseModel, type ModelChoice, SettingsError } from "./model/choose.ts";
import { answerRequest } from "./requests.ts";
import { servedAt } from "./toolbox.ts";

const DEFAULT_PORT = 8787;
const MAX_PORT = 65_535;
const DEFAULT_DIR = ".perdure";
const page = join(import.meta.dirname, "page");

try {
  const choice = chooseModel(process.env);
  const port = portOf(process.env.PORT);
  const dir = process.env.PERDURE_DIR ?? DEFAULT_DIR;
  const assets = await builtPage();
  const { url } = await open(port, dir, assets, choice);
  servedAt(url);
  console.log(`
Perdure is running at ${url}

  ${whoAnswers(choice)}

  Everything is kept in ${dir} and is there again after a restart. Ctrl-C stops.
`);
} catch (error) {
  console.error(whatToDo(error));
  process.exit(1);
}

function open(port: number, dir: string, assets: string, choice: ModelChoice): Promise<ServedHost> {
  const info: Info = { model: choice.name, builtIn: choice.builtIn };
  return serve({
    log: logLine,
    agents: { Conversations, Library },
    subAgents: { Assistant, ...helpers },
    dir,
    port,
    assets,
    // Nobody else would wake it to read what comes from a messenger.
    ...((process.env.TELEGRAM_BOT_TOKEN ?? "") !== "" && { start: [["Conversations", LIST_NAME]] as const }),
    fetch: (request) => answerRequest(request, info),
  });
}

/** The folder with the page: built now, or before, where `PERDURE_PAGE` says; `built` means here. */
async function builtPage(): Promise<string> {
  const outDir = join(page, "dist");
  const before = process.env.PERDURE_PAGE;
  if (before !== undefined && before !== "") return before === "built" ? outDir : before;
  const { build } = await import("vite");
  const configFile = join(page, "vite.config.ts");
  await build({ root: page, configFile, logLevel: "warn", build: { outDir, emptyOutDir: true } });
  return outDir;
}

function portOf(text: string | undefined): number {
  const port = text === undefined || text === "" ? DEFAULT_PORT : Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= MAX_PORT) return port;
  throw new SettingsError(`PORT must be a number from 0 to ${MAX_PORT}, not "${text}".`);
}

function whoAnswers({ builtIn, name, service }: ModelChoice): string {
  if (!builtIn) return `"${name}" answers (${service}).`;
  return `The built-in guide answers: a script that needs no key and shows what there is.
  For a real model set one of these and start again (PERDURE_MODEL chooses the model):

    OPENAI_API_KEY=… npm start
    ANTHROPIC_API_KEY=… npm start
    OPENAI_BASE_URL=http://localhost:11434/v1 PERDURE_MODEL=llama3.2 npm start`;
}

function whatToDo(error: unknown): string {
  if (error instanceof SettingsError || PerdureError.is(error)) return error.message;
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "EADDRINUSE") return "The port is taken. Stop what uses it, or choose another: PORT=3000 npm start";
  if (code === "EACCES") return "The port is not allowed. Choose another: PORT=3000 npm start";
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
