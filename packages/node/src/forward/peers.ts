import type { IncomingMessage } from "node:http";
import { SandboxError } from "@sandpiper/core";
import { type ListSandboxesQuery, type NodeResource, type SandboxId, sandboxIdSchema } from "@sandpiper/protocol";
import { z } from "zod";
import type { Principal } from "../auth/principal.ts";
import { NODE_PROOF_HEADER, type NodeProof } from "../cluster/node-proof.ts";
import { NUDGE_PATH } from "../cluster/nudge.ts";
import type { NodeLocation } from "../handoff/locator.ts";
import type { StoredSandboxes } from "../handoff/stored-sandboxes.ts";
import { type ClusterPage, clusterList, type SandboxListPage } from "./cluster-list.ts";
import { type Bindings, pathOf, type RequestForwarder } from "./request-forwarder.ts";

const MAX_NUDGE_BYTES = 1024;
const nudgeSchema = z.strictObject({ sandbox: sandboxIdSchema });

export interface PeersOptions {
  readonly proof: NodeProof;
  readonly forwarder: RequestForwarder;
  readonly stored: Pick<StoredSandboxes, "list">;
  /** Nodes that were alive recently. */
  readonly nodes: () => Promise<readonly NodeResource[]>;
  /** Whether another node still owns a sandbox. */
  readonly isOwnedBy: (id: SandboxId, nodeId: string) => Promise<boolean>;
  /** A sandbox's lock has changed: another node waits for it, or has prefetched it. */
  readonly onNudge: (id: SandboxId) => void;
}

export interface PeerRequest {
  readonly requestId: string;
  readonly bindings: Bindings;
}

/** The HTTP requests between the nodes of a cluster. A forwarded request is never forwarded again. */
export class Peers {
  readonly #options: PeersOptions;

  constructor(options: PeersOptions) {
    this.#options = options;
  }

  /** Whether another node forwarded this request. Throws `unauthenticated` for a false claim. */
  isForwarded({ method, url, headers }: Request): boolean {
    const proof = headers.get(NODE_PROOF_HEADER);
    if (proof === null) return false;
    this.#options.proof.verify(proof, { method, path: pathOf(url) });
    return true;
  }

  /** As `isForwarded`, for a WebSocket. */
  isForwardedUpgrade({ headers, url = "" }: IncomingMessage): boolean {
    const proof = headers[NODE_PROOF_HEADER];
    if (proof === undefined) return false;
    this.#options.proof.verify(String(proof), { method: "GET", path: url });
    return true;
  }

  /** Sends a request about a sandbox to the node that owns it. */
  forward(request: Request, sandbox: SandboxId, { id, url }: NodeLocation, peer: PeerRequest): Promise<Response> {
    const { forwarder, isOwnedBy } = this.#options;
    return forwarder.forward(request, { ...peer, url, isStillRight: () => isOwnedBy(sandbox, id) });
  }

  /** Completes this node's page of sandboxes with those of the other nodes and of the store. */
  async list(
    request: Request,
    own: SandboxListPage,
    { principal, query, requestId }: { principal: Principal; query: ListSandboxesQuery; requestId: string },
  ): Promise<ClusterPage> {
    const { forwarder, stored, nodes } = this.#options;
    return await clusterList(request, { own, principal, query, requestId, nodes: await nodes(), forwarder, stored });
  }

  async receiveNudge(request: Request): Promise<Response> {
    const proof = request.headers.get(NODE_PROOF_HEADER);
    // The length is checked before the body is read, because the sender has proved nothing yet.
    const lengthBytes = Number(request.headers.get("content-length") ?? Number.POSITIVE_INFINITY);
    if (proof === null || !(lengthBytes <= MAX_NUDGE_BYTES)) throw malformedNudge();
    const body = new Uint8Array(await request.arrayBuffer());
    this.#options.proof.verify(proof, { method: "POST", path: NUDGE_PATH, body });
    const nudge = nudgeSchema.safeParse(JSON.parse(Buffer.from(body).toString()));
    if (!nudge.success) throw malformedNudge();
    this.#options.onNudge(nudge.data.sandbox);
    return new Response(null, { status: 204 });
  }
}

function malformedNudge(): SandboxError {
  return new SandboxError("malformed_request", { message: "a nudge from another node does not name a sandbox" });
}
