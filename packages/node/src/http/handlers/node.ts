import type { Handlers } from "../call.ts";

const DEFAULT_LIMIT = 100;

export const nodeHandlers: Handlers<"getHealth" | "listAudit" | "getNodeMetrics" | "listNodes" | "drainNode"> = {
  getHealth: ({ deps }) => ({
    status: deps.phase.isDraining ? "stopping" : "ok",
    version: deps.version,
  }),

  async listAudit({ query, deps }) {
    return { items: [...(await deps.audit.list({ after: query.after ?? 0, limit: query.limit ?? DEFAULT_LIMIT }))] };
  },

  async getNodeMetrics({ headers, deps }) {
    const { contentType, text } = await deps.metrics.render();
    return new Response(text, { headers: { ...headers, "content-type": contentType } });
  },

  async listNodes({ deps }) {
    return { items: [...(await deps.nodes.list())] };
  },

  async drainNode({ body, deps }) {
    await deps.nodes.drain(body);
    return undefined;
  },
};
