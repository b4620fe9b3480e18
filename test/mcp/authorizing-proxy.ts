import { once } from "node:events";
import { createServer, request as requestHttp } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";

export interface AuthorizingProxy extends AsyncDisposable {
  readonly url: string;
}

/** Adds an API key to the requests of clients that cannot; it forwards everything else, also Host, unchanged. */
export async function startAuthorizingProxy(target: string, apiKey: string): Promise<AuthorizingProxy> {
  const server = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    const authorized = { ...headers, authorization: `Bearer ${apiKey}` };
    const passed = requestHttp(new URL(url ?? "", target), { method, headers: authorized }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      pipeline(answer, outgoing, () => {});
    });
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => passed.destroy());
    pipeline(incoming, passed, () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
