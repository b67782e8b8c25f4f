import { PerdureError } from "../base/error.ts";
import { namesOf, refuseUnknown } from "../base/known-options.ts";

/** What clients may know of a callable method. */
export interface CallableOptions {
  /** The method takes a {@link StreamingResponse} first and sends chunks through it. */
  readonly streaming?: boolean;
  readonly description?: string;
}

const optionNames = namesOf<CallableOptions>()("streaming description");

type Method = (...args: never[]) => unknown;
type MethodName<T> = { [K in keyof T & string]: T[K] extends Method ? K : never }[keyof T & string];
interface AnyClass {
  readonly prototype: object;
  readonly name: string;
}
/** A standard method decorator. */
type MethodDecorator = <M extends Method>(method: M, context: ClassMethodDecoratorContext) => void;

/** By function, so that a subclass inherits what it does not override and must say so again for what it does. */
const callables = new WeakMap<object, CallableOptions>();

/**
 * Lets clients call a method; nothing else of an agent can be called from outside. In a static block, `static { callable(this,
 * "add"); }`, or as a standard decorator, `@callable() add(…) {…}`.
 * @throws PerdureError `bad_config` when the class has no such method, or the decorator was compiled for another standard.
 */
export function callable(options?: CallableOptions): MethodDecorator;
export function callable<C extends AnyClass>(
  cls: C,
  method: MethodName<C["prototype"]>,
  options?: CallableOptions,
): void;
export function callable<C extends AnyClass>(
  clsOrOptions?: C | CallableOptions,
  method?: string,
  options: CallableOptions = {},
): MethodDecorator | void {
  if (typeof clsOrOptions !== "function") {
    const decorated = (clsOrOptions ?? {}) as CallableOptions;
    refuseUnknown(decorated, optionNames, "callable()");
    return (target, context) => decorate(target, context, decorated);
  }
  if (typeof method !== "string") {
    throw new PerdureError("bad_config", `Write @callable() with parentheses, or ${STATIC_BLOCK} in the class.`);
  }
  const target: unknown = Reflect.get((clsOrOptions as AnyClass).prototype, method);
  if (typeof target !== "function") {
    const { name } = clsOrOptions as AnyClass;
    throw new PerdureError("bad_config", `${name} has no method "${method}" to make callable.`);
  }
  refuseUnknown(options, optionNames, "callable()");
  callables.set(target, options);
}

const STATIC_BLOCK = 'static { callable(this, "name"); }';

function decorate(target: unknown, context: unknown, options: CallableOptions): void {
  const { kind, name, static: isStatic, private: isPrivate } = Object(context) as Partial<ClassMethodDecoratorContext>;
  if (kind === undefined) {
    throw new PerdureError(
      "bad_config",
      `@callable() is a standard decorator, and this code was compiled for legacy ones. Take experimentalDecorators out of the compiler's options, or write ${STATIC_BLOCK} in the class.`,
    );
  }
  if (kind !== "method" || isStatic === true || isPrivate === true || typeof name === "symbol") {
    const what = `${isStatic === true ? "static " : ""}${kind} ${String(name)}`;
    throw new PerdureError("bad_config", `@callable() is for methods that clients call, not for the ${what}.`);
  }
  callables.set(target as object, options);
}

/** A method that clients may call. */
interface CallableMethod extends CallableOptions {
  readonly run: (...args: unknown[]) => unknown;
}

/** @throws PerdureError `not_found`, `not_callable`; the messages are what clients expect. */
export function findCallable(agent: object, name: string): CallableMethod {
  const method = readWithoutGetters(agent, name);
  if (typeof method !== "function") throw new PerdureError("not_found", `Method ${name} does not exist`);
  const options = callables.get(method);
  if (options === undefined) throw new PerdureError("not_callable", `Method ${name} is not callable`);
  return { ...options, run: (...args) => Reflect.apply(method, agent, args) as unknown };
}

/** All callable methods of an agent, its parents' included. */
export function listCallables(agent: object): Map<string, CallableOptions> {
  const found = new Map<string, CallableOptions>();
  const seen = new Set<string>();
  for (let proto: unknown = Object.getPrototypeOf(agent); typeof proto === "object" && proto !== null;) {
    for (const name of Object.getOwnPropertyNames(proto)) {
      if (seen.has(name)) continue;
      seen.add(name);
      const method: unknown = Object.getOwnPropertyDescriptor(proto, name)?.value;
      const options = typeof method === "function" ? callables.get(method) : undefined;
      if (options !== undefined) found.set(name, options);
    }
    proto = Object.getPrototypeOf(proto);
  }
  return found;
}

/** A client may name anything: looking must not run code of the agent. */
function readWithoutGetters(agent: object, name: string): unknown {
  for (let at: unknown = agent; typeof at === "object" && at !== null; at = Object.getPrototypeOf(at)) {
    const property = Object.getOwnPropertyDescriptor(at, name);
    if (property !== undefined) return property.value;
  }
  return undefined;
}
