/** Binary frames of `/v1/socket`: u32 stream, u8 source, three zero bytes, u64 offset (big endian), then the bytes. */
const HEAD_BYTES = 16;
const sources = ["stdout", "stderr", "pty", "stdin", "port"] as const;

export type DataSource = (typeof sources)[number];

export interface DataFrame {
  readonly stream: number;
  readonly source: DataSource;
  /** Position of the first byte: in the process's journal for output, from the start for input. */
  readonly offset: number;
  readonly bytes: Uint8Array;
}

export function encodeDataFrame({ stream, source, offset, bytes }: DataFrame): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(HEAD_BYTES + bytes.length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, stream);
  view.setUint8(4, sources.indexOf(source));
  view.setBigUint64(8, BigInt(offset));
  frame.set(bytes, HEAD_BYTES);
  return frame;
}

/** Undefined for an invalid frame. The bytes are a view, not a copy. */
export function decodeDataFrame(frame: Uint8Array): DataFrame | undefined {
  if (frame.length < HEAD_BYTES) return undefined;
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  const source = sources[view.getUint8(4)];
  const offset = Number(view.getBigUint64(8));
  if (source === undefined || !Number.isSafeInteger(offset)) return undefined;
  return { stream: view.getUint32(0), source, offset, bytes: frame.subarray(HEAD_BYTES) };
}
