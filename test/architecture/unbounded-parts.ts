interface JsonSchema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly format?: string;
  readonly pattern?: string;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly propertyNames?: JsonSchema;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
}

/** Formats whose texts have a maximum length. */
const SHORT_FORMATS: readonly string[] = ["uuid", "ipv4", "ipv6"];

/** The paths of strings, arrays and records without a maximum size: `a.b`, `a[]` for items, `a.*` for a record's entries. */
export function unboundedParts(root: unknown): readonly string[] {
  const schema = root as JsonSchema;
  return [...new Set(partsOf(schema, { path: "", defs: schema.$defs ?? {}, above: [] }))];
}

interface Place {
  readonly path: string;
  readonly defs: Readonly<Record<string, JsonSchema>>;
  /** References that lead here. */
  readonly above: readonly string[];
}

function partsOf(schema: JsonSchema, place: Place): readonly string[] {
  const { $ref, type, anyOf, oneOf, items, properties = {}, propertyNames, additionalProperties } = schema;
  const { path, defs, above } = place;
  const at = (name: string) => ({ ...place, path: path === "" ? name : `${path}.${name}` });
  if ($ref !== undefined) {
    const target = defs[$ref.replace("#/$defs/", "")];
    if (target === undefined || above.includes($ref)) return [path];
    return partsOf(target, { ...place, above: [...above, $ref] });
  }
  const forms = Array.isArray(type) ? type.map((one) => ({ ...schema, type: one })) : (anyOf ?? oneOf);
  if (forms !== undefined) return forms.flatMap((form) => partsOf(form, place));
  if (schema.enum !== undefined || schema.const !== undefined) return [];
  if (type === "string") return isShort(schema) ? [] : [path];
  if (type === "array") {
    if (schema.maxItems === undefined || items === undefined) return [path];
    return partsOf(items, { ...place, path: `${path}[]` });
  }
  if (type !== "object") return type === undefined ? [path] : [];
  const named = Object.entries(properties).flatMap(([name, property]) => partsOf(property, at(name)));
  if (typeof additionalProperties !== "object") return named;
  if (schema.maxProperties === undefined) return [...named, path];
  return [...named, ...partsOf(propertyNames ?? {}, at("*")), ...partsOf(additionalProperties, at("*"))];
}

function isShort({ maxLength, format = "", pattern, allOf = [] }: JsonSchema): boolean {
  if (maxLength !== undefined || SHORT_FORMATS.includes(format)) return true;
  return (pattern !== undefined && isFinitePattern(pattern)) || allOf.some(isShort);
}

/** Whether a pattern has both ends and repeats nothing without a limit. */
function isFinitePattern(pattern: string): boolean {
  const plain = pattern.replaceAll(/\\./g, "x").replaceAll(/\[[^\]]*\]/g, "x");
  return /^\^.*\$$/.test(pattern) && !/[*+]|\{\d*,\}/.test(plain);
}
