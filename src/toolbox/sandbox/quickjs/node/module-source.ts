import { plainModule } from "./source.ts";

/** How the guest's `import` finds source: only what the run was given. What it throws has no stack. */
export interface ModuleSource {
  normalize(base: string, specifier: string): string;
  load(name: string): string;
}

/** Serves the modules of a request. */
export function moduleSource(modules: Readonly<Record<string, string>>): ModuleSource {
  const has = (name: string): boolean => Object.hasOwn(modules, name);
  return {
    normalize: (base, specifier) => {
      if (!/^\.\.?\//.test(specifier)) return specifier;
      return relative(has(base) ? base : "", specifier);
    },
    load: (name) => {
      const source = has(name) ? modules[name] : undefined;
      if (source === undefined) {
        const names = Object.keys(modules);
        const known = names.length === 0 ? "Nothing can be imported here." : `There are: ${names.join(", ")}.`;
        throw withoutStack(`There is no module "${name}". ${known}`);
      }
      const plain = plainModule(name, source);
      if (!plain.ok) throw withoutStack(plain.message);
      return plain.code;
    },
  };
}

function relative(base: string, specifier: string): string {
  const parts = base.split("/").slice(0, -1);
  for (const part of specifier.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** The engine copies the stack of an error into the guest. */
function withoutStack(message: string): Error {
  const error = new Error(message);
  error.stack = "";
  return error;
}
