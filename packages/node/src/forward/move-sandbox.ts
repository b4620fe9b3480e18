import { SandboxError } from "@sandpiper/core";
import type { MoveSandboxBody, NodeResource, SandboxId, SandboxResource } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import { nodeUnreachable } from "../cluster/peer-errors.ts";
import type { FoundSandbox, Locator } from "../handoff/locator.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { ended } from "../sandboxes/sandbox-errors.ts";
import type { Peers } from "./peers.ts";

export interface MoveRequest {
  readonly id: string;
  readonly body: MoveSandboxBody;
  readonly principal: Principal;
  /** The caller's request, whose credential the other node checks again. */
  readonly request: Request;
  readonly requestId: string;
}

export interface MoveParts {
  readonly locator: Pick<Locator, "find" | "bring">;
  /** Undefined on a standalone node. */
  readonly peers?: Pick<Peers, "nodes" | "handOff"> | undefined;
}

/** With one of these reasons, the node did not take the sandbox, which stayed where it was. */
const REFUSALS: readonly string[] = [
  "incompatible_node",
  "provider_not_configured",
  "unusable_image",
  "node_stopping",
  "target_node_unreachable",
];

/** Moves a sandbox to the named node, or to the node with the fewest sandboxes that accepts it. */
export async function moveSandbox({ locator, peers }: MoveParts, move: MoveRequest): Promise<SandboxResource> {
  const { id, principal, body, request } = move;
  const found = await locator.find(principal, id);
  if (found.record.endedAt !== null) throw ended(found.record);
  if (peers === undefined) throw standalone(id);
  const handOffTo = async (node: NodeResource) => {
    requireReady(node, found);
    if (!node.isThisNode) return await peers.handOff(node, id as SandboxId, move);
    return await locator.bring(principal, id, { takeover: body.takeover ?? false, signal: request.signal });
  };
  const nodes = await peers.nodes();
  if (body.node !== undefined) return await handOffTo(findNode(nodes, body.node));
  const refusals: string[] = [];
  for (const node of leastLoadedFirst(nodes, found)) {
    try {
      return await handOffTo(node);
    } catch (thrown) {
      const error = SandboxError.from(thrown);
      if (!REFUSALS.includes(error.reason)) throw error;
      refusals.push(`node ${node.id}: ${error.message}`);
    }
  }
  throw noNode(id, refusals);
}

/** Checked before the owner saves the sandbox. */
function requireReady(node: NodeResource, { record, owner }: FoundSandbox): void {
  if (!node.isAlive) throw nodeUnreachable(node, `its last heartbeat was at ${node.seenAt}`);
  if (node.id === owner) return;
  requireCheckpoints(record);
  if (node.isDraining) throw draining(node);
}

/** Resolves an id or the beginning of one. */
function findNode(nodes: readonly NodeResource[], text: string): NodeResource {
  const matches = nodes.filter(({ id }) => id === text || id.startsWith(text));
  const [only, other] = matches;
  if (only === undefined) throw noSuchNode(text);
  if (other === undefined) return only;
  throw new SandboxError("ambiguous_name", {
    message: `node ${JSON.stringify(text)} is ambiguous, with ${matches.length} matches`,
    hint: "use more of the node's id",
  });
}

/** Nodes that have the sandbox's runtime come first: the others would refuse it. */
function leastLoadedFirst(nodes: readonly NodeResource[], { owner, runtime }: FoundSandbox): readonly NodeResource[] {
  const lacksRuntime = ({ runtimes }: NodeResource) => Number(runtime !== undefined && !runtimes?.includes(runtime));
  return nodes
    .filter(({ id, url, isThisNode, isAlive, isDraining }) => {
      return isAlive && !isDraining && id !== owner && (isThisNode || url !== null);
    })
    .toSorted((one, other) => lacksRuntime(one) - lacksRuntime(other) || one.sandboxes - other.sandboxes);
}

function requireCheckpoints({ id, provider, fidelity }: SandboxRecord): void {
  if (fidelity !== "none") return;
  throw new SandboxError("provider_lacks_capability", {
    message: `sandbox ${id} cannot be moved: provider ${provider} does not support checkpoints`,
    details: { id, provider, capability: "checkpoint" },
  });
}

function standalone(id: string): SandboxError {
  return new SandboxError("no_cluster", {
    message: `cannot move sandbox ${id}: this node is standalone`,
    hint: "start nodes with the same SANDPIPER_STORE and SANDPIPER_CLUSTER_SECRET",
  });
}

function noSuchNode(text: string): SandboxError {
  return new SandboxError("no_such_node", {
    message: `this cluster has no node ${JSON.stringify(text)}`,
    details: { node: text },
  });
}

function draining(node: NodeResource): SandboxError {
  return new SandboxError("node_stopping", {
    message: `node ${node.id} is draining and accepts no sandboxes`,
    hint: "move the sandbox to another node",
  });
}

function noNode(id: string, refusals: readonly string[]): SandboxError {
  const why = refusals.length === 0 ? "no other node is alive and accepts sandboxes" : refusals.join("; ");
  return new SandboxError("no_node_for_sandbox", { message: `cannot move sandbox ${id}: ${why}`, details: { id } });
}
