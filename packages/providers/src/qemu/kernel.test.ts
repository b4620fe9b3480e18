import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findKernel, guestKernel, type Kernel, kernelCommandLine } from "./kernel.ts";
import { kernelArchive } from "./kernel-archive.ts";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "kernel-"));
});

afterEach(() => rm(directory, { recursive: true, force: true }));

async function cacheKernel(version: string): Promise<void> {
  const root = join(directory, "sandpiper/kernel", version);
  await mkdir(join(root, "modules"), { recursive: true });
  await writeFile(join(root, "vmlinuz"), version);
  for (const name of ["01-virtio_pci.ko", "00-virtio.ko"]) await writeFile(join(root, "modules", name), name);
}

test("the newest kernel of the cache is found, with its modules in the order in which they load", async () => {
  for (const version of ["6.1.9-1", "6.1.190-1", "6.1.20-1"]) await cacheKernel(version);
  const kernel = (await findKernel({ XDG_CACHE_HOME: directory })) as Kernel;
  expect(kernel.version).toBe("6.1.190-1");
  expect(kernel.modules.map((path) => path.split("/").at(-1))).toEqual(["00-virtio.ko", "01-virtio_pci.ko"]);
});

test("a cache without a kernel says what to do", async () => {
  expect(await findKernel({ XDG_CACHE_HOME: directory })).toMatchObject({
    hint: expect.stringContaining("setup kernel"),
  });
});

test("the initramfs has the agent as its first process, is made once, and is another for another agent", async () => {
  await cacheKernel("6.1.1-1");
  const kernel = (await findKernel({ XDG_CACHE_HOME: directory })) as Kernel;
  const agent = join(directory, "agent");
  await writeFile(agent, "one");
  const options = { directory: join(directory, "boot"), kernel, agent };
  const first = await guestKernel(options);
  expect(await guestKernel(options)).toEqual(first);
  const unpacked = join(directory, "unpacked");
  await mkdir(unpacked);
  execFileSync("cpio", ["-idm", "--quiet", "--no-preserve-owner"], {
    cwd: unpacked,
    input: await readFile(first.initramfs),
  });
  expect(await readFile(join(unpacked, "init"), "utf8")).toBe("one");
  expect(await readFile(join(unpacked, "modules/00-virtio.ko"), "utf8")).toBe("00-virtio.ko");
  await writeFile(agent, "another");
  expect((await guestKernel(options)).sha).not.toBe(first.sha);
});

test("a kernel that is not there is refused", async () => {
  const agent = join(directory, "agent");
  await writeFile(agent, "");
  const kernel = { path: join(directory, "none"), version: "", modules: [] };
  await expect(guestKernel({ directory, kernel, agent })).rejects.toMatchObject({ reason: "no_such_kernel" });
});

test("members of an archive begin at multiples of four bytes", () => {
  const archive = kernelArchive([
    { kind: "file", path: "ab", bytes: Buffer.from("12345") },
    { kind: "device", path: "null", major: 1, minor: 3 },
  ]).toString("latin1");
  const starts = [...archive.matchAll(/070701/g)].map((match) => match.index);
  expect(starts).toHaveLength(3);
  expect(starts.every((start) => start % 4 === 0)).toBe(true);
});

test("nothing but the agent's own arguments reaches it: the kernel hands on each word that it does not know", () => {
  const [kernel = "", agent] = kernelCommandLine.split(" -- ");
  expect(agent).toMatch(/^--init --channel serial:/);
  const known = ["quiet", "no_timer_check", "noreplace-smp"];
  expect(kernel.split(" ").filter((word) => !/[=.]/.test(word) && !known.includes(word))).toEqual([]);
});
