import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { InstanceSpec } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import type Docker from "dockerode";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findRunsc } from "../../host/find-runsc.ts";
import { freshDirectory, shared } from "../../host/testing/shared.ts";
import type { Engine } from "../engine/engine.ts";
import { createVolumes, removeVolumes, volumesOf } from "../storage/volumes.ts";
import { connectTo, removeContainers } from "../testing/connect.ts";
import { startDockerd } from "../testing/dockerd.ts";
import { importTestImage } from "../testing/test-image.ts";
import { saveContainer } from "./checkpoint.ts";
import { commitContainer, removeImagesOf } from "./checkpoint-image.ts";
import { fillVolumes, loadCheckpoint } from "./restore.ts";

const HOME = "0123456789ab";
const SECRET = "not for the image";
const signal = AbortSignal.timeout(300_000);

const found = await findRunsc(undefined);
if ("reason" in found) throw new Error(found.reason);
const [dockerd, other] = await Promise.all([
  shared(startDockerd({ runtimes: { runsc: found.path } })),
  shared(startDockerd()),
]);
const engine = await shared(connectTo(dockerd));
/** An engine that does not have the image. */
const elsewhere = await shared(connectTo(other));
const image = await importTestImage(engine);
let directory = freshDirectory("checkpoint");
let spec: InstanceSpec;

beforeEach(() => {
  spec = specOf(createSandboxId());
});
afterEach(async () => {
  for (const each of [engine, elsewhere]) {
    await removeContainers(each);
    await removeVolumes(each, spec.id, HOME);
    await removeImagesOf(each, { id: spec.id, home: HOME });
    // Proves that the checks for leftovers see something.
    expect(await imagesOf(each)).toEqual(each === engine ? [image] : []);
  }
});

function specOf(id: SandboxId): InstanceSpec {
  const container = { workspace: { git: "https://example.org/repository.git" } };
  return { id, container, labels: {} } as unknown as InstanceSpec;
}

async function imagesOf({ docker }: Engine): Promise<string[]> {
  const images = await docker.listImages({ all: true });
  return images.map(({ RepoTags, Id }) => RepoTags?.find((tag) => tag !== "<none>:<none>") ?? Id);
}

async function create(on: Engine, source: string, of = spec, runtime?: string): Promise<Docker.Container> {
  await createVolumes(on, of, { home: HOME, signal });
  return await on.docker.createContainer({
    Image: source,
    Cmd: ["/bin/sh", "-c", "while true; do sleep 1; done"],
    Labels: { "sandpiper.sandbox": of.id, "sandpiper.home": HOME },
    HostConfig: {
      NetworkMode: "none",
      ...(runtime === undefined ? { Init: true } : { Runtime: runtime }),
      Mounts: volumesOf(of, HOME).map(({ name, target }) => ({ Type: "volume", Source: name, Target: target })),
    },
  });
}

async function start(on: Engine, source: string): Promise<Docker.Container> {
  const container = await create(on, source);
  await container.start();
  return container;
}

async function run(container: Docker.Container, command: string): Promise<string> {
  const exec = await container.exec({ Cmd: ["/bin/sh", "-c", `exec 2>&1; ${command}`], AttachStdout: true, Tty: true });
  return (await text(await exec.start({ Tty: true }))).replaceAll("\r", "");
}

async function restore(on: Engine, of = spec): Promise<Docker.Container> {
  const options = { spec: of, home: HOME, directory, signal };
  const container = await create(on, (await loadCheckpoint(on, options)).id, of);
  await fillVolumes(on, container, options);
  await container.start();
  return container;
}

const save = (container: Docker.Container, options: { keepsRunning: boolean; maxLayers?: number }) =>
  saveContainer(engine, container, { spec, home: HOME, directory, ...options });

const state = async (container: Docker.Container) => (await container.inspect()).State;

const CHANGE = [
  "echo root > /root/file; ln -s file /root/link; chmod 4711 /root/file; rm /etc/group; mkdir /new",
  "echo data > /.data/file; ln /.data/file /.data/same; mkdir -m 2750 '/.data/d ü'; chown 1000:1001 '/.data/d ü'",
  "printf '\\303\\050' > name; touch /.data/$(cat name); mkfifo /.data/pipe",
  "echo code > /workspace/code",
].join("; ");
const LOOK = [
  "stat -c '%n %F %a %u %g %h' /root/file /root/link /new /.data/file '/.data/d ü' /.data/pipe /workspace/code",
  "cat /root/link /.data/same /workspace/code; ls /etc/group; ls -b /.data",
].join("; ");

describe("a container's checkpoint", () => {
  it("restores files, links, owners and modes of root and volumes on an engine without the image", async () => {
    const container = await start(engine, image);
    await run(container, CHANGE);
    const before = await run(container, LOOK);
    expect(before).toContain("root\ndata\ncode\n");
    expect(before).toContain("\\303(");
    await save(container, { keepsRunning: false });
    expect(await state(container)).toMatchObject({ Running: false, Paused: false });
    expect(await run(await restore(elsewhere), LOOK)).toBe(before);
  });

  it("leaves a container that keeps running unchanged, and reports the end of the pause", async () => {
    const container = await start(engine, image);
    const { Pid } = await state(container);
    let whenCaptured: Promise<unknown> | undefined;
    const onCaptured = () => {
      whenCaptured = Promise.all([state(container), readdir(directory)]);
    };
    await saveContainer(engine, container, { spec, home: HOME, directory, keepsRunning: true, onCaptured });
    expect(await whenCaptured).toMatchObject([{ Paused: false, Pid }, expect.not.arrayContaining(["image.json"])]);
    expect(await state(container)).toMatchObject({ Running: true, Paused: false, Pid });
    expect(await imagesOf(engine)).toEqual([image]);
  });

  it("can be forked while the original runs; each fork's image is removed with it", async () => {
    const container = await start(engine, image);
    await run(container, "echo before > /file; echo before > /.data/file");
    await save(container, { keepsRunning: true });
    const forks = [createSandboxId(), createSandboxId()].map(specOf);
    try {
      const created = await Promise.all(forks.map((fork) => restore(engine, fork)));
      await run(container, "echo after > /file; echo after > /.data/file");
      for (const fork of created) expect(await run(fork, "cat /file /.data/file")).toBe("before\nbefore\n");
      expect(await imagesOf(engine)).toHaveLength(3);
      for (const [index, fork] of forks.entries()) {
        await created[index]?.remove({ force: true });
        await removeImagesOf(engine, { id: fork.id, home: HOME });
        expect(await imagesOf(engine)).toHaveLength(2 - index);
      }
      expect(await run(container, "cat /file /.data/file")).toBe("after\nafter\n");
    } finally {
      await Promise.all(forks.map(({ id }) => removeVolumes(engine, id, HOME).catch(() => {})));
    }
    for (const { id } of forks) await removeVolumes(engine, id, HOME);
  });

  it("restores the saved volumes, and drops files that an earlier instance left", async () => {
    const container = await start(engine, image);
    await run(container, "echo before > /.data/file");
    await save(container, { keepsRunning: true });
    await run(container, "echo after > /.data/file; echo after > /.data/later");
    await container.remove({ force: true });
    expect(await run(await restore(engine), "cat /.data/*")).toBe("before\n");
  });

  it("is restored after another home on the same engine has removed its parts of the sandbox", async () => {
    const container = await start(engine, image);
    await save(container, { keepsRunning: true });
    await container.remove({ force: true });
    const { docker } = engine;
    await removeVolumes(engine, spec.id, HOME);
    const Labels = { "sandpiper.sandbox": spec.id, "sandpiper.home": "another" };
    const left = await docker.createContainer({ Image: image, Labels, name: `sandpiper-${spec.id}` });
    const volume = await docker.createVolume({ Name: `sandpiper-data-${spec.id}`, Labels });
    const restoring = restore(engine);
    await expect.poll(async () => await imagesOf(engine)).toHaveLength(2);
    await left.remove();
    await volume.remove();
    expect(await run(await restoring, "echo here")).toBe("here\n");
  });

  it("leaves no image of another home when a later checkpoint replaces it", async () => {
    const container = await start(engine, image);
    const owner = { id: spec.id, home: "another" };
    for (const content of ["first", "second"]) {
      await run(container, `echo ${content} > /file`);
      await save(container, { keepsRunning: true });
      await loadCheckpoint(elsewhere, { spec, home: owner.home, directory, signal });
      await rm(directory, { recursive: true });
      await mkdir(directory);
    }
    expect(await imagesOf(elsewhere)).toHaveLength(2);
    await removeImagesOf(elsewhere, owner);
    expect(await imagesOf(elsewhere)).toEqual([]);
  });

  it("leaves no image when its next checkpoint was interrupted", async () => {
    const container = await start(engine, image);
    await save(container, { keepsRunning: false });
    const restored = await restore(elsewhere);
    await commitContainer(elsewhere, restored);
    await restored.remove({ force: true });
    expect(await imagesOf(elsewhere)).toHaveLength(2);
    await removeImagesOf(elsewhere, { id: spec.id, home: HOME });
    expect(await imagesOf(elsewhere)).toEqual([]);
  });

  it("stores an unchanged layer as the same file", async () => {
    const container = await start(engine, image);
    await save(container, { keepsRunning: true });
    const layers = async () => (await readdir(directory)).filter((name) => name.startsWith("layer-"));
    const [before] = [await layers()];
    await rm(directory, { recursive: true });
    await mkdir(directory);
    await run(container, "echo more > /more");
    await save(container, { keepsRunning: true });
    expect((await layers()).filter((name) => before.includes(name))).toHaveLength(1);
  });

  it("stores one layer when there would be too many", async () => {
    const container = await start(engine, image);
    await run(container, CHANGE);
    const before = await run(container, LOOK);
    await save(container, { keepsRunning: true, maxLayers: 1 });
    expect((await readdir(directory)).filter((name) => name.startsWith("layer-"))).toHaveLength(1);
    const restored = await restore(elsewhere);
    expect(await run(restored, LOOK)).toBe(before);
    const { Config } = await restored.inspect();
    expect(Config.Env).toEqual(expect.arrayContaining([expect.stringContaining("PATH=")]));
  });

  it.each([true, false])(
    "that fails leaves the container running, and no image (keepsRunning: %s)",
    async (keepsRunning) => {
      const container = await start(engine, image);
      const { Pid } = await state(container);
      const broken = directory;
      directory = join(broken, "nothing");
      expect((await rejection(save(container, { keepsRunning }))).message).toContain("nothing");
      expect(await state(container)).toMatchObject({ Running: true, Paused: false, Pid });
      // Fails halfway: the volume archives already exist.
      directory = broken;
      await save(container, { keepsRunning: true });
      expect(await rejection(save(container, { keepsRunning }))).toMatchObject({ reason: "write_failed" });
      expect(await state(container)).toMatchObject({ Running: true, Paused: false, Pid });
      expect(await imagesOf(engine)).toEqual([image]);
    },
  );

  it("reports an image that the engine rejects", async () => {
    const container = await start(engine, image);
    await save(container, { keepsRunning: false });
    const [layer] = (await readdir(directory)).filter((name) => name.startsWith("layer-"));
    await writeFile(join(directory, layer ?? ""), "damaged");
    await rejection(restore(elsewhere));
    await removeImagesOf(elsewhere, { id: spec.id, home: HOME });
    expect(await imagesOf(elsewhere)).toEqual([]);
  });

  it("is rejected if the runtime hides the container's files from the engine", async () => {
    const container = await create(engine, image, spec, "runsc");
    await container.start();
    const { Pid } = await state(container);
    expect(await rejection(save(container, { keepsRunning: false }))).toMatchObject({
      code: "failed_precondition",
      reason: "runtime_hides_files",
    });
    expect(await state(container)).toMatchObject({ Running: true, Paused: false, Pid });
  });

  it("puts no secret of a command into the image", async () => {
    const container = await start(engine, image);
    const exec = await container.exec({ Cmd: ["/bin/sh", "-c", "sleep 100"], Env: [`SECRET=${SECRET}`] });
    await exec.start({ Detach: true });
    await save(container, { keepsRunning: true });
    const names = await readdir(directory);
    for (const name of names) expect((await readFile(join(directory, name))).includes(SECRET)).toBe(false);
  });
});
