import { gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";

const BLOCK_BYTES = 512;
const TYPES = ["0", "0", "0", "1", "2", "3", "4", "5", "6", "7", "x", "g", "L", "K", "S", "V", "\0", "\u00ff"];

/** A directory outside of every target, for names that try to leave it. */
export type Outside = string;

interface TarEntry {
  readonly name: Uint8Array;
  readonly type: string;
  readonly content: Uint8Array;
  /** As it stands in the header; undefined for the size of the content. */
  readonly size: string | undefined;
  readonly target: Uint8Array;
  /** Mode, owner, group and time. */
  readonly numbers: readonly string[];
  readonly isSummed: boolean;
  readonly magic: string;
}

const bytes = (text: string) => Buffer.from(text);

function namesOf(outside: Outside): fc.Arbitrary<Uint8Array> {
  const part = fc.constantFrom(
    "a",
    "b",
    "link",
    "dir",
    "..",
    ".",
    "",
    ".wh.a",
    ".wh..wh..opq",
    ".wh...",
    "\u0000",
    "ü",
    "x".repeat(300),
  );
  return fc.oneof(
    { weight: 6, arbitrary: fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => bytes(parts.join("/"))) },
    {
      weight: 2,
      arbitrary: fc.constantFrom("manifest.json", "index.json", "oci-layout", "layer.tar", "0/layer.tar").map(bytes),
    },
    fc
      .constantFrom(`${outside}/escaped`, `../../../../../../../..${outside}/escaped`, "link/escaped", "dir/")
      .map(bytes),
    fc.uint8Array({ maxLength: 120 }),
    fc.constant(new Uint8Array(0)),
  );
}

const digits = fc.oneof(
  fc.integer({ min: 0, max: 0o7777777 }).map((number) => number.toString(8)),
  fc.constantFrom(
    "",
    "-1",
    "-0000001000",
    "77777777777",
    "99999999",
    "zz",
    "\u0080\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff",
    "\u00ff\u00ff\u00ff\u00ff\u00ff",
  ),
);

/** Records of an extended header, whose lengths may be wrong. */
function extensionsOf(outside: Outside): fc.Arbitrary<Uint8Array> {
  const key = fc.constantFrom("path", "linkpath", "size", "__proto__", "GNU.sparse.size", "mtime");
  const value = fc.oneof(
    fc.constantFrom(
      "a",
      "-1",
      "1e99",
      "99999999999999999999",
      "0",
      "../up",
      `${outside}/escaped`,
      "n\u0000ul",
      "y".repeat(5000),
    ),
    fc.string({ maxLength: 20 }),
  );
  const record = fc.tuple(key, value, fc.constantFrom(0, 0, 0, -3, 5, 1000)).map(([name, text, wrong]) => {
    const rest = ` ${name}=${text}\n`;
    const length = Buffer.byteLength(rest) + String(Buffer.byteLength(rest) + 2).length;
    return `${length + wrong}${rest}`;
  });
  return fc.array(record, { minLength: 1, maxLength: 4 }).map((records) => bytes(records.join("")));
}

function entriesOf(outside: Outside): fc.Arbitrary<TarEntry> {
  const document = fc.oneof(
    fc
      .constantFrom(
        "",
        "null",
        "[]",
        "[null]",
        "{}",
        "[".repeat(3000),
        '[{"Layers":["0/layer.tar"],"Config":"a"}]',
        '[{"Layers":["a","a"],"Config":"a"}]',
        '{"manifests":[null]}',
        '{"layers":[{"digest":"sha256:../../x"}]}',
      )
      .map(bytes),
    fc.json({ maxDepth: 3 }).map(bytes),
  );
  const sound = {
    name: namesOf(outside),
    type: fc.constantFrom(...TYPES),
    content: fc.oneof(fc.uint8Array({ maxLength: 1500 }), document, extensionsOf(outside)),
    size: fc.constant(undefined),
    target: namesOf(outside),
    numbers: fc.constant(["644", "0", "0", "0"]),
    isSummed: fc.constant(true),
    magic: fc.constantFrom("ustar\u000000", "ustar  \u0000"),
  };
  const damaged = {
    ...sound,
    size: fc.option(digits, { nil: undefined }),
    numbers: fc.array(digits, { minLength: 4, maxLength: 4 }),
    isSummed: fc.integer({ max: 4, min: 0 }).map((number) => number > 0),
    magic: fc.oneof({ weight: 4, arbitrary: sound.magic }, fc.string({ maxLength: 8 })),
  };
  return fc.oneof({ weight: 9, arbitrary: fc.record(sound) }, fc.record(damaged));
}

function encodeEntry(entry: TarEntry): Buffer {
  const { name, type, content, size, target, numbers, isSummed, magic } = entry;
  const header = Buffer.alloc(BLOCK_BYTES);
  const put = (value: Uint8Array, at: number, length: number) => header.set(value.subarray(0, length), at);
  const text = (value: string, at: number, length: number) => put(Buffer.from(value, "latin1"), at, length);
  put(name, 0, 100);
  for (const [index, at] of [100, 108, 116].entries()) text(numbers[index] ?? "", at, 8);
  text(size ?? content.length.toString(8).padStart(11, "0"), 124, 12);
  text(numbers[3] ?? "", 136, 12);
  text(type, 156, 1);
  put(target, 157, 100);
  text(magic, 257, 8);
  header.fill(" ", 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  if (isSummed) text(`${sum.toString(8).padStart(6, "0")}\u0000 `, 148, 8);
  const padding = Buffer.alloc((BLOCK_BYTES - (content.length % BLOCK_BYTES)) % BLOCK_BYTES);
  return Buffer.concat([header, content, padding]);
}

/** Archives that look like those of `tar`, and differ from them in names, types, sizes, links, checksums, order and length. */
export function malformedTar(outside: Outside): fc.Arbitrary<Buffer> {
  const entries = fc.array(entriesOf(outside), { maxLength: 8 });
  const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 });
  const cut = fc.option(fc.nat(), { nil: undefined, freq: 9 });
  const ending = fc.constantFrom(2, 2, 2, 1, 0, 40);
  return fc.tuple(entries, damage, cut, ending).map(([list, flips, length, blocks]) => {
    const whole = Buffer.concat([...list.map(encodeEntry), Buffer.alloc(blocks * BLOCK_BYTES)]);
    if (list.length % 4 === 3) for (const [at, byte] of flips) if (whole.length > 0) whole[at % whole.length] = byte;
    return length === undefined ? whole : whole.subarray(0, length % (whole.length + 1));
  });
}

/** As a file with an image: in layers, compressed, and with damage in the compressed bytes. */
export function malformedImage(outside: Outside): fc.Arbitrary<Buffer> {
  const layers = fc.array(malformedTar(outside), { minLength: 1, maxLength: 3 });
  const saved = layers.map((contents) => {
    const files = contents.map((content, index) => whole(`${index}/layer.tar`, content));
    const names = contents.map((_, index) => `${index}/layer.tar`);
    const manifest = whole("manifest.json", bytes(JSON.stringify([{ Config: "c", Layers: names }])));
    return Buffer.concat([...files, whole("c", bytes("{}")), manifest, Buffer.alloc(2 * BLOCK_BYTES)]);
  });
  const plain = fc.oneof(malformedTar(outside), saved);
  const packed = fc.tuple(
    plain,
    fc.constantFrom(gzipSync, zstdCompressSync),
    fc.option(fc.tuple(fc.nat(), fc.nat(255))),
  );
  return fc.oneof(
    plain,
    packed.map(([content, pack, damage]) => {
      const result = Buffer.from(pack(content));
      if (damage !== null) result[damage[0] % result.length] = damage[1];
      return result;
    }),
  );
}

/** A valid entry. */
export function whole(name: string, content: Uint8Array, more: Partial<TarEntry> = {}): Buffer {
  return encodeEntry({
    name: bytes(name),
    type: "0",
    content,
    size: undefined,
    target: new Uint8Array(0),
    numbers: ["644", "0", "0", "0"],
    isSummed: true,
    magic: "ustar\u000000",
    ...more,
  });
}
