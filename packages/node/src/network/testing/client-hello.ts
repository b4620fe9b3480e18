/** Bytes with their length before them. */
function sized(lengthBytes: 1 | 2 | 3, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const length = Buffer.alloc(lengthBytes);
  length.writeUIntBE(content.length, 0, lengthBytes);
  return Buffer.concat([length, content]);
}

export function extension(type: number, content: Uint8Array): Buffer {
  const head = Buffer.alloc(2);
  head.writeUInt16BE(type);
  return Buffer.concat([head, sized(2, content)]);
}

export function serverName(name: string): Buffer {
  return extension(0, sized(2, Buffer.from([0]), sized(2, Buffer.from(name, "latin1"))));
}

/** An extension of an encrypted hello, as browsers send it as a decoy. */
export const decoy = extension(0xfe0d, Buffer.alloc(250, 0x00));

/** The handshake message of a ClientHello; undefined extensions for one without any. */
export function helloMessage(extensions: readonly Uint8Array[] | undefined): Buffer {
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    sized(1, Buffer.alloc(32, 1)),
    sized(2, Buffer.from([0x13, 0x01, 0x13, 0x02])),
    sized(1, Buffer.from([0])),
    ...(extensions === undefined ? [] : [sized(2, ...extensions)]),
  ]);
  return Buffer.concat([Buffer.from([1]), sized(3, body)]);
}

/** Splits a handshake message into records of at most this size. */
export function records(message: Buffer, maxBytes = 16_384): Buffer {
  const all: Buffer[] = [];
  for (let at = 0; at < message.length; at += maxBytes) {
    all.push(Buffer.from([0x16, 3, 1]), sized(2, message.subarray(at, at + maxBytes)));
  }
  return Buffer.concat(all);
}

export function clientHello(name: string): Buffer {
  return records(helloMessage([extension(10, Buffer.from([0, 2, 0, 29])), serverName(name), decoy]));
}
