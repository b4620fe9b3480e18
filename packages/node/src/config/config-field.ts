import type { z } from "zod";
import { nodeConfigSchema } from "./node-config.ts";

type FieldKind = "text" | "choice" | "number" | "flag" | "texts" | "json";

/** One setting, with its names in the file, in the environment and on the command line. */
export interface ConfigField {
  /** In the file; dots separate levels. */
  readonly key: string;
  readonly env: string;
  /** Without the leading dashes. */
  readonly flag: string;
  readonly kind: FieldKind;
  /** Accepts "none". */
  readonly isNullable: boolean;
  /** Error messages hide its value. */
  readonly isSecret: boolean;
  readonly description: string;
  readonly allowed: string;
  /** As shown in docs/configuration.md. */
  readonly shownDefault: string;
}

/** Keys that hold an object in the file. */
export const configGroups: readonly string[] = Object.entries(nodeConfigSchema.shape)
  .filter(([, schema]) => unwrapped(schema).def.type === "object")
  .map(([key]) => key);

export const configFields: readonly ConfigField[] = fieldsOf(nodeConfigSchema.shape, "");

type AnySchema = z.core.$ZodType & { readonly def: { readonly type: string; readonly innerType?: AnySchema } };

function fieldsOf(shape: Readonly<Record<string, z.ZodType>>, prefix: string): ConfigField[] {
  return Object.entries(shape).flatMap(([name, schema]) => {
    const inner = unwrapped(schema);
    const key = prefix + name;
    return inner.def.type === "object" ? fieldsOf((inner as z.ZodObject).shape, `${key}.`) : [fieldOf(key, schema)];
  });
}

function fieldOf(key: string, schema: z.ZodType): ConfigField {
  const words = key.replaceAll(".", "-").replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const inner = unwrapped(schema);
  const meta: z.GlobalMeta = { ...inner.meta(), ...schema.meta() };
  const isNullable = schema.safeParse(null).success;
  const allowed = typeof meta["allowed"] === "string" ? meta["allowed"] : allowedOf(inner);
  return {
    key,
    env: `SANDPIPER_${words.replaceAll("-", "_").toUpperCase()}`,
    flag: words,
    kind: kindOf(inner),
    isNullable,
    isSecret: meta["isSecret"] === true,
    description: meta.description ?? "",
    allowed: isNullable ? `${allowed}, or none` : allowed,
    shownDefault: typeof meta["shownDefault"] === "string" ? meta["shownDefault"] : shown(schema.parse(undefined)),
  };
}

function unwrapped(schema: z.ZodType): z.ZodType {
  const inner = (schema as AnySchema).def.innerType;
  return inner === undefined ? schema : unwrapped(inner as z.ZodType);
}

function kindOf(schema: z.ZodType): FieldKind {
  const { type } = schema.def;
  if (type === "enum") return "choice";
  if (type === "number") return "number";
  if (type === "boolean") return "flag";
  if (type === "record") return "json";
  if (type !== "array") return "text";
  return isText((schema as z.ZodArray<z.ZodType>).element) ? "texts" : "json";
}

function isText(schema: z.ZodType): boolean {
  const { type } = schema.def;
  if (type === "union") return (schema as z.ZodUnion<readonly z.ZodType[]>).options.every(isText);
  return type === "string" || type === "enum";
}

function allowedOf(schema: z.ZodType): string {
  if (schema.def.type === "enum") return `one of ${(schema as z.ZodEnum).options.join(", ")}`;
  if (schema.def.type === "boolean") return "true or false";
  const { minValue, maxValue } = schema as z.ZodNumber;
  const isBounded = maxValue !== null && maxValue < Number.MAX_SAFE_INTEGER;
  return isBounded ? `a whole number from ${minValue} to ${maxValue}` : `a whole number, at least ${minValue}`;
}

function shown(value: unknown): string {
  if (value === null) return "none";
  return `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
}
