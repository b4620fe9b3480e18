import { MockProvider } from "@sandpiper/providers";
import { Client, type PortConnection, type Sandbox } from "@sandpiper/sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { untilSettled } from "../testing/until-settled.ts";
import { PORT, PreviewBed } from "./testing/preview-bed.ts";

let bed: PreviewBed;
let client: Client;
beforeAll(async () => {
  bed = await PreviewBed.start(new MockProvider());
  client = new Client({ url: bed.node.url, apiKey: bed.key });
});
afterAll(async () => {
  client.close();
  await bed[Symbol.asyncDispose]();
});

const text = (bytes: string) => new TextEncoder().encode(bytes);
async function readAll(connection: PortConnection): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(connection));
}
async function handleOf({ id }: { readonly id: string }): Promise<Sandbox> {
  return await client.sandboxes.connect(id);
}

describe("a TCP connection to a port", () => {
  it("carries bytes both ways, and each direction ends alone", async () => {
    const sandbox = await bed.rawSandbox((socket) => {
      let got = "";
      socket.on("data", (bytes) => (got += bytes)).once("end", () => socket.end(`got ${got}, and still sending`));
    });
    const connection = await (await handleOf(sandbox)).connect(PORT);
    await connection.write(text("half"));
    await connection.end();
    expect(String(await readAll(connection))).toBe("got half, and still sending");
    await connection.closed;
    await expect(connection.write(text("late"))).rejects.toMatchObject({ reason: "stream_closed" });
  });

  it("lets a server speak first", async () => {
    const sandbox = await bed.rawSandbox((socket) => void socket.end("220 ready\r\n"));
    const connection = await (await handleOf(sandbox)).connect(PORT);
    expect(String(await readAll(connection))).toBe("220 ready\r\n");
    await connection.end();
    await connection.closed;
  });

  it("is larger than any window in both directions at once", async () => {
    const sandbox = await bed.rawSandbox((socket) => void socket.pipe(socket));
    const connection = await (await handleOf(sandbox)).connect(PORT);
    const sent = Buffer.alloc(20_000_000, "0123456789");
    const writing = (async () => {
      for (let at = 0; at < sent.length; at += 3_000_000) await connection.write(sent.subarray(at, at + 3_000_000));
      await connection.end();
    })();
    const [received] = await Promise.all([readAll(connection), writing]);
    expect(received.equals(sent)).toBe(true);
  });

  it("takes no more from a server than its reader takes", async () => {
    let sentBytes = 0;
    const sandbox = await bed.rawSandbox((socket) => {
      const flood = () => {
        while (!socket.destroyed && socket.write(Buffer.alloc(65_536), () => (sentBytes += 65_536)));
      };
      socket.on("drain", flood);
      flood();
    });
    const connection = await (await handleOf(sandbox)).connect(PORT);
    await untilSettled(() => sentBytes);
    expect(sentBytes).toBeLessThan(32 * 1024 * 1024);
    connection.close();
  });

  it("fails if nothing listens, and names the port", async () => {
    const sandbox = await bed.create();
    await expect((await handleOf(sandbox)).connect(4321)).rejects.toMatchObject({ reason: "connection_refused" });
  });

  it("closes the connection in the sandbox when its caller closes it", async () => {
    const closed = Promise.withResolvers<void>();
    const sandbox = await bed.rawSandbox((socket) => void socket.once("close", () => closed.resolve()).resume());
    const connection = await (await handleOf(sandbox)).connect(PORT);
    await connection.write(text("x"));
    connection.close();
    await closed.promise;
    await expect(connection.closed).rejects.toMatchObject({ reason: "tunnel_closed" });
  });

  it("breaks with the connection to the node, instead of continuing as another", async () => {
    const sandbox = await bed.rawSandbox((socket) => void socket.resume());
    const own = new Client({ url: bed.node.url, apiKey: bed.key });
    const connection = await (await own.sandboxes.connect(sandbox.id)).connect(PORT);
    await bed.restart();
    await expect(connection.closed).rejects.toMatchObject({ code: "unavailable" });
    own.close();
    client.close();
    client = new Client({ url: bed.node.url, apiKey: bed.key });
  });

  it("is refused to a read-only key, and recorded in the audit log", async () => {
    const sandbox = await bed.rawSandbox((socket) => void socket.end("hi"));
    const { key } = await bed.api("POST", "/v1/keys", { name: "reader", scopes: ["read"] });
    const reader = new Client({ url: bed.node.url, apiKey: key });
    await expect((await reader.sandboxes.connect(sandbox.id)).connect(PORT)).rejects.toMatchObject({
      reason: "missing_scope",
    });
    reader.close();
    const connection = await (await handleOf(sandbox)).connect(PORT);
    connection.close();
    const { items } = await bed.api("GET", "/v1/audit?limit=1000");
    const entries = items.filter(({ sandboxId, operation }: { sandboxId: string; operation: string }) => {
      return sandboxId === sandbox.id && operation === "connectPort";
    });
    expect(entries.map(({ status }: { status: number }) => status)).toEqual([403, 200]);
  });
});

describe("the SDK's previews", () => {
  it("have links by default, and public URLs on request", async () => {
    const sandbox = await handleOf(await bed.sandbox((_, response) => response.end("page")));
    const link = new URL(await sandbox.url(PORT, { path: "/a?b=c" }));
    expect([link.pathname, link.searchParams.get("b")]).toEqual(["/a", "c"]);
    expect((await bed.ask(link.host, link.pathname + link.search)).text).toBe("page");
    const open = new URL(await sandbox.url(PORT, { public: true }));
    expect((await bed.ask(open.host, "/")).text).toBe("page");
    expect(await sandbox.preview(PORT)).toMatchObject({ isPublic: true, url: open.href });
    await sandbox.url(PORT, { public: false });
    expect((await bed.ask(open.host, "/")).status).toBe(401);
    await sandbox.revokeLinks();
    expect((await bed.ask(link.host, link.pathname + link.search)).status).toBe(401);
  });

  it("list the ports that listen, and events report new ones", async () => {
    const sandbox = await handleOf(await bed.sandbox((_, response) => response.end()));
    expect((await sandbox.ports()).map(({ port }) => port)).toEqual([7, PORT]);
    for await (const { kind, details } of sandbox.events()) {
      if (kind === "port.opened" && details["port"] === PORT) break;
    }
  });
});
