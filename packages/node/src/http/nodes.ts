import type { Handlers } from "./call.ts";
import { installed } from "./installed.ts";

export const clusterHandlers: Handlers<"listNodes" | "drainNode"> = {
  async listNodes({ deps }) {
    return { items: [...(await installed(deps.nodes, "no_cluster").list())] };
  },

  async drainNode({ body, deps }) {
    await installed(deps.nodes, "no_cluster").drain(body);
    return undefined;
  },
};
