// biome-ignore-all format: one row per line makes it a table
import type { ErrorReasonEntry } from "../error-reason.ts";

export const clusterReasons = {
  cluster_identity_missing: { code: "data_loss", meaning: "The store holds the objects of a cluster, but not cluster.json, which identifies it; nothing was changed.", hint: "restore cluster.json from a backup of the store. To abandon the data, delete all objects or use another store or prefix", details: { store: "string", key: "string" } },
  handoff_timeout: { code: "deadline_exceeded", meaning: "The owner of the sandbox did not release it in time.", hint: "retry; if it fails again, check that its owner can save it" },
  handoff_under_way: { code: "unavailable", meaning: "The sandbox is moving to another node.", hint: "retry shortly", details: { node: "string?" } },
  lease_lost: { code: "conflict", meaning: "This node no longer holds the lease of the sandbox.", hint: "retry: another node may run the sandbox now", details: { epoch: "number" } },
  no_cluster: { code: "failed_precondition", meaning: "No other node could take the sandboxes of this standalone node.", hint: "stop the node: its sandboxes keep running until it starts again; or start nodes with a shared store" },
  no_cluster_secret: { code: "failed_precondition", meaning: "The store belongs to a cluster whose secret this node does not have.", hint: "set SANDPIPER_CLUSTER_SECRET, or copy cluster-secret from the home of the cluster's first node", details: { store: "string" } },
  no_node_for_sandbox: { code: "failed_precondition", meaning: "No other node can take the sandbox.", hint: "start another node with the same store, and with the sandbox's provider and runtime", details: { id: "string" } },
  no_such_node: { code: "not_found", meaning: "The cluster has no node with this id.", hint: "list the nodes to see their ids: sandpiper nodes", details: { node: "string" } },
  node_id_corrupt: { code: "data_loss", meaning: "The file with the node's id does not contain a UUID; it was left unchanged.", hint: "restore it from a backup, or remove it: the node then gets a new id, and its leases expire first", details: { path: "string" } },
  node_id_taken: { code: "failed_precondition", meaning: "Another running node has the id of this node.", hint: "stop one of the two and remove node-id from its home; do not copy a home with its node-id", details: { id: "string", url: "string?" } },
  node_stopping: { code: "unavailable", meaning: "The node is stopping.", hint: "retry when it has started again, or use another node; sandboxes keep running" },
  node_uses_earlier_secret: { code: "failed_precondition", meaning: "A live node still writes with an earlier secret of the cluster, so data cannot be encrypted again.", hint: "restart the node with the new secret as clusterSecret and the earlier one in acceptedClusterSecrets, then repeat the command", details: { id: "string" } },
  owner_has_no_url: { code: "failed_precondition", meaning: "The node that owns the sandbox has the events, and other nodes cannot reach it.", hint: "use the sandbox through this node, which moves it here, or read its events where it runs", details: { id: "string", node: "string" } },
  owner_unreachable: { code: "unavailable", meaning: "The node that holds the sandbox does not answer.", hint: "retry: if that node is down, another restores the sandbox when its lease has expired; if it only has no route from here, POST …/handoff moves the sandbox", details: { url: "string", retryAfterMs: "number?" } },
  sandbox_moved: { code: "unavailable", meaning: "The sandbox is no longer on this node.", hint: "retry: the request is then forwarded to the node that has it", details: { id: "string?" } },
  wrong_cluster_secret: { code: "failed_precondition", meaning: "The node's secret is not the secret of the cluster in this store.", hint: "give the node the same clusterSecret as the other nodes, or another store", details: { store: "string" } },
  target_node_unreachable: { code: "unavailable", meaning: "The node to which the sandbox should move does not answer.", hint: "move the sandbox to another node, or retry when this one answers; the sandbox stayed where it was", details: { node: "string", url: "string?" } },
} as const satisfies Record<string, ErrorReasonEntry>;
