import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NodeConfigOptions } from "@sandpiper/node/server";
import type { Engine } from "../../packages/providers/src/docker/engine/engine.ts";
import { connectTo } from "../../packages/providers/src/docker/testing/connect.ts";
import { type Dockerd, startDockerd } from "../../packages/providers/src/docker/testing/dockerd.ts";
import { importTestImage } from "../../packages/providers/src/docker/testing/test-image.ts";

export const IMAGE = "sandpiper-test:latest";

/** The error of a process that a container's move or restore has ended. */
export const LOST = { code: "gone", reason: "process_lost" };
/** Shell commands that write and show a file in the root filesystem and one in the volume. */
export const write = (text: string) => `echo ${text} | tee file > /.data/file`;
export const SHOW = "cat file /.data/file";

/** The names of an engine's containers, and of its volumes except those that sandboxes share. */
export async function containersAndVolumes({ docker }: Engine, sharedVolumes: RegExp): Promise<string[]> {
  const containers = await docker.listContainers({ all: true });
  const { Volumes } = await docker.listVolumes();
  const volumes = Volumes.map(({ Name }) => Name).filter((name) => !sharedVolumes.test(name));
  return [...containers.flatMap(({ Names }) => Names), ...volumes];
}

type TestEngine = AsyncDisposable & Pick<Dockerd, "url">;
type StartEngine = () => Promise<TestEngine>;

/** A container engine for the nodes of a test file. */
export class DockerHome implements AsyncDisposable {
  readonly #dockerd: TestEngine;
  readonly #engine: Engine;
  readonly #paths: string[] = [];

  private constructor(dockerd: TestEngine, engine: Engine) {
    this.#dockerd = dockerd;
    this.#engine = engine;
  }

  /** Starts Docker or another engine with the sandboxes' image, or without images. */
  static async start({ hasImage = true, startEngine = startDockerd as StartEngine } = {}): Promise<DockerHome> {
    const dockerd = await startEngine();
    try {
      const engine = await connectTo(dockerd);
      if (hasImage) await importTestImage(engine, { name: IMAGE });
      return new DockerHome(dockerd, engine);
    } catch (error) {
      await dockerd[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The configuration of a node with its own directory. */
  config(settings: NodeConfigOptions = {}): NodeConfigOptions {
    const home = mkdtempSync(join(tmpdir(), "sandpiper-node-"));
    this.#paths.push(home);
    const docker = { url: this.#dockerd.url, image: IMAGE };
    return { home, port: 0, logLevel: "warn", defaultProvider: "docker", docker, ...settings };
  }

  /** Kills the engine and its containers, like a power failure. */
  async kill(): Promise<void> {
    await this.#dockerd[Symbol.asyncDispose]();
  }

  /** Ends the containers' processes, like a fault. */
  async killContainers(): Promise<void> {
    for (const { Id } of await this.#engine.docker.listContainers()) await this.#engine.docker.getContainer(Id).kill();
  }

  async removeContainers(): Promise<void> {
    for (const { Id } of await this.#engine.docker.listContainers({ all: true })) {
      await this.#engine.docker.getContainer(Id).remove({ force: true, v: true });
    }
  }

  /** Containers, images and volumes of single sandboxes. */
  async left(): Promise<readonly string[]> {
    const { docker } = this.#engine;
    const images = await docker.listImages({ all: true });
    return [
      ...(await containersAndVolumes(this.#engine, /^sandpiper-agent-/)),
      ...images.flatMap(({ RepoTags, Id }) => RepoTags ?? [Id]).filter((name) => !name.endsWith(IMAGE)),
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#engine[Symbol.dispose]();
    await this.#dockerd[Symbol.asyncDispose]();
    for (const path of this.#paths) rmSync(path, { recursive: true, force: true });
  }
}
