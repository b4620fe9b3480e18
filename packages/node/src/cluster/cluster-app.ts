import { randomUUID } from "node:crypto";
import { SandboxError } from "@sandpiper/core";
import { isSandboxId, type NodeResource, type SandboxId, sandboxIdSchema } from "@sandpiper/protocol";
import { z } from "zod";
import type { Authenticator } from "../auth/principal.ts";
import type { Bindings } from "../http/call.ts";
import { corsHeaders } from "../http/cors.ts";
import { credentialOf } from "../http/credential.ts";
import { errorResponse, publicError } from "../http/error-response.ts";
import { requestIdOf } from "../http/request-id.ts";
import { listEverywhere } from "../forward/cluster-list.ts";
import { NODE_PROOF_HEADER, type NodeProof } from "./node-proof.ts";
import { NUDGE_PATH } from "./nudge.ts";
import { movedOn } from "./peer-errors.ts";
import type { RequestForwarder } from "../forward/request-forwarder.ts";
import type { SandboxesAtRest } from "../handoff/sandboxes-at-rest.ts";
import type { Whereabouts } from "./whereabouts.ts";

/** What answers requests: a Hono app is one. */
interface FetchHandler {
  fetch(request: Request, bindings: Bindings): Response | Promise<Response>;
}

export interface ClusterAppOptions {
  /** The node's own interface. */
  readonly app: FetchHandler;
  readonly proof: NodeProof;
  readonly forwarder: RequestForwarder;
  readonly whereabouts: Whereabouts;
  readonly authenticator: Authenticator;
  /** Asks the store about a credential that is not known here. */
  readonly learn: (credential: string | undefined) => Promise<void>;
  /** Another node waits for a sandbox of this one, or this one for one of the other's, and its lock has changed. */
  readonly onNudge: (id: SandboxId) => void;
  /** Those that lately lived. */
  readonly nodes: () => Promise<readonly NodeResource[]>;
  readonly atRest: Pick<SandboxesAtRest, "list">;
  readonly corsOrigins: readonly string[];
}

const SANDBOX_PATH = /^\/v1\/sandboxes\/([^/?]+)(\/handoff(?=\?|$))?/;
const EVENTS_PATH = /^\/v1\/events\?(.*)$/;
const LIST_PATH = /^\/v1\/sandboxes(\?|$)/;
const MAX_NUDGE_BYTES = 1024;
const nudgeSchema = z.strictObject({ sandbox: sandboxIdSchema });

/**
 * The interface of a node in a cluster: what is about a sandbox of another node goes there, everything else is the
 * node's own. A request that comes from a node is never passed on again, so that none goes in circles.
 */
export class ClusterApp implements FetchHandler {
  readonly #options: ClusterAppOptions;

  constructor(options: ClusterAppOptions) {
    this.#options = options;
  }

  async fetch(request: Request, bindings: Bindings = {}): Promise<Response> {
    const requestId = requestIdOf(request, randomUUID);
    try {
      const path = pathOf(request.url);
      const proof = request.headers.get(NODE_PROOF_HEADER);
      if (proof !== null) return await this.#fromNode(request, { proof, path, bindings });
      return await this.#fromClient(request, { path, requestId, bindings });
    } catch (thrown) {
      const error = request.signal.aborted ? SandboxError.from(thrown, "canceled") : publicError(thrown);
      const headers = { "x-request-id": requestId, "x-content-type-options": "nosniff" };
      return errorResponse(error, { requestId, headers: { ...headers, ...corsHeaders(request, this.#options) } });
    }
  }

  async #fromClient(request: Request, { path, requestId, bindings }: ClientRequest): Promise<Response> {
    const { app, whereabouts, authenticator, learn, forwarder, atRest } = this.#options;
    const credential = credentialOf(request);
    await learn(credential);
    if (request.method === "GET" && LIST_PATH.test(path)) {
      const own = await app.fetch(request, bindings);
      if (own.status !== 200) return own;
      const principal = authenticator.authenticate(credential);
      const nodes = await this.#options.nodes();
      return await listEverywhere(request, { own, principal, path, requestId, nodes, forwarder, atRest });
    }
    const id = foreignSandbox(path);
    if (id === undefined || request.method === "OPTIONS" || whereabouts.isHere(id)) return app.fetch(request, bindings);
    // Nothing is looked up for whom this node does not let in; its own interface says so, and writes it down.
    if (!mayAsk(authenticator, credential, id)) return app.fetch(request, bindings);
    const found = await whereabouts.find(id);
    if (found.kind !== "node") return app.fetch(request, bindings);
    const isStillRight = async () => {
      const now = await whereabouts.find(id);
      return now.kind === "node" && now.id === found.id;
    };
    return await forwarder.forward(request, { url: found.url, path, requestId, bindings, isStillRight });
  }

  async #fromNode(request: Request, { proof, path, bindings }: NodeRequest): Promise<Response> {
    const { app, whereabouts } = this.#options;
    if (request.method === "POST" && path === NUDGE_PATH) return await this.#nudge(request, proof);
    this.#options.proof.verify(proof, { method: request.method, path });
    const id = foreignSandbox(path);
    if (id !== undefined && !whereabouts.isHere(id)) {
      const { kind } = await whereabouts.find(id);
      if (kind === "node") throw movedOn(id);
    }
    return app.fetch(request, bindings);
  }

  async #nudge(request: Request, proof: string): Promise<Response> {
    // Whoever asks has proved nothing before the body is read.
    const lengthBytes = Number(request.headers.get("content-length") ?? Number.POSITIVE_INFINITY);
    if (!(lengthBytes <= MAX_NUDGE_BYTES)) throw malformedNudge();
    const body = new Uint8Array(await request.arrayBuffer());
    this.#options.proof.verify(proof, { method: "POST", path: NUDGE_PATH, body });
    const nudge = nudgeSchema.safeParse(JSON.parse(Buffer.from(body).toString()));
    if (!nudge.success) throw malformedNudge();
    this.#options.onNudge(nudge.data.sandbox);
    return new Response(null, { status: 204 });
  }
}

interface ClientRequest {
  readonly path: string;
  readonly requestId: string;
  readonly bindings: Bindings;
}

interface NodeRequest {
  readonly proof: string;
  readonly path: string;
  readonly bindings: Bindings;
}

/** With its query. */
function pathOf(url: string): string {
  return url.slice(url.indexOf("/", url.indexOf("//") + 2));
}

/** The sandbox that a path is about, unless it asks this very node for something. Its events are where it is. */
function foreignSandbox(path: string): SandboxId | undefined {
  const [, query] = EVENTS_PATH.exec(path) ?? [];
  const [, inPath, handoff] = SANDBOX_PATH.exec(path) ?? [];
  const id = query === undefined ? inPath : new URLSearchParams(query).get("sandbox");
  return handoff === undefined && isSandboxId(id) ? id : undefined;
}

function mayAsk(authenticator: Authenticator, credential: string | undefined, id: SandboxId): boolean {
  try {
    const principal = authenticator.authenticate(credential);
    return principal.kind === "key" || principal.sandboxId === id;
  } catch {
    return false;
  }
}

function malformedNudge(): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "malformed_nudge",
    message: "another node's nudge names no sandbox",
    hint: "run the same version of Sandpiper on all nodes",
  });
}
