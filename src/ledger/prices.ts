import { PerdureError } from "../base/error.ts";
import { fromTable, namesOf } from "./model-table.ts";
import type { Usage } from "./token-usage.ts";

/** US dollars per million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Input that was read from the provider's cache; as `input` if not given. */
  readonly cacheRead?: number;
  /** Input that was written to the provider's cache; as `input` if not given. */
  readonly cacheWrite?: number;
  /** Output that the model thought with; as `output` if not given. */
  readonly reasoning?: number;
  /** Other prices for a whole call whose input is longer than so many tokens. */
  readonly longer?: { readonly than: number; readonly price: Omit<Price, "longer"> };
}

/**
 * What models cost. Either a function from `provider/modelId` to a price (called before each call; must be quick; what
 * it throws fails the call, `undefined` says "no known price"), or a record of patterns:
 *
 * - `"gpt-5"` is that model id at any provider, and its dated or numbered versions (`gpt-5-2025-08-07`), but not
 *   `gpt-5-pro`: another model with another price;
 * - `"openai/gpt-5"` is the same at one provider (`openai.responses/gpt-5` too);
 * - `"ollama/*"` and `"llama-*"` are everything that begins so; `"*"` is every model.
 *
 * The longest pattern that fits wins.
 */
export type PriceTable = Readonly<Record<string, Price>> | ((model: string) => Price | undefined);

/** What a price is charged in, so that sums are exact: billionths of a US dollar. */
export const NANO_DOLLARS = 1_000_000_000;
/** One dollar per million tokens is so many billionths per token. */
const NANO_PER_TOKEN = 1000;

/** The price of a model (`provider/modelId`), if the table has one. @throws PerdureError `bad_config` for a wrong price */
export function findPrice(table: PriceTable, model: string): Price | undefined {
  const price = typeof table === "function" ? table(model) : fromTable(table, namesOf(model));
  if (price !== undefined) checkPrice(price, model);
  return price;
}

/** What a call costs, in billionths of a dollar, rounded up. */
export function costOf(price: Price, usage: Usage): number {
  const { input, output, cacheRead, cacheWrite, reasoning } = priceFor(price, usage.input);
  const fresh = usage.input - usage.cacheRead - usage.cacheWrite;
  const dollarsPerMillion =
    fresh * input +
    usage.cacheRead * (cacheRead ?? input) +
    usage.cacheWrite * (cacheWrite ?? input) +
    (usage.output - usage.reasoning) * output +
    usage.reasoning * (reasoning ?? output);
  return toWhole(dollarsPerMillion);
}

/** The most that a call with so many tokens can cost, in billionths of a dollar: nothing cached, all of it thought. */
export function worstCostOf(price: Price, input: number, output: number): number {
  const sides = priceFor(price, input);
  const inputPrice = Math.max(sides.input, sides.cacheRead ?? 0, sides.cacheWrite ?? 0);
  return toWhole(input * inputPrice + output * Math.max(sides.output, sides.reasoning ?? 0));
}

function priceFor(price: Price, input: number): Price {
  return price.longer !== undefined && input > price.longer.than ? price.longer.price : price;
}

function toWhole(dollarsPerMillion: number): number {
  // Products like 3 × 0.1 are a hair above what they should be; that hair must not become a billionth.
  return Math.ceil(Number((dollarsPerMillion * NANO_PER_TOKEN).toFixed(3)));
}

function checkPrice(price: Price, model: string): void {
  const { input, output, cacheRead = 0, cacheWrite = 0, reasoning = 0 } = price;
  const good = [input, output, cacheRead, cacheWrite, reasoning].every((one) => Number.isFinite(one) && one >= 0);
  if (!good) {
    throw new PerdureError(
      "bad_config",
      `The price of ${model} must have "input" and "output" in US dollars per million tokens, 0 or more.`,
    );
  }
  if (price.longer !== undefined) checkPrice(price.longer.price, model);
}
