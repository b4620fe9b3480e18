import { SandboxError } from "@sandpiper/core";
import type { ConfigField } from "./config-field.ts";
import { nearestName } from "./nearest-name.ts";

export interface ConfigEntry {
  readonly value: unknown;
  /** The variable, flag or file that sets the value. */
  readonly source: string;
}

/** More problems in one file have the same cause. */
const MAX_PROBLEMS = 20;

export function configError(found: readonly string[], hint = "correct the settings named above"): SandboxError {
  const more = found.length - MAX_PROBLEMS;
  const problems = more > 0 ? [...found.slice(0, MAX_PROBLEMS), `and ${more} more problems`] : found;
  return new SandboxError("invalid_config", {
    message: `invalid configuration: ${problems.join("; ")}`,
    hint: `${hint}; docs/configuration.md lists every setting`,
    details: { problems },
  });
}

export function wrongValue(field: ConfigField, { value, source }: ConfigEntry, where = field.key): string {
  return `${where} ${field.isSecret ? "[hidden]" : shown(value)} (from ${source}) is not allowed; expected ${field.allowed}`;
}

export function unknownName(what: string, name: string, known: readonly string[]): SandboxError {
  const meant = nearestName(name, known);
  const hint = meant === undefined ? "remove it" : `did you mean ${meant}? If not, remove it`;
  return configError([`unknown ${what}`], hint);
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
