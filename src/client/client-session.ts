import { isUnknownSession } from "../wire/close-code.ts";
import { BranchMemory, type BranchStorage } from "./branch-memory.ts";
import type { ChatConnection } from "./chat-frames.ts";
import type { Attached } from "./session-requests.ts";

const places = new WeakMap<ChatConnection, ClientSession>();

/** Where a connection is among the sessions of its agent. One for all who use the connection. */
export function placeOf(connection: ChatConnection): ClientSession {
  let place = places.get(connection);
  if (place === undefined) places.set(connection, (place = new ClientSession(connection)));
  return place;
}

/** Where a connection is among the sessions of its agent, and what brings it back there. */
export class ClientSession {
  readonly #connection: ChatConnection;
  #memory: BranchMemory | undefined;
  #home: string | undefined;
  /** This client's own place in the session: a branch that only it shows. */
  #view: string | undefined;
  #moving: Promise<void> | undefined;

  constructor(connection: ChatConnection) {
    this.#connection = connection;
    this.#home = connection.session;
    connection.addEventListener("close", (event) => this.#lost(event));
  }

  /** The session was asked for by its id. Otherwise it is whichever is the agent's current one. */
  get isNamed(): boolean {
    return this.#home !== undefined;
  }

  /** Until then nothing may be sent: it would be said somewhere else. Never rejects. */
  get moving(): Promise<void> | undefined {
    return this.#moving;
  }

  /** Begins in a session, on the branch shown there last. Returns the session to ask for, if the connection has another. */
  begin(session: string | undefined, storage: BranchStorage | undefined): string | undefined {
    this.#home = session ?? this.#home;
    this.#memory = new BranchMemory(storage, () => this.#connection.getHttpUrl?.() ?? "");
    this.#view = this.#memory.read(this.#home);
    const first = this.#view ?? this.#home;
    if (first === undefined || this.#connection.useSession?.(first) === false) return undefined;
    return first;
  }

  /** The agent was asked to put it elsewhere. @param stays in the same session, whatever the branch. */
  async move(asked: Promise<Attached>, stays: boolean): Promise<Attached> {
    const moving = asked.then(
      ({ named, viewOf }) => {
        this.#connection.useSession?.(named ?? undefined);
        if (!stays) this.#home = named ?? undefined;
        this.#view = viewOf === null ? undefined : (named ?? undefined);
        this.#memory?.write(this.#home, this.#view);
      },
      () => {},
    );
    this.#moving = moving;
    void moving.then(() => {
      if (this.#moving === moving) this.#moving = undefined;
    });
    const attached = await asked;
    await moving;
    return attached;
  }

  /** Its session was deleted here: it is in the current one now. */
  left(): void {
    this.#home = undefined;
    this.#view = undefined;
    this.#memory?.write(undefined, undefined);
    this.#connection.useSession?.(undefined);
  }

  /** The agent does not keep a client's own place for ever. Then it is in the session as all are. */
  #lost(event: Event): void {
    if (this.#view === undefined || !isUnknownSession(event)) return;
    this.#view = undefined;
    this.#memory?.write(this.#home, undefined);
    this.#connection.useSession?.(this.#home);
    this.#connection.open?.();
  }
}
