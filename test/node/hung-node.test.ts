import { randomInt } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rejection } from "@sandpiper/core/testing";
import type { NodeConfigOptions } from "@sandpiper/node/server";
import type { Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { startDockerd } from "../../packages/providers/src/docker/testing/dockerd.ts";
import { startPodman } from "../../packages/providers/src/docker/testing/podman.ts";
import { findProcesses } from "../../packages/providers/src/docker/testing/processes.ts";
import { freshDirectory, shared } from "../../packages/providers/src/host/testing/shared.ts";
import { guardDirectory } from "../cluster/sweep.ts";
import { DockerHome, IMAGE, SHOW, write } from "./docker-home.ts";
import { startTwoNodes } from "./two-nodes.ts";

const LEASE_MS = 6000;
const TIMEOUT_MS = 90_000;

const store = freshDirectory("hung-store");
const [docker, other] = await Promise.all([shared(DockerHome.start()), shared(DockerHome.start({ hasImage: false }))]);
const podman = await shared(DockerHome.start({ startEngine: startPodman }));
const remote = await startDockerd({ tls: true });
const behindTls = await shared(DockerHome.start({ startEngine: async () => remote }));
const withTls = {
  config: (settings: NodeConfigOptions) =>
    behindTls.config({ ...settings, docker: { url: remote.tls?.url ?? "", image: IMAGE } }),
  left: () => behindTls.left(),
};
// The nodes inherit them; addresses of sockets do not use them.
Object.assign(process.env, { DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: remote.tls?.certificates });
const startCluster = (homes: Parameters<typeof startTwoNodes>[0]) =>
  startTwoNodes(homes, { store: `file://${store}`, leaseMs: LEASE_MS });

describe("a sandbox whose node hangs for longer than its lease", () => {
  const onDocker = (name: string, home: Pick<DockerHome, "config" | "left">) =>
    it(
      `runs on another node only after its container ${name} has ended, and stays there when the first resumes`,
      async () => {
        await using cluster = await startCluster([home, other]);
        const sandbox = await cluster.here.sandboxes.create();
        await sandbox.exec(write("saved"));
        await sandbox.checkpoint();
        const inside = await startMarked(sandbox);
        cluster.first.freeze();
        const moved = await cluster.there.sandboxes.connect(sandbox.id);
        expect((await moved.exec(SHOW)).stdout).toBe("saved\nsaved\n");
        expect(await inside()).toEqual([]);
        cluster.first.thaw();
        await moved.exec("echo later > file");
        expect((await sandbox.exec(SHOW)).stdout).toBe("later\nsaved\n");
        await moved.destroy();
        await expect.poll(() => home.left()).toEqual([]);
      },
      TIMEOUT_MS,
    );
  onDocker("on Docker", docker);
  onDocker("on Podman", podman);
  onDocker("on an engine with TLS", withTls);

  it(
    "runs on another node only after its container has ended, even if its engine died before",
    async () => {
      const engine = await startDockerd({ liveRestore: true });
      await using home = await DockerHome.start({ startEngine: async () => engine });
      let first: NodeConfigOptions = {};
      const config = (settings: NodeConfigOptions) => {
        first = home.config(settings);
        return first;
      };
      await using cluster = await startCluster([{ config }, other]);
      const sandbox = await cluster.here.sandboxes.create();
      await sandbox.exec(write("saved"));
      await sandbox.checkpoint();
      const inside = await startMarked(sandbox);
      cluster.first.freeze();
      await engine.kill();
      expect(await inside()).not.toEqual([]);
      const moved = await cluster.there.sandboxes.connect(sandbox.id);
      expect((await moved.exec(SHOW)).stdout).toBe("saved\nsaved\n");
      expect(await inside()).toEqual([]);
      await cluster.first.kill();
      // The guard gives up an engine that is gone.
      await expect.poll(() => existsSync(guardDirectory(first.home ?? ""))).toBe(false);
      await moved.destroy();
    },
    TIMEOUT_MS,
  );
});

describe("provider local", () => {
  it("creates no sandbox in a cluster, because no other node could restore it", async () => {
    using homes = new LocalHomes();
    await using cluster = await startCluster([homes, homes]);
    expect(await rejection(cluster.here.sandboxes.create())).toMatchObject({ reason: "provider_lacks_capability" });
    expect(await findProcesses(["cwd", "environ"], (text) => text.includes(homes.path))).toEqual([]);
  });
});

/** Starts a process that this host can recognize, and returns a function that finds it. */
async function startMarked(sandbox: Sandbox): Promise<() => Promise<readonly number[]>> {
  const marker = `7${String(randomInt(1e9)).padStart(9, "0")}`;
  await sandbox.start(`while true; do sleep ${marker}; done`);
  const find = () => findProcesses(["cmdline"], (text) => text.includes(marker));
  await expect.poll(find).not.toEqual([]);
  return find;
}

/** Directories of nodes with provider local. */
class LocalHomes implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "sandpiper-local-"));

  config(settings: NodeConfigOptions): NodeConfigOptions {
    const home = mkdtempSync(join(this.path, "node-"));
    return { home, port: 0, logLevel: "warn", defaultProvider: "local", ...settings };
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
