import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { freshDirectory } from "../../host/testing/shared.ts";
import { ProjectDisks } from "./project-disks.ts";

const directory = freshDirectory("disks");
const open = (sizeMib = 32) => new ProjectDisks({ directory: join(directory, "projects"), sizeMib });
const machineDisk = (name: string) => join(directory, name);
const inode = async (path: string) => (await stat(path)).ino;

async function attach(disks: ProjectDisks, name: string): Promise<string> {
  const path = machineDisk(name);
  await (await disks.plan("shop")).attach(path);
  return path;
}

it("gives every machine of a project the same disk, one after another, and keeps its size", async () => {
  const first = await attach(open(), "first");
  const used = await inode(first);
  await rm(first);
  await open().note("shop", [{ name: "npm", sizeBytes: 7 }]);
  const plan = await open(64).plan("shop");
  expect(plan.sizeMib).toBe(32);
  await plan.attach(machineDisk("second"));
  expect(await inode(machineDisk("second"))).toBe(used);
  expect((await stat(machineDisk("second"))).blocks * 512).toBeLessThan(4 * 2 ** 20);
});

it("gives a second machine of the same project a disk of its own", async () => {
  const first = await attach(open(), "first");
  const second = await attach(open(), "second");
  expect(await inode(second)).not.toBe(await inode(first));
  await rm(second);
  expect(await inode(await attach(open(), "third"))).not.toBe(await inode(first));
});

it("removes the disk of a project without caches once no machine uses it", async () => {
  const disks = open();
  const path = await attach(disks, "first");
  await disks.tidy("shop");
  expect(await readdir(join(directory, "projects"))).toHaveLength(1);
  await rm(path);
  await disks.note("shop", [{ name: "npm", sizeBytes: 7 }]);
  await disks.tidy("shop");
  expect(await disks.list()).toMatchObject([{ projectId: "shop", caches: [{ name: "npm", sizeBytes: 7 }] }]);
  expect(await disks.clear("shop", "npm")).toBe(true);
  expect(await readdir(join(directory, "projects"))).toEqual([]);
});

it("makes the next machine remove each cache once that was cleared before its start", async () => {
  const disks = open();
  await disks.note("shop", [
    { name: "npm", sizeBytes: 7 },
    { name: "pip", sizeBytes: 8 },
  ]);
  await disks.add("shop", ["npm", "go"]);
  expect(await disks.list()).toMatchObject([
    { caches: [{ sizeBytes: 7 }, { sizeBytes: 8 }, { name: "go", sizeBytes: 0 }] },
  ]);
  expect(await disks.clear("shop", "go")).toBe(true);
  expect(await disks.clear("shop", "none")).toBe(false);
  expect(await disks.clear("other", "npm")).toBe(false);
  expect(await disks.clear("shop", "npm")).toBe(true);
  expect(await disks.list()).toMatchObject([{ caches: [{ name: "pip" }] }]);
  const removed: string[] = [];
  const remove = async (name: string) => void removed.push(name);
  await Promise.all([disks.removeCleared("shop", remove), disks.removeCleared("shop", remove)]);
  expect(removed).toEqual(["go", "npm"]);
});
