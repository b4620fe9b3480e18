import { type Agent, request } from "node:http";
import { json } from "node:stream/consumers";

/** Uses node:http, because fetch adds a third of a millisecond. */
export function postJson(
  url: string,
  body: object,
  { agent, apiKey }: { readonly agent: Agent; readonly apiKey: string },
): Promise<unknown> {
  const text = JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${apiKey}`,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
  };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", agent, headers }, (response) => {
      json(response).then((answer) => {
        if (response.statusCode !== undefined && response.statusCode < 300) resolve(answer);
        else reject(new Error(`POST ${url}: ${JSON.stringify(answer)}`));
      }, reject);
    });
    sent.on("error", reject).end(text);
  });
}
