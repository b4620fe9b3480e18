import type { Arguments } from "../command/arguments.ts";
import { usageError } from "../command/usage-error.ts";

/** The number an option was given, or undefined when it was not given. Whole numbers unless `decimals` allows more. */
export function parseNumber(
  arguments_: Arguments,
  name: string,
  { decimals = 0, example = 512 } = {},
): number | undefined {
  const text = arguments_.get(name);
  if (text === undefined) return undefined;
  const pattern = decimals === 0 ? /^\d{1,12}$/ : new RegExp(`^\\d{1,12}(\\.\\d{1,${decimals}})?$`);
  const number = pattern.test(text) ? Number(text) : 0;
  if (number > 0) return number;
  const kind = decimals === 0 ? "a whole number" : `a number with at most ${decimals} decimals`;
  throw usageError(`--${name} ${text} is not ${kind} above 0`, `for example --${name} ${example}`);
}
