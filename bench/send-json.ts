import { type IncomingMessage, type RequestOptions, request } from "node:http";
import { text } from "node:stream/consumers";

/** Uses node:http, because fetch adds a third of a millisecond. */
export async function sendJson<Answer>(url: string, options: RequestOptions, body?: object): Promise<Answer> {
  const sentText = body === undefined ? "" : JSON.stringify(body);
  const headers = {
    ...options.headers,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(sentText),
  };
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request(url, { ...options, headers }, resolve)
    .on("error", reject)
    .end(sentText);
  const response = await promise;
  const answer = await text(response);
  if (response.statusCode === undefined || response.statusCode >= 300)
    throw new Error(`${options.method} ${url}: ${answer}`);
  return (answer === "" ? undefined : JSON.parse(answer)) as Answer;
}
