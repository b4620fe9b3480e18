import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox, type SandboxConfigOptions } from "@sandpiper/core";
import type { Engine } from "../engine/engine.ts";
import type { DockerOptions } from "../host.ts";
import { DockerProvider } from "../provider.ts";
import { connectTo } from "./connect.ts";
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
}

/** Disposes the started engine with the fixture. */
export async function createEngineFixture(
  start: () => Promise<AsyncDisposable & { readonly url: string }>,
  options: EngineFixtureOptions = {},
): Promise<EngineFixture> {
  await using undo = new AsyncDisposableStack();
  const stateDirectory = await mkdtemp(join(tmpdir(), "sandpiper-docker-state-"));
  undo.defer(() => rm(stateDirectory, { recursive: true }));
  const { url } = undo.use(await start());
  const engine = undo.use(await connectTo({ url }));
  const image = await importTestImage(engine, options.image);
  const newProvider = (more: Partial<DockerOptions> = {}) =>
    new DockerProvider({ stateDirectory, engineUrl: url, image, ...options.provider, ...more });
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
    [Symbol.asyncDispose]: () => disposing.disposeAsync(),
  };
}
