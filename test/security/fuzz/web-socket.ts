import { connect } from "node:net";
import fc from "fast-check";
import { damaged, damages, jsonText, mutated } from "./malformed-json.ts";
import { DEADLINE_MS, parseAnswer, type RawAnswer } from "./raw-http.ts";
import {
  BINARY,
  CLOSE,
  decodeFrame,
  encodeFrame,
  type Frame,
  frameOf,
  malformedFrames,
  PING,
  TEXT,
} from "./web-socket-frames.ts";

/** A connection, and what its client sends. */
export interface WebSocketInput {
  readonly target: string;
  readonly headers: readonly string[];
  readonly frames: readonly Frame[];
  /** Send the frames without waiting for the answer to the handshake. */
  readonly isEager: boolean;
}

const handshake = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
];
const KEY = "Authorization: Bearer @key@";

const badHandshakes: readonly (readonly string[])[] = [
  [...handshake],
  [...handshake, "Authorization: Bearer wrong"],
  [...handshake.slice(0, 2), KEY],
  [...handshake.slice(0, 3), KEY],
  [...handshake.slice(0, 3), KEY, "Sec-WebSocket-Key: short"],
  [...handshake.slice(0, 2), KEY, "Sec-WebSocket-Version: 99", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="],
  [...handshake, KEY, "Sec-WebSocket-Protocol: ,,"],
  [...handshake, KEY, "Sec-WebSocket-Protocol: a, a"],
  [...handshake, "Sec-WebSocket-Protocol: sandpiper.v1, bearer.wrong"],
  [...handshake, KEY, "Sec-WebSocket-Extensions: permessage-deflate; x=\u0001"],
  [...handshake, KEY, "Sec-WebSocket-Extensions: ;;;"],
  [...handshake, KEY, "Origin: https://evil.example.com"],
  ["Connection: Upgrade", "Upgrade: h2c", KEY],
  [...handshake, KEY, "Content-Length: 5"],
];

export interface MessageSources {
  readonly targets: fc.Arbitrary<string>;
  /** Valid messages, as JSON. */
  readonly messages: fc.Arbitrary<unknown>;
  readonly binary: fc.Arbitrary<Buffer>;
}

/** Connections with messages that follow a protocol's schema, except in some places. */
export function webSocketInputs({ targets, messages, binary }: MessageSources): fc.Arbitrary<WebSocketInput> {
  const texts = fc.oneof({ weight: 1, arbitrary: messages }, { weight: 1, arbitrary: mutated(messages) }).map(jsonText);
  const frames = fc.oneof(
    { weight: 12, arbitrary: fc.tuple(texts, damages).map(([text, damage]) => frameOf(TEXT, damaged(text, damage))) },
    { weight: 2, arbitrary: binary.map((bytes) => frameOf(BINARY, bytes)) },
    { weight: 1, arbitrary: texts.map((text) => frameOf(BINARY, Buffer.from(text))) },
    { weight: 1, arbitrary: malformedFrames },
  );
  return fc.record({
    target: targets,
    headers: fc.oneof(
      { weight: 12, arbitrary: fc.constant([...handshake, KEY]) },
      { weight: 1, arbitrary: fc.constantFrom(...badHandshakes) },
    ),
    frames: fc.array(frames, { minLength: 1, maxLength: 6 }),
    isEager: fc.boolean(),
  });
}

export interface Conversation {
  readonly handshake: RawAnswer | "closed";
  readonly texts: readonly string[];
  /** How the server closed the connection; 1005 for a close frame without a code, 1006 for none. Undefined if it did not. */
  readonly closeCode: number | undefined;
}

/**
 * Opens a connection, sends frames, and then a ping. Resolves when the server has answered the ping or closed the
 * connection, or after the deadline rejects.
 */
export async function converse(
  port: number,
  input: WebSocketInput,
  fill: (text: string) => string,
): Promise<Conversation> {
  const { promise, resolve, reject } = Promise.withResolvers<Conversation>();
  const timer = setTimeout(() => reject(new Error(`no end of the conversation within ${DEADLINE_MS} ms`)), DEADLINE_MS);
  const socket = connect(port, "127.0.0.1");
  const head = [`GET ${fill(input.target)} HTTP/1.1`, "Host: localhost", ...input.headers.map(fill)];
  const sent = input.frames.map((frame) =>
    encodeFrame({ ...frame, payload: Buffer.from(fill(frame.payload.toString("latin1")), "latin1") }),
  );
  const body = Buffer.concat([...sent, encodeFrame(frameOf(PING, Buffer.from("last")))]);
  const texts: string[] = [];
  let answer: RawAnswer | undefined;
  let received = Buffer.alloc(0);
  const end = (closeCode: number | undefined) => resolve({ handshake: answer ?? "closed", texts, closeCode });
  const read = () => {
    for (let frame = decodeFrame(received); frame !== undefined; frame = decodeFrame(received)) {
      received = received.subarray(frame.end);
      if (frame.opcode === TEXT) texts.push(frame.payload.toString());
      if (frame.opcode === CLOSE) end(frame.payload.length < 2 ? 1005 : frame.payload.readUInt16BE(0));
      if (frame.opcode === 10 && frame.payload.toString() === "last") end(undefined);
    }
  };
  socket.on("data", (piece: Buffer) => {
    received = Buffer.concat([received, piece]);
    if (answer === undefined) {
      answer = parseAnswer(received);
      if (answer === undefined) return;
      if (answer.status !== 101) return end(undefined);
      received = Buffer.from(answer.body);
      if (!input.isEager) socket.write(body);
      // A frame that announces more than it has would swallow the ping.
      if (input.frames.some(({ announced }) => announced !== undefined)) socket.end();
    }
    read();
  });
  socket.on("error", () => {}).on("close", () => end(1006));
  socket.write(
    Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`, "latin1"), input.isEager ? body : Buffer.alloc(0)]),
  );
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}
