import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { GvisorHome } from "../node/gvisor-home.ts";
import { NodeProcess } from "../node/node-process.ts";
import { PORT, startServer, Visitor } from "./preview-client.ts";

const SIZE_BYTES = 100 * 1024 * 1024;
/** For a busy machine: the bytes pass three times through each of two processes and a sandbox. */
const TIMEOUT_MS = 300_000;

describe("previews of gVisor sandboxes", () => {
  it("carry pages, events, WebSockets and 100 MB each way, and survive a pause, a restart and a kill -9 of the node", {
    timeout: TIMEOUT_MS,
  }, async () => {
    await using home = new GvisorHome();
    const first = await NodeProcess.start({ home: home.path, port: 0 });
    const sandbox = await first.client.sandboxes.create({ memoryMib: 512 });
    await startServer(sandbox);
    expect((await sandbox.ports()).find(({ port }) => port === PORT)).toMatchObject({
      address: "127.0.0.1",
      program: expect.stringMatching(/^python3/),
      pid: expect.any(Number),
      isPublic: false,
      url: expect.stringContaining(`${PORT}-${sandbox.id}.localhost`),
    });
    const authorization = `Bearer ${first.started.apiKey}`;
    const visitor = new Visitor(first.started.url, sandbox, { authorization });
    const page = await visitor.get("/page?x=1");
    expect(page.status).toBe(200);
    expect(JSON.parse(page.text)).toMatchObject({ path: "/page?x=1", headers: { host: `localhost:${PORT}` } });
    expect(page.text).not.toContain(first.started.apiKey);
    expect((await visitor.get("/events")).text).toBe("data: 0\n\ndata: 1\n\ndata: 2\n\n");
    expect(await visitor.echo("through gVisor")).toBe("through gVisor");

    const bytes = Buffer.alloc(SIZE_BYTES, Buffer.from(Uint8Array.from({ length: 256 }, (_, index) => index)));
    const hash = createHash("sha256").update(bytes).digest("hex");
    expect((await visitor.get("/upload", bytes)).text).toBe(hash);
    expect(await visitor.hashOf(`/bytes/${SIZE_BYTES}`)).toBe(hash);

    await sandbox.pause();
    expect((await visitor.get("/awake")).status).toBe(200);
    expect((await sandbox.refresh()).state).toBe("ready");
    await sandbox.url(PORT, { public: true });
    await first.kill();

    await using second = await NodeProcess.start({ home: home.path, port: 0 });
    const stranger = new Visitor(second.started.url, sandbox, {});
    expect((await stranger.get("/public")).status).toBe(200);
    const again = await second.client.sandboxes.connect(sandbox.id);
    await again.url(PORT, { public: false });
    expect((await stranger.get("/private")).status).toBe(401);
    await again.destroy();
  });

  it("report ports that open, close and are missing, and forward raw connections", {
    timeout: TIMEOUT_MS,
  }, async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0 });
    const { client, started } = node;
    await using sandbox = await client.sandboxes.create();
    const visitor = new Visitor(started.url, sandbox, { authorization: `Bearer ${started.apiKey}` });
    const missing = await visitor.get("/");
    expect([missing.status, JSON.parse(missing.text)]).toMatchObject([
      502,
      { reason: "port_not_listening", details: { listening: [] } },
    ]);
    const program =
      "import socket,time\ns=socket.create_server(('0.0.0.0',9000))\nc,_=s.accept()\nc.sendall(b'220 hello\\r\\n')\n";
    const rest =
      "got=b''\nwhile True:\n  b=c.recv(65536)\n  if not b: break\n  got+=b\nc.sendall(b'%d bytes' % len(got))\n";
    const process_ = await sandbox.start(["python3", "-c", program + rest]);
    const seen: string[] = [];
    for await (const { kind, details } of sandbox.events()) {
      if (!kind.startsWith("port.")) continue;
      seen.push(`${kind} ${details["port"]} ${details["program"]}`);
      if (kind === "port.closed") break;
      const connection = await sandbox.connect(9000);
      await connection.write(Buffer.alloc(3_000_000));
      await connection.end();
      const answer = Buffer.concat(await Array.fromAsync(connection)).toString();
      expect(answer).toBe("220 hello\r\n3000000 bytes");
    }
    expect(seen).toEqual([
      expect.stringMatching(/^port\.opened 9000 python3/),
      expect.stringMatching(/^port\.closed 9000/),
    ]);
    await process_.wait();
  });

  it("refuse the node's own address as a way out of the sandbox", { timeout: TIMEOUT_MS }, async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0 });
    await using sandbox = await node.client.sandboxes.create();
    const { port } = new URL(node.started.url);
    const probe = connect(Number(port), "127.0.0.1");
    await once(probe, "connect");
    probe.destroy();
    // The port of the node is open on the host, but the preview reaches only the sandbox's own loopback.
    await expect(sandbox.connect(Number(port))).rejects.toMatchObject({ reason: "connection_refused" });
  });
});
