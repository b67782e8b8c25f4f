import { tool } from "ai";
import { z } from "zod";
import type { DeleteFilesTool, TimeZoneTool, WeatherTool } from "./contract.ts";

const MAX_NAME = 100;
const MAX_FILES = 20;
/** So many words of the guide's pace: long enough to see the tool run. */
const WEATHER_WORDS = 60;

const SKIES = ["clear", "a few clouds", "cloudy", "light rain", "fog", "wind from the sea"] as const;

/** The tools of the assistant. `paceMs` is how long a word of the built-in guide takes. */
export function assistantTools(paceMs: number) {
  return {
    weather: tool({
      description: "Tells the weather in a city. The numbers are made up.",
      inputSchema: z.object({ city: z.string().min(1).max(MAX_NAME) }),
      execute: async ({ city }, { abortSignal }): Promise<WeatherTool["output"]> => {
        await wait(WEATHER_WORDS * paceMs, abortSignal);
        return weatherIn(city);
      },
    }),
    deleteFiles: tool({
      description: "Deletes files of the user, who is asked first. It only pretends: this is a demonstration.",
      inputSchema: z.object({ files: z.array(z.string().min(1).max(MAX_NAME)).min(1).max(MAX_FILES) }),
      needsApproval: true,
      execute: ({ files }): DeleteFilesTool["output"] => ({ deleted: files }),
    }),
    // No `execute`: the page answers it.
    timeZone: tool({
      description: "Asks the user's browser for its time zone and its local time.",
      inputSchema: z.object({}),
      outputSchema: z.object({ timeZone: z.string(), localTime: z.string() }) satisfies z.ZodType<
        TimeZoneTool["output"]
      >,
    }),
  };
}

/** The same numbers for the same city, always. */
function weatherIn(city: string): WeatherTool["output"] {
  let sum = 0;
  for (const letter of city.toLowerCase()) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 10_007;
  return { city, celsius: (sum % 35) - 3, sky: SKIES[sum % SKIES.length] ?? "clear", windKmh: sum % 40 };
}

/** Resolves after so many milliseconds. @throws the signal's reason, as soon as it aborts. */
export function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted === true) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
