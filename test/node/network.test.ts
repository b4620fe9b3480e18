import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import type { NodeConfigOptions } from "@sandpiper/node/server";
import type { NetworkBody } from "@sandpiper/protocol";
import { describe, expect, it, onTestFinished } from "vitest";
import { NameServer } from "../../packages/node/src/network/testing/name-server.ts";
import { GvisorHome } from "./gvisor-home.ts";
import { NodeProcess } from "./node-process.ts";

const ALLOWED: NodeConfigOptions["network"] = { allowedCidrs: ["127.0.0.0/8"] };

/** A web server on loopback that answers with the request's host and path. */
async function webServer(): Promise<number> {
  const server = createServer((request, response) => response.end(`${request.headers.host} ${request.url}`));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Sends back what it receives. */
async function echoServer(): Promise<number> {
  const server = createTcpServer((socket) => {
    socket.on("error", () => {});
    socket.pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function put(node: NodeProcess, id: string, network: NetworkBody): Promise<void> {
  const { url, apiKey } = node.started;
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  const body = JSON.stringify(network);
  const response = await fetch(`${url}/v1/sandboxes/${id}/network`, { method: "PUT", headers, body });
  expect(response.status).toBe(200);
}

/** Connects, sends lines from standard input's end of the test, and prints what comes back until the connection ends. */
const holdOpen = (host: string, port: number) => `python3 -u -c '
import socket
s = socket.create_connection(("${host}", ${port}))
s.sendall(b"hello")
print(s.recv(5).decode(), flush=True)
try:
    print("ended" if s.recv(1) == b"" else "more", flush=True)
except OSError as error:
    print("reset", flush=True)
'`;

describe("the network of a sandbox on gVisor", () => {
  it("reaches the hosts that its policy allows by name, without any proxy settings, and no others", async () => {
    const port = await webServer();
    await using names = await NameServer.start({ "site.example": "127.0.0.1", "other.example": "127.0.0.1" });
    await using home = new GvisorHome();
    const network = { ...ALLOWED, resolvers: [names.address] };
    await using node = await NodeProcess.start(home.config({ network }));
    const rules = [{ allow: "site.example", ports: [port] }];
    const sandbox = await node.client.sandboxes.create({ network: { rules } });
    expect(sandbox.info.network).toMatchObject({ rules, default: "deny" });
    const get = (host: string) => sandbox.exec(`curl -sS --max-time 10 http://${host}:${port}/path`);
    expect(await get("site.example")).toMatchObject({ exitCode: 0, stdout: `site.example:${port} /path` });
    expect((await get("other.example")).exitCode).toBe(6);
    expect((await get("127.0.0.1")).exitCode).not.toBe(0);
    expect((await get("198.51.100.1")).exitCode).not.toBe(0);
    expect(names.asked).not.toContain("other.example");
    await sandbox.destroy();
  });

  it("changes on a running sandbox at once, and survives a restart of the node, a checkpoint and a fork", async () => {
    const port = await echoServer();
    await using names = await NameServer.start({ "echo.example": "127.0.0.1" });
    await using home = new GvisorHome();
    const config = home.config({ network: { ...ALLOWED, resolvers: [names.address] } });
    const echo = `python3 -c 'import socket; s = socket.create_connection(("echo.example", ${port})); s.sendall(b"hello"); print(s.recv(5).decode())'`;
    let id: string;
    {
      await using node = await NodeProcess.start(config);
      const sandbox = await node.client.sandboxes.create();
      ({ id } = sandbox);
      expect((await sandbox.exec(echo)).exitCode).not.toBe(0);
      await put(node, id, "open");
      expect(await sandbox.exec(echo)).toMatchObject({ exitCode: 0, stdout: "hello\n" });
      const process = await sandbox.start(holdOpen("echo.example", port));
      let output = "";
      const read = (async () => {
        for await (const { bytes } of process.output) output += Buffer.from(bytes).toString();
      })();
      await expect.poll(() => output).toBe("hello\n");
      await put(node, id, "none");
      await expect.poll(() => output).toMatch(/^hello\n(ended|reset)\n$/);
      await read;
      expect((await sandbox.exec(echo)).exitCode).not.toBe(0);
      await put(node, id, { rules: [{ allow: "*.example" }] });
      expect(await sandbox.exec(echo)).toMatchObject({ exitCode: 0, stdout: "hello\n" });
    }
    await using node = await NodeProcess.start(config);
    const sandbox = await node.client.sandboxes.connect(id);
    expect(await sandbox.exec(echo)).toMatchObject({ exitCode: 0, stdout: "hello\n" });
    await sandbox.pause();
    await sandbox.resume();
    expect(await sandbox.exec(echo)).toMatchObject({ exitCode: 0, stdout: "hello\n" });
    const [fork] = await sandbox.fork();
    expect(fork?.info.network).toEqual(sandbox.info.network);
    expect(await fork?.exec(echo)).toMatchObject({ exitCode: 0, stdout: "hello\n" });
    await fork?.destroy();
    await sandbox.destroy();
  });

  it("never reaches the node itself, even if the operator allows its address", async () => {
    const other = await webServer();
    await using names = await NameServer.start({ "node.example": "127.0.0.1" });
    await using home = new GvisorHome();
    const network = { ...ALLOWED, resolvers: [names.address] };
    await using node = await NodeProcess.start(home.config({ network }));
    const sandbox = await node.client.sandboxes.create({ network: "open" });
    const get = (port: number | string) => sandbox.exec(`curl -sS --max-time 10 http://node.example:${port}/health`);
    expect((await get(other)).exitCode).toBe(0);
    expect(await get(new URL(node.started.url).port)).toMatchObject({ exitCode: 56, stdout: "" });
    await sandbox.destroy();
  });
});
