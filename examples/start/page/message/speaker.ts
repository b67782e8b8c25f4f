import { createContext } from "react";

/** Who answers in the conversation that is shown: the assistant, or a helper. */
export const Speaker = createContext("Assistant");
