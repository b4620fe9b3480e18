import { type Clock, systemClock } from "@sandpiper/core";
import {
  type ListSandboxesQuery,
  listSandboxesQuerySchema,
  type NodeResource,
  type SandboxId,
} from "@sandpiper/protocol";
import type { Principal } from "../../auth/principal.ts";
import { NODE_PROOF_HEADER, NodeProof } from "../../cluster/node-proof.ts";
import { NUDGE_PATH } from "../../cluster/nudge.ts";
import { errorResponse, publicError } from "../../http/error-response.ts";
import { readQuery } from "../../http/read-query.ts";
import { requestIdOf } from "../../http/request-context.ts";
import { type Serving, serve } from "../../server/serve.ts";
import type { SandboxListPage } from "../cluster-list.ts";
import { Peers } from "../peers.ts";
import { type Bindings, RequestForwarder } from "../request-forwarder.ts";

const PRINCIPAL: Principal = {
  kind: "key",
  keyId: "0a1b2c3d",
  tenant: "t",
  scopes: ["sandboxes"],
};

type Answer = (request: Request, bindings: Bindings) => Response | Promise<Response>;

interface TestPeer {
  readonly id: string;
  readonly peers: Peers;
  readonly answer: Answer;
}

/** Nodes that know each other and forward requests; tests supply their answers. */
export class ClusterNodes implements AsyncDisposable {
  /** Sandbox ids and the nodes that own them. */
  readonly holders = new Map<string, string>();
  readonly nudges: string[] = [];
  readonly #undo = new AsyncDisposableStack();
  readonly #nodes = new Map<string, { readonly serving: Serving; readonly proof: NodeProof }>();

  async start(id: string, answer: Answer, clock: Clock = systemClock): Promise<string> {
    const nodeId = nodeIdOf(id);
    let peers: Peers | undefined;
    const serving = await serve({
      host: "127.0.0.1",
      port: 0,
      app: { fetch: (request, env) => this.#fetch({ id, peers: peers as Peers, answer }, request, env as Bindings) },
    });
    this.#undo.defer(() => serving.close({ graceMs: 0 }));
    const proof = new NodeProof({
      keys: [new Uint8Array(32)],
      node: { id: nodeId, url: serving.url },
      clock: systemClock,
    });
    this.#nodes.set(id, { serving, proof });
    peers = new Peers({
      proof,
      forwarder: this.#undo.use(new RequestForwarder({ proof, clock, recheckMs: 1000 })),
      isOwnedBy: async (sandbox, owner) => nodeIdOf(this.holders.get(sandbox) ?? "") === owner,
      onNudge: (sandbox) => this.nudges.push(`${id} ${sandbox}`),
      nodes: async () => this.#list(id),
      stored: { list: async () => ({ items: [], isMore: false }) },
    });
    return serving.url;
  }

  /** Forwards requests about sandboxes of other nodes, completes lists, and gives the test's answer to the rest. */
  async #fetch({ id, peers, answer }: TestPeer, request: Request, bindings: Bindings): Promise<Response> {
    const requestId = requestIdOf(request, () => crypto.randomUUID());
    try {
      const { pathname, search } = new URL(request.url);
      if (pathname === NUDGE_PATH && request.headers.has(NODE_PROOF_HEADER)) return await peers.receiveNudge(request);
      const isForwarded = peers.isForwarded(request);
      const sandbox = /^\/v1\/sandboxes\/([^/]+)/.exec(pathname)?.[1] ?? "";
      const holder = this.holders.get(sandbox);
      if (holder !== undefined && holder !== id && !isForwarded) {
        const location = { kind: "node", id: nodeIdOf(holder), url: this.#node(holder).serving.url } as const;
        return await peers.forward(request, sandbox as SandboxId, location, { requestId, bindings });
      }
      const answered = await answer(request, bindings);
      if (isForwarded || pathname !== "/v1/sandboxes" || answered.status !== 200) return answered;
      const query = readQuery(listSandboxesQuerySchema, `x${search}`) as ListSandboxesQuery;
      const own = (await answered.json()) as SandboxListPage;
      const { missingNodes, ...page } = await peers.list(request, own, { principal: PRINCIPAL, query, requestId });
      return Response.json(page, { headers: { missing: missingNodes.join(", ") } });
    } catch (thrown) {
      return errorResponse(publicError(thrown), { requestId, headers: { "x-request-id": requestId } });
    }
  }

  proofOf(id: string): NodeProof {
    return this.#node(id).proof;
  }

  async stop(id: string): Promise<void> {
    await this.#node(id).serving.close({ graceMs: 0 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#undo.disposeAsync();
  }

  #list(asker: string): readonly NodeResource[] {
    return [...this.#nodes].map(([id, { serving }]) => ({
      id: nodeIdOf(id),
      url: serving.url,
      startedAt: "",
      seenAt: "",
      isAlive: true,
      isDraining: false,
      isThisNode: id === asker,
      sandboxes: 0,
      version: "",
    }));
  }

  #node(id: string) {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`no node ${id}`);
    return node;
  }
}

function nodeIdOf(id: string): string {
  return `00000000-0000-4000-8000-00000000000${id}`;
}
