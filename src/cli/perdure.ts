#!/usr/bin/env node
import os from "node:os";
import { parseArgs, styleText } from "node:util";
import { errorText, PerdureError } from "../base/error.ts";
import { packageVersion } from "../host/node/package-root.ts";
import { type Command, NotHeld } from "./call.ts";
import { COMMANDS } from "./commands.ts";
import { harmless } from "./table.ts";
import { openTarget, type Target, Unreached } from "./target.ts";

/** It did not hold: it failed, or is not healthy. */
const EXIT_FAILED = 1;
/** Wrong use, or a configuration that cannot work. */
const EXIT_USE = 2;
/** No host was reached, or the directory is locked. */
const EXIT_UNREACHED = 3;

const OPTIONS = {
  dir: { type: "string" },
  url: { type: "string" },
  as: { type: "string" },
  json: { type: "boolean" },
  yes: { type: "boolean" },
  diff: { type: "boolean" },
  now: { type: "boolean" },
  out: { type: "string", short: "o" },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean" },
  by: { type: "string" },
  class: { type: "string" },
  reason: { type: "string" },
  session: { type: "string" },
  limit: { type: "string" },
  to: { type: "string" },
  keep: { type: "string" },
  number: { type: "string" },
  agent: { type: "string" },
  rename: { type: "string" },
  erased: { type: "boolean" },
  backup: { type: "string" },
  "dry-run": { type: "boolean" },
} as const;

class WrongUse extends Error {}

async function main(args: string[]): Promise<number> {
  try {
    const { command, operands, values } = read(args);
    if (values.version === true) {
      process.stdout.write(`${packageVersion()}\n`);
      return 0;
    }
    if (command === undefined) {
      process.stdout.write(usage());
      return 0;
    }
    const env = process.env;
    const dir = values.dir ?? env.PERDURE_DIR ?? ".perdure";
    const url = values.url ?? env.PERDURE_URL;
    let opened: Promise<Target> | undefined;
    const target = () =>
      (opened ??= openTarget({
        ...{ dir, url, token: env.PERDURE_TOKEN },
        who: values.as ?? os.userInfo().username,
      }));
    try {
      await command.run({ target, dir, isElsewhere: url !== undefined, operands, values, json: values.json === true });
    } finally {
      await (await opened?.catch(() => undefined))?.close();
    }
    return 0;
  } catch (thrown) {
    return told(thrown);
  }
}

function read(args: string[]) {
  let parsed;
  try {
    parsed = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  } catch (thrown) {
    throw new WrongUse(errorText(thrown));
  }
  const { values, positionals } = parsed;
  const [name, ...operands] = positionals;
  if (name === undefined || name === "help" || values.help === true || values.version === true)
    return { command: undefined, operands, values };
  const command = COMMANDS.find((one) => one.name === name);
  if (command === undefined) throw new WrongUse(`There is no command "${name}".`);
  const needed = command.operands.filter((operand) => operand.startsWith("<")).length;
  if (operands.length < needed || operands.length > command.operands.length)
    throw new WrongUse(`Write: perdure ${synopsis(command)}`);
  for (const option of Object.keys(values)) {
    if (!EVERYWHERE.has(option) && !command.options.includes(option))
      throw new WrongUse(`"perdure ${name}" has no option --${option}.`);
  }
  return { command, operands, values };
}

const EVERYWHERE: ReadonlySet<string> = new Set(["dir", "url", "as", "json", "help"]);

function told(thrown: unknown): number {
  const error = (text: string) =>
    console.error(`${styleText("red", "error", { stream: process.stderr })} ${harmless(text)}`);
  if (thrown instanceof WrongUse) {
    error(`${thrown.message} "perdure help" lists the commands.`);
    return EXIT_USE;
  }
  if (thrown instanceof Unreached) {
    error(thrown.message);
    return EXIT_UNREACHED;
  }
  if (thrown instanceof NotHeld) {
    error(thrown.message);
    return EXIT_FAILED;
  }
  error(PerdureError.is(thrown) ? `${thrown.code}: ${thrown.message}` : errorText(thrown));
  return PerdureError.is(thrown, "bad_config") || PerdureError.is(thrown, "bad_input") ? EXIT_USE : EXIT_FAILED;
}

function synopsis({ name, operands, options }: Command): string {
  return [name, ...operands, ...options.map((option) => `[--${option}]`)].join(" ");
}

const SYNOPSIS_WIDTH = 44;

function usage(): string {
  const lines = COMMANDS.map((command) => `  ${synopsis(command).padEnd(SYNOPSIS_WIDTH)} ${command.what}`);
  return `Usage: perdure <command> [options]

${lines.join("\n")}

  --dir DIR    the directory of a host, running or not; or PERDURE_DIR; default .perdure
  --url URL    a host that runs elsewhere; or PERDURE_URL; with a token in PERDURE_TOKEN
  --as NAME    what you are called in approvals and in the audit; default: your user name
  --json       one JSON per line
  --version    of this command

An agent is Class/name, as "perdure agents" lists them.

Exit: 0 fine, 1 it did not hold, 2 wrong use, 3 no host was reached or the directory is locked.
`;
}

// Whoever reads our output may stop reading, as `head` does.
process.stdout.on("error", () => process.exit(0));
process.exitCode = await main(process.argv.slice(2));
