import { networkInterfaces } from "node:os";
import type { InstanceSpec } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import type Docker from "dockerode";
import { afterEach, describe, expect, it } from "vitest";
import { shared } from "../../host/testing/shared.ts";
import { connectTo, removeContainers } from "../testing/connect.ts";
import { containerSpec } from "../testing/container-spec.ts";
import { startDockerd } from "../testing/dockerd.ts";
import { importTestImage } from "../testing/test-image.ts";
import { networkOf, requireNetwork } from "./network.ts";
import { addressesOf, publishedPorts } from "./ports.ts";

const SERVE = "python3 -m http.server 3000 --directory /etc";

const dockerd = await shared(startDockerd({ bridge: true }));
const engine = await shared(connectTo(dockerd));
const image = await importTestImage(engine, { variant: "python" });
afterEach(() => removeContainers(engine));

async function start(spec: InstanceSpec, command: string): Promise<Docker.Container> {
  const { ExposedPorts, PortBindings } = publishedPorts(spec);
  const container = await engine.docker.createContainer({
    Image: image,
    Cmd: ["sh", "-c", command],
    ExposedPorts,
    HostConfig: { NetworkMode: networkOf(spec), PortBindings },
  });
  await container.start();
  return container;
}

function isAnswering(address: string): Promise<boolean> {
  return fetch(`http://${address}/passwd`).then(
    async (response) => (await response.text()).startsWith("root:"),
    () => false,
  );
}

describe("the network of a sandbox", () => {
  it("is only the loopback interface by default", async () => {
    const spec = containerSpec();
    await requireNetwork(engine, spec, { networks: [] });
    const container = await start(spec, "! ip -oneline -4 address | grep -v ' lo '");
    expect(await container.wait()).toMatchObject({ StatusCode: 0 });
    expect(Object.keys((await container.inspect()).NetworkSettings.Networks)).toEqual(["none"]);
  });

  it("may be any network that is allowed and exists", async () => {
    const spec = containerSpec({ network: "bridge" });
    await requireNetwork(engine, spec, { networks: ["bridge"] });
    const container = await start(spec, "ip -oneline -4 address | grep -v ' lo '");
    expect(await container.wait()).toMatchObject({ StatusCode: 0 });
  });

  const allowed = ["none", "bridge"];
  it.each([
    [
      "is rejected when it is not allowed, with a list of the allowed ones",
      "office",
      ["bridge"],
      "network_not_allowed",
    ],
    ["is never the host's network, even if the settings allow it", "host", ["host", "bridge"], "network_not_allowed"],
    ["is rejected when it does not exist on the engine", "office", ["office"], "no_such_network"],
  ])("%s", async (_, network, networks, reason) => {
    expect(await rejection(requireNetwork(engine, containerSpec({ network }), { networks }))).toMatchObject({
      code: "invalid_argument",
      reason,
      details: reason === "no_such_network" ? { network } : { network, allowed },
    });
  });
});

describe("a published port", () => {
  it("answers only on the host's loopback address", async () => {
    const spec = containerSpec({ network: "bridge", ports: [3000] });
    const container = await start(spec, SERVE);
    const { "3000": address = "" } = addressesOf(await container.inspect(), engine.endpoint.url);
    const port = /^127\.0\.0\.1:(\d+)$/.exec(address)?.[1];
    expect(port).toBeDefined();
    await expect.poll(() => isAnswering(address), { interval: 100 }).toBe(true);
    const others = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .filter(({ family, internal }) => family === "IPv4" && !internal);
    expect(others.map((other) => other.address)).toContain(dockerd.bridgeAddress);
    for (const other of others) expect(await isAnswering(`${other.address}:${port}`), other.address).toBe(false);
  });

  it("has no address after the container has stopped", async () => {
    const container = await start(containerSpec({ network: "bridge", ports: [3000] }), "exec sleep 1000");
    await container.kill();
    await container.wait();
    expect(addressesOf(await container.inspect(), engine.endpoint.url)).toEqual({});
  });
});
