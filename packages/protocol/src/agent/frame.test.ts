import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeFrame, type Frame, FrameDecoder, resyncPadding } from "./frame.ts";
import { MAX_ATTACHMENT_BYTES, MAX_LINE_BYTES } from "./generation.ts";

function decode(chunks: Iterable<Uint8Array>): (Frame | string)[] {
  const seen: (Frame | string)[] = [];
  const decoder = new FrameDecoder({ frame: (frame) => seen.push(frame), fault: (fault) => seen.push(fault) });
  for (const chunk of chunks) {
    // A chunk is often a Node Buffer that its sender reuses after the call.
    const lent = Buffer.from(chunk);
    decoder.push(lent);
    lent.fill(0x21);
  }
  return seen;
}

function* cut(bytes: Uint8Array, sizes: readonly number[]): Generator<Uint8Array> {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

const frame = fc.record({
  message: fc.dictionary(
    fc.string({ maxLength: 8 }).filter((key) => key !== "bytes" && key !== "__proto__"),
    fc.jsonValue(),
    {
      maxKeys: 4,
      noNullPrototype: true,
    },
  ),
  attachment: fc.option(fc.uint8Array({ maxLength: 300 }), { nil: undefined }),
});
const noise = fc.uint8Array({ maxLength: 60 });
const sizes = fc.array(fc.integer({ min: 1, max: 70 }), { minLength: 1, maxLength: 8 });

describe("a message", () => {
  it("with half a surrogate pair is refused, because its receiver could not identify the message", () => {
    for (const text of ["\ud800", "a\udfff", "\\\ud912b"]) expect(() => encodeFrame({ text })).toThrow("surrogate");
    expect(() => encodeFrame({ "\ud800": 1 }, new Uint8Array(1))).toThrow("surrogate");
    for (const text of ["\u{1f600}", "\\ud800", "\\\\ud800"]) {
      expect(decode(encodeFrame({ text }))).toEqual([{ message: { text }, attachment: undefined }]);
    }
  });
});

describe("a stream of frames", () => {
  it("writes attachments into the memory of the sink", () => {
    const memory = new Uint8Array(5);
    const seen: Frame[] = [];
    const place = (message: Readonly<Record<string, unknown>>, size: number) =>
      message["id"] === 1 ? memory.subarray(0, size) : undefined;
    const decoder = new FrameDecoder({ place, frame: (frame) => seen.push(frame), fault: () => {} });
    for (const id of [1, 2]) decoder.push(Buffer.concat(encodeFrame({ id }, Uint8Array.of(7, 8, 9))));
    for (const chunk of cut(Buffer.concat(encodeFrame({ id: 1 }, Uint8Array.of(4, 5, 6))), [1])) decoder.push(chunk);
    expect(seen.map(({ attachment }) => attachment?.buffer === memory.buffer)).toEqual([true, false, true]);
    expect(seen[1]?.attachment).toEqual(Uint8Array.of(7, 8, 9));
    expect(seen[2]?.attachment).toEqual(Uint8Array.of(4, 5, 6));
  });

  it("decodes to the same frames, however it is split into chunks", () => {
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 8 }), sizes, (frames, chunkSizes) => {
        const bytes = Buffer.concat(frames.flatMap(({ message, attachment }) => encodeFrame(message, attachment)));
        const expected = frames.map(({ message, attachment }) => ({
          message: JSON.parse(
            JSON.stringify(attachment === undefined ? message : { ...message, bytes: attachment.length }),
          ),
          attachment,
        }));
        expect(decode(cut(bytes, chunkSizes))).toEqual(expected);
      }),
      { numRuns: 500 },
    );
  });

  it("decodes to the same frames and faults, however it is split, with noise between the frames", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(frame, noise), { maxLength: 8 }), sizes, (parts, chunkSizes) => {
        const bytes = Buffer.concat(
          parts.flatMap((part) => (part instanceof Uint8Array ? [part] : encodeFrame(part.message, part.attachment))),
        );
        expect(decode(cut(bytes, chunkSizes))).toEqual(decode([bytes]));
      }),
      { numRuns: 500 },
    );
  });

  it("continues after a line that is too long, without storing it", () => {
    const long = new Uint8Array(MAX_LINE_BYTES + 1).fill(0x78);
    const good = encodeFrame({ id: 1 });
    expect(decode([long, Uint8Array.of(0x0a), ...good])).toEqual([
      "line_too_long",
      { message: { id: 1 }, attachment: undefined },
    ]);
  });

  it("holds the largest attachment and refuses a larger one", () => {
    const largest = new Uint8Array(MAX_ATTACHMENT_BYTES);
    expect(decode(encodeFrame({}, largest))).toHaveLength(1);
    expect(() => encodeFrame({}, new Uint8Array(MAX_ATTACHMENT_BYTES + 1))).toThrow(RangeError);
  });

  it("is in sync again after padding, wherever an earlier sender stopped", () => {
    const whole = Buffer.concat(encodeFrame({ jsonrpc: "2.0", id: 1, method: "write" }, new Uint8Array(40).fill(0x7b)));
    const hello = { jsonrpc: "2.0", id: "mine", method: "hello" };
    for (let stop = 0; stop < whole.length; stop++) {
      const seen = decode([whole.subarray(0, stop), resyncPadding(), ...encodeFrame(hello)]);
      expect(seen.filter((each) => typeof each !== "string")).toEqual([{ message: hello, attachment: undefined }]);
    }
  });
});
