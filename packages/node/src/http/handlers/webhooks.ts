import type { Handlers } from "../call.ts";

export const webhookHandlers: Handlers<"createWebhook" | "listWebhooks" | "deleteWebhook"> = {
  createWebhook: async ({ body, deps }) => deps.webhooks.create(body),

  async listWebhooks({ deps }) {
    return { items: [...(await deps.webhooks.list())] };
  },

  async deleteWebhook({ params, deps }) {
    await deps.webhooks.remove(params.webhook);
    return undefined;
  },
};
