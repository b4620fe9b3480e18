import { SandboxError } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { containerSpec } from "../testing/container-spec.ts";
import { addressesOf, publishedPorts, requirePorts, startError } from "./ports.ts";

const nothing = { hostPorts: [], hostAddresses: [] };

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
      expect(() => requirePorts(containerSpec(container), nothing)).toThrow("it has no network");
    }
  });

  it("have the protocol, host port and address that the caller chose", () => {
    const ports = [{ container: 53, protocol: "udp" as const, host: 5353, address: "0.0.0.0" }, { container: 53 }];
    expect(publishedPorts(containerSpec({ network: "bridge", ports })).PortBindings).toEqual({
      "53/udp": [{ HostIp: "0.0.0.0", HostPort: "5353" }],
      "53/tcp": [{ HostIp: "127.0.0.1", HostPort: "" }],
    });
  });

  it("have only host ports and addresses that the operator allows; by default none but loopback", () => {
    const check = (port: object, policy: Partial<typeof nothing> | object) => () =>
      requirePorts(containerSpec({ network: "bridge", ports: [{ container: 80, ...port }] }), {
        ...nothing,
        ...policy,
      });
    const hostPorts = ["8080", "9000-9100"];
    for (const host of [8080, 9000, 9100]) expect(check({ host }, { hostPorts })).not.toThrow();
    for (const host of [80, 8081, 8999, 9101]) {
      expect(check({ host }, { hostPorts })).toThrow(`cannot have host port ${host}; allowed: 8080, 9000-9100`);
    }
    expect(check({ host: 8080 }, {})).toThrow("cannot have host port 8080; allowed: none");
    expect(check({ address: "127.0.0.1" }, {})).not.toThrow();
    expect(check({ address: "0.0.0.0" }, {})).toThrow("cannot be published at 0.0.0.0; allowed: 127.0.0.1");
    expect(check({ address: "0.0.0.0" }, { hostAddresses: ["0.0.0.0"] })).not.toThrow();
  });

  it.each([
    "driver failed programming external connectivity: Bind for 127.0.0.1:8081 failed: port is already allocated",
    "failed to bind host port for 127.0.0.1:8081:172.17.0.2:80/tcp: address already in use",
    "rootlessport listen tcp 127.0.0.1:8081: bind: address already in use",
  ])("report a conflict with the host port: %s", (message) => {
    const ports = [
      { container: 1, host: 808 },
      { container: 80, host: 8081 },
    ];
    const refused = new SandboxError("engine_failed", { message });
    expect(startError(containerSpec({ network: "bridge", ports }), refused)).toMatchObject({
      reason: "host_port_in_use",
      message: expect.stringContaining("tcp port 8081 at 127.0.0.1 of the engine's machine is in use"),
      details: { port: 8081, protocol: "tcp", address: "127.0.0.1" },
    });
    expect(startError(containerSpec({ network: "bridge", ports: [80] }), refused)).toBe(refused);
  });

  it("have addresses while the container runs, with the host name of a remote engine", () => {
    const Ports = {
      "3000/tcp": [{ HostIp: "127.0.0.1", HostPort: "49153" }],
      "53/udp": [{ HostIp: "::1", HostPort: "5353" }],
      "8080/tcp": null,
    };
    const local = new URL("unix:///run/docker.sock");
    expect(addressesOf({ NetworkSettings: { Ports } }, local)).toEqual({
      "3000": "127.0.0.1:49153",
      "53/udp": "[::1]:5353",
    });
    const remote = new URL("https://engine.example:2376");
    expect(addressesOf({ NetworkSettings: { Ports } }, remote)).toEqual({
      "3000": "engine.example:49153",
      "53/udp": "engine.example:5353",
    });
    expect(addressesOf({ NetworkSettings: { Ports: null } }, local)).toEqual({});
  });
});
