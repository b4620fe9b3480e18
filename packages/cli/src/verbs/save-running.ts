import { SandboxError } from "@sandpiper/protocol/error";
import type { Sandbox } from "@sandpiper/sdk";
import type { Notice } from "../output/print.ts";
import { requireNode } from "../target/find-node.ts";
import { livingSandboxes } from "../target/find-sandbox.ts";
import { concurrently } from "../transfer/concurrently.ts";

const PARALLEL = 4;

/** Checkpoints that a backup takes; disposing them deletes them. */
export interface SavedRunning extends AsyncDisposable {
  /** The number of running sandboxes that could not be saved. */
  readonly failed: number;
}

/** Takes a checkpoint of every running sandbox. */
export async function saveRunning(notice: Notice): Promise<SavedRunning> {
  const running = (await livingSandboxes(await requireNode())).filter(({ info }) => info.state === "ready");
  const taken: (readonly [Sandbox, string])[] = [];
  let failed = 0;
  const name = `backup-${crypto.randomUUID().slice(0, 8)}`;
  await concurrently(PARALLEL, running, async (sandbox) => {
    try {
      taken.push([sandbox, (await sandbox.checkpoint({ name })).id]);
    } catch (thrown) {
      failed += 1;
      notice(`sandbox ${sandbox.id} was not saved: ${SandboxError.from(thrown).message}`);
    }
  });
  const drop = async ([sandbox, checkpoint]: readonly [Sandbox, string]) => {
    await sandbox.deleteCheckpoint(checkpoint).catch((thrown) => {
      // The sandbox may be destroyed meanwhile.
      if (SandboxError.from(thrown).code !== "not_found") notice(`checkpoint ${checkpoint} was not deleted: ${thrown}`);
    });
  };
  return { failed, [Symbol.asyncDispose]: () => concurrently(PARALLEL, taken, drop) };
}
