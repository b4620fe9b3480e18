import fc from "fast-check";

/** A piece of JSON that is written as it is: no JavaScript value has this text. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** How fast-check prints it. */
  [fc.toStringMethod](): string {
    return `raw ${this.text.length > 80 ? `${this.text.slice(0, 80)}… (${this.text.length})` : this.text}`;
  }
}

const nested = (depth: number, open: string, close: string) => open.repeat(depth) + close.repeat(depth);

/** Values that break programs. */
const hostileJson: fc.Arbitrary<unknown> = fc.oneof(
  fc
    .constantFrom(
      ..."null true false 0 -1 -0 1.5 1e400 -1e400 1e-400 9007199254740993 4294967296 -9223372036854775808".split(" "),
      ...[
        "NaN",
        "Infinity",
        "undefined",
        "0x10",
        "01",
        "+1",
        "{}",
        "[]",
        '""',
        "[null]",
        '"\\ud800"',
        '"\\udfff\\ud800"',
      ],
      ...['"\\u0000"', '"a\\u0000b"', '"\\x00"', '"unterminated', '"\u2028"', '"\\u202e"', '"../../../../etc/passwd"'],
      ...['"/proc/self/environ"', '"/tmp/../../etc/shadow"', '"%2e%2e%2f"', '"$(touch /tmp/x)"', '"; true"', '"-rf"'],
      ...[
        `"' OR 1=1 --"`,
        '"__proto__"',
        '"constructor"',
        '"hasOwnProperty"',
        '"toString"',
        '"%s%n%d"',
        '"\\r\\nX: y"',
      ],
      '{"__proto__":{"isAdmin":true}}',
      '{"constructor":{"prototype":{"isAdmin":true}}}',
      '{"toString":1,"valueOf":2,"then":3,"length":-1}',
      '{"a":1,"a":2}',
      nested(65, "[", "]"),
      nested(5000, "[", "]"),
      nested(5000, '{"a":', "}"),
      `"${"x".repeat(300)}"`,
      `"${"x".repeat(70_000)}"`,
      `"${"/a".repeat(5000)}"`,
      `[${"0,".repeat(5000)}0]`,
      `{${Array.from({ length: 300 }, (_, at) => `"k${at}":""`).join(",")}}`,
      "9".repeat(5000),
    )
    .map((text) => new RawJson(text)),
  fc.jsonValue({ maxDepth: 3 }),
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.double(),
);

const hostileNames = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "",
  "extra",
  "\u0000",
  "a.b",
  "x".repeat(300),
  "0",
];

/** One change of a value: where to go, and what to do there. */
interface Change {
  readonly steps: readonly number[];
  readonly kind: "replace" | "remove" | "add" | "wrap" | "repeat";
  readonly name: string;
  readonly value: unknown;
}

const changes: fc.Arbitrary<Change> = fc.record({
  steps: fc.oneof(
    { weight: 8, arbitrary: fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }) },
    { weight: 1, arbitrary: fc.constant([]) },
  ),
  kind: fc.constantFrom("replace", "replace", "replace", "remove", "add", "wrap", "repeat"),
  name: fc.constantFrom(...hostileNames),
  value: hostileJson,
});

/** Changes valid values in one to three places. */
export function mutated(valid: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc
    .tuple(valid, fc.array(changes, { minLength: 1, maxLength: 3 }))
    .map(([value, all]) => all.reduce(changed, value));
}

function changed(value: unknown, change: Change): unknown {
  const { kind, name } = change;
  const [step, ...steps] = change.steps;
  const keys = typeof value === "object" && value !== null && !(value instanceof RawJson) ? Object.keys(value) : [];
  const key = step === undefined || keys.length === 0 ? undefined : (keys[step % keys.length] as string);
  if (key === undefined) {
    if (kind === "add" && keys.length > 0 && !Array.isArray(value))
      return withEntry(value as object, name, change.value);
    if (kind === "wrap") return [value];
    if (kind === "repeat") return Array.from({ length: jsonText(value).length < 300 ? 200 : 2 }, () => value);
    return change.value;
  }
  if (kind === "remove" && steps.length === 0) return without(value as object, key);
  const inner = changed((value as Record<string, unknown>)[key], { ...change, steps });
  if (Array.isArray(value)) return value.with(Number(key), inner);
  return withEntry(value as object, key, inner);
}

/** Keeps `__proto__` as a field of its own. */
function withEntry(object: object, name: string, value: unknown): object {
  return Object.fromEntries([...Object.entries(object), [name, value]]);
}

function without(object: object, name: string): object {
  const entries = Object.entries(object).filter(([key]) => key !== name);
  return Array.isArray(object) ? entries.map(([, value]) => value) : Object.fromEntries(entries);
}

/** As JSON.stringify, but writes raw pieces as they are. */
export function jsonText(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map(jsonText).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  return `{${Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}:${jsonText(each)}`)}}`;
}

/** What happens to a text on its way: it is cut, repeated, or gets bytes that are not UTF-8. */
export type Damage = {
  readonly kind: "none" | "cut" | "append" | "insert" | "prepend";
  readonly at: number;
  readonly bytes: readonly number[];
};

export const damages: fc.Arbitrary<Damage> = fc.record({
  kind: fc.oneof(
    { weight: 12, arbitrary: fc.constant("none" as const) },
    { weight: 1, arbitrary: fc.constantFrom("cut", "append", "insert", "prepend") },
  ),
  at: fc.nat(1000),
  bytes: fc.constantFrom(
    [0xff],
    [0xc3, 0x28],
    [0xed, 0xa0, 0x80],
    [0],
    [0xef, 0xbb, 0xbf],
    [0x7d],
    [0x2c],
    [0xf5, 0x80],
  ),
});

export function damaged(text: string, { kind, at, bytes }: Damage): Buffer {
  const whole = Buffer.from(text);
  const place = whole.length === 0 ? 0 : at % whole.length;
  const extra = Buffer.from(bytes);
  if (kind === "cut") return whole.subarray(0, place);
  if (kind === "append") return Buffer.concat([whole, extra]);
  if (kind === "prepend") return Buffer.concat([extra, whole]);
  if (kind === "insert") return Buffer.concat([whole.subarray(0, place), extra, whole.subarray(place)]);
  return whole;
}
