import type { Schema } from "ai";
import { errorText } from "../base/error.ts";
import { toSchema } from "../base/json-schema.ts";
import { DEFAULT_TIME_ZONE, nextCronTime } from "./cron.ts";

/** What a model has made of words such as "remind me on Friday": what is to be done, and when. */
export interface ParsedSchedule {
  /** What is to be done, without when. */
  readonly description: string;
  readonly when:
    | { readonly type: "scheduled"; readonly date: string }
    | { readonly type: "delayed"; readonly delayInSeconds: number }
    | { readonly type: "cron"; readonly cron: string }
    | { readonly type: "no-schedule" };
}

/**
 * Tells a model how to turn a wish into a {@link ParsedSchedule}. Put the wish behind it.
 *
 * ```ts
 * const { output } = await generateText({
 *   model,
 *   output: Output.object({ schema: scheduleSchema }),
 *   prompt: `${getSchedulePrompt({ date: new Date() })} ${wish}`,
 * });
 * ```
 */
export function getSchedulePrompt({ date }: { date: Date }): string {
  return `It is ${date.toISOString()} (UTC).
Read the request below and answer with a JSON object of two fields.
"description": what is to be done, in a few words, without anything about the time.
"when": one of
- {"type":"scheduled","date":"2030-01-31T14:00:00Z"} for one moment, as an ISO 8601 date with a time zone;
- {"type":"delayed","delayInSeconds":1800} for a time that is counted from now;
- {"type":"cron","cron":"0 9 * * 1"} for what comes again and again: minute, hour, day, month, weekday from 0 for Sunday;
- {"type":"no-schedule"} when the request says nothing about a time.
The request:`;
}

function variant(type: string, fields: Record<string, { type: "string" | "number"; description: string }> = {}) {
  return {
    type: "object",
    properties: { type: { type: "string", const: type }, ...fields },
    required: ["type", ...Object.keys(fields)],
    additionalProperties: false,
  } as const;
}

/** The schema of a {@link ParsedSchedule}; refuses impossible dates and crons. For OpenAI turn `strictJsonSchema` off. */
export const scheduleSchema: Schema<ParsedSchedule> = toSchema<ParsedSchedule>(
  {
    type: "object",
    properties: {
      description: { type: "string", description: "What is to be done" },
      when: {
        anyOf: [
          variant("scheduled", { date: { type: "string", description: "The moment, in ISO 8601" } }),
          variant("delayed", { delayInSeconds: { type: "number", description: "Seconds from now" } }),
          variant("cron", { cron: { type: "string", description: "A cron expression of five fields" } }),
          variant("no-schedule"),
        ],
      },
    },
    required: ["description", "when"],
    additionalProperties: false,
  },
  {
    validate(value) {
      const problem = problemOf(value);
      if (problem === undefined) return { success: true, value: value as ParsedSchedule };
      return { success: false, error: new TypeError(problem) };
    },
  },
);

function problemOf(value: unknown): string | undefined {
  const { description, when } = Object(value) as { description?: unknown; when?: unknown };
  if (typeof description !== "string") return "`description` must be a string.";
  const { type, date, delayInSeconds, cron } = Object(when) as Record<string, unknown>;
  switch (type) {
    case "no-schedule":
      return undefined;
    case "scheduled":
      return typeof date === "string" && !Number.isNaN(Date.parse(date)) ? undefined : "`when.date` is not a date.";
    case "delayed":
      return typeof delayInSeconds === "number" && delayInSeconds >= 0
        ? undefined
        : "`when.delayInSeconds` must be a number from 0 up.";
    case "cron":
      return typeof cron === "string" ? cronProblem(cron) : "`when.cron` must be a string.";
    default:
      return "`when.type` must be scheduled, delayed, cron or no-schedule.";
  }
}

function cronProblem(cron: string): string | undefined {
  try {
    nextCronTime(cron, DEFAULT_TIME_ZONE, 0);
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}
