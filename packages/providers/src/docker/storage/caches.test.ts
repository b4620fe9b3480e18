import type { InstanceSpec } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import type Docker from "dockerode";
import { afterEach, describe, expect, it } from "vitest";
import { shared } from "../../host/testing/shared.ts";
import { sandboxLabels } from "../engine/labels.ts";
import { connectTo, removeContainers } from "../testing/connect.ts";
import { containerSpec } from "../testing/container-spec.ts";
import { startDockerd } from "../testing/dockerd.ts";
import { importTestImage } from "../testing/test-image.ts";
import { cacheVolumeName, clearCache, createCache, listCaches } from "./caches.ts";
import { mountsOf } from "./mounts.ts";
import { createVolumes } from "./volumes.ts";

const home = "0123456789ab";
const other = "ba9876543210";
const npm = { project: "shop", name: "npm" };
const container = { project: "shop", caches: [{ name: "npm", path: "/cache" }] };
const signal = new AbortController().signal;

const dockerd = await shared(startDockerd());
const engine = await shared(connectTo(dockerd));
const image = await importTestImage(engine, { variant: "tiny" });
afterEach(async () => {
  await removeContainers(engine);
  for (const { Name } of (await engine.docker.listVolumes()).Volumes) await engine.docker.getVolume(Name).remove();
});

/** Runs a command in a container of the sandbox until it ends. */
async function run(spec: InstanceSpec, command: string): Promise<Docker.Container> {
  await createVolumes(engine, spec, { home, signal });
  return await start(spec, command);
}

async function start(spec: InstanceSpec, command: string): Promise<Docker.Container> {
  const paths = { allowedPaths: [], ownPaths: [], isRemote: false };
  const Mounts = [...(await mountsOf(spec, { agentVolume: "agent", home, paths }))];
  const created = await engine.docker.createContainer({
    Image: image,
    Cmd: ["sh", "-c", command],
    Labels: { ...sandboxLabels(spec, home) },
    HostConfig: { Mounts, NetworkMode: "none" },
  });
  await created.start();
  expect(await created.wait()).toMatchObject({ StatusCode: 0 });
  return created;
}

describe("a cache", () => {
  it("is shared by the sandboxes of a project, outlives them, and is listed with its size and users", async () => {
    const [one, two] = [containerSpec(container), containerSpec(container)];
    const first = await run(one, "printf '%05000d' 1 > /cache/package");
    await first.remove();
    await run(two, "ls /cache/package");
    const [cache] = await listCaches(engine, home);
    expect(cache).toEqual({ ...npm, sizeBytes: expect.any(Number), usedBy: [two.id] });
    expect(cache?.sizeBytes).toBeGreaterThanOrEqual(5000);
  });

  it("belongs to one project, even if combined names are equal", async () => {
    const names = [
      { project: "a", name: "b-c" },
      { project: "a-b", name: "c" },
      { project: "a-", name: "b-c" },
      { project: "a--b", name: "c" },
    ];
    expect(new Set(names.map(cacheVolumeName)).size).toBe(names.length);
    for (const cache of names) await createCache(engine, cache, home);
    expect(await listCaches(engine, home)).toHaveLength(names.length);
    const [mine, theirs] = [containerSpec(container), containerSpec({ ...container, project: "shopping" })];
    await run(mine, "printf mine > /cache/file");
    await run(theirs, "test ! -e /cache/file");
  });

  it("is not cleared while a running or stopped sandbox uses it", async () => {
    const spec = containerSpec(container);
    const created = await run(spec, "true");
    expect(await rejection(clearCache(engine, npm, home))).toMatchObject({
      code: "failed_precondition",
      reason: "cache_in_use",
      details: { usedBy: [spec.id] },
    });
    await created.remove();
    await clearCache(engine, npm, home);
    expect(await listCaches(engine, home)).toEqual([]);
    expect(await rejection(clearCache(engine, npm, home))).toMatchObject({
      code: "not_found",
      reason: "no_such_cache",
    });
  });

  it("that is cleared during the creation of a container is recreated as the same cache", async () => {
    const spec = containerSpec(container);
    await createVolumes(engine, spec, { home, signal });
    await clearCache(engine, npm, home);
    await start(spec, "ls /cache");
    expect(await listCaches(engine, home)).toMatchObject([{ ...npm, usedBy: [spec.id] }]);
  });

  it("belongs to one home; another neither sees, clears nor uses it", async () => {
    await createCache(engine, npm, home);
    expect(await listCaches(engine, other)).toEqual([]);
    for (const attempt of [clearCache(engine, npm, other), createCache(engine, npm, other)]) {
      expect(await rejection(attempt)).toMatchObject({ reason: "cache_of_another_home" });
    }
    expect(await listCaches(engine, home)).toHaveLength(1);
  });
});
