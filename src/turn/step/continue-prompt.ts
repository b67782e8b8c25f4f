/** Asks a model to go on with an answer of which only a part has arrived. Never stored. */
export const CONTINUE_PROMPT =
  "(Your answer above was cut off. Go on exactly where it ends, in the same style. Do not repeat any of it, and do not mention this.)";
