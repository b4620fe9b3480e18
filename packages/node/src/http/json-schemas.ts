import { z } from "zod";

type JsonObject = Record<string, unknown>;

/** Converts schemas for the OpenAPI document, and collects those with a name as its components. */
export class JsonSchemas {
  readonly components: Record<string, JsonObject> = {};

  /** Returns the schema, with references to components. */
  of(schema: z.ZodType): JsonObject {
    const { $schema: _, $defs = {}, ...root } = z.toJSONSchema(schema, { io: "input" }) as JsonObject;
    for (const [name, definition] of Object.entries($defs as Record<string, JsonObject>)) {
      this.components[componentName(name)] = tidy(definition) as JsonObject;
    }
    return tidy(root) as JsonObject;
  }
}

/** The only recursive schema without a name is that of any JSON value. */
function componentName(name: string): string {
  return /^__schema\d+$/.test(name) ? "Json" : name;
}

function tidy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(tidy);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([key]) => !isRedundant(key, value));
  return Object.fromEntries(entries.map(([key, each]) => [key, key === "$ref" ? reference(String(each)) : tidy(each)]));
}

/** Drops the patterns of named formats, and the bounds of safe integers. */
function isRedundant(
  key: string,
  { format, maximum, minimum }: { format?: unknown; maximum?: unknown; minimum?: unknown },
) {
  if (key === "pattern") return format !== undefined;
  if (key === "maximum") return maximum === Number.MAX_SAFE_INTEGER;
  return key === "minimum" && minimum === Number.MIN_SAFE_INTEGER;
}

function reference(text: string): string {
  return `#/components/schemas/${componentName(text.replace("#/$defs/", ""))}`;
}
