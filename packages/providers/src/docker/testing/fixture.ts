import { type Dockerd, type DockerdOptions, startDockerd } from "./dockerd.ts";
import { createEngineFixture, type EngineFixture, type EngineFixtureOptions } from "./engine-fixture.ts";

export interface DockerFixtureOptions extends DockerdOptions, EngineFixtureOptions {}

/** With its own Docker Engine. */
export interface DockerFixture extends EngineFixture {
  readonly dockerd: Dockerd;
}

export async function createDockerFixture(options: DockerFixtureOptions = {}): Promise<DockerFixture> {
  const started = Promise.withResolvers<Dockerd>();
  const fixture = await createEngineFixture(async () => {
    const dockerd = await startDockerd(options);
    started.resolve(dockerd);
    return dockerd;
  }, options);
  return { ...fixture, dockerd: await started.promise };
}
