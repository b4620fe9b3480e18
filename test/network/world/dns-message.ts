const recordTypes = { A: 1, CNAME: 5, AAAA: 28 } as const;
type RecordType = keyof typeof recordTypes;

export interface DnsRecord {
  readonly name: string;
  readonly type: RecordType;
  /** An address, or the name that a CNAME points at. */
  readonly value: string;
}

export interface DnsQuestion {
  readonly id: number;
  readonly name: string;
  /** Undefined for types that this server does not know. */
  readonly type: RecordType | undefined;
  /** The question's own bytes, which the answer repeats. */
  readonly bytes: Buffer;
}

const HEADER_BYTES = 12;

/** Reads the first question of a DNS message. */
export function parseQuestion(message: Buffer): DnsQuestion {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = message.readUInt8(at); length !== 0; length = message.readUInt8(at)) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const code = message.readUInt16BE(at + 1);
  const type = (Object.keys(recordTypes) as RecordType[]).find((name) => recordTypes[name] === code);
  const bytes = message.subarray(HEADER_BYTES, at + 5);
  return { id: message.readUInt16BE(0), name: labels.join(".").toLowerCase(), type, bytes };
}

/** `responseCode` 0 is success, 2 a server failure, 3 a name that does not exist. */
export function encodeAnswer(question: DnsQuestion, records: readonly DnsRecord[], responseCode = 0): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(question.id, 0);
  header.writeUInt16BE(0x8580 | responseCode, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(records.length, 6);
  return Buffer.concat([header, question.bytes, ...records.map(encodeRecord)]);
}

function encodeRecord({ name, type, value }: DnsRecord): Buffer {
  const data =
    type === "A" ? Buffer.from(value.split(".").map(Number)) : type === "AAAA" ? v6(value) : encodeName(value);
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(recordTypes[type], 0);
  fixed.writeUInt16BE(1, 2);
  // No time to live: every query of a resolver comes back to this server.
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([encodeName(name), fixed, data]);
}

function encodeName(name: string): Buffer {
  const labels = name.split(".").map((label) => Buffer.from([label.length, ...Buffer.from(label, "latin1")]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

function v6(address: string): Buffer {
  const [head = "", tail = ""] = address.split("::");
  const groups = (text: string) => (text === "" ? [] : text.split(":"));
  const [left, right] = [groups(head), groups(tail)];
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0");
  const words = [...left, ...zeros, ...right].map((group) => Number.parseInt(group, 16));
  return Buffer.from(words.flatMap((word) => [word >> 8, word & 255]));
}
