import type { CheckpointPolicyBody } from "@sandpiper/sdk";
import type { Arguments } from "../command/arguments.ts";
import { invalidValue, usageError } from "../command/usage-error.ts";

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
  throw invalidValue(name, { value: text, expected: `${kind} above 0`, hint: `for example --${name} ${example}` });
}

const unitsMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration such as 90 (seconds), 10m, 2h or 1d; undefined when it was not given. */
export function parseDuration(arguments_: Arguments, name: string): number | undefined {
  const text = arguments_.get(name);
  if (text === undefined) return undefined;
  const [, amount, unit = "s"] = /^(\d{1,9}(?:\.\d{1,3})?)([smhd])?$/.exec(text) ?? [];
  const durationMs = Math.round(Number(amount) * (unitsMs[unit] as number));
  if (durationMs > 0) return durationMs;
  throw invalidValue(name, {
    value: text,
    expected: "a duration",
    hint: `for example --${name} 90 (seconds), --${name} 10m or --${name} 2h`,
  });
}

/** A checkpoint policy such as idle,every=5m; null for "none", undefined when it was not given. */
export async function parsePolicy(
  arguments_: Arguments,
  name: string,
): Promise<CheckpointPolicyBody | null | undefined> {
  const text = arguments_.get(name);
  if (text === undefined) return undefined;
  // Loaded here, because --help must not load schemas.
  const { parseCheckpointPolicy } = await import("@sandpiper/protocol");
  const policy = parseCheckpointPolicy(text);
  if (policy !== undefined) return policy;
  throw invalidValue(name, {
    value: text,
    expected: "a list of idle, disconnect, command, every=DURATION and keep=N",
    hint: `for example --${name} idle,every=5m,keep=3, or --${name} none`,
  });
}

const unitsMib: Readonly<Record<string, number>> = { M: 1, G: 1024, T: 1024 * 1024 };

/** A size such as 512 (MiB), 512M, 1.5G or 2GiB in whole MiB; undefined when it was not given. */
export function parseSizeMib(arguments_: Arguments, name: string): number | undefined {
  const text = arguments_.get(name);
  if (text === undefined) return undefined;
  const [, amount, unit = "M"] = /^(\d{1,9}(?:\.\d{1,3})?)(?:([MGT])(?:iB)?)?$/i.exec(text) ?? [];
  const sizeMib = Number(amount) * (unitsMib[unit.toUpperCase()] as number);
  if (sizeMib > 0 && Number.isInteger(sizeMib)) return sizeMib;
  throw invalidValue(name, {
    value: text,
    expected: "a size of whole MiB",
    hint: `for example --${name} 512 (MiB), --${name} 512M or --${name} 2G`,
  });
}

/** `--env NAME=VALUE` sets a variable, `--env NAME` copies the caller's. */
export function parseEnv(arguments_: Arguments, callerEnv: NodeJS.ProcessEnv = process.env): Record<string, string> {
  return Object.fromEntries(arguments_.all("env").map((text) => variableFrom(text, callerEnv)));
}

function variableFrom(text: string, callerEnv: NodeJS.ProcessEnv): readonly [string, string] {
  const { key: name, value = callerEnv[name] } = split(text);
  if (name === "") throw usageError(`--env ${text}: missing name`, "write --env NAME=VALUE or --env NAME");
  if (value !== undefined) return [name, value];
  throw usageError(
    `--env ${name}: ${name} is not set in your environment`,
    `write --env ${name}=VALUE, or set ${name} first`,
  );
}

/** `--label KEY=VALUE`; a key alone has an empty value. */
export function parseLabels(given: readonly string[], option = "label"): Record<string, string> {
  return Object.fromEntries(given.map((text) => labelFrom(text, "", option)));
}

/** `--label KEY=VALUE`; a key alone matches every value. */
export function parseLabelFilters(given: readonly string[]): Record<string, string | null> {
  return Object.fromEntries(given.map((text) => labelFrom(text, null, "label")));
}

function labelFrom<Absent>(text: string, absent: Absent, option: string): readonly [string, string | Absent] {
  const { key, value = absent } = split(text);
  if (key === "") {
    throw usageError(`--${option} ${text}: missing key`, `write --${option} KEY=VALUE or --${option} KEY`);
  }
  return [key, value];
}

function split(text: string): { key: string; value?: string } {
  const equals = text.indexOf("=");
  return equals === -1 ? { key: text } : { key: text.slice(0, equals), value: text.slice(equals + 1) };
}
