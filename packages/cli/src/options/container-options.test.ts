import { resolve } from "node:path";
import { SandboxError } from "@sandpiper/protocol/error";
import { describe, expect, it } from "vitest";
import { parseArguments } from "../command/arguments.ts";
import { containerFrom, containerOptions, dockerFrom } from "./container-options.ts";

function container(...argv: string[]) {
  return containerFrom(parseArguments({ name: "run", options: containerOptions }, argv));
}

describe("options of containers", () => {
  it("are undefined when none is given", () => {
    expect(container()).toBeUndefined();
    expect(dockerFrom(undefined)).toBeUndefined();
  });

  it("become the settings of a container", () => {
    const argv = ["--image", "node:24", "--pull", "always", "--network", "bridge", "--publish", "3000"];
    argv.push("--publish", "80", "--cache", "npm:/root/.npm", "--project", "web", "--read-only");
    argv.push("--mount", "/srv/data:/data", "--mount", "here:/there:rw", "--workspace", "src");
    expect(container(...argv)).toEqual({
      image: "node:24",
      imagePullPolicy: "always",
      network: "bridge",
      ports: [3000, 80],
      caches: [{ name: "npm", path: "/root/.npm" }],
      project: "web",
      isRootReadOnly: true,
      binds: [
        { source: "/srv/data", target: "/data", isReadOnly: true },
        { source: resolve("here"), target: "/there", isReadOnly: false },
      ],
      workspace: { path: resolve("src") },
    });
  });

  it("publish ports as docker run does, each at a chosen host port, address and protocol", () => {
    const argv = ["3000", "8080:80", "53/udp", "5353:53/udp", "0.0.0.0:8443:443/tcp", "[::1]:81:81"];
    expect(container(...argv.flatMap((port) => ["--publish", port]))).toEqual({
      ports: [
        3000,
        { container: 80, host: 8080 },
        { container: 53, protocol: "udp" },
        { container: 53, host: 5353, protocol: "udp" },
        { container: 443, host: 8443, address: "0.0.0.0" },
        { container: 81, host: 81, address: "::1" },
      ],
    });
  });

  it("run the image's own command, label the container and mount kept volumes", () => {
    const name = "sandpiper-data-01234567-89ab-4cde-8f01-23456789abcd";
    const argv = ["--service", "always", "--container-label", "team=a", "--container-label", "x"];
    expect(container(...argv, "--volume", name, "--volume", `${name}:/old`)).toEqual({
      service: { restart: "always" },
      labels: { team: "a", x: "" },
      volumes: [{ name }, { name, path: "/old" }],
    });
  });

  it("take a repository as a workspace, with or without a branch or tag", () => {
    const git = "https://example.com/a/b.git";
    expect(container("--workspace", git)).toEqual({ workspace: { git } });
    expect(container("--workspace", `${git}#v1.2`)).toEqual({ workspace: { git, ref: "v1.2" } });
  });

  it("allow their own mounts and networks in an embedded sandbox", () => {
    const argv = ["--mount", "/srv/data:/data", "--workspace", "/src", "--network", "build"];
    expect(dockerFrom(container(...argv))).toEqual({ allowedPaths: ["/srv/data", "/src"], networks: ["build"] });
    expect(container("--network", "none")).toBeUndefined();
    expect(container("--network", "allow=a.example:443")).toBeUndefined();
    expect(dockerFrom(container("--publish", "0.0.0.0:8080:80", "--publish", "81:81"))).toEqual({
      allowedPaths: [],
      hostPorts: ["8080", "81"],
      hostAddresses: ["0.0.0.0"],
    });
  });

  it.each([
    ["--publish", "http"],
    ["--publish", "0"],
    ["--publish", "65536"],
    ["--publish", "8080:"],
    ["--publish", "8080:0"],
    ["--publish", "65536:80"],
    ["--publish", "host:8080:80"],
    ["--publish", "80/sctp"],
    ["--service", "sometimes"],
    ["--container-label", "=x"],
    ["--volume", "postgres"],
    ["--volume", "sandpiper-data-01234567-89ab-4cde-8f01-23456789abcd:old"],
    ["--mount", "/srv"],
    ["--mount", "/srv:data"],
    ["--mount", "/srv:/data:writable"],
    ["--mount", ":/data"],
    ["--cache", "npm"],
    ["--cache", "NPM:/root"],
    ["--cache", "npm:root"],
    ["--workspace", "file:///etc"],
    ["--workspace", "https://example.com/a#b#c"],
    ["--workspace", "https://example.com/a#"],
    ["--pull", "often"],
  ])("refuse %s %s with a hint", (...argv) => {
    expect(() => container(...argv)).toThrow(SandboxError);
    expect(() => container(...argv)).toThrow(expect.objectContaining({ reason: "usage", hint: expect.any(String) }));
  });
});
