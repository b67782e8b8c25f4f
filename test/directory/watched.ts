import { tmpdir } from "node:os";
import { type Program, startProgram } from "perdure/testing";
import { onTestFinished } from "vitest";
import { eventually } from "../host/open-host.ts";
import { makeProject, type Project } from "./project.ts";

/** A server on a project's agents. */
export interface Served {
  readonly project: Project;
  readonly url: string;
  /** What was printed since the server started. */
  output(): string;
  /** The text that an agent answers HTTP with, or the status when it is not 200. */
  says(path: string): Promise<string | number>;
  /** Asks until the agent says this. */
  comesToSay(path: string, text: string | number): Promise<void>;
  /** Waits until this was printed. */
  prints(text: string): Promise<void>;
}

let running: Promise<Program> | undefined;

/** One process for all tests of a file: to start one takes longer than most tests. */
async function start(): Promise<Program> {
  const program = startProgram(new URL("./watch-program.ts", import.meta.url), { dir: tmpdir() });
  await program.waitFor("ready");
  return program;
}

/** Makes a project and starts a server that watches it, in a process of its own kind: Node's loader, not Vite's. */
export async function watchProject(files: Readonly<Record<string, string>>): Promise<Served> {
  const project = makeProject(files);
  const program = await (running ??= start());
  const { dir } = project;
  const earlier = program.output.length;
  const output = () => program.output.slice(earlier);
  await program.send({ what: "open", dir });
  const { url } = await program.waitFor((fact) => fact.type === "open" && fact["dir"] === dir);
  onTestFinished(async () => {
    await program.send({ what: "stop", dir });
    await program.waitFor((fact) => fact.type === "stopped" && fact["dir"] === dir);
  });
  const says = async (path: string) => {
    const response = await fetch(`${String(url)}/agents/${path}`);
    return response.ok ? response.text() : response.status;
  };
  return {
    project,
    url: String(url),
    output,
    says,
    async comesToSay(path, text) {
      let last: unknown;
      let asking = false;
      const ask = async () => {
        asking = true;
        last = await says(path).catch((thrown: unknown) => thrown);
        asking = false;
      };
      await eventually(() => {
        if (last !== text && !asking) void ask();
        return last === text;
      }, `${path} says ${text}`);
    },
    async prints(text) {
      await eventually(() => output().includes(text), `it prints ${text}`).catch((thrown: unknown) => {
        throw new Error(output(), { cause: thrown });
      });
    },
  };
}
