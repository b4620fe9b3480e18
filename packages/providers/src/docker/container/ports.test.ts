import { describe, expect, it } from "vitest";
import { containerSpec } from "../testing/container-spec.ts";
import { addressesOf, publishedPorts } from "./ports.ts";

describe("published ports", () => {
  it("bind to the loopback address, each at a port of the engine's choice", () => {
    expect(publishedPorts(containerSpec({ network: "bridge", ports: [3000, 8080] }))).toEqual({
      ExposedPorts: { "3000/tcp": {}, "8080/tcp": {} },
      PortBindings: {
        "3000/tcp": [{ HostIp: "127.0.0.1", HostPort: "" }],
        "8080/tcp": [{ HostIp: "127.0.0.1", HostPort: "" }],
      },
    });
  });

  it("are empty by default", () => {
    expect(publishedPorts(containerSpec())).toEqual({ ExposedPorts: {}, PortBindings: {} });
  });

  it("require a network", () => {
    for (const container of [{ ports: [3000] }, { ports: [3000], network: "none" }]) {
      expect(() => publishedPorts(containerSpec(container))).toThrow("it has no network");
    }
  });

  it("have addresses while the container runs, with the host name of a remote engine", () => {
    const Ports = { "3000/tcp": [{ HostIp: "127.0.0.1", HostPort: "49153" }], "53/udp": null, "8080/tcp": null };
    const local = new URL("unix:///run/docker.sock");
    expect(addressesOf({ NetworkSettings: { Ports } }, local)).toEqual({ "3000": "127.0.0.1:49153" });
    const remote = new URL("https://engine.example:2376");
    expect(addressesOf({ NetworkSettings: { Ports } }, remote)).toEqual({ "3000": "engine.example:49153" });
    expect(addressesOf({ NetworkSettings: { Ports: null } }, local)).toEqual({});
  });
});
