import { basename } from "node:path";
import type { Engine } from "../../packages/providers/src/docker/engine/engine.ts";
import { connectTo } from "../../packages/providers/src/docker/testing/connect.ts";
import { type Dockerd, startDockerd } from "../../packages/providers/src/docker/testing/dockerd.ts";
import { importTestImage } from "../../packages/providers/src/docker/testing/test-image.ts";
import { containersAndVolumes, IMAGE } from "../node/docker-home.ts";
import type { WatchedEngine } from "./running-instances.ts";

/** The Docker Engine of one node. */
export class ContainerEngine implements WatchedEngine, AsyncDisposable {
  readonly env: NodeJS.ProcessEnv;
  readonly directory: string;
  /** Of its containers' cgroups. */
  readonly name: string;
  readonly #dockerd: Dockerd;
  readonly #engine: Engine;

  private constructor(dockerd: Dockerd, engine: Engine) {
    this.#dockerd = dockerd;
    this.#engine = engine;
    this.directory = dockerd.directory;
    this.name = basename(dockerd.directory);
    this.env = { SANDPIPER_DOCKER_URL: dockerd.url, SANDPIPER_DOCKER_IMAGE: IMAGE };
  }

  static async start(): Promise<ContainerEngine> {
    await using undo = new AsyncDisposableStack();
    const dockerd = undo.use(await startDockerd());
    const engine = await connectTo(dockerd);
    await importTestImage(engine, { name: IMAGE });
    undo.move();
    return new ContainerEngine(dockerd, engine);
  }

  /** Containers, images and volumes of sandboxes. */
  async left(): Promise<readonly string[]> {
    const images = await this.#engine.docker.listImages({ all: true });
    return [
      ...(await containersAndVolumes(this.#engine, /^sandpiper-agent-/)),
      ...images
        .filter(({ RepoTags }) => !RepoTags?.includes(IMAGE))
        .map(({ RepoTags, Id, Labels }) => `image ${RepoTags ?? Id} ${JSON.stringify(Labels)}`),
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#engine[Symbol.dispose]();
    await this.#dockerd[Symbol.asyncDispose]();
  }
}
