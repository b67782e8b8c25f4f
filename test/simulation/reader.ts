// Somebody who asks for a turn over HTTP and reads it as server-sent events; comes back with the last number it has.
import type { UIMessage } from "ai";
import type { Machine } from "./machine.ts";
import type { World } from "./world.ts";

const AGAIN_MS = 700;
const OK = 200;
const NOTHING_LEFT = 204;
/** What was seen last is gone with the power. */
const LOST = 409;

export class Reader {
  readonly agent: string;
  readonly request: string;
  readonly #world: World;
  readonly #message: UIMessage;
  readonly #url: string;
  /** The host has taken the turn in. */
  accepted = false;
  /** It was told how the turn ended, or that there is nothing of it any more; or it was refused. */
  over = false;
  #next = 0;
  #epoch = 0;
  /** Which of its connections is the present one. */
  #attempt = 0;

  constructor(world: World, agent: string, request: string, message: UIMessage) {
    this.#world = world;
    this.agent = agent;
    this.request = request;
    this.#message = message;
    const [cls = "", name = ""] = agent.split("/");
    this.#url = `http://host.test/agents/${cls.toLowerCase()}/${name}/chat`;
    world.lines.add(this);
  }

  connect(): void {
    const { machine } = this.#world;
    if (this.over) return;
    if (machine === undefined) return this.#later();
    const attempt = ++this.#attempt;
    // What was only committed may have gone with the power, and its numbers are given anew.
    if (machine.epoch !== this.#epoch) this.#next = 0;
    this.#epoch = machine.epoch;
    this.#world.trace(`HTTP: ${this.request} of ${this.agent} is read from ${this.#next} on`);
    void this.#read(machine, () => attempt === this.#attempt && machine.alive).catch(() => {
      if (attempt === this.#attempt && machine.alive) this.#later();
    });
  }

  /** The host is gone, and its connection with it. */
  hostDied(): void {
    this.#attempt++;
    this.#later();
  }

  #later(): void {
    const attempt = this.#attempt;
    this.#world.time.after(1 + this.#world.chance.int(AGAIN_MS), () => {
      this.#world.lines.add(this);
      if (attempt === this.#attempt) this.connect();
    });
  }

  async #read(machine: Machine, isPresent: () => boolean): Promise<void> {
    const response = await machine.router.respond(this.accepted ? this.#follow() : this.#post());
    if (!isPresent()) return;
    const status = response?.status ?? 0;
    if (status === NOTHING_LEFT) return void (this.over = true);
    if (status === LOST) {
      this.#next = 0;
      return this.#later();
    }
    if (status !== OK || response?.body === undefined || response.body === null) {
      // A full disk passes; what was refused for good is not read.
      if (this.accepted || status >= 500) return this.#later();
      return void (this.over = true);
    }
    const { record } = this.#world;
    this.accepted = true;
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (!isPresent()) return;
      if (done) return this.over ? undefined : this.#later();
      text += decoder.decode(value, { stream: true });
      const events = text.split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) this.#take(event);
      if (this.over) record.accepted.set(`${this.agent} ${this.request}`, { agent: this.agent, request: this.request });
    }
  }

  #take(event: string): void {
    const { record } = this.#world;
    const [, id] = /^id: (\d+)$/m.exec(event) ?? [];
    const [, data = ""] = /^data: (.*)$/m.exec(event) ?? [];
    if (data === "[DONE]") return void (this.over = true);
    if (id === undefined) return;
    const seq = Number(id);
    const told = `the reader of ${this.request} of ${this.agent}`;
    if (seq !== this.#next) record.breaks(`${told} was given chunk ${seq} where ${this.#next} comes next`);
    this.#next = seq + 1;
    record.saw(this.agent, this.request, this.#epoch, seq, data);
  }

  #post(): Request {
    return new Request(this.#url, {
      method: "POST",
      headers: {
        ...{ "content-type": "application/json", accept: "text/event-stream" },
        "idempotency-key": this.request,
      },
      body: JSON.stringify({ message: this.#message }),
    });
  }

  #follow(): Request {
    return new Request(`${this.#url}/${this.request}/stream?after=${this.#next - 1}`);
  }
}
