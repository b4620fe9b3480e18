import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { Sandbox } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { shared } from "../../host/testing/shared.ts";
import { createDockerFixture } from "../testing/fixture.ts";
import { freePort } from "../testing/free-port.ts";
import { containerName } from "./inspect-container.ts";

const fixture = await shared(createDockerFixture({ bridge: true, image: { variant: "python" } }));
const provider = fixture.newProvider({ hostPorts: ["1-65535"], hostAddresses: ["0.0.0.0"] });
const network = "bridge";

/** Answers each datagram with the same bytes in capitals. */
const UDP_SERVER = `import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("0.0.0.0", 53))
while True:
    data, peer = server.recvfrom(1024)
    server.sendto(data.upper(), peer)`;

/** A client that remembers the last answer; a datagram may be lost, so the caller asks repeatedly. */
function udpClient(port: number) {
  const socket = createSocket("udp4");
  let last = "";
  socket.on("message", (bytes) => {
    last = bytes.toString();
  });
  const ask = () => {
    socket.send("hello", port, "127.0.0.1");
    return last;
  };
  return { ask, [Symbol.dispose]: () => socket.close() };
}

describe("a fixed host port", () => {
  it("serves the container's port at exactly this number, over stop and start", async () => {
    const host = await freePort();
    await using sandbox = await Sandbox.create(provider, {
      container: { network, ports: [{ container: 3000, host }] },
    });
    expect(sandbox.addresses).toEqual({ "3000": `127.0.0.1:${host}` });
    const serve = (inside: Sandbox) =>
      inside.start("echo served > /tmp/file; exec python3 -m http.server 3000 -d /tmp");
    const answer = () =>
      fetch(`http://127.0.0.1:${host}/file`).then(
        (response) => response.text(),
        () => "",
      );
    await serve(sandbox);
    await expect.poll(answer, { interval: 100 }).toBe("served\n");
    await provider.containers.stop(sandbox.id, { timeoutMs: 0 });
    await sandbox.closed;
    await provider.containers.start(sandbox.id);
    await using again = await Sandbox.adopt(provider, sandbox.id);
    expect(again.addresses).toEqual({ "3000": `127.0.0.1:${host}` });
    await serve(again);
    await expect.poll(answer, { interval: 100 }).toBe("served\n");
  });

  it("that is taken fails the creation with its number, and leaves nothing", async () => {
    const host = await freePort();
    const container = { network, ports: [{ container: 3000, host }] };
    await using first = await Sandbox.create(provider, { container });
    const error = await rejection(Sandbox.create(provider, { container }));
    expect(error).toMatchObject({
      code: "failed_precondition",
      reason: "host_port_in_use",
      message: expect.stringContaining(`tcp port ${host} at 127.0.0.1`),
      details: { port: host, protocol: "tcp", address: "127.0.0.1" },
    });
    expect((await provider.list()).map(({ id }) => id)).toEqual([first.id]);
  });

  it("that a program of the machine uses fails the creation with its number", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port: host } = server.address() as AddressInfo;
    try {
      const error = await rejection(
        Sandbox.create(provider, { container: { network, ports: [{ container: 80, host }] } }),
      );
      expect(error).toMatchObject({ reason: "host_port_in_use", details: { port: host } });
    } finally {
      server.close();
    }
  });

  it("that was taken while the container was stopped is named when it starts", async () => {
    const host = await freePort();
    const container = { network, ports: [{ container: 3000, host }] };
    await using stopped = await Sandbox.create(provider, { container });
    await provider.containers.stop(stopped.id, { timeoutMs: 0 });
    await stopped.closed;
    await using _ = await Sandbox.create(provider, { container });
    const error = await rejection(provider.containers.start(stopped.id));
    expect(error).toMatchObject({ reason: "host_port_in_use", details: { port: host } });
  });

  it("is refused unless the operator allows it, and so is an address other than loopback", async () => {
    const host = await freePort();
    expect(await rejection(fixture.create({ container: { network, ports: [{ container: 80, host }] } }))).toMatchObject(
      {
        code: "invalid_argument",
        reason: "host_port_not_allowed",
        details: { port: host, allowed: [] },
      },
    );
    const ports = [{ container: 80, address: "0.0.0.0" }];
    expect(await rejection(fixture.create({ container: { network, ports } }))).toMatchObject({
      code: "invalid_argument",
      reason: "host_address_not_allowed",
      details: { address: "0.0.0.0", allowed: ["127.0.0.1"] },
    });
    await using open = await Sandbox.create(provider, { container: { network, ports } });
    expect(open.addresses["80"]).toMatch(/^0\.0\.0\.0:\d+$/);
  });
});

describe("a UDP port", () => {
  it("answers datagrams at its published port", async () => {
    const container = { network, ports: [{ container: 53, protocol: "udp" as const }] };
    await using sandbox = await Sandbox.create(provider, { container });
    const port = Number(/^127\.0\.0\.1:(\d+)$/.exec(sandbox.addresses["53/udp"] ?? "")?.[1]);
    await sandbox.start(["python3", "-c", UDP_SERVER], { user: "root" });
    using client = udpClient(port);
    await expect.poll(client.ask, { interval: 50 }).toBe("HELLO");
  });
});

describe("the caller's labels", () => {
  it("are on the container, next to Sandpiper's own", async () => {
    await using sandbox = await fixture.create({ container: { labels: { team: "a", "org.example/cost": "7" } } });
    const { Config } = await fixture.engine.docker.getContainer(containerName(sandbox.id)).inspect();
    expect(Config.Labels).toMatchObject({ team: "a", "org.example/cost": "7", "sandpiper.sandbox": sandbox.id });
  });

  it("cannot be Sandpiper's own", async () => {
    const error = await rejection(fixture.create({ container: { labels: { "sandpiper.home": "x" } } }));
    expect(error).toMatchObject({ code: "invalid_argument", reason: "invalid_config" });
  });
});
