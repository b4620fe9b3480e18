import fc from "fast-check";

/** One frame of a client, as it is on the wire before masking. */
export interface Frame {
  readonly opcode: number;
  readonly isFinal: boolean;
  /** The three reserved bits of the first byte. */
  readonly reserved: number;
  readonly isMasked: boolean;
  readonly payload: Buffer;
  /** Announced instead of the payload's length. */
  readonly announced: number | undefined;
}

export const TEXT = 1;
export const BINARY = 2;
export const CLOSE = 8;
export const PING = 9;

export function frameOf(opcode: number, payload: Buffer): Frame {
  return { opcode, isFinal: true, reserved: 0, isMasked: true, payload, announced: undefined };
}

const payloads = fc.string({ unit: "binary", maxLength: 200 }).map((text) => Buffer.from(text, "latin1"));

/** Frames that break RFC 6455 in some place, or come out of order. */
export const malformedFrames: fc.Arbitrary<Frame> = fc.oneof(
  fc.record({
    opcode: fc.nat(15),
    isFinal: fc.boolean(),
    reserved: fc.constantFrom(0, 0, 0, 1, 2, 4, 7),
    isMasked: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
    payload: payloads,
    announced: fc.constantFrom(undefined, undefined, undefined, 17 * 1024 * 1024, 2 ** 40, 2 ** 53),
  }),
  // Continuations without a start, texts that are not UTF-8, and closes with codes that no peer may send.
  payloads.map((payload) => frameOf(0, payload)),
  fc.constantFrom([0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80]).map((bytes) => frameOf(TEXT, Buffer.from(bytes))),
  fc
    .constantFrom([], [3], [0, 0], [3, 0xed], [3, 0xee], [0xff, 0xff], [3, 0xe8, 0xff])
    .map((bytes) => frameOf(CLOSE, Buffer.from(bytes))),
  fc.constant(frameOf(PING, Buffer.alloc(126))),
);

export function encodeFrame({ opcode, isFinal, reserved, isMasked, payload, announced }: Frame): Buffer {
  const length = announced ?? payload.length;
  const mask = isMasked ? 0x80 : 0;
  const first = (isFinal ? 0x80 : 0) | (reserved << 4) | opcode;
  let head: Buffer;
  if (length < 126) head = Buffer.from([first, mask | length]);
  else if (length < 65_536) {
    head = Buffer.from([first, mask | 126, 0, 0]);
    head.writeUInt16BE(length, 2);
  } else {
    head = Buffer.alloc(10);
    head.set([first, mask | 127]);
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  // A mask of zeros leaves the payload as it is.
  return Buffer.concat([head, Buffer.alloc(isMasked ? 4 : 0), payload]);
}

/** A frame of the server, and where the next one begins. Undefined while more must arrive. */
export function decodeFrame(bytes: Buffer): { opcode: number; payload: Buffer; end: number } | undefined {
  if (bytes.length < 2) return undefined;
  const short = (bytes[1] as number) & 0x7f;
  const at = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < at) return undefined;
  const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  if (bytes.length < at + length) return undefined;
  return { opcode: (bytes[0] as number) & 0xf, payload: bytes.subarray(at, at + length), end: at + length };
}
