import { Think } from "perdure";
import { pickModel } from "../../shared/model.ts";

const model = pickModel(
  ({ userText }) => `Roses are red, you said "${userText}", and I am a script, not yet well read.`,
);

/** A class, in a file: that is all. Its address is /agents/poet/… */
export class Poet extends Think {
  override getModel() {
    return model;
  }
  override getSystemPrompt() {
    return "You answer in short rhymes.";
  }
}
