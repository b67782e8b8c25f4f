import { errorText, PerdureError, type PerdureErrorCode } from "../../base/error.ts";
import type { Identity } from "../../base/identity.ts";
import type { AgentPath, AgentStep, ReadVerdict } from "../../port.ts";
import { agentId } from "../../wire/agent-path.ts";
import type { ObjectNamespace } from "./platform.ts";

/** What crosses between objects for a result: errors lose their class on the way, and what they carry. */
type Sent<T> = { readonly ok: T } | { readonly error: { readonly code?: string; readonly message: string } };

/** The head of a request, to ask whether it may pass: its body stays where it is. */
export interface RequestHead {
  readonly url: string;
  readonly method: string;
  readonly headers: readonly (readonly [string, string])[];
}

/** What an agent said of a request to its child. */
export interface SentVerdict extends Omit<ReadVerdict, "request"> {
  readonly request?: RequestHead;
}

/** What the objects of this host ask of each other. */
export interface AgentObject {
  fetch(request: Request, init?: RequestInit): Promise<Response>;
  perdureExists(): Promise<boolean>;
  perdureCall(method: string, args: readonly unknown[], props?: unknown): Promise<Sent<unknown>>;
  perdureAdmit(head: RequestHead, child: AgentStep, identity: Identity | undefined): Promise<Sent<SentVerdict>>;
  perdureChildMade(child: AgentStep): Promise<Sent<void>>;
  perdureChildGone(child: AgentStep): Promise<Sent<void>>;
  perdureAbort(reason: string): Promise<void>;
  perdureRemove(): Promise<Sent<void>>;
}

/** What a request or a socket brings along that its client cannot say: it travels beside the headers. */
export interface Passport {
  readonly rest: string;
  /** Where the client came to: its own request may have another address by now. */
  readonly uri: string;
  readonly identity?: Identity;
  readonly mayOnlyRead: boolean;
}

const PASSPORT = "perdure";

/** The settings of a platform's request that carry a passport. */
export function withPassport(passport: Passport): RequestInit {
  return { cf: { [PASSPORT]: JSON.stringify(passport) } } as RequestInit;
}

/** The passport of a request; undefined when it did not come through the host's own way in. */
export function passportOf(request: Request): Passport | undefined {
  const { cf } = request as Request & { readonly cf?: Readonly<Record<string, unknown>> };
  const found = cf?.[PASSPORT];
  return typeof found === "string" ? (JSON.parse(found) as Passport) : undefined;
}

/** Runs `work` for another object, or for the Worker. Never rejects. */
export async function sent<T>(work: () => Promise<T>): Promise<Sent<T>> {
  try {
    return { ok: await work() };
  } catch (thrown) {
    const message = errorText(thrown);
    return { error: PerdureError.is(thrown) ? { code: thrown.code, message: thrown.message } : { message } };
  }
}

/** @throws PerdureError with the code that it had there; what was no such error is a plain one */
export function received<T>(answer: Sent<T>): T {
  if ("ok" in answer) return answer.ok;
  const { code, message } = answer.error;
  throw code === undefined ? new Error(message) : new PerdureError(code as PerdureErrorCode, message);
}

/** The objects of all agents, by their addresses. */
export class ObjectLinks {
  readonly #namespace: () => ObjectNamespace<AgentObject>;

  constructor(namespace: () => ObjectNamespace<AgentObject>) {
    this.#namespace = namespace;
  }

  of(path: AgentPath): AgentObject {
    const namespace = this.#namespace();
    return namespace.get(namespace.idFromName(agentId(path)));
  }

  /** @throws PerdureError `bad_input` for what the platform cannot hand over, such as an instance of a class */
  async call(path: AgentPath, method: string, args: readonly unknown[], props?: unknown): Promise<unknown> {
    let answer: Promise<Sent<unknown>>;
    try {
      answer = this.of(path).perdureCall(method, args, props);
      return received(await answer);
    } catch (thrown) {
      if (!isUncloneable(thrown)) throw thrown;
      throw new PerdureError(
        "bad_input",
        `What is passed to ${method}() of ${agentId(path)}, or comes back, cannot go to another object: ${errorText(thrown)}. Pass plain data.`,
        { cause: thrown },
      );
    }
  }
}

function isUncloneable(thrown: unknown): boolean {
  return (
    thrown instanceof Error &&
    (thrown.name === "DataCloneError" || /could not be cloned|serializ/i.test(thrown.message))
  );
}
