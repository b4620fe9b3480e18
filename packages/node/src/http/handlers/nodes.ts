import type { Handlers } from "../call.ts";

export const clusterHandlers: Handlers<"listNodes" | "drainNode"> = {
  async listNodes({ deps }) {
    return { items: [...(await deps.nodes.list())] };
  },

  async drainNode({ body, deps }) {
    await deps.nodes.drain(body);
    return undefined;
  },
};
