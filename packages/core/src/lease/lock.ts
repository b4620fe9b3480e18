import type { SandboxId } from "@sandpiper/protocol";
import { z } from "zod";

const waiterSchema = z.object({
  node: z.string(),
  url: z.string(),
  expiresAt: z.iso.datetime(),
  /** It wants the sandbox although somebody is attached. */
  takeover: z.boolean(),
  /** Tells this wait from every other one. */
  nonce: z.string(),
});

export const lockSchema = z.object({
  /** The node that holds it; null: it was released. The lock stays then, for its epoch. */
  owner: z.string().nullable(),
  /** When the owner wrote it last, in seconds. */
  timestamp: z.int(),
  url: z.string().nullable(),
  /** One more with every acquisition; what carries a lower one is from the past. */
  epoch: z.int().positive(),
  /** By the owner's clock. */
  expiresAt: z.iso.datetime(),
  attached: z.boolean(),
  /** Tells this acquisition from every other one, so that a node recognises its own after an answer was lost. */
  nonce: z.string(),
  /** Counts writes: no two versions are the same bytes, also where a tag is a hash of them. */
  revision: z.int(),
  waiter: waiterSchema.nullable(),
});

export type Lock = z.infer<typeof lockSchema>;

/** Who wants the sandbox, as its owner sees it. */
export interface LockWaiter {
  readonly node: string;
  readonly url: string;
  readonly takeover: boolean;
}

/** Who holds a sandbox, as any node sees it. */
export interface LockView {
  readonly owner: string | null;
  readonly url: string | null;
  readonly epoch: number;
  readonly expiresAt: Date;
  /** There is an owner, and its time may not be over yet, by whatever clock. */
  readonly isLive: boolean;
  readonly isAttached: boolean;
  readonly isReleased: boolean;
  /** Whoever waits for it now; one whose time is over does not count. */
  readonly waiter: LockWaiter | null;
}

export function lockKey(id: SandboxId): string {
  return `locks/${id}.lock`;
}

/** Somebody else's time is over only when it is over by every clock within the bound. */
export function isLive({ expiresAt }: { readonly expiresAt: string }, nowMs: number, maxSkewMs: number): boolean {
  return nowMs <= Date.parse(expiresAt) + maxSkewMs;
}

export function liveWaiter({ waiter }: Lock, nowMs: number, maxSkewMs: number): Lock["waiter"] {
  return waiter !== null && isLive(waiter, nowMs, maxSkewMs) ? waiter : null;
}

export function viewLock(lock: Lock, nowMs: number, maxSkewMs: number): LockView {
  const waiter = liveWaiter(lock, nowMs, maxSkewMs);
  return {
    owner: lock.owner,
    url: lock.url,
    epoch: lock.epoch,
    expiresAt: new Date(lock.expiresAt),
    isLive: lock.owner !== null && isLive(lock, nowMs, maxSkewMs),
    isAttached: lock.attached,
    isReleased: lock.owner === null,
    waiter: waiter && { node: waiter.node, url: waiter.url, takeover: waiter.takeover },
  };
}

export function releasedLock(lock: Lock, nowMs: number): Lock {
  return {
    ...lock,
    owner: null,
    url: null,
    attached: false,
    timestamp: Math.floor(nowMs / 1000),
    expiresAt: new Date(nowMs).toISOString(),
    revision: lock.revision + 1,
  };
}
