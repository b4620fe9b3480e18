import type { ClientRequest, IncomingMessage } from "node:http";
import { SandboxError } from "@sandpiper/core";
import {
  errorFromBody,
  type ListSandboxesQuery,
  type NodeResource,
  type SandboxId,
  type SandboxResource,
  sandboxIdSchema,
} from "@sandpiper/protocol";
import { z } from "zod";
import type { Principal } from "../auth/principal.ts";
import { NODE_PROOF_HEADER, type NodeProof } from "../cluster/node-proof.ts";
import { NUDGE_PATH } from "../cluster/nudge.ts";
import { nodeUnreachable, ownerUnreachable } from "../cluster/peer-errors.ts";
import type { NodeLocation } from "../handoff/locator.ts";
import type { StoredSandboxes } from "../handoff/stored-sandboxes.ts";
import { type ClusterPage, clusterList, type SandboxListPage } from "./cluster-list.ts";
import {
  type Bindings,
  PREVIEW_HEADER,
  pathOf,
  type RelayedRequest,
  type RequestForwarder,
} from "./request-forwarder.ts";

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

export interface HandOffRequest {
  readonly request: Request;
  readonly requestId: string;
  readonly body: { readonly takeover?: boolean | undefined };
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
  async forward(request: Request, sandbox: SandboxId, owner: NodeLocation, peer: PeerRequest): Promise<Response> {
    const { forwarder, isOwnedBy } = this.#options;
    const { id, url, leaseEndsInMs } = owner;
    try {
      return await forwarder.forward(request, { ...peer, url, isStillRight: () => isOwnedBy(sandbox, id) });
    } catch (thrown) {
      const error = SandboxError.from(thrown);
      throw error.reason === "owner_unreachable" ? ownerUnreachable(url, error.cause, leaseEndsInMs) : error;
    }
  }

  /** The claim of a preview's request that another node forwarded; undefined for one that none forwarded. Throws `unauthenticated`. */
  previewClaim({ method = "", url = "", headers }: IncomingMessage): string | undefined {
    const [proof, claim] = [headers[NODE_PROOF_HEADER], headers[PREVIEW_HEADER]];
    if (proof === undefined) return undefined;
    const text = String(claim ?? "");
    this.#options.proof.verify(String(proof), { method, path: url, body: Buffer.from(text) });
    return text;
  }

  /** Opens the request of a preview's visitor at the node that owns the sandbox. */
  openPreview(request: RelayedRequest, sandbox: SandboxId, { id, url }: NodeLocation): ClientRequest {
    const { forwarder, isOwnedBy } = this.#options;
    return forwarder.open(request, { url, isStillRight: () => isOwnedBy(sandbox, id) });
  }

  /** All nodes that were alive recently. */
  nodes(): Promise<readonly NodeResource[]> {
    return this.#options.nodes();
  }

  /** Has another node take a sandbox over, with the caller's credential. */
  async handOff(node: NodeResource, sandbox: SandboxId, handoff: HandOffRequest): Promise<SandboxResource> {
    const { forwarder, nodes } = this.#options;
    const { request, requestId, body } = handoff;
    const { url } = node;
    if (url === null)
      throw nodeUnreachable(node, "it has no URL; use the sandbox through that node, which moves it there");
    const headers = { authorization: request.headers.get("authorization") ?? "", "content-type": "application/json" };
    const { takeover = false } = body;
    const forwarded = new Request(new URL(`/v1/sandboxes/${sandbox}/handoff`, request.url), {
      method: "POST",
      headers,
      body: JSON.stringify({ takeover }),
      signal: request.signal,
    });
    const isStillRight = async () => (await nodes()).some(({ id, isAlive }) => id === node.id && isAlive);
    let response: Response;
    try {
      // Without bindings, a truncated answer of the other node does not close the client's connection.
      response = await forwarder.forward(forwarded, { url, requestId, bindings: {}, isStillRight });
    } catch (thrown) {
      const error = SandboxError.from(thrown);
      throw error.reason === "owner_unreachable" ? nodeUnreachable(node, "it does not answer", error) : error;
    }
    const answer = await response.json().catch(() => undefined);
    if (!response.ok) throw errorFromBody(answer, { status: response.status });
    return answer as SandboxResource;
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
