import { SandboxError } from "@sandpiper/core";
import type { ConfigField } from "./config-field.ts";
import { nearestName } from "./nearest-name.ts";

/** Where a value stands: the name of a variable, a flag, or the path of a file. */
export interface ConfigEntry {
  readonly value: unknown;
  readonly source: string;
}

export function configError(problems: readonly string[], hint = "correct what is named"): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "invalid_config",
    message: `the configuration is wrong: ${problems.join("; ")}`,
    hint: `${hint}; docs/configuration.md lists every key`,
    details: { problems },
  });
}

export function wrongValue(field: ConfigField, { value, source }: ConfigEntry, where = field.key): string {
  return `${where} ${field.isSecret ? "[hidden]" : shown(value)} (from ${source}) is not allowed; allowed is ${field.allowed}`;
}

/** Something under a name that nobody knows. */
export function unknownName(what: string, name: string, known: readonly string[]): SandboxError {
  const meant = nearestName(name, known);
  const hint = meant === undefined ? "take it away" : `did you mean ${meant}?`;
  return configError([`there is no ${what}`], hint.replace(/\?$/, "? If not, take it away"));
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
