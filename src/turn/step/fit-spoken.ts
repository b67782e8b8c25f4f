import type { MessageBuilder } from "../../message/builder.ts";
import { mergeJson } from "../../base/json.ts";
import type { Part, ProviderMetadata, ReasoningUIPart, TextUIPart, UIMessageChunk } from "../../message/types.ts";

type Kind = "text" | "reasoning";
type Spoken = TextUIPart | ReasoningUIPart;
type Chunk<T extends "start" | "delta" | "end"> = Extract<UIMessageChunk, { type: `${Kind}-${T}` }>;

interface Fit {
  /** What was there before. */
  readonly base: string;
  /** The id under which it is still open; undefined when it was closed. */
  readonly openId: string | undefined;
  /** What the new attempt has said of it and did not go out: the beginning of `base`. */
  said: string;
  /** What a provider had attached to that. */
  metadata: ProviderMetadata | undefined;
  /** The id under which new words go out, once they do. */
  outId: string | undefined;
}

/** Fits the texts, or the reasoning, of one more attempt behind those of the step's earlier ones. */
export class SpokenFit {
  readonly #kind: Kind;
  readonly #open: ReadonlyMap<string, Spoken>;
  readonly #unused = new Set<Spoken>();
  readonly #fits = new Map<string, Fit>();

  /** @param parts what the earlier attempts have left of the step. */
  constructor(builder: MessageBuilder, kind: Kind, parts: readonly Part[]) {
    this.#kind = kind;
    this.#open = kind === "text" ? builder.openText : builder.openReasoning;
    for (const part of parts)
      if ((part.type === "text" || part.type === "reasoning") && part.type === kind) this.#unused.add(part);
  }

  start(chunk: Chunk<"start">): UIMessageChunk[] {
    const [part] = this.#unused;
    const fit: Fit = {
      base: part?.text ?? "",
      openId: part === undefined ? undefined : this.#openId(part),
      said: "",
      metadata: chunk.providerMetadata,
      outId: undefined,
    };
    this.#fits.set(chunk.id, fit);
    if (part === undefined) return [this.#begin(chunk.id, fit)];
    this.#unused.delete(part);
    return [];
  }

  delta(chunk: Chunk<"delta">): UIMessageChunk[] {
    const fit = this.#fits.get(chunk.id);
    if (fit === undefined) return [chunk];
    if (fit.outId !== undefined) return [{ ...chunk, id: fit.outId }];
    const repeats = fit.base.startsWith(chunk.delta, fit.said.length);
    fit.said += chunk.delta;
    fit.metadata = merge(fit.metadata, chunk.providerMetadata);
    return repeats ? [] : this.#goOn(chunk.id, fit);
  }

  end(chunk: Chunk<"end">): UIMessageChunk[] {
    const fit = this.#fits.get(chunk.id);
    if (fit === undefined) return [chunk];
    this.#fits.delete(chunk.id);
    // It ended where it could still have been a repetition, but it did not repeat all: so it went on, with few words.
    const short = fit.outId === undefined && fit.said !== "" && fit.said.length < fit.base.length;
    const said = short ? this.#goOn(chunk.id, fit) : [];
    const id = fit.outId ?? fit.openId;
    if (id === undefined) return said;
    return [...said, { ...chunk, id, ...attached(merge(fit.metadata, chunk.providerMetadata)) }];
  }

  /** The attempt is over: ends what is open. */
  finish(): UIMessageChunk[] {
    const chunks = [...this.#fits.keys()].flatMap((id) => this.end({ type: `${this.#kind}-end`, id }));
    for (const part of this.#unused) {
      const id = this.#openId(part);
      if (id !== undefined) chunks.push({ type: `${this.#kind}-end`, id });
    }
    this.#unused.clear();
    return chunks;
  }

  /** It has said the same and more, or something else. */
  #goOn(id: string, fit: Fit): UIMessageChunk[] {
    const { base, said } = fit;
    const more = said.startsWith(base);
    if (fit.openId !== undefined && more) return [this.#append(fit, fit.openId, said.slice(base.length))];
    if (this.#kind === "reasoning") {
      // Providers sign what was thought as a whole and refuse it when it was changed: it stays in a part of its own.
      const ended: UIMessageChunk[] = fit.openId === undefined ? [] : [{ type: "reasoning-end", id: fit.openId }];
      return [...ended, this.#begin(id, fit), this.#append(fit, fit.outId ?? id, said)];
    }
    const openId = fit.openId ?? (more ? undefined : this.#lastOpen());
    if (openId !== undefined) return [this.#append(fit, openId, said)];
    return [this.#begin(id, fit), this.#append(fit, fit.outId ?? id, more ? said.slice(base.length) : said)];
  }

  /** A part of its own. */
  #begin(id: string, fit: Fit): UIMessageChunk {
    let outId = id;
    for (let n = 2; this.#open.has(outId) && outId !== fit.openId; n++) outId = `${id}-${n}`;
    fit.outId = outId;
    return { type: `${this.#kind}-start`, id: outId, ...takeMetadata(fit) };
  }

  #append(fit: Fit, id: string, delta: string): UIMessageChunk {
    fit.outId = id;
    return { type: `${this.#kind}-delta`, id, delta, ...takeMetadata(fit) };
  }

  /** The last text that was being said: a model that goes on goes on from there. */
  #lastOpen(): string | undefined {
    const part = [...this.#unused].findLast((one) => this.#openId(one) !== undefined);
    if (part === undefined) return undefined;
    this.#unused.delete(part);
    return this.#openId(part);
  }

  #openId(part: Spoken): string | undefined {
    for (const [id, one] of this.#open) if (one === part) return id;
    return undefined;
  }
}

function takeMetadata(fit: Fit): { providerMetadata?: ProviderMetadata } {
  const { metadata } = fit;
  fit.metadata = undefined;
  return attached(metadata);
}

function attached(metadata: ProviderMetadata | undefined): { providerMetadata?: ProviderMetadata } {
  return metadata === undefined ? {} : { providerMetadata: metadata };
}

function merge(base: ProviderMetadata | undefined, over: ProviderMetadata | undefined): ProviderMetadata | undefined {
  return mergeJson(base, over) as ProviderMetadata | undefined;
}
