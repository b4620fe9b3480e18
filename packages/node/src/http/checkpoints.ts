import type { CheckpointService } from "../service/checkpoint-service.ts";
import type { Handlers } from "./call.ts";
import { installed } from "./installed.ts";
import type { HttpDependencies } from "./ports.ts";

export const checkpointHandlers: Handlers<
  | "createCheckpoint"
  | "listCheckpoints"
  | "getCheckpoint"
  | "deleteCheckpoint"
  | "forkSandbox"
  | "pauseSandbox"
  | "resumeSandbox"
  | "rollbackSandbox"
  | "handoffSandbox"
> = {
  createCheckpoint: ({ principal, params, body, deps }) => checkpointsOf(deps).create(principal, params.id, body),

  async listCheckpoints({ principal, params, deps }) {
    return { items: [...(await checkpointsOf(deps).list(principal, params.id))] };
  },

  getCheckpoint: ({ principal, params, deps }) => checkpointsOf(deps).get(principal, params.id, params.checkpoint),

  async deleteCheckpoint({ principal, params, deps }) {
    await checkpointsOf(deps).remove(principal, params.id, params.checkpoint);
    return undefined;
  },

  async forkSandbox({ principal, params, body, deps }) {
    return { items: [...(await checkpointsOf(deps).fork(principal, params.id, body))] };
  },

  pauseSandbox: ({ principal, params, deps }) => checkpointsOf(deps).pause(principal, params.id),

  resumeSandbox: ({ principal, params, deps }) => checkpointsOf(deps).resume(principal, params.id),

  rollbackSandbox: ({ principal, params, body, deps }) => checkpointsOf(deps).rollback(principal, params.id, body),

  handoffSandbox: ({ principal, params, body, deps }) => checkpointsOf(deps).handoff(principal, params.id, body),
};

function checkpointsOf({ checkpoints }: HttpDependencies): CheckpointService {
  return installed(checkpoints, "no_checkpoints");
}
