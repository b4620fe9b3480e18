import { Sandbox } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { commitContainer } from "../checkpoint/checkpoint-image.ts";
import { containerName } from "../container/inspect-container.ts";
import type { EngineFixture } from "./fixture.ts";
import { importTestImage } from "./test-image.ts";
import { crashContainer, tracesOfAll } from "./traces.ts";
import { Watch } from "./watch.ts";

/** What containers do alike on Docker and Podman. */
export function describeContainers(title: string, fixture: EngineFixture): void {
  const { engine, provider } = fixture;
  const { containers } = provider;

  describe(title, () => {
    it("is watched from creation to removal, with its exit code, after a replay of the current containers", async () => {
      await using before = await fixture.create();
      await using watch = new Watch(fixture);
      expect(await watch.next()).toMatchObject({ id: before.id, kind: "running", isReplay: true });
      const sandbox = await fixture.create();
      await crashContainer(sandbox.id, fixture);
      await sandbox.closed;
      await sandbox.destroy();
      expect(await watch.kinds(sandbox.id, "removed")).toEqual(["created", "running", "failed", "removed"]);
      expect(watch.seen.find(({ kind }) => kind === "failed")?.exit).toEqual({ exitCode: 137, isOutOfMemory: false });
      expect(watch.seen.slice(1).every(({ isReplay }) => !isReplay)).toBe(true);
    });

    it("stops as soon as its processes have ended within the timeout, starts again, and is adopted with its files", async () => {
      await using sandbox = await fixture.create();
      const asked = "echo asked > asked; echo asked > /.data/asked; exit";
      await sandbox.start(`trap '${asked}' TERM; echo > /tmp/ready; sleep 600 & wait`);
      await sandbox.start("sleep 600");
      await expect.poll(() => sandbox.exec("ls /tmp/ready")).toMatchObject({ exitCode: 0 });
      await containers.stop(sandbox.id, { timeoutMs: 600_000 });
      expect(await containers.get(sandbox.id)).toMatchObject({ state: "stopped", exit: { exitCode: 0 } });
      expect(await sandbox.closed).toMatchObject({ message: "its container was stopped" });
      await containers.start(sandbox.id);
      await using again = await Sandbox.adopt(provider, sandbox.id);
      for (const path of ["asked", "/.data/asked"]) expect(await again.readTextFile(path)).toBe("asked\n");
    });

    it("is outdated once its image reference resolves to another image", async () => {
      const image = await importTestImage(engine, { name: "sandpiper-test:moving", label: "first" });
      await using sandbox = await fixture.create({ container: { image } });
      await using other = await fixture.create();
      expect(await containers.isOutdated(sandbox.id)).toBe(false);
      await importTestImage(engine, { name: "sandpiper-test:moving", label: "second" });
      expect(await containers.isOutdated(sandbox.id)).toBe(true);
      expect(await containers.isOutdated(other.id)).toBe(false);
    });

    it("leaves its volumes on request, which a later container mounts", async () => {
      const { kept } = containers;
      const first = await fixture.create();
      await first.exec("echo kept > /.data/file");
      await first.destroy({ keepsVolumes: true });
      const name = `sandpiper-data-${first.id}`;
      expect(await kept.list()).toMatchObject([{ name, sandbox: first.id, path: "/.data", usedBy: [] }]);
      const second = await fixture.create({ container: { volumes: [{ name }] } });
      expect((await second.exec("cat /.data/file")).stdout).toBe("kept\n");
      expect(await rejection(kept.remove(name))).toMatchObject({ reason: "volume_in_use" });
      await second.destroy();
      await kept.remove(name);
      expect(await kept.list()).toEqual([]);
    });

    it("continues after adoption when its program died during a checkpoint, and is removed with the image", async () => {
      const before = await tracesOfAll(engine);
      const program = fixture.startProgram();
      const { id } = await program.ready();
      const container = engine.docker.getContainer(containerName(id));
      await container.pause();
      await commitContainer(engine, container);
      await program.kill();
      await using adopted = await Sandbox.adopt(fixture.newProvider(), id);
      expect((await adopted.exec("echo awake")).stdout).toBe("awake\n");
      await adopted.destroy();
      expect(await tracesOfAll(engine)).toEqual(before);
    });
  });
}
