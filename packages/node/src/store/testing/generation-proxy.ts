import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

export interface GenerationProxy extends AsyncDisposable {
  readonly endpoint: string;
}

/**
 * A proxy that adds what fake-gcs-server lacks: the condition `ifGenerationMatch` of a deletion. It deletes by `generation` instead,
 * which the emulator checks and carries out under one lock. Without versioning, both delete an object only at that generation.
 */
export async function startGenerationProxy(target: string): Promise<GenerationProxy> {
  const agent = new Agent({ keepAlive: true });
  const server = createServer((incoming, outgoing) => {
    const { method, headers } = incoming;
    const path = method === "DELETE" ? deletionPath(incoming.url ?? "") : incoming.url;
    const forwarded = request(target, { agent, method, path, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 500, response.rawHeaders);
      response.pipe(outgoing);
    });
    forwarded.on("error", () => incoming.socket.destroy());
    incoming.pipe(forwarded);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      agent.destroy();
    },
  };
}

function deletionPath(path: string): string {
  return path.replace(/([?&])ifGenerationMatch=/, "$1generation=");
}
