import { once } from "node:events";
import { type IncomingMessage, type RequestOptions, request } from "node:http";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

export interface SocketRequest extends Pick<RequestOptions, "headers" | "signal"> {
  readonly socketPath: string;
  readonly method: string;
  readonly path: string;
  readonly body?: string | Readable | undefined;
  /** Protects against a compromised server. */
  readonly maxAnswerBytes?: number;
}

export interface SocketAnswer {
  readonly status: number;
  readonly text: string;
}

/** Makes one HTTP request on a Unix socket, with its own connection. */
export async function requestSocket(options: SocketRequest): Promise<SocketAnswer> {
  const { body, maxAnswerBytes = Number.POSITIVE_INFINITY, ...target } = options;
  const call = request({ ...target, agent: false });
  // The answer reports errors that come later.
  call.on("error", () => {});
  // The server may answer before it has read the whole body.
  if (typeof body === "object") pipeline(body, call).catch(() => {});
  else call.end(body);
  const [answer] = (await once(call, "response")) as [IncomingMessage];
  let text = "";
  for await (const piece of answer.setEncoding("utf8")) {
    text += piece;
    if (text.length > maxAnswerBytes) throw new Error(`its answer is longer than ${maxAnswerBytes} bytes`);
  }
  return { status: answer.statusCode ?? 0, text };
}
