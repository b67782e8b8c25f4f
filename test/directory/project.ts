import { mkdirSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { tempDir } from "../host/open-host.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));

/** A folder like an app's, where `import … from "perdure"` works. */
export interface Project {
  readonly dir: string;
  readonly agents: string;
  /** The absolute path of a file in the agents directory. */
  path(name: string): string;
  /** Writes a file of the agents directory, and the folders above it. */
  write(name: string, text: string): void;
  /** Deletes a file or a folder of the agents directory. */
  remove(name: string): void;
}

/** Makes a project with these files in `agents/`; deleted at the end of the test. */
export function makeProject(files: Readonly<Record<string, string>>): Project {
  const dir = realpathSync(tempDir());
  const agents = join(dir, "agents");
  mkdirSync(join(dir, "node_modules"));
  symlinkSync(repository, join(dir, "node_modules", "perdure"));
  writeFileSync(join(dir, "package.json"), '{ "type": "module" }');
  const path = (name: string) => join(agents, name);
  const write = (name: string, text: string) => {
    mkdirSync(dirname(path(name)), { recursive: true });
    // Moved into its place: nobody sees a half of it.
    writeFileSync(join(dir, "draft"), text);
    renameSync(join(dir, "draft"), path(name));
  };
  for (const [name, text] of Object.entries(files)) write(name, text);
  return { dir, agents, path, write, remove: (name) => rmSync(path(name), { recursive: true }) };
}

/** The source of an agent that answers `says()` and HTTP with a text. `head` comes first; `text` is an expression. */
export function speaker(name: string, text: string, head = ""): string {
  return `import { Agent, callable } from "perdure";
${head}
export class ${name} extends Agent {
  static { callable(this, "says"); }
  override initialState: unknown = undefined;
  says(): string { return ${text}; }
  override onRequest(): Response { return new Response(${text}); }
}
`;
}
