import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { expect, it } from "vitest";
import { cgroupsNamed } from "./cgroups.ts";
import { connectTo } from "./connect.ts";
import { startPodman } from "./podman.ts";
import { findProcesses } from "./processes.ts";
import { importTestImage } from "./test-image.ts";

it("a test's own Podman leaves nothing, even with a paused container", async (context) => {
  const podman = await startPodman();
  const directory = dirname(new URL(podman.url).pathname);
  const processes = () => findProcesses(["cmdline", "environ"], (text) => text.includes(directory));
  let cgroup = "";
  try {
    using engine = await connectTo(podman);
    const Image = await importTestImage(engine, { variant: "tiny" });
    const HostConfig = { NetworkMode: "none" };
    const container = await engine.docker.createContainer({
      Image,
      Cmd: ["sh", "-c", "read x"],
      OpenStdin: true,
      HostConfig,
    });
    const refusal = await container.start().catch((error: unknown) => String(error).replace(/\s+/g, " "));
    if (typeof refusal === "string") return context.skip(`Podman runs no container here: ${refusal}`);
    await container.pause();
    cgroup = `libpod_parent/libpod-${container.id}`;
    expect(await cgroupsNamed(cgroup)).not.toEqual([]);
    expect(await processes()).not.toEqual([]);
  } finally {
    await podman[Symbol.asyncDispose]();
  }
  expect(existsSync(directory)).toBe(false);
  expect(await cgroupsNamed(cgroup)).toEqual([]);
  expect(await processes()).toEqual([]);
  expect(await readFile("/proc/self/mounts", "utf8")).not.toContain(directory);
});
