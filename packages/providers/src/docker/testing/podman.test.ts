import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { expect, it } from "vitest";
import { cgroupsNamed } from "./cgroups.ts";
import { connectTo } from "./connect.ts";
import { startPodman } from "./podman.ts";
import { importTestImage } from "./test-image.ts";

it("a test's own Podman leaves nothing, even with a paused container", async (context) => {
  const podman = await startPodman();
  const directory = dirname(new URL(podman.url).pathname);
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
    expect(await processesOf(directory)).not.toEqual([]);
  } finally {
    await podman[Symbol.asyncDispose]();
  }
  expect(existsSync(directory)).toBe(false);
  expect(await cgroupsNamed(cgroup)).toEqual([]);
  expect(await processesOf(directory)).toEqual([]);
  expect(await readFile("/proc/self/mounts", "utf8")).not.toContain(directory);
});

/** Processes with the directory in their arguments or environment. */
async function processesOf(directory: string): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const read = (path: string) => readFile(path, "utf8").catch(() => "");
  const found = pids.map(async (pid) => {
    const texts = [await read(`/proc/${pid}/cmdline`), await read(`/proc/${pid}/environ`)];
    return texts.some((text) => text.includes(directory)) ? [pid] : [];
  });
  return (await Promise.all(found)).flat();
}
