/** The part of the Distinguished Encoding Rules that certificates need. */

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const OBJECT_IDENTIFIER = 0x06;
const UTF8_STRING = 0x0c;
const UTC_TIME = 0x17;
const SEQUENCE = 0x30;
const SET = 0x31;
const CONTEXT = 0x80;
const CONSTRUCTED = 0x20;
const BOOLEAN_TRUE = Buffer.from([0x01, 0x01, 0xff]);

export function sequence(...parts: readonly Uint8Array[]): Buffer {
  return value(SEQUENCE, ...parts);
}

export function set(...parts: readonly Uint8Array[]): Buffer {
  return value(SET, ...parts);
}

/** A non-negative integer, most significant byte first. */
export function integer(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const significant = first === -1 ? Buffer.from([0]) : Buffer.from(bytes.subarray(first));
  // A leading one bit would make it negative.
  return (significant[0] ?? 0) >= 0x80 ? value(INTEGER, Buffer.from([0]), significant) : value(INTEGER, significant);
}

export function octets(...parts: readonly Uint8Array[]): Buffer {
  return value(OCTET_STRING, ...parts);
}

/** Without `unused` bits, the content is whole bytes. */
export function bits(content: Uint8Array, unused = 0): Buffer {
  return value(BIT_STRING, Buffer.from([unused]), content);
}

export function text(content: string): Buffer {
  return value(UTF8_STRING, Buffer.from(content));
}

/** To the second; valid for the years 1950 to 2049. */
export function utcTime(instant: Date): Buffer {
  const digits = instant.toISOString().replace(/[-:T]|\.\d+/g, "");
  return value(UTC_TIME, Buffer.from(digits.slice(2)));
}

export function yes(): Buffer {
  return BOOLEAN_TRUE;
}

export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return value(OBJECT_IDENTIFIER, Buffer.from([40 * first + second, ...rest.flatMap(base128)]));
}

/** A value with a context-specific tag, around other values. */
export function explicit(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  return value(CONTEXT | CONSTRUCTED | tag, ...parts);
}

/** A value whose context-specific tag replaces that of its type. */
export function implicit(tag: number, content: Uint8Array): Buffer {
  return value(CONTEXT | tag, content);
}

function value(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag, ...lengthOf(content.length)]), content]);
}

function lengthOf(length: number): readonly number[] {
  if (length < 0x80) return [length];
  const digits: number[] = [];
  for (let rest = length; rest > 0; rest >>>= 8) digits.unshift(rest & 0xff);
  return [0x80 | digits.length, ...digits];
}

function base128(number: number): readonly number[] {
  const digits = [number & 0x7f];
  for (let rest = number >>> 7; rest > 0; rest >>>= 7) digits.unshift(0x80 | (rest & 0x7f));
  return digits;
}
