import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { type Clock, SandboxError } from "@sandpiper/core";

/** `<node id> <unix ms> <nonce> <signature>`: proves that a node of the cluster sent this request. */
export const NODE_PROOF_HEADER = "x-sandpiper-node";

const PROOF = /^([0-9a-f-]{36}) (\d{1,15}) ([A-Za-z0-9_-]{22}) ([A-Za-z0-9_-]{43})$/;
/** The maximum clock skew between two nodes, plus the time a request takes. */
const WINDOW_MS = 30_000;
const NONCE_BYTES = 16;

export interface NodeProofOptions {
  /** The first one signs, and all verify. */
  readonly keys: readonly [Uint8Array, ...Uint8Array[]];
  /** Without a URL, the node accepts no requests from other nodes. */
  readonly node: { readonly id: string; readonly url: string | null };
  readonly clock: Clock;
}

export interface ProvenRequest {
  readonly method: string;
  /** Including the query. */
  readonly path: string;
  /** Undefined if it is streamed or empty. */
  readonly body?: Uint8Array | undefined;
}

/**
 * Authenticates requests between the nodes of a cluster. The secret never leaves a node. A request carries a signature that is
 * valid for this request to this node, once, within 30 seconds.
 */
export class NodeProof {
  readonly #keys: NodeProofOptions["keys"];
  readonly #node: { readonly id: string; readonly url: string | null };
  readonly #clock: Clock;
  /** Nonces with the instants of their expiry, in ascending order. */
  readonly #seen = new Map<string, number>();

  constructor({ keys, node, clock }: NodeProofOptions) {
    this.#keys = keys;
    this.#node = node;
    this.#clock = clock;
  }

  /** The header's value for a request to the node with this URL. */
  sign(request: ProvenRequest, targetUrl: string): string {
    const at = String(this.#clock.now().getTime());
    const nonce = randomBytes(NONCE_BYTES).toString("base64url");
    const { id } = this.#node;
    return `${id} ${at} ${nonce} ${signature(this.#keys[0], request, [id, targetUrl, at, nonce])}`;
  }

  /** Returns the id of the node that sent the request. Throws `unauthenticated` if the proof is invalid. */
  verify(header: string, request: ProvenRequest): string {
    const [, id, at, nonce, given] = PROOF.exec(header) ?? [];
    if (id === undefined || at === undefined || nonce === undefined || given === undefined) throw unproven();
    const { url } = this.#node;
    if (url === null) throw unproven();
    const isMatch = (key: Uint8Array) =>
      timingSafeEqual(Buffer.from(signature(key, request, [id, url, at, nonce])), Buffer.from(given));
    if (!this.#keys.some(isMatch)) throw unproven();
    const nowMs = this.#clock.now().getTime();
    if (Math.abs(nowMs - Number(at)) > WINDOW_MS) throw unproven();
    this.#forgetExpired();
    if (this.#seen.has(nonce)) throw unproven();
    // A proof from a node whose clock is ahead stays valid for up to twice the window.
    this.#seen.set(nonce, this.#clock.monotonicMs() + 2 * WINDOW_MS);
    return id;
  }

  #forgetExpired(): void {
    const now = this.#clock.monotonicMs();
    for (const [nonce, untilMs] of this.#seen) {
      if (untilMs > now) return;
      this.#seen.delete(nonce);
    }
  }
}

function signature(key: Uint8Array, { method, path, body }: ProvenRequest, parts: readonly string[]): string {
  const hash = body === undefined ? "-" : createHash("sha256").update(body).digest("base64url");
  return createHmac("sha256", key)
    .update(JSON.stringify([...parts, method, path, hash]))
    .digest("base64url");
}

function unproven(): SandboxError {
  return new SandboxError("bad_node_proof", {
    message: "the request claims to come from a node of this cluster, but its proof is invalid",
  });
}
