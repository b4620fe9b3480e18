import fc from "fast-check";

/** A JSON schema, as far as the node's schemas use it. */
export interface JsonSchema {
  readonly type?: string | undefined;
  readonly $ref?: string | undefined;
  readonly $defs?: Readonly<Record<string, JsonSchema>> | undefined;
  readonly const?: unknown;
  readonly enum?: readonly unknown[] | undefined;
  readonly anyOf?: readonly JsonSchema[] | undefined;
  readonly oneOf?: readonly JsonSchema[] | undefined;
  readonly allOf?: readonly JsonSchema[] | undefined;
  readonly properties?: Readonly<Record<string, JsonSchema>> | undefined;
  readonly required?: readonly string[] | undefined;
  readonly additionalProperties?: JsonSchema | boolean | undefined;
  readonly items?: JsonSchema | undefined;
  readonly minItems?: number | undefined;
  readonly pattern?: string | undefined;
  readonly format?: string | undefined;
  readonly minLength?: number | undefined;
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
}

/** Stand for what exists at the node while an input is sent; `Bed.fill` replaces them. */
export const placeholders = { sandbox: "@sandbox@", process: "@process@", session: "@session@" } as const;

/** Fields whose value must name something that exists, or whose random value would wait or destroy. */
const known: Readonly<Record<string, readonly unknown[]>> = {
  id: [placeholders.sandbox],
  sandbox: [placeholders.sandbox],
  sandboxId: [placeholders.sandbox],
  process: [placeholders.process],
  processId: [placeholders.process],
  provider: ["mock"],
  image: ["host"],
  path: ["/tmp/a", "/tmp", "/tmp/b/c"],
  from: ["/tmp/a"],
  to: ["/tmp/b"],
  cwd: ["/", "/tmp"],
  command: ["true", "echo a"],
  code: ["1", "print(1)"],
  language: ["python", "javascript"],
  timeoutMs: [100, 1000],
  url: ["https://hooks.example.com/a"],
  count: [1, 2],
  target: [0],
  execution: ["run-1", "run-2"],
};

/** A schema of the protocol or of the configuration. */
interface InputSchema {
  toJSONSchema(options: { readonly io: "input"; readonly unrepresentable: "any" }): unknown;
}

export function schemaOf(schema: InputSchema): JsonSchema {
  return schema.toJSONSchema({ io: "input", unrepresentable: "any" }) as JsonSchema;
}

/** Values that follow a schema, or nearly do: the mutations that come next do not need more. */
export function validValues(schema: JsonSchema, root: JsonSchema = schema, name = ""): fc.Arbitrary<unknown> {
  const examples = known[name];
  if (examples !== undefined) return fc.constantFrom(...examples);
  if (schema.$ref !== undefined) {
    const target = root.$defs?.[schema.$ref.replace("#/$defs/", "")];
    // The only recursive schema is that of any JSON value.
    return target === undefined || schema.$ref.includes("__schema")
      ? fc.jsonValue({ maxDepth: 2 })
      : validValues(target, root, name);
  }
  if ("const" in schema) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return fc.oneof(...choices.map((choice) => validValues(choice, root, name)));
  if (schema.allOf !== undefined) return merged(schema.allOf.map((part) => validValues(part, root, name)));
  return ofType(schema, root);
}

function ofType(schema: JsonSchema, root: JsonSchema): fc.Arbitrary<unknown> {
  switch (schema.type) {
    case "object":
      return objects(schema, root);
    case "array":
      return fc.array(validValues(schema.items ?? {}, root), { minLength: schema.minItems ?? 0, maxLength: 3 });
    case "string":
      return strings(schema);
    case "integer":
    case "number": {
      const min = Math.max(schema.minimum ?? 0, -1e6);
      return fc.integer({
        min: Math.ceil(min),
        max: Math.floor(Math.max(min, Math.min(schema.maximum ?? 1000, min + 1000))),
      });
    }
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function objects({ properties = {}, required = [], additionalProperties }: JsonSchema, root: JsonSchema) {
  const fields = Object.fromEntries(
    Object.entries(properties).map(([name, each]) => [name, validValues(each, root, name)]),
  );
  const record = fc.record(fields, { requiredKeys: required.filter((name) => name in fields) });
  if (typeof additionalProperties !== "object") return record;
  const more = fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), validValues(additionalProperties, root), {
    maxKeys: 3,
  });
  return fc.tuple(record, more).map(([own, others]) => ({ ...others, ...own }));
}

function strings({ pattern, format, minLength = 0 }: JsonSchema): fc.Arbitrary<string> {
  if (format === "uuid") return fc.uuid();
  if (format === "date-time") return fc.constant("2030-01-01T00:00:00.000Z");
  if (pattern !== undefined) {
    try {
      return fc.stringMatching(new RegExp(pattern), { maxLength: 64 });
    } catch {
      // fast-check does not know every construct of regular expressions.
    }
  }
  return fc.string({ minLength: Math.min(minLength, 64), maxLength: Math.max(minLength, 16) });
}

function merged(parts: readonly fc.Arbitrary<unknown>[]): fc.Arbitrary<unknown> {
  return fc.tuple(...parts).map((values) => Object.assign({}, ...(values as object[])));
}
