import { mkdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FakeClock } from "@sandpiper/core/testing";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { freshDirectory } from "../host/testing/shared.ts";
import { findDefaultRoot } from "./image-default.ts";
import { Images } from "./images.ts";

const directory = freshDirectory("images");
beforeEach(() => void vi.stubEnv("XDG_CACHE_HOME", directory));
afterEach(() => void vi.unstubAllEnvs());

async function makeRoot(name: string): Promise<string> {
  const root = join(directory, name);
  await mkdir(root, { recursive: true });
  await writeFile(join(root, "file"), name);
  return root;
}

function createImages(clock = new FakeClock()): Images {
  return new Images(join(directory, "state"), clock);
}

it("builds an image once for several concurrent callers", async () => {
  const root = await makeRoot("root");
  const images = createImages();
  const [one, other] = await Promise.all([images.find(root), images.find(root)]);
  expect(one).toBe(other);
});

it("notices a change of a directory after a while", async () => {
  const root = await makeRoot("root");
  const clock = new FakeClock();
  const images = createImages(clock);
  const first = await images.find(root);
  await writeFile(join(root, "file"), "changed");
  expect(await images.find(root)).toBe(first);
  await clock.advance(60_000);
  expect((await images.find(root)).sha).not.toBe(first.sha);
});

it("does not remember a failure", async () => {
  const images = createImages();
  await expect(images.find(join(directory, "root"))).rejects.toMatchObject({ reason: "no_such_rootfs" });
  await expect(images.find(await makeRoot("root"))).resolves.toMatchObject({ sha: expect.any(String) });
});

it("uses the newest default image, and reports how to build one if there is none", async () => {
  await expect(createImages().find("host")).rejects.toMatchObject({
    code: "failed_precondition",
    reason: "image_missing",
    hint: expect.stringContaining("setup image"),
  });
  const [older, newer] = [await makeRoot("sandpiper/image/b"), await makeRoot("sandpiper/image/a")];
  await utimes(older, 1, 1);
  expect(await findDefaultRoot()).toBe(newer);
  expect((await createImages().find("host")).path).toContain(join(directory, "sandpiper/images"));
});
