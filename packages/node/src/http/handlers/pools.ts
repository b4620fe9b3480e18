import type { Handlers } from "../call.ts";

export const poolHandlers: Handlers<"listPools" | "setPool"> = {
  async listPools({ deps }) {
    return { items: deps.pool.list() };
  },

  setPool: async ({ body, deps }) => deps.pool.set(body),
};
