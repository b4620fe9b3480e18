import type { IncomingMessage } from "node:http";
import { NODE_PROOF_HEADER } from "../cluster/node-proof.ts";
import { ownerUnreachable } from "../cluster/peer-errors.ts";
import { endToEnd } from "../forward/hop-by-hop.ts";
import type { Peers } from "../forward/peers.ts";
import { PREVIEW_HEADER } from "../forward/request-forwarder.ts";
import type { NodeLocation } from "../handoff/locator.ts";
import { claimOf } from "./preview-context.ts";
import type { PreviewContext } from "./preview-headers.ts";
import type { Upstream } from "./upstream.ts";

/** Written by this node. */
const REPLACED = new Set(["host", NODE_PROOF_HEADER, PREVIEW_HEADER]);

export interface NodeUpstreamOptions {
  readonly peers: Peers;
  readonly owner: NodeLocation;
  readonly context: PreviewContext;
  readonly request: IncomingMessage;
}

/** The node that owns the sandbox. It decides who may use the preview, and answers as this node would. */
export function nodeUpstream({ peers, owner, context, request }: NodeUpstreamOptions): Upstream {
  const { sandboxId, port, path } = context.address;
  return {
    open(upgrade) {
      const headers = [...endToEnd(request.rawHeaders)].filter(([name]) => !REPLACED.has(name)).flat();
      if (request.headers["transfer-encoding"] !== undefined) headers.push("transfer-encoding", "chunked");
      if (upgrade !== undefined) headers.push("connection", "Upgrade", "upgrade", upgrade);
      const relayed = {
        method: request.method ?? "GET",
        path: `/v1/sandboxes/${sandboxId}/ports/${port}${path}`,
        headers,
        claim: claimOf(context),
      };
      return peers.openPreview(relayed, sandboxId, owner);
    },
    answerHeaders: ({ rawHeaders }) => [...endToEnd(rawHeaders)].flat(),
    explain: async (thrown) => ownerUnreachable(owner.url, thrown, owner.leaseEndsInMs),
  };
}
