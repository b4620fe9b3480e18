import { AGENT_PORT } from "../vsock/vsock-connection.ts";

export interface GuestIdentity {
  readonly hostname: string;
  readonly maxProcesses: number;
}

/**
 * Arguments of the kernel, then what the guest is told of itself, and the agent's, which the kernel passes on because it does
 * not know it. It is one word without dashes: Firecracker's reading of `--` differs from the kernel's, and between its versions.
 * Firecracker ends when its guest reboots, and knows no other way for a guest to end: a panic reboots at once.
 */
export function bootArguments(identity?: GuestIdentity): string {
  return [
    ...["console=ttyS0", "quiet", "loglevel=4", "panic=-1", "reboot=k", "tsc=reliable", "mitigations=off"],
    ...["random.trust_cpu=on", "no_timer_check", "8250.nr_uarts=1", "cryptomgr.notests"],
    // There is a keyboard controller for the reset alone.
    ...["i8042.noaux", "i8042.nomux", "i8042.dumbkbd"],
    ...(identity === undefined
      ? []
      : [`sandpiper.hostname=${identity.hostname}`, `sandpiper.processes=${identity.maxProcesses}`]),
    `init,vsock:${AGENT_PORT},user`,
  ].join(" ");
}
