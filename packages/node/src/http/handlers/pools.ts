import type { Handlers } from "../call.ts";

export const poolHandlers: Handlers<"listPools" | "setPool"> = {
  async listPools({ deps }) {
    return { items: [...(await deps.pools.list())] };
  },

  setPool: async ({ body, deps }) => deps.pools.set(body),
};
