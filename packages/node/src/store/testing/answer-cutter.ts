import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

export interface AnswerCutter extends AsyncDisposable {
  readonly endpoint: string;
  /** Called after a request has taken effect; true closes the connection instead of sending the response. */
  cut: (request: IncomingMessage) => boolean | Promise<boolean>;
  /** The status with which the proxy answers a request itself, without passing it on. */
  refuse: (request: IncomingMessage) => number | undefined;
}

/** A proxy that can refuse the requests to a server and lose its responses. */
export async function startAnswerCutter(target: string): Promise<AnswerCutter> {
  const server = createServer(async (incoming, outgoing) => {
    const { method, url, headers } = incoming;
    const refusal = cutter.refuse(incoming);
    if (refusal !== undefined) {
      await buffer(incoming);
      outgoing.writeHead(refusal).end();
      return;
    }
    const forwarded = request(target, { method, path: url, headers });
    forwarded.end(await buffer(incoming));
    const [response] = (await once(forwarded, "response")) as [IncomingMessage];
    const body = await buffer(response);
    if (await cutter.cut(incoming)) {
      incoming.socket.destroy();
      return;
    }
    outgoing.writeHead(response.statusCode ?? 500, response.rawHeaders).end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cutter: AnswerCutter = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut: () => false,
    refuse: () => undefined,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return cutter;
}
