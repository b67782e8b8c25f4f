// A socket without a network: frames take their time, arrive together, twice or never.
import { HostSocket } from "../../src/host/host-socket.ts";
import type { Resident } from "../../src/host/resident.ts";
import type { Machine } from "./machine.ts";
import type { World } from "./world.ts";

const BUFFER = 1e9;
const LOST = 1006;

/** What a client hears of its socket. */
export interface LineEnd {
  /** It may send. What it sent before that is lost. */
  opened(): void;
  received(text: string): void;
  /** The host was handed this frame. */
  delivered(text: string): void;
  closed(code: number, reason: string): void;
}

type Item = { readonly text: string } | { readonly code: number; readonly reason: string };

/** One direction: in order, and what has gathered arrives together. */
class Pipe {
  readonly #world: World;
  readonly #arrive: (item: Item) => void;
  #queue: Item[] = [];
  #flows = false;
  #cut = false;

  constructor(world: World, arrive: (item: Item) => void) {
    this.#world = world;
    this.#arrive = arrive;
  }

  push(item: Item): void {
    if (this.#cut) return;
    this.#queue.push(item);
    if (this.#flows) return;
    this.#flows = true;
    this.#world.time.after(this.#world.faults.latency(), () => this.#flow());
  }

  /** What is still on its way is lost. */
  cut(): void {
    this.#cut = true;
    this.#queue = [];
  }

  #flow(): void {
    this.#flows = false;
    const arrived = this.#queue;
    this.#queue = [];
    for (const item of arrived) if (!this.#cut) this.#arrive(item);
  }
}

export class Line {
  readonly #world: World;
  readonly #machine: Machine;
  readonly #end: LineEnd;
  readonly #up: Pipe;
  readonly #down: Pipe;
  #socket: HostSocket | undefined;
  #cell: Resident | undefined;
  #over = false;

  constructor(world: World, machine: Machine, url: string, id: string, end: LineEnd) {
    this.#world = world;
    this.#machine = machine;
    this.#end = end;
    this.#up = new Pipe(world, (item) => {
      if (!("text" in item) || this.#socket === undefined || !machine.alive) return;
      end.delivered(item.text);
      this.#cell?.message(this.#socket, item.text);
    });
    this.#down = new Pipe(world, (item) => {
      if ("text" in item) return this.#end.received(item.text);
      this.#over = true;
      this.#serverHears(item.code, item.reason, true);
      this.#end.closed(item.code, item.reason);
    });
    world.time.after(world.faults.latency(), () => void this.#connect(url, id));
  }

  get open(): boolean {
    return this.#socket !== undefined && !this.#over;
  }

  send(text: string): void {
    if (!this.open) return;
    this.#up.push({ text });
    if (this.#world.faults.twice()) this.#up.push({ text });
  }

  /** The connection breaks: the client knows, the host hears of it later. */
  cut(): void {
    if (this.#over) return;
    this.#over = true;
    this.#up.cut();
    this.#down.cut();
    this.#world.time.after(this.#world.faults.latency(), () => this.#serverHears(LOST, "", false));
  }

  /** The host is gone. What it had sent may still arrive. */
  hostDied(): void {
    if (this.#over) return;
    if (this.#world.faults.lostInFlight()) this.#down.cut();
    this.#world.time.after(this.#world.faults.latency(), () => {
      if (this.#over) return;
      this.#over = true;
      this.#down.cut();
      this.#end.closed(LOST, "");
    });
  }

  async #connect(url: string, id: string): Promise<void> {
    const refused = () => {
      this.#over = true;
      this.#end.closed(LOST, "refused");
    };
    const machine = this.#machine;
    if (this.#over) return;
    if (!machine.alive) return refused();
    const destination = await machine.router.connect(new Request(url));
    if (this.#over) return;
    if (!machine.alive || machine.runtime.stopping || destination.kind !== "agent") return refused();
    const uri = url;
    const raw = {
      buffered: 0,
      send: (data: string | Uint8Array) => this.#sent(data),
      sendAll: (frames: readonly string[]) => frames.forEach((frame) => this.#sent(frame)),
      close: (code: number, reason: string) => {
        if (machine.alive) this.#down.push({ code, reason });
      },
      terminate: () => this.cut(),
    };
    this.#socket = new HostSocket({ id, uri }, raw, BUFFER);
    this.#cell = machine.runtime.resident(destination.path);
    this.#cell.connect(this.#socket, destination.request);
    this.#end.opened();
  }

  /** What the dead say is heard by nobody. */
  #sent(data: string | Uint8Array): void {
    if (this.#machine.alive && typeof data === "string") this.#down.push({ text: data });
  }

  #serverHears(code: number, reason: string, wasClean: boolean): void {
    if (this.#machine.alive && this.#socket !== undefined && !this.#machine.runtime.stopping)
      this.#cell?.disconnected(this.#socket, code, reason, wasClean);
  }
}
