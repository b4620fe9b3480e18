import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { freshDirectory } from "../../host/testing/shared.ts";
import { ApiClient } from "./api-client.ts";

const directory = freshDirectory("api");
let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** A client of a server with the given answers. */
async function clientOf(answer: RequestListener): Promise<ApiClient> {
  const path = join(directory, "api.sock");
  server = createServer(answer).listen({ path });
  await once(server, "listening");
  return new ApiClient(path);
}

describe("ApiClient", () => {
  it("sends bodies as JSON and accepts any success status", async () => {
    const seen: unknown[] = [];
    const client = await clientOf(async (request, response) => {
      let body = "";
      for await (const piece of request) body += piece;
      seen.push([request.method, request.url, request.headers["content-type"], JSON.parse(body)]);
      response.writeHead(204).end();
    });
    await client.send("PATCH /vm", { state: "Paused" });
    expect(seen).toEqual([["PATCH", "/vm", "application/json", { state: "Paused" }]]);
  });

  it("reports Firecracker's error, also one in an unexpected format", async () => {
    const texts = ['{"fault_message":"no such drive"}', "plain words", ""];
    const client = await clientOf((_request, response) => {
      response.writeHead(400).end(texts.shift());
    });
    for (const fault of ["no such drive", "plain words", "it gave no reason"]) {
      await expect(client.send("PUT /entropy", {})).rejects.toMatchObject({
        reason: "firecracker_refused",
        message: `Firecracker refused PUT /entropy with status 400: ${fault}`,
        details: { route: "PUT /entropy", status: 400, fault },
      });
    }
  });

  it("repeats a request that Firecracker cannot accept because too many connections are open", async () => {
    const statuses = [503, 503, 204];
    const client = await clientOf((_request, response) => {
      response.writeHead(statuses.shift() ?? 500).end();
    });
    await client.send("PUT /entropy", {});
    expect(statuses).toEqual([]);
  });

  it("refuses an endless answer", async () => {
    const client = await clientOf((_request, response) => {
      response.writeHead(200).write("x".repeat(100_000));
    });
    await expect(client.describe()).rejects.toThrow(/longer than/);
  });

  it("stops waiting when its caller aborts", async () => {
    const client = await clientOf(() => {});
    const patience = new AbortController();
    const asked = client.describe(patience.signal);
    patience.abort(new Error("aborted"));
    await expect(asked).rejects.toThrow("aborted");
  });
});
