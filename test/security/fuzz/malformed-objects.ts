import { randomBytes } from "node:crypto";
import fc from "fast-check";

/** What someone does to an object of the store. */
export type Tampering =
  | { readonly kind: "flip"; readonly at: number; readonly bit: number }
  | { readonly kind: "cut"; readonly at: number }
  | { readonly kind: "append"; readonly bytes: Uint8Array }
  | { readonly kind: "replace"; readonly bytes: Uint8Array }
  | { readonly kind: "random"; readonly size: number }
  /** Another object, by its position in the list of all. */
  | { readonly kind: "swap"; readonly other: number }
  | { readonly kind: "older" }
  /** A node of the cluster writes it, with a valid signature or encryption. */
  | { readonly kind: "member"; readonly text: string }
  | { readonly kind: "member field"; readonly field: number; readonly value: unknown };

const oddTexts = [
  "",
  "null",
  "{}",
  "[]",
  '"',
  "[".repeat(100_000),
  '{"__proto__":{"polluted":true}}',
  "{}\n{}",
  "\u0000",
];
const oddValues: readonly unknown[] = [
  null, true, -1, 0, 1.5, 1e308, 2 ** 53, "", "x", "../../x", "x".repeat(10_000), [], {}, [null], { zero: -1 },
  "2026-13-45T99:99:99Z", "9999-12-31T23:59:59Z", JSON.parse('{"__proto__":{"polluted":true}}'),
]; // biome-ignore format: a list of values reads best as a block

export const tamperings: fc.Arbitrary<Tampering> = fc.oneof(
  fc.record({ kind: fc.constant("flip" as const), at: fc.nat(), bit: fc.nat(7) }),
  fc.record({ kind: fc.constant("cut" as const), at: fc.nat() }),
  fc.record({ kind: fc.constant("append" as const), bytes: fc.uint8Array({ minLength: 1, maxLength: 200 }) }),
  fc.record({ kind: fc.constant("replace" as const), bytes: fc.uint8Array({ maxLength: 300 }) }),
  fc.record({
    kind: fc.constant("replace" as const),
    bytes: fc.constantFrom(...oddTexts).map((text) => Buffer.from(text)),
  }),
  fc.record({ kind: fc.constant("random" as const), size: fc.nat(5000) }),
  fc.record({ kind: fc.constant("swap" as const), other: fc.nat() }),
  fc.constant({ kind: "older" as const }),
  fc.record({ kind: fc.constant("member" as const), text: fc.oneof(fc.constantFrom(...oddTexts), fc.json()) }),
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("member field" as const),
      field: fc.nat(),
      value: fc.oneof(fc.constantFrom(...oddValues), fc.jsonValue()),
    }),
  },
);

/** The bytes after tampering by someone without the cluster's secret; undefined if it needs more than the bytes. */
export function tamperedBytes(bytes: Uint8Array, tampering: Tampering): Uint8Array | undefined {
  const changed = Buffer.from(bytes);
  switch (tampering.kind) {
    case "flip":
      changed[tampering.at % changed.length] = (changed[tampering.at % changed.length] ?? 0) ^ (1 << tampering.bit);
      return changed;
    case "cut":
      return changed.subarray(0, tampering.at % changed.length);
    case "append":
      return Buffer.concat([changed, tampering.bytes]);
    case "replace":
      return tampering.bytes;
    case "random":
      return randomBytes(tampering.size);
    default:
      return undefined;
  }
}

/** Sets one field, at any depth, of a JSON document. */
export function withField(text: string, field: number, value: unknown): string {
  const document: unknown = JSON.parse(text);
  const places: { readonly holder: Record<string, unknown>; readonly name: string }[] = [];
  const collect = (holder: unknown): void => {
    if (typeof holder !== "object" || holder === null) return;
    for (const name of Object.keys(holder)) {
      places.push({ holder: holder as Record<string, unknown>, name });
      collect((holder as Record<string, unknown>)[name]);
    }
  };
  collect(document);
  const place = places[field % Math.max(places.length, 1)];
  if (place !== undefined) place.holder[place.name] = value;
  return JSON.stringify(document);
}
