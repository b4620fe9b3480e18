import { type ConfigEntry, unknownName } from "./config-error.ts";
import { configFields } from "./config-field.ts";
import { valueOfText } from "./config-text.ts";
import { nearestName } from "./nearest-name.ts";

export const CONFIG_FILE_VARIABLE = "SANDPIPER_CONFIG";

/** Variables of clients, set-up and sandboxes, which a node ignores. */
const othersVariables = ["URL", "API_KEY", "AGENT", "LAUNCH", "GUARD", "RUNSC"].map((name) => `SANDPIPER_${name}`);
const names = [...configFields.map(({ env }) => env), CONFIG_FILE_VARIABLE];

/** Treats an empty variable as unset. */
export function readEnvironment(env: NodeJS.ProcessEnv): Map<string, ConfigEntry> {
  refuseMistyped(env);
  const entries = new Map<string, ConfigEntry>();
  for (const field of configFields) {
    const text = env[field.env];
    if (text === undefined || text === "") continue;
    entries.set(field.key, { value: valueOfText(field, text), source: field.env });
  }
  return entries;
}

/** Refuses only near misses of known names, because other programs can use variables with this prefix. */
function refuseMistyped(env: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(env)) {
    if (!name.startsWith("SANDPIPER_") || names.includes(name) || othersVariables.includes(name)) continue;
    const short = name.slice("SANDPIPER_".length);
    const shortNames = names.map((known) => known.slice("SANDPIPER_".length));
    if (nearestName(short, shortNames) !== undefined) throw unknownName(`variable ${name}`, name, names);
  }
}
