import { takeChunk } from "../../src/message/admit.ts";
import { type MessageBuilder, newBuilder, toMessage } from "../../src/message/builder.ts";
import { applyChunk } from "../../src/message/fold.ts";
import { sameJson } from "../../src/base/json.ts";
import type { Part, UIMessageChunk } from "../../src/message/types.ts";
import { StepFit } from "../../src/turn/step/fit.ts";

/** The parts of the step, and what went out. Begins with what an attempt has left that was cut. */
export class Step {
  readonly builder: MessageBuilder = newBuilder("m");
  readonly sent: UIMessageChunk[] = [];

  constructor(...left: UIMessageChunk[]) {
    applyChunk(this.builder, { type: "start-step" });
    for (const chunk of left) this.put(chunk);
  }

  /** @throws when the chunk is one that has to be put right on the way to clients: none that goes out may be. */
  put(chunk: UIMessageChunk): void {
    const admitted = takeChunk(this.builder, chunk);
    if (!sameJson(admitted, [chunk]))
      throw new Error(`${JSON.stringify(chunk)} was put right: ${JSON.stringify(admitted)}`);
    this.sent.push(chunk);
  }

  /** One more attempt, from its first chunk to its end. @returns what went out of it. */
  again(...chunks: UIMessageChunk[]): UIMessageChunk[] {
    const before = this.sent.length;
    const fit = new StepFit({ builder: this.builder, turn: 1, isTakenElsewhere: () => false }, 1);
    for (const chunk of chunks) for (const one of fit.take(chunk)) this.put(one);
    for (const one of fit.finish()) this.put(one);
    return this.sent.slice(before);
  }

  get parts(): Part[] {
    return toMessage(this.builder).parts.slice(1);
  }
}
