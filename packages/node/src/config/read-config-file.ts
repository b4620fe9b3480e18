import { type ConfigEntry, configError, unknownName } from "./config-error.ts";
import { configFields, configGroups } from "./config-field.ts";

/** The settings in a configuration file, by key. */
export function readConfigFile(path: string, text: string): Map<string, ConfigEntry> {
  const root = parsed(path, text);
  const entries = new Map<string, ConfigEntry>();
  collect(root, "", path, entries);
  return entries;
}

function parsed(path: string, text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    throw configError([`${path} is not JSON (${(thrown as Error).message})`], "correct the file or remove it");
  }
  if (isObject(value)) return value;
  throw configError([`${path} does not hold a JSON object`], 'write for example {"port": 4747}');
}

function collect(
  object: Readonly<Record<string, unknown>>,
  prefix: string,
  path: string,
  entries: Map<string, ConfigEntry>,
): void {
  for (const [name, value] of Object.entries(object)) {
    const key = prefix + name;
    if (configGroups.includes(key)) {
      if (!isObject(value)) {
        const inside = configFields.map((field) => field.key).filter((field) => field.startsWith(`${key}.`));
        throw configError([`${key} (from ${path}) is not an object`], `its settings are ${inside.join(", ")}`);
      }
      collect(value, `${key}.`, path, entries);
    } else if (configFields.some((field) => field.key === key)) {
      entries.set(key, { value, source: path });
    } else {
      const known = [...configFields.map((field) => field.key), ...configGroups];
      throw unknownName(`key ${JSON.stringify(key)} (from ${path})`, key, known);
    }
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
