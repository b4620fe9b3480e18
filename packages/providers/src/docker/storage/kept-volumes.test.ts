import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { afterEach, describe, expect, it } from "vitest";
import { shared } from "../../host/testing/shared.ts";
import { createDockerFixture } from "../testing/fixture.ts";

const fixture = await shared(createDockerFixture());
const { kept } = fixture.provider.containers;
afterEach(async () => {
  for (const { name } of await kept.list()) await kept.remove(name);
});

/** A volume of a destroyed sandbox that contains a file. */
async function keepVolume(): Promise<string> {
  const sandbox = await fixture.create();
  await sandbox.exec("echo kept > /.data/file");
  await sandbox.destroy({ keepsVolumes: true });
  return `sandpiper-data-${sandbox.id}`;
}

describe("a kept volume", () => {
  it("is listed with its size and former path once its sandbox is destroyed, and removed on request", async () => {
    await using living = await fixture.create();
    const name = await keepVolume();
    const sandbox = name.replace("sandpiper-data-", "");
    const [volume, ...others] = await kept.list();
    expect(volume).toEqual({ name, sandbox, path: "/.data", sizeBytes: expect.any(Number), usedBy: [] });
    expect(volume?.sizeBytes).toBeGreaterThan(0);
    expect(others).toEqual([]);
    await kept.remove(name);
    expect(await kept.list()).toEqual([]);
    const absent = { code: "not_found", reason: "no_such_volume" };
    expect(await rejection(kept.remove(name))).toMatchObject(absent);
    expect(await rejection(kept.remove(`sandpiper-data-${living.id}`))).toMatchObject(absent);
  });

  it("takes the place of a new data volume, or has a path of the caller's choice, and outlives its user", async () => {
    const name = await keepVolume();
    const first = await fixture.create({ container: { volumes: [{ name }] } });
    expect((await first.exec("cat /.data/file; echo more >> /.data/file")).stdout).toBe("kept\n");
    const refused = await rejection(kept.remove(name));
    expect(refused).toMatchObject({ reason: "volume_in_use", details: { usedBy: [first.id] } });
    await first.destroy();
    await using second = await fixture.create({ container: { volumes: [{ name, path: "/old" }] } });
    expect((await second.exec("cat /old/file; ls /.data")).stdout).toBe("kept\nmore\n");
    expect(await kept.list()).toMatchObject([{ name, usedBy: [second.id] }]);
  });

  it("is mounted again in a sandbox that is restored from a checkpoint", async () => {
    const name = await keepVolume();
    const { provider } = fixture;
    await using sandbox = await fixture.create({ container: { volumes: [{ name }] } });
    const directory = await mkdtemp(join(tmpdir(), "sandpiper-kept-"));
    try {
      await sandbox.checkpoint(directory, { keepsRunning: false });
      await sandbox.destroy();
      const { config, createdAt, id } = sandbox;
      const prepared = await Sandbox.prepare(provider, config, { id });
      await using restored = await Sandbox.restore(provider, config, { prepared, directory, createdAt });
      expect((await restored.exec("cat /.data/file")).stdout).toBe("kept\n");
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it("cannot be a volume of a living sandbox, of another home, or one that does not exist", async () => {
    await using living = await fixture.create();
    const name = await keepVolume();
    const mount = (volume: string) => ({ container: { volumes: [{ name: volume }] } });
    const absent = { code: "not_found", reason: "no_such_volume" };
    for (const id of [living.id, createSandboxId()]) {
      expect(await rejection(fixture.create(mount(`sandpiper-data-${id}`)))).toMatchObject(absent);
    }
    const other = fixture.newProvider({ stateDirectory: join(fixture.stateDirectory, "other") });
    expect(await rejection(Sandbox.create(other, mount(name)))).toMatchObject(absent);
    expect(await other.containers.kept.list()).toEqual([]);
  });

  it("conflicts with another mount at the same path", async () => {
    const name = await keepVolume();
    const container = { volumes: [{ name, path: "/cache" }], caches: [{ name: "npm", path: "/cache" }] };
    expect(await rejection(fixture.create({ container }))).toMatchObject({ reason: "mount_target_taken" });
    await fixture.provider.containers.clearCache({ project: "default", name: "npm" }).catch(() => {});
  });
});
