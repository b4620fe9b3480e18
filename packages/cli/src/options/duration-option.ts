import type { Arguments } from "../command/arguments.ts";
import { usageError } from "../command/usage-error.ts";

const unitsMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A length of time such as 90 (seconds), 10m, 2h or 1d; undefined when it was not given. */
export function parseDuration(arguments_: Arguments, name: string): number | undefined {
  const text = arguments_.get(name);
  if (text === undefined) return undefined;
  const [, amount, unit = "s"] = /^(\d{1,9}(?:\.\d{1,3})?)([smhd])?$/.exec(text) ?? [];
  const durationMs = Math.round(Number(amount) * (unitsMs[unit] as number));
  if (durationMs > 0) return durationMs;
  throw usageError(`--${name} ${text} is no length of time`, `for example --${name} 90, --${name} 10m or --${name} 2h`);
}
