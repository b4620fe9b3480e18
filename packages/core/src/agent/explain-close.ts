import { type Clock, SandboxError } from "@sandpiper/protocol";
import type { InstanceExit } from "../provider.ts";
import { exitError } from "./exit-error.ts";

/** An instance's channel ends a moment before its provider knows why the instance ended. */
const EXIT_GRACE_MS = 1000;

export interface ClosedChannel {
  readonly cause: Error | undefined;
  readonly label: string;
  readonly clock: Clock;
  readonly exited: Promise<InstanceExit> | undefined;
}

/** Why a channel closed: the end of its instance if there was one, else the channel's own reason. */
export async function explainClose({ cause, label, clock, exited }: ClosedChannel): Promise<SandboxError> {
  const exit = await exitWithinGrace(exited, clock);
  if (exit !== undefined) return exitError(label, exit);
  return new SandboxError("channel_closed", {
    message: `the channel to ${label} closed${cause === undefined ? "" : `: ${cause.message}`}`,
    cause,
  });
}

function exitWithinGrace(
  exited: Promise<InstanceExit> | undefined,
  clock: Clock,
): Promise<InstanceExit | undefined> | undefined {
  if (exited === undefined) return undefined;
  return new Promise((resolve) => {
    const stopTimer = clock.schedule(EXIT_GRACE_MS, () => resolve(undefined));
    exited.then((exit) => {
      stopTimer();
      resolve(exit);
    });
  });
}
