import type { SandboxError } from "@sandpiper/core";
import { FakeClock } from "@sandpiper/core/testing";
import { MockContainers, MockProvider } from "@sandpiper/providers";
import { composeParts } from "../compose-parts.ts";
import { parseNodeConfig } from "../config/load-node-config.ts";
import type { NodeConfigOptions } from "../config/node-config.ts";

export interface ContainerNodeOptions {
  readonly home: string;
  readonly config?: NodeConfigOptions | undefined;
  /** Of a node before this one. */
  readonly provider?: MockProvider | undefined;
}

/** The parts of a node whose provider makes containers, in memory. */
export function containerNode({ home, config = {}, provider = containerMock() }: ContainerNodeOptions) {
  const clock = new FakeClock();
  const errors: SandboxError[] = [];
  const parts = composeParts(parseNodeConfig({ docker: { image: "base:1" }, ...config, home }), {
    clock,
    providers: [provider],
    onError: (error) => errors.push(error),
  });
  const engine = provider.containers as MockContainers;
  const owner = parts.authenticator.authenticate(parts.keys.create({ name: "test", tenant: "mine" }).key);
  return {
    ...parts,
    clock,
    errors,
    provider,
    engine,
    owner,
    kinds: () => parts.events.list({ after: 0, limit: 100 }).map(({ kind }) => kind),
    /** The program dies; answers with the provider of the next. */
    die: () => {
      parts.live.release();
      parts.database[Symbol.dispose]();
      return provider.die();
    },
    [Symbol.asyncDispose]: async () => {
      await parts.pool.close();
      parts.live.release();
      parts.database[Symbol.dispose]();
    },
  };
}

/** Its engine has base:1 and base:2. */
export function containerMock(): MockProvider {
  const containers = new MockContainers();
  containers.images.set("base:1", "sha256:one").set("base:2", "sha256:two");
  return new MockProvider({ containers });
}
