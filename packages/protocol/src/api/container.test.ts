import { describe, expect, it } from "vitest";
import { containerSchema, imageSchema } from "./container.ts";

function isAccepted(container: unknown): boolean {
  return containerSchema.safeParse(container).success;
}

describe("the options of a container", () => {
  it("are all optional", () => {
    expect(containerSchema.parse({})).toEqual({});
    expect(containerSchema.parse({ binds: [{ source: "/srv/a", target: "/a" }] })).toEqual({
      binds: [{ source: "/srv/a", target: "/a", isReadOnly: true }],
    });
  });

  it.each(["https://example.org/a.git", "git://example.org/a", "ssh://git@example.org/a", "http://10.0.0.1:80/a"])(
    "may have a repository at %s",
    (git) => {
      expect(isAccepted({ workspace: { git } })).toBe(true);
    },
  );

  it.each(["--upload-pack=touch", "ext::sh -c touch", "file:///etc", "/srv/a", "git@example.org:a", "https://a b"])(
    "refuse a repository at %s",
    (git) => {
      expect(isAccepted({ workspace: { git } })).toBe(false);
    },
  );

  it("refuses a ref that git could parse as an option", () => {
    const git = "https://example.org/a.git";
    expect(isAccepted({ workspace: { git, ref: "release/1.0" } })).toBe(true);
    for (const ref of ["--config=x", "-b", ""]) expect(isAccepted({ workspace: { git, ref } })).toBe(false);
  });

  it.each(["a", "/", "/a/../b", "/..", "/a/", "//a", "/a:b", "/a\0"])("refuse a mount at %j", (path) => {
    expect(isAccepted({ caches: [{ name: "npm", path }] })).toBe(false);
    expect(isAccepted({ binds: [{ source: "/srv", target: path }] })).toBe(false);
  });

  it.each(["container:abc", "ns:/proc/1/ns/net", "", "-x", "a b"])("refuse the network %j", (network) => {
    expect(isAccepted({ network })).toBe(false);
  });

  it("allow only names of projects and caches that are valid in a volume's name", () => {
    expect(isAccepted({ project: "web-shop", caches: [{ name: "npm_9", path: "/cache" }] })).toBe(true);
    for (const name of ["", "-a", "A", "a/b", "a.b", "..", "a".repeat(64)]) {
      expect(isAccepted({ project: name }), name).toBe(false);
      expect(isAccepted({ caches: [{ name, path: "/cache" }] }), name).toBe(false);
    }
  });

  it("publish a port inside once for each protocol", () => {
    const full = { container: 53, host: 5353, protocol: "udp", address: "0.0.0.0" };
    expect(isAccepted({ ports: [3000, { container: 53 }, full] })).toBe(true);
    expect(isAccepted({ ports: [53, { container: 53, host: 5353 }] })).toBe(false);
    for (const wrong of [{ host: 0 }, { host: 65_536 }, { protocol: "sctp" }, { address: "localhost" }, { more: 1 }]) {
      expect(isAccepted({ ports: [{ container: 80, ...wrong }] }), JSON.stringify(wrong)).toBe(false);
    }
  });

  it("have labels outside the namespaces of Sandpiper and the engines", () => {
    expect(isAccepted({ labels: { team: "a", "org.example/cost-center": "7" } })).toBe(true);
    for (const key of [
      "sandpiper.home",
      "com.docker.compose.project",
      "io.docker.x",
      "org.dockerproject.x",
      "a b",
      "",
    ]) {
      expect(isAccepted({ labels: { [key]: "x" } }), key).toBe(false);
    }
  });

  it("mount only volumes that a sandbox left", () => {
    const id = "01234567-89ab-4cde-8f01-23456789abcd";
    expect(isAccepted({ volumes: [{ name: `sandpiper-data-${id}` }] })).toBe(true);
    expect(isAccepted({ volumes: [{ name: `sandpiper-workspace-${id}`, path: "/old" }] })).toBe(true);
    for (const name of ["postgres", "sandpiper-cache-a-b", "sandpiper-data-../x", `sandpiper-agent-${id}`, "/srv"]) {
      expect(isAccepted({ volumes: [{ name }] }), name).toBe(false);
    }
  });

  it("accept image references of registries", () => {
    for (const image of ["python:3.13-slim", "ghcr.io/a/b@sha256:0a", "localhost:5000/a"]) {
      expect(imageSchema.safeParse(image).success, image).toBe(true);
    }
    for (const image of ["", "-a", "a//b", "../a", "a b"]) {
      expect(imageSchema.safeParse(image).success, image).toBe(false);
    }
  });
});
