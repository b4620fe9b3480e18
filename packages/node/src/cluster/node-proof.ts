import { createHash, createHmac, randomBytes as cryptoRandomBytes, timingSafeEqual } from "node:crypto";
import { type Clock, SandboxError } from "@sandpiper/core";

/** `<node id> <unix ms> <nonce> <signature>`: a node of the cluster asks this, now, and only once. */
export const NODE_PROOF_HEADER = "x-sandpiper-node";

const PROOF = /^([0-9a-f-]{36}) (\d{1,15}) ([A-Za-z0-9_-]{22}) ([A-Za-z0-9_-]{43})$/;
/** How far the clocks of two nodes, and the time on the way, may be apart. */
const WINDOW_MS = 30_000;
const NONCE_BYTES = 16;

export interface NodeProofOptions {
  readonly key: Uint8Array;
  readonly node: { readonly id: string; readonly url: string };
  readonly clock: Clock;
  readonly randomBytes?: ((size: number) => Uint8Array) | undefined;
}

export interface ProvenRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  /** Undefined: it is streamed, or there is none. */
  readonly body?: Uint8Array | undefined;
}

/**
 * How nodes of a cluster know each other. The secret never leaves a node: what is sent is a signature of one request to
 * one node, which is good for this request, there, for half a minute, once.
 */
export class NodeProof {
  readonly #key: Uint8Array;
  readonly #node: { readonly id: string; readonly url: string };
  readonly #clock: Clock;
  readonly #randomBytes: (size: number) => Uint8Array;
  /** Nonces by when they may be forgotten, in that order. */
  readonly #seen = new Map<string, number>();

  constructor({ key, node, clock, randomBytes = cryptoRandomBytes }: NodeProofOptions) {
    this.#key = key;
    this.#node = node;
    this.#clock = clock;
    this.#randomBytes = randomBytes;
  }

  /** The header's value for a request to the node that is known by this URL. */
  sign(request: ProvenRequest, targetUrl: string): string {
    const at = String(this.#clock.now().getTime());
    const nonce = Buffer.from(this.#randomBytes(NONCE_BYTES)).toString("base64url");
    const { id } = this.#node;
    return `${id} ${at} ${nonce} ${this.#signature(request, [id, targetUrl, at, nonce])}`;
  }

  /** Gives the id of the node that asks; throws `unauthenticated` when it has not proved that it is one. */
  verify(header: string, request: ProvenRequest): string {
    const [, id, at, nonce, signature] = PROOF.exec(header) ?? [];
    if (id === undefined || at === undefined || nonce === undefined || signature === undefined) throw unproven();
    const expected = this.#signature(request, [id, this.#node.url, at, nonce]);
    if (!timingSafeEqual(Buffer.from(expected), Buffer.from(signature))) throw unproven();
    const nowMs = this.#clock.now().getTime();
    if (Math.abs(nowMs - Number(at)) > WINDOW_MS) throw unproven();
    this.#forgetOld();
    if (this.#seen.has(nonce)) throw unproven();
    // One that is from ahead of this node's time stays good for up to twice the window.
    this.#seen.set(nonce, this.#clock.monotonicMs() + 2 * WINDOW_MS);
    return id;
  }

  #signature({ method, path, body }: ProvenRequest, parts: readonly string[]): string {
    const hash = body === undefined ? "-" : createHash("sha256").update(body).digest("base64url");
    return createHmac("sha256", this.#key)
      .update(JSON.stringify([...parts, method, path, hash]))
      .digest("base64url");
  }

  #forgetOld(): void {
    const now = this.#clock.monotonicMs();
    for (const [nonce, untilMs] of this.#seen) {
      if (untilMs > now) return;
      this.#seen.delete(nonce);
    }
  }
}

function unproven(): SandboxError {
  return new SandboxError("unauthenticated", {
    reason: "bad_node_proof",
    message: "the request says that it comes from a node of this cluster, and does not prove it",
    hint: "nodes of one cluster need the same secret, and clocks that are at most 30 seconds apart; see docs/cluster.md",
  });
}
