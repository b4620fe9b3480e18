import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "@sandpiper/core";
import { type CreateSandboxOptions, createSandbox } from "@sandpiper/node";
import { benchDaemon, IMAGE } from "../docker/bench-image.ts";
import { EXEC_INSTANCES, nextInTurn, type Subject, type SubjectDefinition } from "../subject.ts";

export const subject: SubjectDefinition = {
  name: "sandpiper-docker",
  title: "Sandpiper's docker provider, embedded in a Node program, on docker's own daemon and image",
  async open(workspace) {
    const { host } = await benchDaemon(workspace);
    const home = await workspace.makeDir("sandpiper-docker");
    const options = { provider: "docker", home, docker: { url: host }, container: { image: IMAGE } } as const;
    const sandboxes: Sandbox[] = [];
    for (let k = 0; k < EXEC_INSTANCES; k++) {
      sandboxes.push(workspace.own(await createSandbox({ ...options, signal: workspace.signal })));
    }
    return new SandpiperDocker(options, sandboxes);
  },
};

class SandpiperDocker implements Subject {
  readonly #options: CreateSandboxOptions;
  readonly #sandboxes: Sandbox[];

  constructor(options: CreateSandboxOptions, sandboxes: Sandbox[]) {
    this.#options = options;
    this.#sandboxes = sandboxes;
  }

  async createToReady(): Promise<number> {
    const startedAt = performance.now();
    await using _ = await createSandbox(this.#options);
    return performance.now() - startedAt;
  }

  async execTrue(count: number, restMs: number): Promise<number[]> {
    const sandbox = nextInTurn(this.#sandboxes);
    const samples: number[] = [];
    for (let k = 0; k < count; k++) {
      if (restMs > 0) await sleep(restMs);
      const startedAt = performance.now();
      const { exitCode } = await sandbox.exec(["/bin/true"]);
      samples.push(performance.now() - startedAt);
      if (exitCode !== 0) throw new Error(`true in ${sandbox.id} exited with ${exitCode}`);
    }
    return samples;
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
