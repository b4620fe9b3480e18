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

/** A provider with an image and a state directory of its own on some engine; nothing is left of them at the end. */
export interface EngineFixture extends AsyncDisposable {
  readonly url: string;
  /** For looking at what the provider does. */
  readonly engine: Engine;
  readonly provider: DockerProvider;
  readonly image: string;
  readonly stateDirectory: string;
  create(options?: SandboxConfigOptions): Promise<Sandbox>;
  /** Of another program, as it were: with the same state on the same engine. */
  newProvider(options?: Partial<DockerOptions>): DockerProvider;
}

/** The engine that `start` gives ends with the fixture. */
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
