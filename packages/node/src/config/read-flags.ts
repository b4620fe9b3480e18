import { parseArgs } from "node:util";
import { type ConfigEntry, configError, unknownName } from "./config-error.ts";
import { configFields } from "./config-field.ts";
import { valueOfText } from "./config-text.ts";

export interface Flags {
  readonly entries: ReadonlyMap<string, ConfigEntry>;
  /** The value of `--config`. */
  readonly configFile: string | undefined;
}

const names = [...configFields.map(({ flag }) => flag), "config"];

/** Accepts `--port 1`, `--port=1`, `--allow-insecure` and `--allow-insecure=false`; a repeated flag extends a list. */
export function readFlags(argv: readonly string[]): Flags {
  const options = Object.fromEntries(configFields.map(({ flag, kind }) => [flag, { type: typeOf(kind) }]));
  const { tokens } = parseArgs({
    args: [...argv],
    options: { ...options, config: { type: "string" } },
    strict: false,
    tokens: true,
  });
  const texts = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind === "option-terminator") continue;
    if (token.kind === "positional") {
      throw configError([`unexpected argument ${JSON.stringify(token.value)}`], "write flags as --port 4747");
    }
    if (!names.includes(token.name)) {
      throw unknownName(
        `flag ${token.rawName}`,
        `--${token.name}`,
        names.map((name) => `--${name}`),
      );
    }
    const isSwitch = options[token.name]?.type === "boolean";
    const value = token.value ?? (isSwitch ? "true" : undefined);
    if (value === undefined || (token.inlineValue === false && value.startsWith("--"))) {
      throw configError([`${token.rawName} has no value`], `write ${token.rawName} VALUE`);
    }
    texts.set(token.name, [...(texts.get(token.name) ?? []), value]);
  }
  return { entries: entriesOf(texts), configFile: lastOf(texts, "config") };
}

function entriesOf(texts: ReadonlyMap<string, readonly string[]>): Map<string, ConfigEntry> {
  const entries = new Map<string, ConfigEntry>();
  for (const field of configFields) {
    const text = field.kind === "texts" ? texts.get(field.flag)?.join(",") : lastOf(texts, field.flag);
    if (text !== undefined) entries.set(field.key, { value: valueOfText(field, text), source: `--${field.flag}` });
  }
  return entries;
}

function lastOf(texts: ReadonlyMap<string, readonly string[]>, name: string): string | undefined {
  return texts.get(name)?.at(-1);
}

function typeOf(kind: string): "boolean" | "string" {
  return kind === "flag" ? "boolean" : "string";
}
