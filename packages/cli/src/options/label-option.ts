import { usageError } from "../command/usage-error.ts";

/** `--label KEY=VALUE`; a key alone has an empty value. */
export function parseLabels(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(given.map((text) => split(text, "")));
}

/** `--label KEY=VALUE`; a key alone fits whatever its value is. */
export function parseLabelFilters(given: readonly string[]): Record<string, string | null> {
  return Object.fromEntries(given.map((text) => split(text, null)));
}

function split<Absent>(text: string, absent: Absent): readonly [string, string | Absent] {
  const equals = text.indexOf("=");
  const key = equals === -1 ? text : text.slice(0, equals);
  if (key === "") throw usageError(`--label ${text}: the key is missing`, "write --label KEY=VALUE or --label KEY");
  return [key, equals === -1 ? absent : text.slice(equals + 1)];
}
