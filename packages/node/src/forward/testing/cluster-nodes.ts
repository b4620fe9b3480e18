import type { Clock } from "@sandpiper/core";
import { systemClock } from "@sandpiper/core";
import { type NodeResource, SandboxError, type SandboxId } from "@sandpiper/protocol";
import type { Principal } from "../../auth/principal.ts";
import type { Whereabout } from "../../handoff/locator.ts";
import { type Serving, serve } from "../../daemon/serve.ts";
import type { Bindings } from "../../http/call.ts";
import { ClusterApp } from "../../cluster/cluster-app.ts";
import { NodeProof } from "../../cluster/node-proof.ts";
import { RequestForwarder } from "../request-forwarder.ts";

export const KEY = "spk_0a1b2c3d_key";

type Answer = (request: Request, bindings: Bindings) => Response | Promise<Response>;

/** Nodes that listen and know of each other, with interfaces that a test writes. */
export class ClusterNodes implements AsyncDisposable {
  /** By its id: which node holds a sandbox. */
  readonly holders = new Map<string, string>();
  readonly lookups: string[] = [];
  readonly nudges: string[] = [];
  readonly learnt: (string | undefined)[] = [];
  /** Credentials that every node lets in, besides the key. */
  readonly tokens = new Map<string, SandboxId>();
  readonly #undo = new AsyncDisposableStack();
  readonly #nodes = new Map<string, { readonly serving: Serving; readonly proof: NodeProof }>();

  async start(id: string, answer: Answer, clock: Clock = systemClock): Promise<string> {
    const nodeId = nodeIdOf(id);
    let app: ClusterApp | undefined;
    const serving = await serve({
      host: "127.0.0.1",
      port: 0,
      app: { fetch: (request, env) => (app as ClusterApp).fetch(request, env as Bindings) },
    });
    this.#undo.defer(() => serving.close({ graceMs: 0 }));
    const proof = new NodeProof({
      key: new Uint8Array(32),
      node: { id: nodeId, url: serving.url },
      clock: systemClock,
    });
    this.#nodes.set(id, { serving, proof });
    const forwarder = this.#undo.use(new RequestForwarder({ proof, clock, recheckMs: 1000 }));
    app = new ClusterApp({
      app: { fetch: answer },
      proof,
      forwarder,
      whereabouts: {
        isHere: (sandbox) => this.holders.get(sandbox) === id,
        find: async (sandbox) => this.#find(sandbox, id),
      },
      authenticator: { authenticate: (credential) => this.#authenticate(credential) },
      learn: async (credential) => void this.learnt.push(credential),
      onNudge: (sandbox) => this.nudges.push(`${id} ${sandbox}`),
      nodes: async () => this.#list(id),
      atRest: { list: async () => ({ items: [], isMore: false }) },
      corsOrigins: ["https://app.example"],
    });
    return serving.url;
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

  #find(sandbox: string, asker: string): Whereabout {
    this.lookups.push(sandbox);
    const holder = this.holders.get(sandbox);
    if (holder === undefined || holder === asker) return { kind: "here" };
    return { kind: "node", id: nodeIdOf(holder), url: this.#node(holder).serving.url };
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

  #authenticate(credential: string | undefined): Principal {
    const sandboxId = this.tokens.get(credential ?? "");
    if (sandboxId !== undefined) return { kind: "sandbox", sandboxId, tenant: "" };
    const quota = { maxSandboxes: null, maxMemoryMib: null, maxVcpuCount: null };
    if (credential === KEY) return { kind: "key", keyId: "0a1b2c3d", tenant: "t", scopes: ["sandboxes"], quota };
    throw new SandboxError("unauthenticated", { reason: "bad_credential", message: "not valid" });
  }

  #node(id: string) {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`there is no node ${id}`);
    return node;
  }
}

function nodeIdOf(id: string): string {
  return `00000000-0000-4000-8000-00000000000${id}`;
}
