import { connect } from "node:net";

/** Longer than every deadline of the node that an input can meet. */
export const DEADLINE_MS = 20_000;

export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  /** Of a stream, what came with the head. */
  readonly body: Buffer;
}

export interface SendOptions {
  /** The request is incomplete: end the connection behind it. */
  readonly isCut?: boolean | undefined;
  readonly method?: string | undefined;
  /** Wait for the end of a stream of events. */
  readonly waitsForEvents?: boolean | undefined;
}

/** Sends bytes on a new connection. Resolves to the answer, or to "closed" if the node closes without one. */
export async function sendRaw(
  port: number,
  bytes: Uint8Array,
  options: SendOptions = {},
): Promise<RawAnswer | "closed"> {
  const socket = connect(port, "127.0.0.1");
  const { promise, resolve, reject } = Promise.withResolvers<RawAnswer | "closed">();
  const timer = setTimeout(() => reject(new Error(`no answer within ${DEADLINE_MS} ms`)), DEADLINE_MS);
  let received = Buffer.alloc(0);
  socket.on("data", (piece: Buffer) => {
    received = Buffer.concat([received, piece]);
    const answer = parseAnswer(received, options);
    if (answer !== undefined) resolve(answer);
  });
  socket.on("error", () => {}).on("close", () => resolve("closed"));
  socket.write(bytes);
  if (options.isCut) socket.end();
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

/** Undefined while more must arrive. */
export function parseAnswer(bytes: Buffer, options: SendOptions = {}): RawAnswer | undefined {
  const at = bytes.indexOf("\r\n\r\n");
  if (at === -1) return undefined;
  const [start = "", ...lines] = bytes.toString("latin1", 0, at).split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(start)?.[1]);
  const rest = bytes.subarray(at + 4);
  if (status >= 100 && status < 200 && status !== 101) return parseAnswer(rest, options);
  const headers = new Map(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
  );
  if (options.method === "HEAD" || status === 204 || status === 304 || status === 101)
    return { status, headers, body: rest };
  const length = headers.get("content-length");
  if (length !== undefined)
    return rest.length < Number(length) ? undefined : { status, headers, body: rest.subarray(0, Number(length)) };
  // A stream of events may never end.
  if (!options.waitsForEvents && headers.get("content-type")?.startsWith("text/event-stream"))
    return { status, headers, body: rest };
  if (headers.get("transfer-encoding") !== "chunked") return { status, headers, body: rest };
  const body = unchunked(rest);
  return body && { status, headers, body };
}

/** Undefined while the last chunk is missing. */
function unchunked(bytes: Buffer): Buffer | undefined {
  const pieces: Buffer[] = [];
  for (let at = 0; ; ) {
    const end = bytes.indexOf("\r\n", at);
    if (end === -1) return undefined;
    const size = Number.parseInt(bytes.toString("latin1", at, end), 16);
    if (size === 0) return Buffer.concat(pieces);
    pieces.push(bytes.subarray(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
}
