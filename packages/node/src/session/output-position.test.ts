import { describe, expect, it } from "vitest";
import { formatCursor, parseResume } from "./output-cursor.ts";
import { type OutputPosition, type ReadText, readChunk, readEnd, START, type TextPiece } from "./output-position.ts";

type Written = readonly [source: "stdout" | "stderr", bytes: readonly number[]];

/** Reads writes from a position on, as a journal returns them. */
function readFrom(position: OutputPosition, written: readonly Written[]): ReadText {
  const pieces: TextPiece[] = [];
  let at = 0;
  let reached = position;
  for (const [source, all] of written) {
    const skipped = Math.max(0, position.offset - at);
    const bytes = Uint8Array.from(all).subarray(skipped);
    const offset = at + Math.min(skipped, all.length);
    at += all.length;
    if (bytes.length === 0) continue;
    const read = readChunk(reached, { source, bytes, offset, dropped: 0 });
    pieces.push(...read.pieces);
    reached = read.position;
  }
  const end = readEnd(reached);
  return { pieces: [...pieces, ...end.pieces], position: end.position };
}

const textOf = (pieces: readonly TextPiece[], source: string) =>
  pieces.map((piece) => (piece.source === source ? piece.text : "")).join("");

const utf8 = (text: string) => [...new TextEncoder().encode(text)];
const byByte = (source: "stdout" | "stderr", bytes: readonly number[]): Written[] =>
  bytes.map((byte) => [source, [byte]]);

/** Both streams in turn, byte by byte. */
function interleaved(stdout: readonly number[], stderr: readonly number[]): Written[] {
  const [out, err] = [byByte("stdout", stdout), byByte("stderr", stderr)];
  return out.flatMap((one, at) => [one, ...(err[at] === undefined ? [] : [err[at]])]);
}

const cases: readonly { readonly name: string; readonly written: readonly Written[] }[] = [
  { name: "characters of one to four bytes, byte by byte", written: byByte("stdout", utf8("aé€𝄞\u{feff}z")) },
  { name: "two streams in turn, within characters", written: interleaved(utf8("né€𝄞né€𝄞"), utf8("é€𝄞x")) },
  {
    name: "invalid bytes",
    written: byByte("stdout", [0xff, 0x41, 0xc3, 0x28, 0xe0, 0x80, 0xf5, 0xed, 0xa0, 0x80, 0xf0]),
  },
  {
    name: "an incomplete character at the end of each stream",
    written: [
      ["stdout", [0x41, 0xf0, 0x9d]],
      ["stderr", [0xe2, 0x82]],
    ],
  },
];

describe("the text of an execution's output", () => {
  it.each(cases)("is that of the whole output: $name", ({ written }) => {
    const { pieces, position } = readFrom(START, written);
    for (const source of ["stdout", "stderr"] as const) {
      const bytes = written.flatMap(([of, each]) => (of === source ? each : []));
      const whole = new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
      expect(textOf(pieces, source)).toBe(whole);
    }
    expect(position).toEqual({ offset: written.flatMap(([, bytes]) => bytes).length, held: {} });
  });

  it.each(cases)("has neither gap nor repeat when a client resumes after any piece: $name", ({ written }) => {
    const { pieces } = readFrom(START, written);
    expect(pieces.length).toBeGreaterThan(1);
    for (const [at, { after }] of pieces.entries()) {
      const query = new URLSearchParams({ execution: "e", offset: formatCursor(after, 2) });
      const resumed = parseResume(new URLSearchParams(query.toString()));
      expect(resumed).toMatchObject({ execution: "e", rollbacks: 2 });
      const rest = readFrom(resumed?.position as OutputPosition, written).pieces;
      const strip = ({ source, text, offset }: TextPiece) => ({ source, text, offset });
      expect(rest.map(strip)).toEqual(pieces.slice(at + 1).map(strip));
    }
  });

  it("replaces an incomplete character before a gap, and reports the gap", () => {
    const { position } = readChunk(START, { source: "stdout", bytes: Uint8Array.of(0xc3), offset: 0, dropped: 0 });
    const chunk = { source: "stdout", bytes: Uint8Array.of(0xa9, 0x41), offset: 101, dropped: 100 } as const;
    expect(readChunk(position, chunk).pieces).toMatchObject([
      { text: "\ufffd", offset: 0, dropped: 0 },
      { text: "\ufffdA", offset: 101, dropped: 100, after: { offset: 103 } },
    ]);
  });
});

describe("the position that a client passes", () => {
  it("is undefined without parameters, and the start without an offset", () => {
    expect(parseResume(new URLSearchParams("takeover=true"))).toBeUndefined();
    expect(parseResume(new URLSearchParams("execution=e1"))).toMatchObject({ position: { offset: 0 }, rollbacks: 0 });
  });

  it.each([
    "offset=1",
    "execution=&offset=1",
    "execution=../x&offset=1",
    `execution=${"x".repeat(57)}&offset=1`,
    "execution=e&offset=-1",
    "execution=e&offset=1.5",
    "execution=e&offset=",
    "execution=e&offset=9999999999999999",
    "execution=e&offset=1~stdout.0.c3c3c3c3",
    "execution=e&offset=1~stdout.0.zz",
  ])("is refused if it is malformed: %s", (query) => {
    expect(() => parseResume(new URLSearchParams(query))).toThrow(expect.objectContaining({ reason: "invalid_query" }));
  });
});
