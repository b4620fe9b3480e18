import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const CLOSE = 8;

/** Accepts a WebSocket and returns every message to its sender. Messages of more than 64 KiB are not for this server. */
export function echoMessages(request: IncomingMessage, socket: Duplex): void {
  const accept = createHash("sha1").update(`${request.headers["sec-websocket-key"]}${MAGIC}`).digest("base64");
  const head = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
  socket.write(`${[...head, `Sec-WebSocket-Accept: ${accept}`].join("\r\n")}\r\n\r\n`);
  let pending = Buffer.alloc(0);
  socket.on("error", () => socket.destroy());
  socket.on("data", (bytes: Buffer) => {
    pending = Buffer.concat([pending, bytes]);
    for (let frame = readFrame(pending); frame !== undefined; frame = readFrame(pending)) {
      pending = pending.subarray(frame.lengthBytes);
      socket.write(frame.answer);
      if ((frame.answer.readUInt8(0) & 15) === CLOSE) socket.end();
    }
  });
}

/** The first frame of a client as the frame that returns it, without the client's mask. */
function readFrame(bytes: Buffer): { readonly lengthBytes: number; readonly answer: Buffer } | undefined {
  if (bytes.length < 4) return undefined;
  const short = bytes.readUInt8(1) & 127;
  const maskAt = short === 126 ? 4 : 2;
  const payloadBytes = short === 126 ? bytes.readUInt16BE(2) : short;
  const lengthBytes = maskAt + 4 + payloadBytes;
  if (bytes.length < lengthBytes) return undefined;
  const mask = bytes.subarray(maskAt, maskAt + 4);
  const payload = bytes.subarray(maskAt + 4, lengthBytes).map((byte, at) => byte ^ (mask[at % 4] ?? 0));
  const head = Buffer.from(bytes.subarray(0, maskAt));
  head.writeUInt8(short, 1);
  return { lengthBytes, answer: Buffer.concat([head, payload]) };
}
