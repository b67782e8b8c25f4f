import { type Program, startProgram } from "perdure/testing";
import { eventually } from "../host/open-host.ts";
import { makeProject, type Project } from "./project.ts";

const file = new URL("./watch-program.ts", import.meta.url);

/** A server process on a project's agents. */
export interface Served {
  readonly url: string;
  readonly program: Program;
  /** The text that an agent answers HTTP with, or the status when it is not 200. */
  says(path: string): Promise<string | number>;
  /** Asks until the agent says this. */
  comesToSay(path: string, text: string | number): Promise<void>;
  /** Waits until this was printed. */
  prints(text: string): Promise<void>;
}

/** Starts a server on a project that is there already. */
export async function serveProject(project: Project, env: Record<string, string> = { WATCH: "yes" }): Promise<Served> {
  const program = startProgram(file, { dir: project.dir, env });
  const { url } = await program.waitFor("listening");
  const says = async (path: string) => {
    const response = await fetch(`${String(url)}/agents/${path}`);
    return response.ok ? response.text() : response.status;
  };
  return {
    url: String(url),
    program,
    says,
    async comesToSay(path, text) {
      let last: string | number = "";
      let asking = false;
      const ask = async () => {
        asking = true;
        last = await says(path);
        asking = false;
      };
      await eventually(() => {
        if (last === text) return true;
        if (!asking) void ask();
        return false;
      }, `${path} says ${text}; it says ${last}\n${program.output}`);
    },
    async prints(text) {
      await eventually(() => program.output.includes(text), `"${text}" in ${program.output}`);
    },
  };
}

/** Makes a project and starts a server that watches it. */
export async function watchProject(files: Readonly<Record<string, string>>): Promise<Served & { project: Project }> {
  const project = makeProject(files);
  return { project, ...(await serveProject(project)) };
}
