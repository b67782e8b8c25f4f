// A server on loopback that takes calls of an adapter for those of its network.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

export type Json = Record<string, unknown>;

/** A message as people see it. */
export interface FakeMessage {
  readonly id: string;
  /** Where it stands. */
  readonly at: string;
  text: string;
  readonly versions: string[];
  /** It is a file. */
  readonly file?: FakeFile;
  buttons: { readonly id: string; readonly label: string; readonly value?: string; readonly disabled?: boolean }[];
}

export interface FakeFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

export interface FakeAnswer {
  readonly status?: number;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

/** What goes wrong with the next message that is to be made. `lost-answer`: it is made, and nobody hears of it. */
export type FakeFault = { readonly kind: "lost-answer" } | ({ readonly kind: "answer" } & FakeAnswer);

export interface FakeCall {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Files of a form among them. */
  readonly body: Json;
}

export class FakeApi {
  readonly messages: FakeMessage[] = [];
  readonly calls: FakeCall[] = [];
  readonly #faults: FakeFault[] = [];
  readonly #server;
  #next = 1000;

  /** @param act answers a call; `made` in its answer says that a message was made by it */
  constructor(act: (call: FakeCall, api: FakeApi) => FakeAnswer & { readonly made?: true }) {
    this.#server = createServer((request, response) => {
      void bodyOf(request).then((body) => {
        const [path = "", query] = (request.url ?? "").split("?");
        const call = { method: request.method ?? "", path, query: new URLSearchParams(query), body };
        this.calls.push(call);
        const before = this.messages.length;
        const fault = isCreate(call) ? this.#faults.shift() : undefined;
        const answer = fault?.kind === "answer" ? fault : act(call, this);
        if (fault?.kind === "lost-answer" && this.messages.length > before) return void response.destroy();
        response.writeHead(answer.status ?? 200, { "content-type": "application/json", ...answer.headers });
        response.end(JSON.stringify(answer.body ?? {}));
      });
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async listen(port = 0): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    return this;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  plan(fault: FakeFault): void {
    this.#faults.push(fault);
  }

  creates(): number {
    return this.calls.filter(isCreate).length;
  }

  id(): string {
    return String(this.#next++);
  }

  post(id: string, at: string, text: string, buttons: FakeMessage["buttons"] = [], file?: FakeFile): FakeMessage {
    const message = { id, at, text, versions: [text], buttons, ...(file !== undefined && { file }) };
    this.messages.push(message);
    return message;
  }

  change(message: FakeMessage, text: string, buttons: FakeMessage["buttons"] = message.buttons): void {
    message.text = text;
    message.versions.push(text);
    message.buttons = buttons;
  }

  find(id: unknown): FakeMessage | undefined {
    return this.messages.find((one) => one.id === String(id));
  }
}

const isCreate = ({ method, path }: FakeCall) =>
  method === "POST" &&
  /chat\.postMessage$|files\.completeUploadExternal$|\/channels\/\d+\/messages$|\/issues\/\d+\/comments$/.test(path);

async function bodyOf(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const whole = Buffer.concat(chunks);
  const type = request.headers["content-type"] ?? "";
  if (type.startsWith("multipart/form-data"))
    return formOf(await new Response(whole, { headers: { "content-type": type } }).formData());
  const text = whole.toString();
  if (text === "") return {};
  if (request.headers["content-type"]?.startsWith("application/json") === true) return JSON.parse(text) as Json;
  return Object.fromEntries(new URLSearchParams(text));
}

async function formOf(form: FormData): Promise<Json> {
  const body: Json = {};
  for (const [key, value] of form)
    body[key] =
      typeof value === "string" ? value : { name: value.name, mediaType: value.type, bytes: await value.bytes() };
  return body;
}
