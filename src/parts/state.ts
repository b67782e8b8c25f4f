import { errorText, PerdureError } from "../base/error.ts";
import type { AgentHost } from "../port.ts";
import { keepAside, tellDamage } from "../store/damaged.ts";
import { readState, writeState } from "../store/state.ts";
import { encodeFrame, encodeStateFrame } from "../wire/encode.ts";
import { lostInJson, writeJson } from "../wire/json.ts";
import type { Connection } from "../door/connection.ts";

/** Who changes the state: server code, or the client of a connection. */
export type StateSource = Connection | "server";

/** The hooks of the agent that owns the state. */
export interface StateOwner<State> {
  initialState(): State | undefined;
  /** Throws to refuse. Nothing was changed then. */
  validate(next: State, source: StateSource): void;
  /** After the change is stored and sent. */
  stateChanged(state: State, source: StateSource): void;
  /** Connections that get state frames. */
  readers(): Iterable<Connection>;
}

/** The agent's one state value, as JSON in one row. A change is validated, stored, sent, then reported; or nothing happens. */
export class StoredState<State> {
  readonly #host: AgentHost;
  readonly #owner: StateOwner<State>;
  #loaded = false;
  #value: State | undefined;
  /** What is stored cannot be read. */
  #isDamaged = false;

  constructor(host: AgentHost, owner: StateOwner<State>) {
    this.#host = host;
    this.#owner = owner;
  }

  /** The stored value, else the initial one, else undefined. */
  get value(): State | undefined {
    if (!this.#loaded) {
      this.#value = this.#load();
      this.#loaded = true;
    }
    return this.#value;
  }

  /** The frame for a new connection, or undefined when there is no state. */
  frame(): string | undefined {
    const { value } = this;
    return value === undefined ? undefined : encodeStateFrame(writeJson(value, "The state"));
  }

  /** @throws PerdureError `read_only`, `bad_input` when JSON cannot hold the value; what `validateStateChange` throws */
  set(next: State, source: StateSource): void {
    if (next === undefined)
      throw new PerdureError("bad_input", "The state cannot be undefined. Use null for an empty one.");
    // What a client sent was JSON.
    const lost = source === "server" ? lostInJson(next) : undefined;
    if (lost !== undefined)
      throw new PerdureError("bad_input", `The state is JSON, which cannot hold ${lost}. Nothing was changed.`);
    const json = writeJson(next, "The state");
    this.#owner.validate(next, source);
    this.#host.tx(() => {
      this.#keepDamaged();
      writeState(this.#host, json);
      const frame = encodeStateFrame(json);
      for (const reader of this.#owner.readers()) if (reader !== source) reader.send(frame);
    });
    this.#value = next;
    this.#loaded = true;
    this.#host.afterTx((committed) => {
      if (!committed) {
        this.#loaded = false;
        return;
      }
      this.#host.emit("state:changed", { source: source === "server" ? "server" : source.id });
      this.#owner.stateChanged(next, source);
    });
  }

  /** A client's wish. A refusal is told to that client alone, with the state as it is, so that it can step back. */
  setFromClient(next: unknown, source: Connection, allowed: boolean): void {
    try {
      if (!allowed) throw new PerdureError("read_only", "Clients may not set the state of this agent");
      this.set(next as State, source);
    } catch (thrown) {
      this.refuse(source, thrown);
    }
  }

  /** Tells a client that its change was not taken, and what the state is. Why is only told when it is about the client. */
  refuse(source: Connection, thrown: unknown): void {
    this.#host.emit("state:refused", { source: source.id, reason: errorText(thrown) });
    const isTold = PerdureError.is(thrown, "read_only") || PerdureError.is(thrown, "not_allowed");
    this.tellRefused(source, isTold ? thrown.message : "State update rejected");
  }

  /** The same for what was not understood. */
  tellRefused(source: Connection, error: string): void {
    source.send(encodeFrame({ type: "cf_agent_state_error", error }));
    const frame = source.isQuiet ? undefined : this.frame();
    if (frame !== undefined) source.send(frame);
  }

  #load(): State | undefined {
    const json = readState(this.#host);
    if (json === undefined) return this.#owner.initialState();
    this.#isDamaged = false;
    try {
      return JSON.parse(json) as State;
    } catch (thrown) {
      this.#isDamaged = true;
      const error = `The stored state is not JSON: ${errorText(thrown)}`;
      this.#host.emit("agent:failed", { stage: "state", error });
      tellDamage(this.#host, "the state", thrown);
      return this.#owner.initialState();
    }
  }

  /** What cannot be read is not lost to what is written next: whoever knows how may still mend it. */
  #keepDamaged(): void {
    // Whoever sets a state without having read it must hear of this, too.
    if (!this.#loaded) this.#load();
    if (!this.#isDamaged) return;
    const key = keepAside(this.#host, "perdure_state", this.#host.clock.now());
    this.#host.afterTx((committed) => {
      if (!committed) return;
      this.#isDamaged = false;
      this.#host.emit("row:set_aside", { what: "the state", key });
    });
  }
}
