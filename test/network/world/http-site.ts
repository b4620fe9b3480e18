import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";

const PIECE = Buffer.alloc(256 * 1024, "sandpiper ");
const EVENTS = 3;

/** A site with the answers that programs get from real ones: redirects, events, large bodies both ways. */
export function serveSite(request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", "http://site.example");
  const text = (body: string) => response.end(body);
  if (url.pathname === "/redirect") {
    response.writeHead(302, { location: url.searchParams.get("to") ?? "/" });
    text("moved\n");
  } else if (url.pathname === "/download") {
    Readable.from(pieces(Number(url.searchParams.get("bytes")))).pipe(response);
  } else if (url.pathname === "/upload") {
    const hash = createHash("sha256");
    let bytes = 0;
    request.on("data", (piece: Buffer) => {
      bytes += piece.length;
      hash.update(piece);
    });
    request.on("end", () => text(`${bytes} ${hash.digest("hex")}\n`));
  } else if (url.pathname === "/events") {
    response.writeHead(200, { "content-type": "text/event-stream" });
    sendEvents(response);
  } else if (url.pathname === "/headers") {
    text(`${JSON.stringify(request.headers)}\n`);
  } else {
    text(`reached ${request.socket.localAddress?.replace(/^::ffff:/, "")} as ${hostOf(request)}\n`);
  }
}

/** The name that the client asked for, without a port. */
export function hostOf({ headers }: IncomingMessage): string {
  return String(headers[":authority"] ?? headers.host ?? "").replace(/:\d+$/, "");
}

function* pieces(sizeBytes: number): Iterable<Buffer> {
  for (let left = sizeBytes; left > 0; left -= PIECE.length)
    yield left < PIECE.length ? PIECE.subarray(0, left) : PIECE;
}

/** Each event waits until the client had time to read the one before. */
function sendEvents(response: ServerResponse): void {
  let sent = 0;
  const timer = setInterval(() => {
    response.write(`data: ${++sent}\n\n`);
    if (sent < EVENTS) return;
    clearInterval(timer);
    response.end();
  }, 50);
  response.on("close", () => clearInterval(timer));
}
