import type { Call, Handlers } from "../call.ts";
import { publicOrigin } from "../public-origin.ts";

type Operation = "listPorts" | "getPreview" | "setPreview" | "createLink" | "revokeLinks";

export const previewHandlers: Pick<Handlers, Operation> = {
  async listPorts(call) {
    const { previews } = call.deps;
    const live = call.open();
    const origin = publicOrigin(call);
    const { publicPorts } = live.record;
    const items = (await live.ports()).map(({ port, address, pid, program }) => {
      const url = previews.addresses.urlOf({ sandboxId: live.id, port }, origin);
      return { port, address, pid, program, url, isPublic: publicPorts.includes(port) };
    });
    return { items };
  },

  getPreview: (call) =>
    call.deps.previews.describe(call.principal, recordOf(call, { readOnly: true }), {
      port: call.params.port,
      origin: publicOrigin(call),
    }),

  async setPreview(call) {
    const { principal, params, body, deps } = call;
    const { id, port } = params;
    const { previews } = deps;
    const record = await previews.setPublic(principal, id, { port, isPublic: body.isPublic });
    return previews.describe(principal, record, { port, origin: publicOrigin(call) });
  },

  createLink: (call) =>
    call.deps.previews.link(recordOf(call, { readOnly: false }), { ...call.body, origin: publicOrigin(call) }),

  revokeLinks: ({ principal, params, deps }) => deps.previews.revoke(principal, params.id),
};

/** The record of the sandbox, which need not run. */
function recordOf(call: Call<"getPreview" | "createLink">, { readOnly }: { readonly readOnly: boolean }) {
  const { saved, principal, params, deps } = call;
  return saved?.record ?? deps.access.find(principal, params.id, { readOnly });
}
