import type { Sandbox } from "@sandpiper/core";
import { createSandbox } from "@sandpiper/node";
import { benchDaemon, IMAGE } from "../docker/bench-image.ts";
import { EXEC_INSTANCES, nextInTurn, type SubjectDefinition } from "../subject.ts";
import { timeTrue } from "../timed-run.ts";

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
    return {
      async createToReady() {
        const startedAt = performance.now();
        await using _ = await createSandbox(options);
        return performance.now() - startedAt;
      },

      execTrue: (count, restMs) => timeTrue(nextInTurn(sandboxes), "/bin/true", { count, restMs }),
    };
  },
};
