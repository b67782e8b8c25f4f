// Vitest runs this before every file of a project whose files share workers (starting one for each takes longer than
// most tests): the file finds its modules, globals and environment as if it were the first. Only packages stay loaded.
import { vi } from "vitest";

interface Beginning {
  readonly globals: Readonly<Record<PropertyKey, PropertyDescriptor>>;
  readonly env: NodeJS.ProcessEnv;
}

/** Kept at the process, because this module is new for every file too. */
const worker: { [key: symbol]: Beginning | undefined } = Object(process);
const KEY = Symbol.for("perdure.worker-beginning");

const beginning = worker[KEY];
if (beginning === undefined) {
  worker[KEY] = { globals: Object.getOwnPropertyDescriptors(globalThis), env: { ...process.env } };
  // Modules that are loaded again listen again, once for each file.
  process.setMaxListeners(0);
} else {
  vi.resetModules();
  vi.useRealTimers();
  restoreGlobals(beginning.globals);
  for (const name of Object.keys(process.env)) if (!(name in beginning.env)) delete process.env[name];
  Object.assign(process.env, beginning.env);
}

function restoreGlobals(before: Beginning["globals"]): void {
  for (const key of Reflect.ownKeys(globalThis)) {
    if (!(key in before) && !isVitests(key)) Reflect.deleteProperty(globalThis, key);
  }
  for (const key of Reflect.ownKeys(before)) {
    const was = before[key];
    const is = Object.getOwnPropertyDescriptor(globalThis, key);
    const same = is !== undefined && was?.value === is.value && was?.get === is.get;
    if (was !== undefined && !same && !isVitests(key)) Object.defineProperty(globalThis, key, was);
  }
}

/** What Vitest itself has given the file. */
function isVitests(key: PropertyKey): boolean {
  return key === "console" || /vitest|jest/i.test(String(key));
}
