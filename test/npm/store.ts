import { cpSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** What must never get into a bundle, nor into a message. */
export const SECRET = "hunter2-secret";

const own = fileURLToPath(new URL("../../node_modules/", import.meta.url));

/** A store of packages, beside files that are none of its business. */
export interface TestStore {
  readonly root: string;
  readonly store: string;
  /** Writes a package of these files. `package.json` is made when it is not among them. */
  add(name: string, files: Readonly<Record<string, string>>): void;
  /** Puts a link into a package. */
  link(name: string, file: string, target: string): void;
}

/** `copied` and `linked` are packages of this project's own node_modules. */
export function makeStore(copied: readonly string[], linked: readonly string[] = []): TestStore {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "packages-")));
  const store = join(root, "store");
  const write = (path: string, text: string) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  };
  write(join(root, "secret.json"), JSON.stringify({ secret: SECRET }));
  write(join(root, "secret.js"), `export default "${SECRET}";`);
  write(join(root, "secret.txt"), SECRET);
  // What esbuild would find when it looks further up.
  write(join(root, "node_modules/outside/package.json"), '{"name":"outside","version":"1.0.0","main":"index.js"}');
  write(join(root, "node_modules/outside/index.js"), `module.exports = "${SECRET}";`);
  write(join(store, "package.json"), "{}");
  // Must not be read.
  write(
    join(store, "tsconfig.json"),
    '{"compilerOptions":{"baseUrl":".","paths":{"fine":["../secret.js"],"ms":["../secret.js"]}}}',
  );
  for (const name of copied) cpSync(join(own, name), join(store, "node_modules", name), { recursive: true });
  for (const name of linked) symlinkSync(join(own, name), join(store, "node_modules", name), "dir");
  const at = (name: string, file: string) => join(store, "node_modules", name, file);
  return {
    root,
    store,
    add(name, files) {
      write(at(name, "package.json"), JSON.stringify({ name, version: "1.0.0", type: "module", main: "index.js" }));
      for (const [file, text] of Object.entries(files)) write(at(name, file), text);
    },
    link: (name, file, target) => symlinkSync(target, at(name, file)),
  };
}
