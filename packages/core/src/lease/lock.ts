import type { SandboxId } from "@sandpiper/protocol";
import { z } from "zod";

const waiterSchema = z.object({
  node: z.string(),
  /** Null if other nodes cannot reach the waiter. */
  url: z.string().nullable(),
  expiresAt: z.iso.datetime(),
  /** It takes the sandbox over from an attached client. */
  takeover: z.boolean(),
  /** Identifies this wait. */
  nonce: z.string(),
});

/** Loose: a node preserves the fields that a newer version added. */
export const lockSchema = z.looseObject({
  /** The node that holds it; null after a release. A released lock stays, for its epoch. */
  owner: z.string().nullable(),
  /** When the owner wrote it last, in seconds. */
  timestamp: z.int(),
  /** Null after a release, and for an owner that other nodes cannot reach. */
  url: z.string().nullable(),
  /** Increases with every acquisition; a write with a lower epoch is stale. */
  epoch: z.int().positive(),
  /** By the owner's clock. */
  expiresAt: z.iso.datetime(),
  attached: z.boolean(),
  /** Identifies this acquisition, so that a node recognizes its own after a lost answer. */
  nonce: z.string(),
  /** Counts writes, so that no two versions have the same bytes, even where a tag is their hash. */
  revision: z.int(),
  /** The newest revision of the state that an owner has recorded here: an older state was put back. */
  stateRevision: z.int().nonnegative().default(0),
  waiter: waiterSchema.nullable(),
});

export type Lock = z.infer<typeof lockSchema>;

/** The waiter, as the owner sees it. */
export interface LockWaiter {
  readonly node: string;
  readonly url: string | null;
  readonly takeover: boolean;
}

/** The owner, as any node sees it. */
export interface LockView {
  readonly owner: string | null;
  readonly url: string | null;
  readonly epoch: number;
  readonly expiresAt: Date;
  /** How much longer other nodes must wait if the owner is dead; 0 if it is not live. */
  readonly liveForMs: number;
  /** It has an owner whose lease may still be valid by some clock within the bound. */
  readonly isLive: boolean;
  readonly isAttached: boolean;
  readonly isReleased: boolean;
  /** The current waiter, unless its registration has expired. */
  readonly waiter: LockWaiter | null;
}

export function lockKey(id: SandboxId): string {
  return `locks/${id}.lock`;
}

/** Another node's lease has expired only if it has by every clock within the bound. */
export function isLive({ expiresAt }: { readonly expiresAt: string }, nowMs: number, maxSkewMs: number): boolean {
  return nowMs <= Date.parse(expiresAt) + maxSkewMs;
}

export function liveWaiter({ waiter }: Lock, nowMs: number, maxSkewMs: number): Lock["waiter"] {
  return waiter !== null && isLive(waiter, nowMs, maxSkewMs) ? waiter : null;
}

export function viewLock(lock: Lock, nowMs: number, maxSkewMs: number): LockView {
  const waiter = liveWaiter(lock, nowMs, maxSkewMs);
  const isOwned = lock.owner !== null && isLive(lock, nowMs, maxSkewMs);
  return {
    owner: lock.owner,
    url: lock.url,
    epoch: lock.epoch,
    expiresAt: new Date(lock.expiresAt),
    liveForMs: isOwned ? Date.parse(lock.expiresAt) + maxSkewMs - nowMs : 0,
    isLive: isOwned,
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

/** A lock that no node holds, for a state that was last claimed in this epoch: the next owner gets a higher one. */
export function lockAtRest(epoch: number, now: Date): Lock {
  return {
    owner: null,
    url: null,
    timestamp: Math.floor(now.getTime() / 1000),
    epoch,
    expiresAt: now.toISOString(),
    attached: false,
    nonce: crypto.randomUUID(),
    revision: 1,
    stateRevision: 0,
    waiter: null,
  };
}
