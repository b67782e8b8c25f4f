import type { World } from "../message.ts";

/** What the lane gives the guest's side of the bridge. They never throw and return nothing. */
export interface HostSide {
  readonly call: (call: number, namespace: string, name: string, args: string) => void;
  readonly log: (level: string, text: string) => void;
  readonly setTimer: (id: number, ms: number, repeats: boolean) => void;
  readonly clearTimer: (id: number) => void;
}

/** What the lane calls in the guest. */
interface GuestSide {
  readonly answer: (call: number, ok: boolean, text: string | undefined) => void;
  readonly fire: (id: number) => void;
  /** The JSON of a value, or `undefined` for what has none. Throws what the value's own code throws. */
  readonly encode: (value: unknown) => string | undefined;
  /** Remembers what the source returned, and describes it. */
  readonly keep: (value: unknown) => string;
  /** Runs a function, and what it returns if that is a function too. */
  readonly begin: (run: () => unknown) => Promise<unknown>;
  readonly invoke: (path: string, args: string) => unknown;
  /** Name, message and stack of anything thrown, as JSON. */
  readonly explain: (thrown: unknown) => string;
}

/** The names in {@link GuestSide}, in the order of their tokens. */
export const guestSideNames = ["answer", "fire", "encode", "keep", "begin", "invoke", "explain"] as const;

/**
 * The guest's side of the bridge. It runs inside the guest before anything else, so it uses nothing from outside and captures all
 * it needs before guest code can replace it. It never uses iteration, spreading or methods of objects that the guest can reach:
 * those run what the guest put there.
 */
export function bootGuest(
  call: HostSide["call"],
  log: HostSide["log"],
  setTimer: HostSide["setTimer"],
  clearTimer: HostSide["clearTimer"],
  config: string,
): GuestSide {
  const { parse, stringify } = JSON;
  const { apply, ownKeys } = Reflect;
  const { create, defineProperty, freeze, hasOwn, getOwnPropertyDescriptor, getPrototypeOf } = Object;
  const { isArray } = Array;
  const text = String;
  const number = Number;
  const MakePromise = Promise;
  const MakeError = Error;
  const MakeTypeError = TypeError;
  const MakeProxy = Proxy;
  const MakeHeaders = Headers;
  const MakeEncoder = TextEncoder;
  const MakeBytes = Uint8Array;
  // As they are now: looked up by name, because they are given their object with each call.
  const method = (owner: object, name: string): ((...args: never[]) => unknown) =>
    (owner as Record<string, (...args: never[]) => unknown>)[name] as (...args: never[]) => unknown;
  const fromBase64 = method(MakeBytes, "fromBase64") as (text: string) => Uint8Array;
  const toBase64 = method(MakeBytes.prototype, "toBase64") as () => string;
  const bufferOf = (
    getOwnPropertyDescriptor(getPrototypeOf(MakeBytes.prototype) as object, "buffer") as
      | { get?: () => unknown }
      | undefined
  )?.get;
  const encodeText = method(TextEncoder.prototype, "encode") as (text: string) => Uint8Array;
  const decodeText = method(TextDecoder.prototype, "decode") as (bytes: Uint8Array) => string;
  const eachHeader = method(Headers.prototype, "forEach") as (visit: (value: string, name: string) => void) => void;
  const split = method(String.prototype, "split") as (by: string) => string[];
  const join = method(Array.prototype, "join") as (by: string) => string;
  const isError = (value: unknown): boolean => value instanceof MakeError;
  const encoder = new MakeEncoder();
  const decoder = new TextDecoder();
  const world = parse(config) as World & { readonly input: unknown };

  const publish = (name: string, value: unknown): void => {
    defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
  };

  // Calls of the host.
  let nextCall = 0;
  const open = create(null) as Record<number, { resolve: (value: unknown) => void; reject: (reason: unknown) => void }>;
  const callHost = (namespace: string, name: string, args: unknown): Promise<unknown> =>
    new MakePromise((resolve, reject) => {
      const json = args === undefined ? "null" : stringify(args);
      if (typeof json !== "string") throw new MakeTypeError("The argument of a tool must be JSON.");
      const id = nextCall;
      nextCall += 1;
      open[id] = { resolve, reject };
      call(id, namespace, name, json);
    });
  const answer = (id: number, ok: boolean, json: string | undefined): void => {
    const waiting = open[id];
    if (waiting === undefined) return;
    delete open[id];
    if (!ok) waiting.reject(new MakeError(json));
    else waiting.resolve(json === undefined ? undefined : parse(json));
  };

  const namespaceOf = (namespace: string, names: readonly string[]): object => {
    const functions = create(null) as Record<string, unknown>;
    for (let index = 0; index < names.length; index += 1) {
      const name = names[index] as string;
      functions[name] = (args: unknown) => callHost(namespace, name, args);
    }
    const known = apply(join, names, [", "]);
    return new MakeProxy(freeze(functions), {
      get: (target, key) => {
        if (typeof key === "symbol" || key === "then" || key === "toJSON") return undefined;
        if (hasOwn(target, key)) return target[key];
        return () => {
          throw new MakeTypeError(`There is no ${namespace}.${key}. There are: ${known === "" ? "none" : known}.`);
        };
      },
    });
  };
  const namespaces = ownKeys(world.tools) as string[];
  for (let index = 0; index < namespaces.length; index += 1) {
    const namespace = namespaces[index] as string;
    publish(namespace, namespaceOf(namespace, world.tools[namespace] ?? []));
  }

  // Files.
  const bytesOf = (data: unknown): string => {
    if (data instanceof MakeBytes) return apply(toBase64, data, []);
    return apply(toBase64, apply(encodeText, encoder, [text(data)]), []);
  };
  const file = (name: string, args: unknown): Promise<unknown> => callHost("$files", name, args);
  if (world.files !== null) {
    const files = create(null) as Record<string, unknown>;
    files.readFile = (path: unknown) => file("readFile", { path });
    files.readFileBytes = async (path: unknown) => {
      const base64 = await file("readFileBytes", { path });
      return apply(fromBase64, MakeBytes, [base64 as string]);
    };
    files.readDir = (path: unknown = "/") => file("readDir", { path });
    files.stat = (path: unknown) => file("stat", { path });
    files.exists = async (path: unknown) => (await file("stat", { path })) !== null;
    if (world.files === "read-write") {
      files.writeFile = (path: unknown, data: unknown) => file("writeFile", { path, bytes: bytesOf(data) });
      files.appendFile = (path: unknown, data: unknown) => file("appendFile", { path, bytes: bytesOf(data) });
      files.mkdir = (path: unknown, options: unknown) => file("mkdir", { path, options });
      files.rm = (path: unknown, options: unknown) => file("rm", { path, options });
      files.rename = (from: unknown, to: unknown) => file("rename", { from, to });
    }
    publish("files", freeze(files));
  }

  // The network.
  if (world.network) {
    publish("fetch", async (url: unknown, init?: Record<string, unknown>) => {
      const headers = create(null) as Record<string, string>;
      if (init?.headers !== undefined) {
        apply(eachHeader, new MakeHeaders(init.headers as HeadersInit), [
          (value: string, name: string) => {
            headers[name] = value;
          },
        ]);
      }
      const body = init?.body === undefined || init.body === null ? undefined : bytesOf(init.body);
      const got = (await callHost("$net", "fetch", { url: text(url), method: init?.method, headers, body })) as {
        status: number;
        url: string;
        headers: Record<string, string>;
        body: string;
      };
      const bytes = apply(fromBase64, MakeBytes, [got.body]);
      const bodyText = (): string => apply(decodeText, decoder, [bytes]);
      return {
        ok: got.status >= 200 && got.status < 300,
        status: got.status,
        statusText: "",
        url: got.url,
        headers: new MakeHeaders(got.headers),
        text: async () => bodyText(),
        json: async () => parse(bodyText()) as unknown,
        bytes: async () => bytes,
        arrayBuffer: async () => (bufferOf === undefined ? undefined : apply(bufferOf, bytes, [])),
      };
    });
  }
  if (world.env !== null) publish("env", freeze(world.env));
  publish("input", world.input);

  // Timers.
  let nextTimer = 1;
  const timers = create(null) as Record<number, { run: () => unknown; repeats: boolean }>;
  const later = (run: unknown, ms: unknown, args: unknown[], repeats: boolean): number => {
    if (typeof run !== "function") throw new MakeTypeError("A timer needs a function.");
    const id = nextTimer;
    nextTimer += 1;
    timers[id] = { run: () => apply(run as () => unknown, undefined, args), repeats };
    setTimer(id, number(ms) || 0, repeats);
    return id;
  };
  const cancel = (id: unknown): void => {
    if (typeof id !== "number" || timers[id] === undefined) return;
    delete timers[id];
    clearTimer(id);
  };
  publish("setTimeout", (run: unknown, ms?: unknown, ...args: unknown[]) => later(run, ms, args, false));
  publish("setInterval", (run: unknown, ms?: unknown, ...args: unknown[]) => later(run, ms, args, true));
  publish("clearTimeout", cancel);
  publish("clearInterval", cancel);

  // What is printed, and what is thrown.
  const read = (value: unknown, key: string): string => {
    try {
      const found = (value as Record<string, unknown>)[key];
      return typeof found === "string" ? found : "";
    } catch {
      return "";
    }
  };
  const show = (value: unknown): string => {
    try {
      if (typeof value === "string") return value;
      if (typeof value === "function") return `[function ${read(value, "name")}]`;
      if (typeof value !== "object" || value === null) return text(value);
      if (isError(value)) return `${read(value, "name")}: ${read(value, "message")}`;
      return stringify(value) ?? "undefined";
    } catch {
      return isArray(value) ? "[array]" : "[object]";
    }
  };
  const printer =
    (level: string) =>
    (...values: unknown[]): void => {
      let line = "";
      for (let index = 0; index < values.length; index += 1) line += (index === 0 ? "" : " ") + show(values[index]);
      log(level, line);
    };
  const console = create(null) as Record<string, unknown>;
  const levels = ["debug", "log", "info", "warn", "error"];
  for (let index = 0; index < levels.length; index += 1)
    console[levels[index] as string] = printer(levels[index] as string);
  console.trace = printer("debug");
  console.dir = printer("log");
  console.table = printer("log");
  publish("console", freeze(console));

  const fire = (id: number): void => {
    const timer = timers[id];
    if (timer === undefined) return;
    if (!timer.repeats) delete timers[id];
    try {
      timer.run();
    } catch (thrown) {
      log("error", `A timer failed: ${show(thrown)}`);
    }
  };

  // What stays after the source has run.
  let kept: unknown;
  const describe = (_key: string, value: unknown): unknown => (typeof value === "function" ? "function" : value);
  const invoke = (path: string, args: string): unknown => {
    const names = apply(split, path, ["."]);
    let owner: unknown = undefined;
    let found: unknown = kept;
    for (let index = 0; index < names.length; index += 1) {
      const name = names[index] as string;
      owner = found;
      if ((typeof owner !== "object" && typeof owner !== "function") || owner === null || !hasOwn(owner, name)) {
        throw new MakeTypeError(`There is no function ${path}.`);
      }
      found = (owner as Record<string, unknown>)[name];
    }
    if (typeof found !== "function") throw new MakeTypeError(`${path} is not a function.`);
    return apply(found as () => unknown, owner, parse(args) as unknown[]);
  };

  return {
    answer,
    fire,
    encode: (value) => stringify(value),
    keep: (value) => {
      if (typeof value !== "object" || value === null) throw new MakeTypeError("The source must return an object.");
      kept = value;
      return stringify(value, describe);
    },
    begin: async (run) => {
      const value = await run();
      return typeof value === "function" ? (value as () => unknown)() : value;
    },
    invoke,
    explain: (thrown) => {
      if (typeof thrown === "object" && thrown !== null) {
        const name = read(thrown, "name");
        const message = read(thrown, "message");
        if (name !== "" || message !== "") return stringify({ name, message, stack: read(thrown, "stack") });
      }
      return stringify({ name: "Error", message: show(thrown), stack: "" });
    },
  };
}
