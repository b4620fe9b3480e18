import type { Handlers } from "../call.ts";

export const keyHandlers: Handlers<"createKey" | "listKeys" | "revokeKey"> = {
  createKey: async ({ body, deps }) => deps.keys.create(body),

  async listKeys({ deps }) {
    return { items: [...(await deps.keys.list())] };
  },

  async revokeKey({ params, deps }) {
    await deps.keys.revoke(params.key);
    return undefined;
  },
};
