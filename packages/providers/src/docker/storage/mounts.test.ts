import { realpath } from "node:fs/promises";
import { rejection } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../host/testing/shared.ts";
import { containerSpec } from "../testing/container-spec.ts";
import { mountsOf } from "./mounts.ts";

const shared = await realpath(sharedDirectory("mounts"));
const paths = { allowedPaths: [shared], ownPaths: [], isRemote: false };
const options = { agentVolume: "sandpiper-agent-x", home: "0123456789ab", paths };

describe("the mounts of a container", () => {
  it("are the agent, read-only, and the sandbox's data", async () => {
    const spec = containerSpec();
    expect(await mountsOf(spec, options)).toMatchObject([
      { Type: "volume", Source: "sandpiper-agent-x", Target: "/.sandpiper", ReadOnly: true },
      { Type: "volume", Source: `sandpiper-data-${spec.id}`, Target: "/.data", ReadOnly: false },
    ]);
  });

  it("include caches, binds and the workspace of the sandbox", async () => {
    const spec = containerSpec({
      project: "web-shop",
      caches: [{ name: "npm", path: "/root/.npm" }],
      binds: [{ source: shared, target: "/shared", isReadOnly: true }],
      workspace: { git: "https://example.org/a.git" },
    });
    const [, , ...mounts] = await mountsOf(spec, options);
    expect(mounts).toMatchObject([
      { Source: `sandpiper-workspace-${spec.id}`, Target: "/workspace", VolumeOptions: { NoCopy: true } },
      { Source: "sandpiper-cache-web--shop-npm", Target: "/root/.npm", VolumeOptions: { NoCopy: false } },
      { Type: "bind", Source: shared, Target: "/shared", ReadOnly: true, BindOptions: { NonRecursive: true } },
    ]);
  });

  it("include a host directory as writable workspace", async () => {
    const mounts = await mountsOf(containerSpec({ workspace: { path: shared } }), options);
    expect(mounts.at(-1)).toMatchObject({ Type: "bind", Source: shared, Target: "/workspace", ReadOnly: false });
  });

  it("exclude paths that are not allowed", async () => {
    const elsewhere = { source: "/opt", target: "/opt", isReadOnly: true };
    for (const spec of [containerSpec({ binds: [elsewhere] }), containerSpec({ workspace: { path: "/opt" } })]) {
      expect((await rejection(mountsOf(spec, options))).reason).toBe("path_not_allowed");
    }
  });

  it.each(["/.sandpiper", "/.sandpiper/x", "/proc", "/sys/fs", "/dev/shm", "/var/lib", "/.data"])(
    "do not cover %s",
    async (path) => {
      const error = await rejection(mountsOf(containerSpec({ caches: [{ name: "a", path }] }), options));
      expect(error).toMatchObject({ code: "invalid_argument", reason: "mount_target_taken" });
      expect(error.message).toContain(path);
    },
  );

  it("do not replace the in-memory directories of a read-only root", async () => {
    const caches = [{ name: "a", path: "/tmp" }];
    expect(await mountsOf(containerSpec({ caches }), options)).toHaveLength(3);
    const error = await rejection(mountsOf(containerSpec({ caches, isRootReadOnly: true }), options));
    expect(error.message).toContain("it is in memory");
  });

  it("never share a path", async () => {
    const caches = [{ name: "a", path: "/cache" }];
    const binds = [{ source: shared, target: "/cache", isReadOnly: true }];
    expect((await rejection(mountsOf(containerSpec({ caches, binds }), options))).reason).toBe("mount_target_taken");
  });

  it("may be nested, but not in the directory of a cloned repository", async () => {
    const caches = [{ name: "a", path: "/workspace/modules" }];
    expect(await mountsOf(containerSpec({ caches, workspace: { path: shared } }), options)).toHaveLength(4);
    const cloned = containerSpec({ caches, workspace: { git: "https://example.org/a.git" } });
    expect((await rejection(mountsOf(cloned, options))).message).toContain("copied into /workspace");
  });
});
