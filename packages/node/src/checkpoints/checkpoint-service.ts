import type {
  CheckpointResource,
  CreateCheckpointBody,
  DrainNodeBody,
  ForkBody,
  NodeResource,
  RollbackBody,
  SandboxResource,
} from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";

/**
 * Saved sandboxes as callers see them. As with sandboxes, everything is checked before it has any effect, and what
 * belongs to another tenant does not exist (`not_found`). A checkpoint is meant by its id or its name.
 */
export interface CheckpointService {
  create(principal: Principal, id: string, body: CreateCheckpointBody): Promise<CheckpointResource>;
  /** Newest first. */
  list(principal: Principal, id: string): Promise<readonly CheckpointResource[]>;
  get(principal: Principal, id: string, checkpoint: string): Promise<CheckpointResource>;
  remove(principal: Principal, id: string, checkpoint: string): Promise<void>;
  /** All of them, or none. */
  fork(principal: Principal, id: string, body: ForkBody): Promise<readonly SandboxResource[]>;
  pause(principal: Principal, id: string): Promise<SandboxResource>;
  resume(principal: Principal, id: string): Promise<SandboxResource>;
  rollback(principal: Principal, id: string, body: RollbackBody): Promise<SandboxResource>;
}

/** The nodes that share a store; a node without one knows itself alone. */
export interface NodeDirectory {
  list(): Promise<readonly NodeResource[]>;
  /** Resolves when no sandbox is left on this node, which takes no new ones until it is stopped. */
  drain(options: DrainNodeBody): Promise<void>;
}
