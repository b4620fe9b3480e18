import * as checkpoint from "./checkpoint.ts";
import { change, json, look, make, type Route, remove, SANDBOX } from "./route.ts";
import * as sandbox from "./sandbox.ts";

const CHECKPOINT = `${SANDBOX}/checkpoints/{checkpoint}`;

/** Operations on checkpoints. */
export const checkpointRoutes = {
  createCheckpoint: {
    ...make,
    path: `${SANDBOX}/checkpoints`,
    summary: "Create a checkpoint of a sandbox; the sandbox keeps running unless stop is true",
    access: "sandbox",
    body: json(checkpoint.createCheckpointBodySchema),
    answer: json(checkpoint.checkpointResourceSchema),
  },
  listCheckpoints: {
    ...look,
    path: `${SANDBOX}/checkpoints`,
    summary: "List a sandbox's checkpoints, newest first",
    access: "sandbox",
    answer: json(checkpoint.checkpointListSchema),
  },
  getCheckpoint: {
    ...look,
    path: CHECKPOINT,
    summary: "Get a checkpoint by id or name",
    access: "sandbox",
    answer: json(checkpoint.checkpointResourceSchema),
  },
  deleteCheckpoint: { ...remove, path: CHECKPOINT, summary: "Delete a checkpoint", access: "sandbox" },
  forkSandbox: {
    ...make,
    path: `${SANDBOX}/fork`,
    summary: "Fork a sandbox: create copies of its current state or of a checkpoint",
    access: "sandboxes",
    body: json(checkpoint.forkBodySchema),
    answer: json(sandbox.sandboxListSchema),
  },
  pauseSandbox: {
    ...change,
    path: `${SANDBOX}/pause`,
    summary: "Pause a sandbox",
    access: "sandbox",
    answer: json(sandbox.sandboxResourceSchema),
  },
  resumeSandbox: {
    ...change,
    path: `${SANDBOX}/resume`,
    summary: "Resume a paused or stopped sandbox",
    access: "sandbox",
    answer: json(sandbox.sandboxResourceSchema),
  },
  rollbackSandbox: {
    ...change,
    path: `${SANDBOX}/rollback`,
    summary: "Roll a sandbox back to one of its checkpoints",
    access: "sandbox",
    body: json(checkpoint.rollbackBodySchema),
    answer: json(sandbox.sandboxResourceSchema),
  },
  moveSandbox: {
    ...change,
    path: `${SANDBOX}/move`,
    summary: "Move a sandbox to another node of the cluster",
    access: "sandbox",
    body: json(checkpoint.moveSandboxBodySchema),
    answer: json(sandbox.sandboxResourceSchema),
  },
  handoffSandbox: {
    ...change,
    path: `${SANDBOX}/handoff`,
    summary: "Move a sandbox to the node that answers",
    access: "sandbox",
    body: json(checkpoint.handoffBodySchema),
    answer: json(sandbox.sandboxResourceSchema),
  },
} as const satisfies Record<string, Route>;
