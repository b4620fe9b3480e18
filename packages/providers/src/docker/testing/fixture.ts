import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox, type SandboxConfigOptions } from "@sandpiper/core";
import type { Engine } from "../engine.ts";
import type { DockerOptions } from "../host.ts";
import { DockerProvider } from "../provider.ts";
import { connectTo } from "./connect.ts";
import { type Dockerd, type DockerdOptions, startDockerd } from "./dockerd.ts";
import { importTestImage, type TestImageOptions } from "./test-image.ts";

export interface DockerFixtureOptions extends DockerdOptions {
  readonly provider?: Partial<DockerOptions>;
  readonly image?: TestImageOptions;
}

/** A provider with an engine, an image and a state directory of its own; nothing is left of them at the end. */
export interface DockerFixture extends AsyncDisposable {
  readonly dockerd: Dockerd;
  /** For looking at what the provider does. */
  readonly engine: Engine;
  readonly provider: DockerProvider;
  readonly image: string;
  readonly stateDirectory: string;
  create(options?: SandboxConfigOptions): Promise<Sandbox>;
  /** Of another program, as it were: with the same state on the same engine. */
  newProvider(options?: Partial<DockerOptions>): DockerProvider;
}

export async function createDockerFixture(options: DockerFixtureOptions = {}): Promise<DockerFixture> {
  await using undo = new AsyncDisposableStack();
  const stateDirectory = await mkdtemp(join(tmpdir(), "sandpiper-docker-state-"));
  undo.defer(() => rm(stateDirectory, { recursive: true }));
  const dockerd = undo.use(await startDockerd(options));
  const engine = undo.use(await connectTo(dockerd));
  const image = await importTestImage(engine, options.image);
  const newProvider = (more: Partial<DockerOptions> = {}) =>
    new DockerProvider({ stateDirectory, engineUrl: dockerd.url, image, ...options.provider, ...more });
  const provider = newProvider();
  const disposing = undo.move();
  return {
    dockerd,
    engine,
    provider,
    image,
    stateDirectory,
    create: (config) => Sandbox.create(provider, config),
    newProvider,
    [Symbol.asyncDispose]: () => disposing.disposeAsync(),
  };
}
