import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox, type SandboxConfigOptions } from "@sandpiper/core";
import type { HostProgram, HostProgramOptions } from "@sandpiper/core/testing";
import { startHostProgram } from "../../host/testing/start-host-program.ts";
import type { Engine } from "../engine/engine.ts";
import type { DockerOptions } from "../host.ts";
import { DockerProvider } from "../provider.ts";
import { connectTo } from "./connect.ts";
import { type Dockerd, type DockerdOptions, startDockerd } from "./dockerd.ts";
import { importTestImage, type TestImageOptions } from "./test-image.ts";

export interface EngineFixtureOptions {
  readonly provider?: Partial<DockerOptions>;
  readonly image?: TestImageOptions;
}

/** A provider with its own image and state directory on an engine; dispose removes all of them. */
export interface EngineFixture extends AsyncDisposable {
  readonly url: string;
  /** For checks of the provider's effects. */
  readonly engine: Engine;
  readonly provider: DockerProvider;
  readonly image: string;
  readonly stateDirectory: string;
  create(options?: SandboxConfigOptions): Promise<Sandbox>;
  /** Simulates another program with the same state on the same engine. */
  newProvider(options?: Partial<DockerOptions>): DockerProvider;
  /** Starts another program with the same state on the same engine. */
  startProgram(options?: HostProgramOptions): HostProgram;
}

/** With its own Docker Engine. */
export interface DockerFixture extends EngineFixture {
  readonly dockerd: Dockerd;
}

export async function createDockerFixture(options: DockerdOptions & EngineFixtureOptions = {}): Promise<DockerFixture> {
  const dockerd = await startDockerd(options);
  return { ...(await createEngineFixture(dockerd, options)), dockerd };
}

/** Disposes the started engine with the fixture. */
export async function createEngineFixture(
  started: AsyncDisposable & { readonly url: string },
  options: EngineFixtureOptions = {},
): Promise<EngineFixture> {
  await using undo = new AsyncDisposableStack();
  const { url } = undo.use(started);
  const stateDirectory = await mkdtemp(join(tmpdir(), "sandpiper-docker-state-"));
  undo.defer(() => rm(stateDirectory, { recursive: true }));
  const engine = undo.use(await connectTo({ url }));
  const image = await importTestImage(engine, options.image);
  const own = { stateDirectory, engineUrl: url, image, networks: ["bridge"] };
  const newProvider = (more: Partial<DockerOptions> = {}) =>
    new DockerProvider({ ...own, ...options.provider, ...more });
  const provider = newProvider();
  const disposing = undo.move();
  return {
    url,
    engine,
    provider,
    image,
    stateDirectory,
    create: (config) => Sandbox.create(provider, config),
    newProvider,
    startProgram: (given = {}) => startHostProgram(new URL("host-program.ts", import.meta.url), own, given),
    [Symbol.asyncDispose]: () => disposing.disposeAsync(),
  };
}
