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

  it("accept image references of registries", () => {
    for (const image of ["python:3.13-slim", "ghcr.io/a/b@sha256:0a", "localhost:5000/a"]) {
      expect(imageSchema.safeParse(image).success, image).toBe(true);
    }
    for (const image of ["", "-a", "a//b", "../a", "a b"]) {
      expect(imageSchema.safeParse(image).success, image).toBe(false);
    }
  });
});
