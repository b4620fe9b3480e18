import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freshDirectory } from "../host/testing/shared.ts";
import { findKernel, guestKernel, kernelCommandLine, networkProblem } from "./kernel.ts";
import { kernelArchive } from "./kernel-archive.ts";

const directory = freshDirectory("kernel");

async function cacheKernel(version: string): Promise<void> {
  const root = join(directory, "sandpiper/kernel", version);
  await mkdir(join(root, "modules"), { recursive: true });
  await writeFile(join(root, "vmlinuz"), version);
  for (const name of ["01-virtio_pci.ko", "00-virtio.ko"]) await writeFile(join(root, "modules", name), name);
}

/** Parses an archive: a header of fixed size, the name and the content, both padded to a multiple of four. */
function readMembers(archive: Buffer): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  const aligned = (position: number) => Math.ceil(position / 4) * 4;
  for (let start = 0; start < archive.length; ) {
    expect(archive.toString("latin1", start, start + 6)).toBe("070701");
    const field = (index: number) =>
      Number.parseInt(archive.toString("latin1", start + 6 + index * 8, start + 14 + index * 8), 16);
    const nameEnd = start + 110 + field(11);
    const bytesEnd = aligned(nameEnd) + field(6);
    members.set(
      archive.toString("latin1", start + 110, nameEnd - 1),
      archive.toString("utf8", aligned(nameEnd), bytesEnd),
    );
    start = aligned(bytesEnd);
  }
  return members;
}

test("finds the newest kernel in the cache, with its modules in load order", async () => {
  for (const version of ["6.1.9-1", "6.1.190-1", "6.1.20-1"]) await cacheKernel(version);
  const kernel = await findKernel({ XDG_CACHE_HOME: directory });
  expect(kernel.version).toBe("6.1.190-1");
  expect(kernel.modules.map((path) => path.split("/").at(-1))).toEqual(["00-virtio.ko", "01-virtio_pci.ko"]);
});

test("reports that machines have no network if the modules are those of an earlier release", () => {
  expect(networkProblem({ modules: ["/kernel/modules/00-virtio.ko"] })).toContain("npm run setup kernel");
  expect(networkProblem({ modules: ["/kernel/modules/22-xt_REDIRECT.ko"] })).toBe("");
});

test("reports how to get a kernel when the cache has none", async () => {
  await expect(findKernel({ XDG_CACHE_HOME: directory })).rejects.toMatchObject({
    hint: expect.stringContaining("setup kernel"),
  });
});

test("builds the initramfs once, with the agent as the first process, and again for another agent", async () => {
  await cacheKernel("6.1.1-1");
  const kernel = await findKernel({ XDG_CACHE_HOME: directory });
  const agent = join(directory, "agent");
  await writeFile(agent, "one");
  const options = { directory: join(directory, "boot"), kernel, agent };
  const first = await guestKernel(options);
  expect(await guestKernel(options)).toEqual(first);
  const members = readMembers(await readFile(first.initramfs));
  expect(members.get("init")).toBe("one");
  expect(members.get("modules/00-virtio.ko")).toBe("00-virtio.ko");
  expect([...members.keys()].at(-1)).toBe("TRAILER!!!");
  await writeFile(agent, "another");
  expect((await guestKernel(options)).sha).not.toBe(first.sha);
});

test("refuses a kernel that does not exist", async () => {
  const agent = join(directory, "agent");
  await writeFile(agent, "");
  const kernel = { path: join(directory, "none"), version: "", modules: [] };
  await expect(guestKernel({ directory, kernel, agent })).rejects.toMatchObject({ reason: "no_such_kernel" });
});

test("aligns the members of an archive to four bytes", () => {
  const archive = kernelArchive([
    { kind: "file", path: "ab", bytes: Buffer.from("12345") },
    { kind: "device", path: "null", major: 1, minor: 3 },
  ]).toString("latin1");
  const starts = [...archive.matchAll(/070701/g)].map((match) => match.index);
  expect(starts).toHaveLength(3);
  expect(starts.every((start) => start % 4 === 0)).toBe(true);
});

test("passes only the agent's own arguments to it, because the kernel hands on every unknown word", () => {
  const [kernel = "", agent] = kernelCommandLine.split(" -- ");
  expect(agent).toMatch(/^--init --channel serial:/);
  const known = ["quiet", "no_timer_check", "noreplace-smp"];
  expect(kernel.split(" ").filter((word) => !/[=.]/.test(word) && !known.includes(word))).toEqual([]);
});

test("adds the agent to an initrd that replaces the modules, and reports one that cannot be read", async () => {
  await cacheKernel("6.1.1-1");
  const kernel = await findKernel({ XDG_CACHE_HOME: directory });
  const [agent, initrd] = [join(directory, "agent"), join(directory, "initrd.img")];
  await writeFile(agent, "agent");
  await writeFile(initrd, kernelArchive([{ kind: "file", path: "modules/own.ko", bytes: Buffer.from("own") }]));
  const made = await guestKernel({ directory: join(directory, "boot"), kernel, agent, initrd });
  const archive = await readFile(made.initramfs);
  const added = archive.subarray(Math.ceil((await readFile(initrd)).length / 512) * 512);
  expect(readMembers(await readFile(initrd)).get("modules/own.ko")).toBe("own");
  expect(archive.subarray(0, (await readFile(initrd)).length)).toEqual(await readFile(initrd));
  expect(readMembers(added).get("init")).toBe("agent");
  expect([...readMembers(added).keys()].filter((name) => name.endsWith(".ko"))).toEqual([]);
  const missing = { directory: join(directory, "boot"), kernel, agent, initrd: join(directory, "none") };
  await expect(guestKernel(missing)).rejects.toMatchObject({ reason: "no_such_kernel" });
});
